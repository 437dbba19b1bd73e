"""A transformer with a mixture of experts, and low-rank adaptation by parametrization."""

import math

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
import tandem.torch.nn.utils.parametrize as parametrize


class LoRAParametrization(nn.Module):
    def __init__(self, features_in, features_out, rank=1, alpha=1, device="cpu"):
        super().__init__()
        self.lora_A = nn.Parameter(torch.zeros((rank, features_out)).to(device))
        self.lora_B = nn.Parameter(torch.zeros((features_in, rank)).to(device))
        nn.init.normal_(self.lora_A, mean=0, std=1)
        self.scale = alpha / rank
        self.enabled = True

    def forward(self, original_weights):
        if self.enabled:
            return (
                original_weights
                + torch.matmul(self.lora_B, self.lora_A).view(original_weights.shape) * self.scale
            )
        return original_weights


class LoRALinear(nn.Module):
    def __init__(self, linear, r=2, alpha=4):
        super().__init__()
        self.linear = linear
        for p in self.linear.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.empty(r, linear.in_features))
        self.B = nn.Parameter(torch.zeros(linear.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.linear(x) + F.linear(F.linear(x, self.A), self.B) * self.scaling


class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w1, self.w2, self.w3 = (
            nn.Linear(d, 2 * d, bias=False),
            nn.Linear(2 * d, d, bias=False),
            nn.Linear(d, 2 * d, bias=False),
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class MoE(nn.Module):
    def __init__(self, d, n_experts=4, top_k=2):
        super().__init__()
        self.gate = nn.Linear(d, n_experts, bias=False)
        self.experts = nn.ModuleList([Expert(d) for _ in range(n_experts)])
        self.top_k = top_k

    def forward(self, x):
        batch, seq, dim = x.shape
        x = x.view(-1, dim)
        router_logits = self.gate(x)
        weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        weights, selected = torch.topk(weights, self.top_k, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        final = torch.zeros((batch * seq, dim), dtype=x.dtype, device=x.device)
        mask = F.one_hot(selected, num_classes=len(self.experts)).permute(2, 1, 0)
        for i in range(len(self.experts)):
            idx, top_x = torch.where(mask[i])
            current = x[None, top_x].reshape(-1, dim)
            hidden = self.experts[i](current) * weights[top_x, idx, None]
            final.index_add_(0, top_x, hidden.to(x.dtype))
        aux = (F.softmax(router_logits, dim=-1).mean(0) * mask.float().sum(1).mean(1)).sum() * len(
            self.experts
        )
        return final.reshape(batch, seq, dim), aux


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n_heads, self.head_dim = heads, d // heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.register_buffer(
            "mask", torch.tril(torch.ones(16, 16, dtype=torch.bool)).view(1, 1, 16, 16), persistent=False
        )
        slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])
        self.register_buffer("slopes", slopes.view(1, heads, 1, 1))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).reshape(B, T, 3, self.n_heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        dist = torch.arange(T)[None, :] - torch.arange(T)[:, None]
        att = att + self.slopes * dist.clamp(max=0)
        att = att.masked_fill(~self.mask[:, :, :T, :T], torch.finfo(att.dtype).min)
        att = F.softmax(att, dim=-1)
        y = torch.einsum("bhij,bhjd->bhid", att, v).transpose(1, 2).reshape(B, T, C)
        return self.proj(y)


class Model(nn.Module):
    def __init__(self, vocab=11, d=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.ln1, self.ln2, self.lnf = nn.RMSNorm(d), nn.LayerNorm(d), nn.LayerNorm(d, bias=False)
        self.attn, self.moe = Attention(d, 2), MoE(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, idx, targets=None):
        x = self.embed(idx)
        x = x + self.attn(self.ln1(x))
        y, aux = self.moe(self.ln2(x))
        logits = self.head(self.lnf(x + y))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=-100
        ) + 0.01 * aux


def main(make, initialize):
    out = []
    model = Model()
    initialize(model)
    tokens = torch.tensor(make("tok", (3, 8), high=11))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
    lr_lambda = lambda s: min(1.0, (s + 1) / 3)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda)
    for step in range(4):
        opt.zero_grad(set_to_none=True)
        for micro in tokens.chunk(3):
            targets = micro[:, 1:].clone()
            targets[0, 0] = -100
            _, loss = model(micro[:, :-1], targets)
            (loss / 3).backward()
        out.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        opt.step()
        sched.step()
        out.append(loss.item())
    # LoRA: train only the low-rank part
    model.attn.proj = LoRALinear(model.attn.proj)
    parametrize.register_parametrization(
        model.attn.qkv, "weight", LoRAParametrization(*model.attn.qkv.weight.shape, rank=2, alpha=2)
    )
    for name, param in model.named_parameters():
        param.requires_grad = "lora" in name or name.endswith((".A", ".B"))
    with torch.no_grad():
        for n, p in model.named_parameters():
            if p.requires_grad:
                p.copy_(torch.tensor(make(n, tuple(p.shape)) * 0.1))
    trainable = [p for p in model.parameters() if p.requires_grad]
    out += [len(trainable), sum(p.numel() for p in trainable), sum(p.numel() for p in model.parameters())]
    opt = torch.optim.Adam(trainable, lr=0.02)
    for _ in range(3):
        logits, loss = model(tokens[:, :-1], tokens[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    for layer in [model.attn.qkv]:
        layer.parametrizations["weight"][0].enabled = False
    out.append(model(tokens[:, :-1], tokens[:, 1:])[1].item())
    model.attn.qkv.parametrizations.weight[0].enabled = True
    parametrize.remove_parametrizations(model.attn.qkv, "weight", leave_parametrized=True)
    lora = model.attn.proj
    with torch.no_grad():
        lora.linear.weight += lora.B @ lora.A * lora.scaling
    model.attn.proj = lora.linear
    out.append(model(tokens[:, :-1], tokens[:, 1:])[1].item())
    assert list(model.state_dict())[:2] == ["embed.weight", "ln1.weight"]
    return out
