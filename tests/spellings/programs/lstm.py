"""Sequences with an LSTM: a tagger with an embedding, packed by hand, and a character model fed with its own output."""

import tandem.torch as torch
import tandem.torch.autograd as autograd
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
import tandem.torch.optim as optim


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
        super(LSTMTagger, self).__init__()
        self.hidden_dim = hidden_dim
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, num_layers=2, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hidden_dim, tagset_size)

    def init_hidden(self, batch):
        weight = next(self.parameters()).data
        return (
            weight.new_zeros(4, batch, self.hidden_dim),
            weight.new_zeros(4, batch, self.hidden_dim),
        )

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, (h, c) = self.lstm(embeds.view(len(sentence), 1, -1), self.init_hidden(1))
        tag_space = self.hidden2tag(lstm_out.view(len(sentence), -1))
        return F.log_softmax(tag_space, dim=1), h, c


class CharRNN(nn.Module):
    def __init__(self, n_chars, hidden_size):
        super().__init__()
        self.encoder = nn.Embedding(n_chars, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.cell = nn.LSTMCell(hidden_size, hidden_size)
        self.decoder = nn.Linear(hidden_size, n_chars)

    def forward(self, x, hidden):
        out, hidden = self.gru(self.encoder(x), hidden)
        hx = torch.zeros(x.size(0), out.size(2))
        cx = torch.zeros_like(hx)
        outs = []
        for t in range(out.size(1)):
            hx, cx = self.cell(out[:, t, :], (hx, cx))
            outs.append(hx)
        out = torch.stack(outs, dim=1)
        return self.decoder(out.contiguous().view(-1, out.size(-1))), hidden


def repackage(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage(v) for v in h)


def main(make, initialize):
    torch.manual_seed(1)
    model = LSTMTagger(5, 4, 11, 3)
    initialize(model)
    loss_function = nn.NLLLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    results = []
    for epoch in range(4):
        sentence = torch.tensor(make(f"words{epoch}", (6,), high=11), dtype=torch.long)
        targets = torch.tensor(make(f"tags{epoch}", (6,), high=3), dtype=torch.long)
        model.zero_grad()
        tag_scores, h, _ = model(sentence)
        loss = loss_function(tag_scores, targets)
        loss.backward()
        optimizer.step()
        results += [loss.item(), h.abs().mean().item()]
    rnn = CharRNN(9, 6)
    initialize(rnn)
    optimizer = optim.RMSprop(rnn.parameters(), lr=0.005)
    hidden = torch.zeros(1, 3, 6)
    for step in range(5):
        chars = torch.tensor(make(f"chars{step}", (3, 8), high=9))
        hidden = repackage(hidden)
        optimizer.zero_grad()
        output, hidden = rnn(chars[:, :-1], hidden)
        loss = F.cross_entropy(output, chars[:, 1:].reshape(-1))
        loss.backward()
        total_norm = nn.utils.clip_grad_norm_(rnn.parameters(), max_norm=0.25)
        for p in rnn.parameters():
            p.data.add_(p.grad, alpha=-0.01)
        optimizer.step()
        results += [loss.item(), float(total_norm)]
    x = autograd.Variable(torch.tensor([[1]]))
    hidden, text = torch.zeros(1, 1, 6), []
    with torch.no_grad():
        for _ in range(6):
            output, hidden = rnn(x, hidden)
            probs = output[-1].div(0.8).exp()
            x = probs.topk(1)[1].view(1, 1)
            text.append(x.item())
    return results + text
