"""A denoising diffusion model: noise schedules, time embeddings, linear attention, sampling."""

import math

import tandem.torch as torch
import tandem.torch.nn.functional as F
from tandem.torch import nn


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        device = time.device
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, *args, **kwargs):
        return self.fn(x, *args, **kwargs) + x


class Block(nn.Module):
    def __init__(self, dim, dim_out, groups=2, time_dim=8):
        super().__init__()
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(groups, dim_out)
        self.act = nn.SiLU()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))

    def forward(self, x, t):
        x = self.norm(self.proj(x))
        scale, shift = self.mlp(t)[:, :, None, None].chunk(2, dim=1)
        return self.act(x * (scale + 1) + shift)


class LinearAttention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=4):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        hidden_dim = dim_head * heads
        self.to_qkv = nn.Conv2d(dim, hidden_dim * 3, 1, bias=False)
        self.to_out = nn.Sequential(nn.Conv2d(hidden_dim, dim, 1), nn.GroupNorm(1, dim))

    def forward(self, x):
        b, c, h, w = x.shape
        qkv = self.to_qkv(x).chunk(3, dim=1)
        q, k, v = map(lambda t: t.reshape(b, self.heads, -1, h * w), qkv)
        q = q.softmax(dim=-2) * self.scale
        k = k.softmax(dim=-1)
        context = torch.einsum("b h d n, b h e n -> b h d e", k, v)
        out = torch.einsum("b h d e, b h d n -> b h e n", context, q)
        return self.to_out(out.reshape(b, -1, h, w))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(
            SinusoidalPositionEmbeddings(8), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)
        )
        self.a, self.b = Block(1, 4), Block(8, 4)
        self.attn = Residual(LinearAttention(4))
        self.down, self.up = (
            nn.Conv2d(4, 4, 4, 2, 1),
            nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(4, 4, 3, padding=1)),
        )
        self.final = nn.Conv2d(4, 1, 1)

    def forward(self, x, t):
        t = self.time(t)
        h = self.a(x, t)
        r = h.clone()
        h = self.up(self.attn(self.down(h)))
        return self.final(self.b(torch.cat((h, r), dim=1), t))


def extract(a, t, x_shape):
    batch_size = t.shape[0]
    out = a.gather(-1, t.cpu())
    return out.reshape(batch_size, *((1,) * (len(x_shape) - 1))).to(t.device)


def main(make, initialize):
    timesteps = 20
    betas = torch.linspace(0.0001, 0.02, timesteps)
    alphas = 1.0 - betas
    alphas_cumprod = torch.cumprod(alphas, axis=0)
    alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
    sqrt_recip_alphas = torch.sqrt(1.0 / alphas)
    posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
    s = 0.008
    steps = torch.linspace(0, timesteps, timesteps + 1)
    ac = torch.cos(((steps / timesteps) + s) / (1 + s) * torch.pi * 0.5) ** 2
    ac = ac / ac[0]
    cosine = torch.clip(1 - (ac[1:] / ac[:-1]), 0.0001, 0.9999)
    out = [cosine.sum().item(), posterior_variance.sum().item()]
    model = Net()
    initialize(model)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(3):
        x0 = torch.tensor(make(f"x{i}", (4, 1, 8, 8))).float()
        noise = torch.tensor(make(f"n{i}", (4, 1, 8, 8))).float()
        t = torch.tensor(make(f"t{i}", (4,), high=timesteps)).long()
        xt = (
            extract(alphas_cumprod.sqrt(), t, x0.shape) * x0
            + extract((1 - alphas_cumprod).sqrt(), t, x0.shape) * noise
        )
        loss = F.smooth_l1_loss(noise, model(xt, t))
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    with torch.no_grad():
        img = noise
        for i in reversed(range(0, timesteps, 5)):
            t = torch.full((4,), i, dtype=torch.long)
            mean = extract(sqrt_recip_alphas, t, img.shape) * (
                img
                - extract(betas, t, img.shape)
                * model(img, t)
                / extract(torch.sqrt(1.0 - alphas_cumprod), t, img.shape)
            )
            img = (
                mean
                if i == 0
                else mean + torch.sqrt(extract(posterior_variance, t, img.shape)) * torch.zeros_like(img)
            )
        out += [
            img.mean().item(),
            torch.std(img).item(),
            img.clamp(-1, 1).add(1).div(2).mul(255).to(torch.uint8).float().mean().item(),
        ]
    return out
