"""Gradients of jitted calls of every differentiable operator and of random programs agree with eager ones."""

import numpy as np
import pytest
import tandem as td
from gradient_harness import DIFFERENTIABLE, OPS, projected, smooth_samples
from optable import generator
from tandem.eager.tensor.tensor import wrap
from tandem.registry.dtypes import float64

ORDER = np.random.default_rng(20261121).permutation(DIFFERENTIABLE).tolist()
SAMPLED, REST = ORDER[: len(ORDER) // 6], ORDER[len(ORDER) // 6 :]
NAMES = [*sorted(SAMPLED), *(pytest.param(name, marks=pytest.mark.full) for name in sorted(REST))]


def leaves_of(points):
    return [td.asarray(p.copy(), requires_grad=True) for p in points]


def gradients(f, points, order):
    """Gradients of the first or the second order; None where none flows."""
    leaves = leaves_of(points)
    value = f(*leaves)
    if not isinstance(value, td.Tensor) or not value.requires_grad:
        return []
    found = td.autograd.grad(value, leaves, create_graph=order > 1, allow_unused=True)
    if order > 1:
        rng = np.random.default_rng(5)
        flowing = [g for g in found if g is not None and g.requires_grad]
        if not flowing:
            return found
        total = sum((g * wrap(rng.standard_normal(g.shape))).sum() for g in flowing)
        found = td.autograd.grad(total, leaves, allow_unused=True)
    return found


def same(one, two, what):
    assert len(one) == len(two), what
    for a, b in zip(one, two, strict=True):
        a = np.zeros(()) if a is None else a.detach().numpy()
        b = np.zeros(()) if b is None else b.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, err_msg=what)


@pytest.mark.parametrize("name", NAMES)
def test_operator(name):
    op = OPS[name]
    for number, (args, kwargs) in enumerate(smooth_samples(op)[:2]):
        f, points = projected(op, args, kwargs, generator(op, float64))
        f(*map(wrap, points))  # draws the weights
        jitted = td.jit(f)
        for order in (1, 2) if number == 0 else (1,):
            wanted = gradients(f, points, order)
            for _ in range(2):
                same(gradients(jitted, points, order), wanted, f"{name} {args} {kwargs}, order {order}")


# --- random programs --------------------------------------------------------------------------------------

UNARY = (
    "tanh",
    "exp",
    "sin",
    "sigmoid",
    "relu",
    "square",
    "softmax",
    "sum",
    "mean",
    "flip",
    "t",
    "row",
    "detach",
)
BINARY = ("add", "mul", "sub", "div", "matmul", "maximum", "where", "concat")


def step(rng, pool):
    """A random operator on random values of the pool, as a function of the pool; all values are 4 by 4."""
    one, two = rng.integers(0, len(pool), 2)
    kind = rng.choice([*UNARY, *BINARY])

    def run(values):
        x, y = values[one], values[two]
        return {
            "t": lambda: x.mT,
            "row": lambda: td.broadcast_to(x[1:2], (4, 4)),
            "sum": lambda: x.sum(0, keepdims=True) + y,
            "mean": lambda: x - x.mean(1, keepdims=True),
            "softmax": lambda: td.softmax(x),
            "detach": lambda: x.detach() * y,
            "square": lambda: td.tanh(x) * x,
            "exp": lambda: td.exp(td.tanh(x)),
            "flip": lambda: td.flip(x, axis=0),
            "div": lambda: x / (2.0 + td.sin(y)),
            "matmul": lambda: (x @ y) * 0.25,
            "where": lambda: td.where(x > y, x, y * 2.0),
            "concat": lambda: td.concat((x, y))[2:6],
            "add": lambda: x + y,
            "mul": lambda: x * y,
            "sub": lambda: x - 3 * y,
        }.get(kind, lambda: getattr(td, kind)(*((x, y) if kind in BINARY else (x,))))()

    return run


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.full) for n in range(12, 300))]
)
def test_program(seed):
    rng = np.random.default_rng(seed)
    points = [rng.standard_normal((4, 4)) for _ in range(3)]
    steps, pool = [], [None] * 3
    for _ in range(int(rng.integers(4, 16))):
        steps.append(step(rng, pool))
        pool.append(None)

    def f(*leaves):
        values = list(leaves)
        for run in steps:
            values.append(run(values))
        return td.tanh(values[-1] + values[-2]).sum() + values[3].mean()

    jitted = td.jit(f)
    for order in (1, 2):
        same(gradients(jitted, points, order), gradients(f, points, order), f"seed {seed}, order {order}")
