"""torch.func: gradients of examples, ensembles, Jacobians of modules, and meta-learning."""

import copy

import tandem.torch as torch
import tandem.torch.nn as nn
import tandem.torch.nn.functional as F
from tandem.torch.func import functional_call, grad, hessian, jacfwd, jacrev, stack_module_state, vmap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def main(make, initialize):
    out = []
    net = Net()
    initialize(net)
    x, y = torch.tensor(make("x", (6, 3))).float(), torch.tensor(make("y", (6,), high=2))
    params = {k: v.detach() for k, v in net.named_parameters()}
    buffers = {k: v.detach() for k, v in net.named_buffers()}

    def compute_loss(params, buffers, sample, target):
        batch, targets = sample.unsqueeze(0), target.unsqueeze(0)
        predictions = functional_call(net, (params, buffers), (batch,))
        return F.cross_entropy(predictions, targets)

    ft_grads = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, x, y)
    out += [v.pow(2).sum().item() for v in ft_grads.values()]
    models = [Net() for _ in range(3)]
    for i, m in enumerate(models):
        initialize(m)
        with torch.no_grad():
            for p in m.parameters():
                p.mul_(1 + i)
    sp, sb = stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")

    def fmodel(params, buffers, x):
        return functional_call(base, (params, buffers), (x,))

    preds = vmap(fmodel, in_dims=(0, 0, None))(sp, sb, x)
    out += preds.sum(dim=(1, 2)).tolist()

    def f(inp):
        return functional_call(net, params, (inp,))

    out += jacrev(f)(x[0]).flatten().tolist() + [jacfwd(f)(x[1]).sum().item()]
    out += hessian(lambda inp: f(inp).sum())(x[0]).flatten().tolist()

    def inner(params, support):
        loss = F.mse_loss(functional_call(net, params, (support,)), torch.zeros(support.shape[0], 2))
        g = grad(lambda p: F.mse_loss(functional_call(net, p, (support,)), torch.zeros(support.shape[0], 2)))(
            params
        )
        return {k: params[k] - 0.1 * g[k] for k in g}, loss

    def outer(params):
        new, _ = inner(params, x[:3])
        return F.mse_loss(functional_call(net, new, (x[3:],)), torch.ones(3, 2))

    meta = grad(outer)(params)
    out += [v.abs().sum().item() for v in meta.values()]
    return out
