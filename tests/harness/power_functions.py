"""A differentiable function of PyTorch's kind, and its derivatives of any order."""

import numpy as np
import tandem as td

F64 = td.float64


AT = np.array([0.5, -0.25, 1.5])


def leaf(values=AT):
    return td.asarray(np.array(values, dtype=np.float64), requires_grad=True)


def plain(values=AT):
    return td.asarray(np.array(values, dtype=np.float64))


class Power(td.autograd.Function):
    """exp(x^n) and 2y: two tensors, a number among the inputs, another among the results."""

    @staticmethod
    def forward(x, n, y):
        return (x**n).exp(), y * 2.0, "note"

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, n, _ = inputs
        ctx.n = n
        ctx.save_for_backward(x, output[0])

    @staticmethod
    def backward(ctx, g, h, note):
        x, out = ctx.saved_tensors
        return g * out * ctx.n * x ** (ctx.n - 1), None, h * 2.0


def through(x):
    one, two, note = Power.apply(x, 2, x)
    assert note == "note"
    return (one * two).sum()


def reference(x):
    return ((x**2).exp() * 2.0 * x).sum()


def nth(f, order):
    for _ in range(order):
        f = (lambda g: lambda v: (td.grad(g)(v) * plain()).sum())(f)
    return f
