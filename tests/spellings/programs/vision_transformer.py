"""A vision transformer with mixup and an average of its weights, and a text classifier with padding."""

import copy
import math

import tandem.torch as torch
import tandem.torch.nn.functional as F
from tandem.torch import Tensor, nn


class PatchEmbedding(nn.Module):
    def __init__(self, in_channels=1, patch_size=4, emb_size=8, img_size=8):
        super().__init__()
        self.projection = nn.Conv2d(in_channels, emb_size, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.randn(1, 1, emb_size))
        self.positions = nn.Parameter(torch.randn((img_size // patch_size) ** 2 + 1, emb_size))

    def forward(self, x: Tensor) -> Tensor:
        b, *_ = x.shape
        x = self.projection(x).flatten(2).transpose(1, 2)
        cls_tokens = self.cls_token.expand(b, -1, -1)
        x = torch.cat([cls_tokens, x], dim=1)
        x += self.positions
        return x


class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x.div(keep) * mask

    def extra_repr(self):
        return f"drop_prob={round(self.p, 3):0.3f}"


class Block(nn.Module):
    def __init__(
        self,
        dim,
        heads,
        mlp_ratio=2.0,
        qkv_bias=True,
        drop_path=0.0,
        act_layer=nn.GELU,
        norm_layer=nn.LayerNorm,
        init_values=1e-1,
    ):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True, bias=qkv_bias)
        self.drop_path = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()
        self.norm2 = norm_layer(dim)
        hidden = int(dim * mlp_ratio)
        self.mlp = nn.Sequential()
        self.mlp.add_module("fc1", nn.Linear(dim, hidden))
        self.mlp.add_module("act", act_layer())
        self.mlp.add_module("fc2", nn.Linear(hidden, dim))
        self.gamma = nn.Parameter(init_values * torch.ones(dim)) if init_values else 1.0

    def forward(self, x, mask=None):
        y = self.norm1(x)
        x = x + self.drop_path(self.gamma * self.attn(y, y, y, key_padding_mask=mask, need_weights=False)[0])
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    def __init__(self, depth=2, emb=8, classes=3):
        super().__init__()
        self.embed = PatchEmbedding(emb_size=emb)
        self.blocks = nn.ModuleList([Block(emb, 2, drop_path=0.0) for _ in range(depth)])
        self.norm = nn.LayerNorm(emb, eps=1e-6)
        self.head = nn.Linear(emb, classes)
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.constant_(m.bias, 0)
        elif isinstance(m, nn.LayerNorm):
            nn.init.constant_(m.bias, 0)
            nn.init.constant_(m.weight, 1.0)

    def forward(self, x):
        x = self.embed(x)
        for blk in self.blocks:
            x = blk(x)
        return self.head(self.norm(x)[:, 0])


class TextClassifier(nn.Module):
    def __init__(self, vocab, dim, classes, max_len=12):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        pe = torch.zeros(max_len, dim)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)
        layer = nn.TransformerEncoderLayer(
            dim, 2, dim * 2, dropout=0.0, activation=F.gelu, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, num_layers=2, norm=nn.LayerNorm(dim), enable_nested_tensor=False
        )
        self.fc = nn.Linear(dim, classes)

    def forward(self, tokens):
        mask = tokens.eq(0)
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim) + self.pe[:, : tokens.size(1)]
        x = self.encoder(x, src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(-1).float()
        pooled = (x * keep).sum(dim=1) / keep.sum(dim=1).clamp(min=1e-9)
        return self.fc(pooled)


@torch.no_grad()
def update_ema(ema, model, decay):
    for e, p in zip(ema.state_dict().values(), model.state_dict().values()):
        if e.dtype.is_floating_point:
            e.mul_(decay).add_(p.detach(), alpha=1 - decay)


def mixup(x, y, lam, perm):
    return lam * x + (1 - lam) * x[perm], lam * y + (1 - lam) * y[perm]


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.reshape(1, -1).expand_as(pred))
        return [
            correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / batch_size).item() for k in topk
        ]


def main(make, initialize):
    torch.manual_seed(0)
    out = []
    model = ViT()
    initialize(model)
    ema = copy.deepcopy(model)
    for p in ema.parameters():
        p.requires_grad_(False)
    opt = torch.optim.SGD(
        [
            {"params": [p for n, p in model.named_parameters() if p.ndim > 1]},
            {"params": [p for n, p in model.named_parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=0.1,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-2,
    )
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=6)
    x = torch.tensor(make("x", (6, 1, 8, 8)), dtype=torch.float32)
    y = torch.tensor(make("y", (6,), high=3))
    onehot = F.one_hot(y, num_classes=3).float()
    for i in range(5):
        xm, ym = mixup(x, onehot, 0.7, torch.tensor(make("p%d" % i, (6,), permutation=True)))
        loss = torch.sum(-ym * F.log_softmax(model(xm), dim=-1), dim=-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        update_ema(ema, model, 0.9)
        out += [loss.item(), opt.param_groups[0]["lr"]]
    ema.eval()
    out += accuracy(ema(x), y, topk=(1, 2)) + ema(x).flatten().tolist()[:5]
    net = TextClassifier(9, 8, 2)
    initialize(net)
    assert "pe" not in net.state_dict() and len(list(net.buffers())) == 1
    tokens = torch.tensor(make("t", (4, 7), high=8) + 1)
    tokens[1, 5:] = 0
    tokens[3, 3:] = 0
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    crit = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]), label_smoothing=0.1)
    for _ in range(4):
        logits = net(tokens)
        loss = crit(logits, torch.tensor([0, 1, 1, 0]))
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    out.append(net.embedding.weight[0].abs().sum().item())
    assert "(drop_path): Identity()" in str(model) and str(DropPath(0.25)) == "DropPath(drop_prob=0.250)"
    return out
