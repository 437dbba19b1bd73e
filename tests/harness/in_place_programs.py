"""Programs that write in place, and comparisons of gradients with differences."""

import numpy as np
import tandem as td

F64 = td.float64


def leaf(values):
    return td.asarray(np.asarray(values, dtype=np.float64).copy(), requires_grad=True)


def numeric(f, at, eps=1e-6):
    """The gradient of ``f`` by central differences."""
    at = np.asarray(at, dtype=np.float64)
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[place] += eps
        down[place] -= eps
        found[place] = (f(td.asarray(up)).item() - f(td.asarray(down)).item()) / (2 * eps)
    return found


def check(f, at, tolerance=1e-6):
    """``backward`` and ``td.grad`` against differences."""
    wanted, x = numeric(f, at), leaf(at)
    f(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(td.grad(f)(td.asarray(at)).numpy(), wanted, rtol=tolerance, atol=tolerance)


POINT = np.random.default_rng(0).normal(size=(3, 4))


def chain(x):
    y = x * 1.5
    y.mul_(y)
    y += x
    y.tanh_()
    return (y * x).sum()


def rows(x):
    y = x * 1.5
    y[0] += x[1]
    y[1] *= y[0]
    tail = y[1:]
    tail *= 2.0
    y += x
    return (y * y).sum() + (tail * tail * tail).sum()


def nested_views(x):
    y = x * x
    v = y.reshape(-1)[1:5]
    w = v[::2]
    w.mul_(v[0])
    y.mul_(y)
    return (v * y.sum()).sum() + w.sum()


def buffer(x):
    b = td.zeros((5, 4), dtype=F64)
    b[1:4] = x * x
    b[0] = x[0]
    b[4] = b[0].clone() * b[1].clone()
    return (b**3).sum()


def gathered(x):
    y = x * 1.0
    y[[0, 2]] = y[[1, 1]] * x[:2]
    y[1, [0, 0, 3]] = x[0, 1:] * 2
    y[:, [1, 2]] = y[:, [2, 1]] * 3.0
    return (y * y * y).sum()


def transposed(x):
    y = x * 2.0
    t = y.T
    t[1] = x.sum(1)
    t += 1.0
    return (y * td.asarray(POINT)).sum() + (t * t).sum()


PROGRAMS = [chain, rows, nested_views, gathered, transposed]
