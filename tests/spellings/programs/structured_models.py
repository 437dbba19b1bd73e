"""ConvLSTM, temporal convolutions, a CRF, pointers, a Gumbel codebook, packed sequences and windows."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, unpad_sequence


class ConvLSTMCell(nn.Module):
    def __init__(self, input_dim, hidden_dim, kernel_size, bias):
        super(ConvLSTMCell, self).__init__()
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.padding = kernel_size[0] // 2, kernel_size[1] // 2
        self.conv = nn.Conv2d(
            in_channels=self.input_dim + self.hidden_dim,
            out_channels=4 * self.hidden_dim,
            kernel_size=kernel_size,
            padding=self.padding,
            bias=bias,
        )

    def forward(self, input_tensor, cur_state):
        h_cur, c_cur = cur_state
        combined = torch.cat([input_tensor, h_cur], dim=1)
        cc_i, cc_f, cc_o, cc_g = torch.split(self.conv(combined), self.hidden_dim, dim=1)
        c_next = torch.sigmoid(cc_f) * c_cur + torch.sigmoid(cc_i) * torch.tanh(cc_g)
        return torch.sigmoid(cc_o) * torch.tanh(c_next), c_next

    def init_hidden(self, batch_size, image_size):
        height, width = image_size
        return (
            torch.zeros(batch_size, self.hidden_dim, height, width, device=self.conv.weight.device),
            torch.zeros(batch_size, self.hidden_dim, height, width, device=self.conv.weight.device),
        )


class TemporalBlock(nn.Module):
    def __init__(self, cin, cout, k, d):
        super().__init__()
        self.conv1 = nn.utils.weight_norm(nn.Conv1d(cin, cout, k, padding=(k - 1) * d, dilation=d))
        self.net = nn.Sequential(
            self.conv1, nn.ConstantPad1d((0, -(k - 1) * d), 0.0), nn.ReLU(), nn.Dropout(0.0)
        )
        self.downsample = nn.Conv1d(cin, cout, 1) if cin != cout else None
        self.relu = nn.ReLU()

    def forward(self, x):
        res = x if self.downsample is None else self.downsample(x)
        return self.relu(self.net(x) + res)


class CRF(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(n, n))
        self.transitions.data[0, :] = -10
        self.n = n

    def forward_alg(self, feats):
        alpha = feats[0]
        for feat in feats[1:]:
            alpha = torch.logsumexp(alpha.unsqueeze(1) + self.transitions.t() + feat.unsqueeze(0), dim=0)
        return torch.logsumexp(alpha, 0)

    def score(self, feats, tags):
        s = feats[0][tags[0]]
        for i, feat in enumerate(feats[1:]):
            s = s + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return s

    def viterbi(self, feats):
        backpointers, v = [], feats[0]
        for feat in feats[1:]:
            best, idx = (v.unsqueeze(0) + self.transitions).max(dim=1)
            backpointers.append(idx.tolist())
            v = best + feat
        score, tag = v.max(dim=0)
        path = [tag.item()]
        for bp in reversed(backpointers):
            path.append(bp[path[-1]])
        return score, path[::-1]


class PointerAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.W1, self.W2, self.v = (
            nn.Linear(d, d, bias=False),
            nn.Linear(d, d, bias=False),
            nn.Linear(d, 1, bias=False),
        )

    def forward(self, enc, dec, mask):
        scores = self.v(torch.tanh(self.W1(enc).unsqueeze(1) + self.W2(dec).unsqueeze(2))).squeeze(-1)
        return F.log_softmax(scores.masked_fill(~mask.unsqueeze(1), -1e9), dim=-1)


class GumbelVQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.embed = nn.Conv1d(4, 6, 1), nn.Embedding(6, 3)

    def forward(self, z, noise, tau):
        logits = self.proj(z)
        soft = F.softmax((logits + noise) / tau, dim=1)
        hard = torch.zeros_like(soft).scatter_(1, soft.argmax(dim=1, keepdim=True), 1.0)
        one_hot = hard - soft.detach() + soft
        z_q = torch.einsum("b n t, n d -> b d t", one_hot, self.embed.weight)
        qy = F.softmax(logits, dim=1)
        return z_q, 5e-4 * torch.sum(qy * torch.log(qy * 6 + 1e-10), dim=1).mean()


def main(make, initialize):
    out = []
    cell = ConvLSTMCell(1, 2, (3, 3), True)
    initialize(cell)
    video = torch.tensor(make("video", (2, 4, 1, 5, 5))).float()
    opt = torch.optim.Adam(cell.parameters(), lr=1e-2)
    for _ in range(2):
        h, c = cell.init_hidden(2, (5, 5))
        outputs = []
        for t in range(video.size(1)):
            h, c = cell(video[:, t], (h, c))
            outputs.append(h)
        loss = F.mse_loss(torch.stack(outputs, dim=1).mean(2, keepdim=True)[:, :-1], video[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    tcn = nn.Sequential(*[TemporalBlock(2 if i == 0 else 3, 3, 2, 2**i) for i in range(3)])
    initialize(tcn)
    x = torch.tensor(make("x", (2, 2, 9))).float()
    y = tcn(x)
    y.square().mean().backward()
    out += [y.sum().item(), sum(p.grad.abs().sum().item() for p in tcn.parameters())]
    crf = CRF(4)
    initialize(crf)
    feats = torch.tensor(make("feats", (5, 4))).float()
    tags = torch.tensor([1, 2, 3, 0, 2])
    opt = torch.optim.SGD(crf.parameters(), lr=0.1)
    for _ in range(3):
        nll = crf.forward_alg(feats) - crf.score(feats, tags)
        opt.zero_grad()
        nll.backward()
        opt.step()
        out.append(nll.item())
    score, path = crf.viterbi(feats)
    out += [score.item(), *path]
    ptr = PointerAttention(4)
    initialize(ptr)
    enc, dec = torch.tensor(make("enc", (2, 5, 4))).float(), torch.tensor(make("dec", (2, 3, 4))).float()
    lens = torch.tensor([5, 3])
    mask = torch.arange(5).expand(2, 5) < lens.unsqueeze(1)
    logp = ptr(enc, dec, mask)
    loss = F.nll_loss(logp.view(-1, 5), torch.tensor([0, 4, 1, 2, 0, 1]))
    loss.backward()
    out += [loss.item(), ptr.v.weight.grad.sum().item()]
    vq = GumbelVQ()
    initialize(vq)
    z = torch.tensor(make("z", (2, 4, 7))).float()
    for tau in (1.0, 0.5):
        q, kl = vq(z, torch.tensor(make("gn", (2, 6, 7))).float(), tau)
        vq.zero_grad()
        (q.pow(2).mean() + kl).backward()
        out += [q.sum().item(), kl.item(), vq.proj.weight.grad.abs().sum().item()]
    seqs = [torch.tensor(make("q%d" % n, (n, 3))).float() for n in (4, 2, 3)]
    packed = pack_sequence(seqs, enforce_sorted=False)
    assert isinstance(packed, PackedSequence)
    lin = nn.Linear(3, 3)
    initialize(lin)
    packed = PackedSequence(
        torch.tanh(lin(packed.data)), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
    )
    gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)
    initialize(gru)
    o, hn = gru(packed)
    padded, lengths = pad_packed_sequence(o, batch_first=True)
    last = padded[torch.arange(3), lengths - 1, :4]
    assert torch.allclose(last, hn[0], atol=1e-6)
    out += [
        padded.abs().sum().item(),
        hn.sum().item(),
        *lengths.tolist(),
        len(unpad_sequence(padded, lengths, batch_first=True)),
    ]
    emb = nn.EmbeddingBag.from_pretrained(torch.tensor(make("eb", (5, 3))).float(), mode="sum")
    out += emb(torch.tensor([1, 2, 4, 0]), torch.tensor([0, 2])).flatten().tolist()
    img = torch.tensor(make("img", (1, 2, 6, 6))).float()
    patches = img.unfold(2, 3, 3).unfold(3, 3, 3).permute(0, 2, 3, 1, 4, 5).reshape(1, 4, -1)
    cols = F.unfold(img, kernel_size=3, stride=3)
    assert torch.allclose(patches, cols.transpose(1, 2))
    out += [F.fold(cols * 2, (6, 6), 3, stride=3).sum().item(), F.lp_pool2d(img, 2, 2).sum().item()]
    q, k, v = (torch.tensor(make("sd" + n, (1, 4, 5, 4))).float() for n in "qkv")
    out.append(F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.0).sum().item())
    out.append(F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True).sum().item())
    return out
