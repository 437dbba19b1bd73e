"""A neural ODE by hand: Runge-Kutta steps, and the adjoint method as an autograd Function."""

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.optim as optim


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return (k1 + 2 * k2 + 2 * k3 + k4) * dt / 6


def odeint(func, y0, t):
    ys = [y0]
    for i in range(len(t) - 1):
        t0, t1 = t[i], t[i + 1]
        ys.append(ys[-1] + rk4_step(func, t0, t1 - t0, ys[-1]))
    return torch.stack(ys)


class Lambda(nn.Module):
    def __init__(self, A):
        super().__init__()
        self.register_buffer("A", A, persistent=False)

    def forward(self, t, y):
        return torch.mm(y**3, self.A)


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 10), nn.Tanh(), nn.Linear(10, 2))
        self.nfe = 0
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


class RunningAverageMeter(object):
    def __init__(self, momentum=0.99):
        self.momentum = momentum
        self.val, self.avg = None, 0

    def update(self, val):
        self.avg = val if self.val is None else self.avg * self.momentum + val * (1 - self.momentum)
        self.val = val


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, *params):
        with torch.no_grad():
            y = odeint(func, y0, t)
        ctx.func = func
        ctx.save_for_backward(y[-1], t)
        ctx.n = len(params)
        return y[-1]

    @staticmethod
    def backward(ctx, grad):
        y, t = ctx.saved_tensors
        func, params = ctx.func, tuple(ctx.func.parameters())
        adj = grad
        gp = [torch.zeros_like(p) for p in params]
        for i in reversed(range(1, len(t))):
            dt = t[i] - t[i - 1]
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                f = func(t[i], y)
                vjp = torch.autograd.grad(f, (y,) + params, adj, allow_unused=True)
            y = y - dt * f
            adj = adj + dt * vjp[0]
            gp = [g + dt * v for g, v in zip(gp, vjp[1:])]
        return (None, adj, None, *gp)


def main(make, initialize):
    true_y0 = torch.tensor([[2.0, 0.0]])
    t = torch.linspace(0.0, 2.0, 11)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    with torch.no_grad():
        true_y = odeint(Lambda(true_A), true_y0, t)
    func = ODEFunc()
    initialize(func)
    optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
    meter = RunningAverageMeter(0.97)
    out = [true_y.abs().sum().item()]
    for itr in range(4):
        optimizer.zero_grad()
        s = torch.tensor(make(f"start{itr}", (3,), high=6))
        batch_y0 = true_y[s]
        batch_y = torch.stack([true_y[s + i] for i in range(5)], dim=0)
        pred_y = odeint(func, batch_y0.squeeze(1), t[:5])
        loss = torch.mean(torch.abs(pred_y - batch_y.squeeze(2)))
        loss.backward()
        optimizer.step()
        meter.update(loss.item())
        out += [loss.item(), meter.avg]
    y0 = true_y0.clone().requires_grad_()
    func.zero_grad()
    Adjoint.apply(func, y0, t[:4], *func.parameters()).sum().backward()
    out += y0.grad.flatten().tolist() + [p.grad.sum().item() for p in func.parameters()] + [func.nfe]
    return out
