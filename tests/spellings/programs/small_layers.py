"""Highway, maxout, noisy and dueling layers, running statistics, sets, and what modules tell about themselves."""

import copy
import math

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch import Tensor
from tandem.torch.nn import init


class MLPMixerBlock(nn.Module):
    def __init__(self, dim, patches):
        super().__init__()
        self.token_mix = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim))
        self.mix = nn.Conv1d(patches, patches, 1)

    def forward(self, x):
        x = x + self.mix(x)
        return x + self.token_mix(x)


class Highway(nn.Module):
    def __init__(self, size, num_layers, f):
        super().__init__()
        self.nonlinear = nn.ModuleList([nn.Linear(size, size) for _ in range(num_layers)])
        self.linear = nn.ModuleList([nn.Linear(size, size) for _ in range(num_layers)])
        self.gate = nn.ModuleList([nn.Linear(size, size) for _ in range(num_layers)])
        self.f = f

    def forward(self, x):
        for layer in range(len(self.gate)):
            gate = torch.sigmoid(self.gate[layer](x))
            x = gate * self.f(self.nonlinear[layer](x)) + (1 - gate) * self.linear[layer](x)
        return x


class Maxout(nn.Module):
    def __init__(self, d, m, k):
        super().__init__()
        self.d_in, self.d_out, self.pool_size = d, m, k
        self.lin = nn.Linear(d, m * k)

    def forward(self, inputs):
        shape = list(inputs.size())
        shape[-1] = self.d_out
        shape.append(self.pool_size)
        max_dim = len(shape) - 1
        out = self.lin(inputs)
        m, i = out.view(*shape).max(dim=max_dim)
        return m


class RunningNorm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("var", torch.ones(shape))
        self.register_buffer("count", torch.tensor(1e-4))

    @torch.no_grad()
    def update(self, x: Tensor) -> None:
        batch_mean, batch_var, n = x.mean(0), torch.var(x, 0, unbiased=False), x.shape[0]
        delta = batch_mean - self.mean
        total = self.count + n
        self.mean += delta * n / total
        m2 = self.var * self.count + batch_var * n + delta.square() * self.count * n / total
        self.var = m2 / total
        self.count = total

    def forward(self, x):
        if self.training:
            self.update(x)
        return ((x - self.mean) / torch.sqrt(self.var + 1e-8)).clamp(-5, 5)


class NoisyLinear(nn.Linear):
    def __init__(self, in_features, out_features, sigma_init=0.017, bias=True):
        super().__init__(in_features, out_features, bias=bias)
        self.sigma_weight = nn.Parameter(torch.full((out_features, in_features), sigma_init))
        self.register_buffer("epsilon_weight", torch.zeros(out_features, in_features))
        if bias:
            self.sigma_bias = nn.Parameter(torch.full((out_features,), sigma_init))
            self.register_buffer("epsilon_bias", torch.zeros(out_features))
        self.reset_parameters()

    def reset_parameters(self):
        std = math.sqrt(3 / self.in_features)
        self.weight.data.uniform_(-std, std)
        self.bias.data.uniform_(-std, std)

    def forward(self, input):
        bias = self.bias
        if bias is not None:
            bias = bias + self.sigma_bias * self.epsilon_bias.data
        return F.linear(input, self.weight + self.sigma_weight * self.epsilon_weight.data, bias)


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.advantage = (
            nn.Sequential(NoisyLinear(4, 8), nn.ReLU(), nn.Linear(8, 1)),
            nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)),
        )

    def forward(self, x):
        v, a = self.value(x), self.advantage(x)
        return v + a - a.mean(dim=1, keepdim=True)


