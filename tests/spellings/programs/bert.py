"""BERT with masked tokens, an LSTM with attention, and a character RNN with cells."""

import math

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch import optim


class Embeddings(nn.Module):
    def __init__(self, vocab, hidden, max_len, types=2):
        super().__init__()
        self.word = nn.Embedding(vocab, hidden, padding_idx=0)
        self.position, self.token_type = nn.Embedding(max_len, hidden), nn.Embedding(types, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(0.0)
        self.register_buffer("position_ids", torch.arange(max_len).expand((1, -1)))

    def forward(self, ids, types):
        pos = self.position_ids[:, : ids.size(1)]
        return self.dropout(self.LayerNorm(self.word(ids) + self.position(pos) + self.token_type(types)))


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query, self.key, self.value = (
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, hidden),
            nn.Linear(hidden, hidden),
        )
        self.dense = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)

    def transpose_for_scores(self, x):
        new_shape = x.size()[:-1] + (self.heads, self.size)
        return x.view(*new_shape).permute(0, 2, 1, 3)

    def forward(self, h, mask):
        q, k, v = (self.transpose_for_scores(f(h)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        probs = nn.Softmax(dim=-1)(scores + mask)
        context = torch.matmul(probs, v).permute(0, 2, 1, 3).contiguous()
        context = context.view(context.size()[:-2] + (-1,))
        return self.norm(self.dense(context) + h), probs


class Bert(nn.Module):
    def __init__(self, vocab=13, hidden=8):
        super().__init__()
        self.embeddings = Embeddings(vocab, hidden, 10)
        self.layers = nn.ModuleList([SelfAttention(hidden, 2) for _ in range(2)])
        self.pooler = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh())
        self.nsp = nn.Linear(hidden, 2)
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.decoder = nn.Linear(hidden, vocab, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.decoder.weight = self.embeddings.word.weight

    def forward(self, ids, types, attention_mask):
        ext = attention_mask.unsqueeze(1).unsqueeze(2)
        ext = ext.to(dtype=next(self.parameters()).dtype)
        ext = (1.0 - ext) * -10000.0
        h = self.embeddings(ids, types)
        for layer in self.layers:
            h, probs = layer(h, ext)
        return self.decoder(self.transform(h)) + self.bias, self.nsp(self.pooler(h[:, 0])), probs


def mask_tokens(inputs, make):
    labels = inputs.clone()
    prob = torch.full(labels.shape, 0.4)
    special = labels.eq(0) | labels.eq(1)
    prob.masked_fill_(special, value=0.0)
    masked = torch.tensor(make("u", tuple(labels.shape))).sigmoid() < prob
    labels[~masked] = -100
    inputs[masked] = 2
    return inputs, labels


class AttnClassifier(nn.Module):
    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.0)
        self.w = nn.Parameter(torch.zeros(hidden * 2))
        self.convs = nn.ModuleList([nn.Conv2d(1, 3, (k, emb)) for k in (2, 3)])
        self.fc = nn.Linear(hidden * 2 + 6, 2)
        for name, p in self.lstm.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(p)
            elif "bias" in name:
                n = p.size(0)
                p.data[n // 4 : n // 2].fill_(1.0)

    def forward(self, x):
        e = self.embedding(x)
        H, (hn, cn) = self.lstm(e)
        M = torch.tanh(H)
        alpha = F.softmax(torch.matmul(M, self.w), dim=1).unsqueeze(-1)
        out = F.relu(torch.sum(H * alpha, 1))
        pooled = [F.relu(conv(e.unsqueeze(1))).squeeze(3) for conv in self.convs]
        pooled = [F.max_pool1d(i, i.size(2)).squeeze(2) for i in pooled]
        return self.fc(torch.cat([out] + pooled, 1)), hn


class CharRNN(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.rnn = nn.RNN(n, hidden, num_layers=2, nonlinearity="relu", batch_first=True)
        self.cell = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden, n)

    def forward(self, x, h=None):
        y, h = self.rnn(x, h)
        state = torch.zeros(x.size(0), self.cell.hidden_size)
        states = []
        for t in range(y.size(1)):
            state = self.cell(y[:, t], state)
            states.append(state)
        return self.out(torch.stack(states, 1)), h


def main(make, initialize):
    out = []
    model = Bert()
    initialize(model)
    ids = torch.tensor(make("ids", (4, 9), high=10) + 3)
    ids[:, 0] = 1
    ids[1, 6:] = 0
    types = torch.zeros_like(ids)
    types[:, 5:] = 1
    inputs, labels = mask_tokens(ids.clone(), make)
    nsp = torch.tensor([0, 1, 1, 0])
    opt = optim.AdamW(
        [
            {
                "params": [
                    p
                    for n, p in model.named_parameters()
                    if not any(nd in n for nd in ["bias", "LayerNorm", "norm"])
                ],
                "weight_decay": 0.01,
            },
            {
                "params": [
                    p
                    for n, p in model.named_parameters()
                    if any(nd in n for nd in ["bias", "LayerNorm", "norm"])
                ],
                "weight_decay": 0.0,
            },
        ],
        lr=5e-3,
    )
    crit = nn.CrossEntropyLoss()
    for _ in range(4):
        mlm, cls, probs = model(inputs, types, (ids != 0).long())
        loss = crit(mlm.view(-1, mlm.size(-1)), labels.view(-1)) + crit(cls, nsp)
        opt.zero_grad()
        loss.backward()
        opt.step()
        out += [loss.item(), probs[1, 0, 0].max().item()]
    assert labels.ne(-100).sum().item() > 0
    out.append((mlm.argmax(-1) == labels)[labels != -100].float().mean().item())
    net = AttnClassifier(13, 4, 5)
    initialize(net)
    opt = optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(3):
        logits, hn = net(ids)
        loss = F.cross_entropy(logits, nsp)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.1)
        opt.step()
        out += [loss.item(), hn.abs().sum().item()]
    rnn = CharRNN(6, 5)
    initialize(rnn)
    text = torch.tensor(make("text", (2, 7), high=6))
    onehot = F.one_hot(text, 6).float()
    opt = optim.SGD(rnn.parameters(), lr=0.1)
    h = None
    for _ in range(3):
        logits, h = rnn(onehot[:, :-1], h)
        h = h.detach()
        loss = F.cross_entropy(logits.permute(0, 2, 1), text[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    with torch.no_grad():
        x, h = onehot[:1, :1], None
        sampled = []
        for _ in range(5):
            logits, h = rnn(x, h)
            p = F.softmax(logits[:, -1] / 0.5, dim=-1)
            top_p, top_i = p.topk(1)
            sampled.append(top_i.item())
            x = F.one_hot(top_i, 6).float()
        out += sampled
    return out
