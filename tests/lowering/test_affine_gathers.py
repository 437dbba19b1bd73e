"""Gathers at positions that are affine functions of the point are loads: values, errors, and which are replaced."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import errors
from tandem.jax import lax
from tandem.lowering.passes.affine_gathers import Affine

RANDOM = np.random.default_rng(0)
ROWS, COLUMNS = 12, 9


def windows(x, k, step=1):
    starts = td.arange(0, x.shape[0] - k + 1, step)
    return td.vmap(lambda i: lax.dynamic_slice(x, (i,), (k,)).sum())(starts)


def take(x, *indices):
    return (x[indices] * 2).sum(axis=-1)


AFFINE = {
    "windows": lambda x, a: windows(x, 5),
    "windows at a distance": lambda x, a: windows(x, 4, 3),
    "frames": lambda x, a: x[td.arange(0, 20, 2)[:, None] + td.arange(8)] + 1,
    "backwards": lambda x, a: take(x, td.arange(8) - 3 * td.arange(5)[:, None] + 20),
    "negative": lambda x, a: take(x, td.arange(8) - 3 * td.arange(5)[:, None] - 12),
    "limits": lambda x, a: take(x, td.clip(td.arange(10)[:, None], 0, 9) + td.minimum(td.arange(4), 7)),
    "choices": lambda x, a: take(x, td.where(td.arange(9) < 0, 5, td.arange(9) * 2)),
    "narrow": lambda x, a: take(
        x, (td.arange(9, dtype=td.int8) * 2).astype(td.int32)[:, None] + td.arange(3)
    ),
    "computed": lambda x, a: take(x * 2 + 1, td.arange(9)[:, None] + td.arange(4)),
    "patches": lambda x, a: td.vmap(
        lambda i: td.vmap(lambda j: lax.dynamic_slice(a, (i, j), (3, 2)).max())(td.arange(COLUMNS - 1))
    )(td.arange(ROWS - 2)),
    "rows": lambda x, a: td.vmap(lambda i: a[i + td.arange(3)].sum(axis=0))(td.arange(ROWS - 2)),
    "columns": lambda x, a: td.vmap(lambda i: a[:, i].sum())(td.arange(COLUMNS)),
    "diagonal": lambda x, a: a[td.arange(COLUMNS), td.arange(COLUMNS)] * 2,
    "read twice": lambda x, a: (lambda at: x[at] + x[at + 1] + at)(td.arange(20) + 3),
    "written": lambda x, a: x.at[td.arange(6)].set(td.flip(x, 0)[td.arange(6) + 3]),
    "of integers": lambda x, a: td.arange(5, 40)[td.arange(7)[:, None] + td.arange(3)] * 2,
}
OTHER = {
    "varying limits": lambda x, a: take(x, td.minimum(td.arange(9) * 2, 9)),
    "varying choices": lambda x, a: take(x, td.where(td.arange(9) < 4, 5, td.arange(9))),
    "both signs": lambda x, a: take(x, td.arange(9) - 4),
    "squares": lambda x, a: take(x, td.arange(5) * td.arange(5)),
    "overflow": lambda x, a: take(x, (td.arange(20, dtype=td.int8) * 9) & 31),
    "data": lambda x, a: take(x, td.argsort(x)),
    "constants": lambda x, a: take(x, td.asarray([0, 1, 3, 4])),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool", "complex64"])
@pytest.mark.parametrize("name", [*AFFINE, *(f"other: {name}" for name in OTHER)])
def test_values_are_those_of_eager_calls(name, dtype):
    program = OTHER[name[7:]] if name.startswith("other") else AFFINE[name]
    x, a = (td.asarray((RANDOM.normal(size=shape) * 9).astype(dtype)) for shape in ((40,), (ROWS, COLUMNS)))
    if dtype == "complex64" and name in ("patches", "other: data"):
        a, x = a.real, x.real
    found, wanted = td.jit(program)(x, a), program(x, a)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@needs_native
@pytest.mark.parametrize("name", AFFINE)
def test_positions_are_not_checked(name):
    text = td.jit(AFFINE[name]).lower(td.zeros(40), td.zeros((ROWS, COLUMNS))).llvm_ir()
    assert "out_of_bounds" not in text


@needs_native
@pytest.mark.parametrize("name", OTHER)
def test_other_positions_are_checked(name):
    text = td.jit(OTHER[name]).lower(td.zeros(40), td.zeros((ROWS, COLUMNS))).llvm_ir()
    assert "out_of_bounds" in text


@pytest.mark.parametrize("shift", [33, -41, 2**31 - 5])
def test_errors_are_those_of_eager_calls(shift):
    def program(x):
        return x[td.arange(8) + shift] * 2

    x, messages = td.zeros(40), []
    for call in (program, td.jit(program)):
        with pytest.raises(errors.OutOfBoundsError) as fault:
            call(x)
        messages.append(str(fault.value))
    assert messages[0] == messages[1]


@needs_native
def test_kernels_of_positions_alone_are_dropped():
    lowered = td.jit(lambda x: windows(x, 5)).lower(td.zeros(10**5))
    assert len(lowered._lowered.steps) == 1
    assert lowered.compile().memory_analysis()["temp"] < 1024


@pytest.mark.parametrize("step", [1, 3])
def test_positions_that_kernels_compute(step):
    x = td.asarray(RANDOM.normal(size=10**5))
    for program in (windows, lambda x, k, step: windows(x * 2, k, step) + x[:1]):
        found, wanted = td.jit(program, static_argnums=(1, 2))(x, 6, step), program(x, 6, step)
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_gradients_of_windows():
    x = td.asarray(RANDOM.normal(size=40))
    loss = lambda x: (windows(x, 5) ** 2).sum()  # noqa: E731
    np.testing.assert_allclose(td.jit(td.grad(loss))(x).numpy(), td.grad(loss)(x).numpy(), rtol=1e-12)


def test_bounds_of_affine_functions():
    for start, steps, sizes in ((3, (2, -1), (5, 4)), (0, (0,), (7,)), (-4, (-3, 2, 1), (2, 1, 6))):
        points = [start + sum(s * i for s, i in zip(steps, p)) for p in np.ndindex(*sizes)]
        assert Affine(start, steps).bounds(sizes) == (min(points), max(points))
