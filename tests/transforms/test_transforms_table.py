"""The transforms applied to every row of the op table, in float64.

Forward against differences and against reverse, the second order three ways, vmap over every argument, vmap and grad
in either order, and all of it under jit.

Each run takes one sample of each operator by the seed of the commit; ``-m full`` takes all.
"""

import os
import zlib

import numpy as np
import pytest
import tandem as td
from gradient_harness import BOUND, DIFFERENTIABLE, OPS, directional, projected, smooth_samples
from optable import generator
from rotation import rotating, rotating_all
from tandem.eager.tensor.tensor import wrap
from tandem.registry.dtypes import float64

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
CASES = [pytest.param(name, False, id=name) for name in DIFFERENTIABLE] + [
    pytest.param(name, True, id=f"{name}-all", marks=pytest.mark.full) for name in DIFFERENTIABLE
]


def cases(name, is_full):
    """(f, tensors, directions, weights) of each sample."""
    op = OPS[name]
    chosen = smooth_samples(op)
    if not is_full:
        chosen = [chosen[(SEED + zlib.crc32(name.encode())) % len(chosen)]]
    for args, kwargs in chosen:
        rng = generator(op, float64)
        f, points = projected(op, args, kwargs, rng)
        f(*map(wrap, points))  # its weights are drawn by the first call
        draw = [[wrap(np.asarray(rng.normal(size=p.shape))) for p in points] for _ in range(2)]
        yield f, [wrap(p) for p in points], *draw


def near(found, wanted, what):
    for one, two in zip(td.pytree.leaves(found), td.pytree.leaves(wanted), strict=True):
        one, two = np.asarray(one), np.asarray(two)
        assert one.shape == two.shape, what
        bound = BOUND * max(1.0, float(np.abs(two).max(initial=0.0)))
        assert np.all((np.abs(one - two) <= bound) | (np.isnan(one) & np.isnan(two))), (
            f"{what}: {one} not {two}"
        )


def inner(one, two):
    return sum((a * b).sum() for a, b in zip(one, two, strict=True))


def gradients(f, count):
    return td.grad(f, tuple(range(count)))


def differences(f, points, directions):
    """The central difference; None where a jump lies within the step."""
    wide = directional(f, points, directions)
    near_by = 8 * directional(f, points, [d / 8 for d in directions])
    return wide if abs(wide - near_by) <= 1e-3 * max(1.0, abs(wide)) else None


def arrays(tensors):
    return [t.numpy() for t in tensors]


@rotating
@pytest.mark.parametrize(("name", "is_full"), CASES)
def test_first_order(name, is_full):
    for f, x, v, _ in cases(name, is_full):
        tangent = td.jvp(f, x, v)[1]
        wanted = differences(f, arrays(x), arrays(v))
        if wanted is not None:
            near(tangent, wanted, f"{name}: jvp and differences")
        near(tangent, inner(gradients(f, len(x))(*x), v), f"{name}: jvp and vjp")
        near(td.linearize(f, *x)[1](*v), tangent, f"{name}: linearize")


@rotating
@pytest.mark.parametrize(("name", "is_full"), CASES)
def test_second_order(name, is_full):
    for f, x, v, w in cases(name, is_full):
        g = gradients(f, len(x))
        forward_over_reverse = td.jvp(g, x, v)[1]
        near(
            gradients(lambda *a, f=f, v=v: td.jvp(f, a, v)[1], len(x))(*x),
            forward_over_reverse,
            f"{name}: rev over fwd",
        )
        near(
            gradients(lambda *a, g=g, v=v: inner(g(*a), v), len(x))(*x),
            forward_over_reverse,
            f"{name}: rev over rev",
        )
        twice = td.jvp(lambda *a, f=f, v=v: td.jvp(f, a, v)[1], x, w)[1]
        near(twice, inner(forward_over_reverse, w), f"{name}: fwd over fwd")
        wanted = differences(lambda *a, g=g, w=w: inner(g(*a), w), arrays(x), arrays(v))
        if wanted is not None:
            near(inner(forward_over_reverse, w), wanted, f"{name}: second order and differences")


def batches(x, v):
    return [td.stack([a, a + 0.01 * b]) for a, b in zip(x, v, strict=True)]


@rotating
@pytest.mark.parametrize(("name", "is_full"), CASES)
def test_vmap(name, is_full):
    for f, x, v, _ in cases(name, is_full):
        many, g = batches(x, v), gradients(f, len(x))
        for which in [*range(len(x)), None]:
            axes = tuple(0 if which in (None, i) else None for i in range(len(x)))
            given = [a if axis == 0 else b for a, b, axis in zip(many, x, axes, strict=True)]
            each = [[a[i] if axis == 0 else a for a, axis in zip(given, axes, strict=True)] for i in range(2)]
            near(
                td.vmap(f, axes)(*given),
                td.stack([td.asarray(f(*one)) for one in each]),
                f"{name}: vmap {axes}",
            )
            slopes = [td.stack(list(row)) for row in zip(*[g(*one) for one in each], strict=True)]
            near(td.vmap(g, axes)(*given), slopes, f"{name}: vmap of grad {axes}")
            total = gradients(lambda *a, axes=axes, f=f: td.vmap(f, axes)(*a).sum(), len(x))(*given)
            wanted = [s if axis == 0 else s.sum(0) for s, axis in zip(slopes, axes, strict=True)]
            near(total, wanted, f"{name}: grad of vmap {axes}")
            pushed = td.vmap(lambda *a, f=f, v=v: td.jvp(f, a, v)[1], axes)(*given)
            near(pushed, td.stack([td.jvp(f, one, v)[1] for one in each]), f"{name}: vmap of jvp {axes}")


@rotating_all
@pytest.mark.parametrize(("name", "is_full"), CASES)
def test_jit(name, is_full):
    for f, x, v, _ in cases(name, is_full):
        g = gradients(f, len(x))
        programs = {
            "grad": lambda a, v, g=g: g(*a),
            "jvp": lambda a, v, f=f: td.jvp(f, a, v)[1],
            "second": lambda a, v, g=g: td.jvp(g, a, v)[1],
            "vmap of grad": lambda a, v, g=g: td.vmap(g)(*batches(a, v)),
        }
        for what, program in programs.items():
            near(td.jit(program)(x, v), program(x, v), f"{name}: jit of {what}")
        compiled = td.jit(f)
        near(gradients(compiled, len(x))(*x), g(*x), f"{name}: grad of jit")
        near(td.jvp(compiled, x, v)[1], td.jvp(f, x, v)[1], f"{name}: jvp of jit")
