"""Language models with LSTM and GRU, and a classifier of packed sequences."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.0, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp, padding_idx=0)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        self.init_weights()
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (
                weight.new_zeros(self.nlayers, bsz, self.nhid),
                weight.new_zeros(self.nlayers, bsz, self.nhid),
            )
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt=4):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


class Classifier(nn.Module):
    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.gru = nn.GRU(emb, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 2)

    def forward(self, text, lengths):
        packed = pack_padded_sequence(
            self.embedding(text), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        packed_out, hidden = self.gru(packed)
        out, out_len = pad_packed_sequence(packed_out, batch_first=True)
        hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
        mask = (torch.arange(out.size(1))[None, :] < out_len[:, None]).unsqueeze(-1)
        pooled = (out * mask).sum(1) / out_len.unsqueeze(1)
        return self.fc(hidden + pooled), out


def main(make, initialize):
    results = []
    corpus = torch.tensor(make("corpus", (62,), high=11))
    data = batchify(corpus, 4)
    for kind in ("LSTM", "GRU"):
        model = RNNModel(kind, 11, 8, 8, 2, tie_weights=True)
        initialize(model)
        criterion = nn.NLLLoss()
        hidden = model.init_hidden(4)
        lr = 2.0
        model.train()
        for batch, i in enumerate(range(0, data.size(0) - 1, 4)):
            x, y = get_batch(data, i)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(x, hidden)
            loss = criterion(output, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            results.append(loss.item())
    lengths = [5, 2, 4, 3]
    seqs = [torch.tensor(make("s%d" % n, (n,), high=9)) + 1 for n in lengths]
    text = pad_sequence(seqs, batch_first=True, padding_value=0)
    net = Classifier(11, 4, 5)
    initialize(net)
    opt = torch.optim.Adam(net.parameters(), lr=0.02)
    label = torch.tensor([0, 1, 1, 0])
    for _ in range(4):
        opt.zero_grad()
        logits, out = net(text, torch.tensor(lengths))
        loss = F.cross_entropy(logits, label)
        loss.backward()
        opt.step()
        results += [loss.item(), out.abs().sum().item()]
    results.append(net.embedding.weight[0].abs().sum().item())
    return results