class DeepSet(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.ModuleDict([["a", nn.Linear(4, 6)], ["b", nn.Bilinear(4, 4, 6)]])
        self.rho = nn.Linear(6, 2)
        self.temperature = nn.Parameter(torch.tensor(1.5))
        self.norms = nn.ParameterDict(
            {"scale": nn.Parameter(torch.ones(6)), "shift": nn.Parameter(torch.zeros(6))}
        )

    def forward(self, x):
        h = torch.tanh(self.phi["a"](x)) + self.phi["b"](x, x.flip(1))
        h = h * self.norms["scale"] + self.norms["shift"]
        return self.rho(torch.logsumexp(h, dim=1)) / self.temperature


def weight_init(m):
    if isinstance(m, nn.Linear):
        init.kaiming_uniform_(m.weight, mode="fan_in", nonlinearity="relu")
        if m.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(m.weight)
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(m.bias, -bound, bound)


def main(make, initialize):
    out = []
    x = torch.tensor(make("x", (5, 4))).float()
    y = torch.tensor(make("y", (5,), high=3))
    net = nn.Sequential(
        RunningNorm((4,)),
        Highway(4, 2, F.relu),
        Maxout(4, 6, 3),
        nn.Threshold(0.05, 0.0),
        nn.Linear(6, 3),
        nn.Softmin(dim=-1),
    )
    net.apply(weight_init)
    initialize(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        loss = F.nll_loss(torch.log(net(x) + 1e-9), y)
        loss.backward()
        opt.step()
        out.append(loss.item())
    out += net[0].mean.tolist() + [net[0].var.sum().item(), net[0].count.item()]
    online = Dueling()
    initialize(online)
    online.value[0].epsilon_weight.copy_(torch.tensor(make("eps", (8, 4))))
    target = copy.deepcopy(online)
    target.load_state_dict(online.state_dict())
    opt = torch.optim.Adam(online.parameters(), lr=1e-2)
    a = torch.tensor(make("a", (5,), high=3))
    r, d = torch.tensor(make("r", (5,))).float(), torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0])
    for _ in range(3):
        q = online(x)[torch.arange(5), a]
        with torch.no_grad():
            best = online(-x).argmax(1, keepdim=True)
            backup = r + 0.9 * (1 - d) * target(-x).gather(1, best).squeeze(1)
        td_error = q - backup
        loss = (
            td_error.abs().clamp(min=1e-3).pow(0.6) * F.smooth_l1_loss(q, backup, reduction="none")
        ).mean()
        opt.zero_grad()
        loss.backward()
        for p in online.parameters():
            if p.grad is not None:
                p.grad.data.clamp_(-1, 1)
        opt.step()
        with torch.no_grad():
            for p, tp in zip(online.parameters(), target.parameters()):
                tp.data.mul_(0.9)
                torch.add(tp.data, p.data, alpha=0.1, out=tp.data)
        out.append(loss.item())
    out.append(target(x).sum().item())
    ds = DeepSet()
    initialize(ds)
    sets = torch.tensor(make("sets", (3, 5, 4))).float()
    opt = torch.optim.Adam(
        [
            {"params": ds.phi.parameters()},
            {"params": ds.rho.parameters(), "lr": 1e-2},
            {"params": [ds.temperature, *ds.norms.values()]},
        ],
        lr=1e-3,
    )
    for _ in range(3):
        loss = F.multi_margin_loss(ds(sets), torch.tensor([0, 1, 1])) + 0.01 * sum(
            p.abs().sum() for p in ds.parameters()
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        out.append(loss.item())
    mixer = MLPMixerBlock(4, 5)
    initialize(mixer)
    z = mixer(sets)
    out += [
        z.sum().item(),
        torch.linalg.norm(z).item(),
        F.cosine_similarity(z[0], z[1], dim=-1).mean().item(),
    ]
    # module introspection
    names = [n for n, _ in ds.named_parameters()]
    assert (
        names
        == [
            "temperature",
            "phi.a.weight",
            "phi.a.bias",
            "phi.b.weight",
            "phi.b.bias",
            "rho.weight",
            "rho.bias",
            "norms.scale",
            "norms.shift",
        ]
        or len(names) == 9
    )
    assert [type(m).__name__ for m in ds.children()] == ["ModuleDict", "Linear", "ParameterDict"]
    assert next(ds.parameters()).is_leaf and str(next(ds.parameters()).device) == "cpu"
    assert "rho" in dict(ds.named_modules()) and hasattr(ds, "rho") and not hasattr(ds, "sigma")
    ds.double()
    out.append(ds(sets.double()).sum().item())
    ds.float()
    sd = ds.state_dict()
    sd["rho.weight"] = torch.zeros_like(sd["rho.weight"])
    ds.load_state_dict(sd)
    assert ds.rho.weight.abs().sum() == 0
    with torch.no_grad():
        for m in ds.modules():
            if hasattr(m, "reset_parameters"):
                m.reset_parameters()
    try:
        ds.load_state_dict({"wrong": torch.zeros(1)})
    except RuntimeError as e:
        assert "wrong" in str(e)
    else:
        raise AssertionError
    return out
