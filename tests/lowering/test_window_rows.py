"""Folds of short windows at traced positions in loops: the bits of eager loops, and code that LLVM vectorizes."""

import math

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem import errors
from tandem.jax import lax

SIZE = 90
RANDOM = np.random.default_rng(2)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3.0, -3.0])
DTYPES = ("float32", "float64", "float16", "int32", "uint8")
FOLDS = {
    "sum": lambda w: w.sum(),
    "mean": lambda w: td.mean(w * 2),
    "prod": lambda w: w.prod(),
    "max": lambda w: w.max() + 1,
    "min": lambda w: (w * 2).min() + 1,
    "argmax": lambda w: td.argmax(w),
    "argmin": lambda w: td.argmin(w * 3),
    "any": lambda w: (w > 2).any(),
    "count": lambda w: (w > 0).sum(),
    "two": lambda w: (w.sum(), (w * w).sum(), w.max() + 1),
    "in order": lambda w: (w - w.max()).sum(),
}


def values(dtype):
    x = RANDOM.normal(size=SIZE) * 3
    if np.dtype(dtype).kind == "f":
        x = np.where(RANDOM.random(SIZE) < 0.1, RANDOM.choice(SPECIAL, SIZE), x)
    with np.errstate(all="ignore"):
        return td.asarray(x.astype(dtype))


def clipped(x, fold, k):
    return td.scan(lambda c, i: (c, fold(lax.dynamic_slice(x, (i,), (k,)))), 0, td.arange(SIZE))[1]


def checked(x, fold, k):
    return td.scan(lambda c, i: (c, fold(x[i + td.arange(k)])), 0, td.arange(-k - 3, SIZE - k + 1))[1]


def stored(x, fold, k):
    def step(i, out):
        return out.at[i].set(td.tree.leaves(fold(x[i : i + k] if type(i) is int else x[i + td.arange(k)]))[0])

    first = td.tree.leaves(fold(x[:k]))[0]
    return td.fori_loop(0, SIZE - k, step, td.zeros(SIZE, dtype=first.dtype))


def carried(x, fold, k):
    def step(s, i):
        s = s * 0.5 + td.tree.leaves(fold(x[i + td.arange(k)]))[0]
        return s, s

    return td.scan(step, td.asarray(1.0), td.arange(SIZE - k, -1, -1))


def assert_same(program, *given):
    with np.errstate(all="ignore"):
        wanted, found = td.tree.leaves(program(*given)), td.tree.leaves(td.jit(program)(*given))
    for one, two in zip(found, wanted, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one.numpy(), two.numpy())
        if one.dtype.kind == "f":
            zeros = one.numpy() == 0
            np.testing.assert_array_equal(np.signbit(one.numpy()[zeros]), np.signbit(two.numpy()[zeros]))


@needs_native  # eager folds have this order
@pytest.mark.parametrize("case", share_each_commit([f"{n}-{d}" for d in DTYPES for n in FOLDS], 8))
def test_folds_have_the_bits_of_eager_loops(case):
    name, dtype = case.split("-")
    x = values(dtype)
    for k in (2, 3, 8, 13, 33, 81):
        for program in (clipped, checked, stored):
            assert_same(lambda x, p=program, k=k: p(x, FOLDS[name], k), x)


@needs_native
@pytest.mark.parametrize("name", ["sum", "max", "count"])
def test_folds_that_a_carry_needs(name):
    for k in (3, 8):
        assert_same(lambda x, k=k: carried(x, FOLDS[name], k), values("float32"))


def test_windows_out_of_bounds_raise_as_eager_loops_do():
    x, messages = values("float32"), []

    def program(x):
        return td.scan(lambda c, i: (c, x[i + td.arange(8)].sum()), 0, td.arange(SIZE - 3))[1]

    for call in (program, td.jit(program)):
        with pytest.raises(errors.OutOfBoundsError) as fault:
            call(x)
        messages.append(str(fault.value))
    assert messages[0] == messages[1]


@needs_native
@pytest.mark.parametrize("k", [8, 129])
def test_short_windows_are_folded_as_scalars(k):
    x = td.asarray(np.resize(values("float32").numpy(), 300))
    text = td.jit(lambda x: checked(x, FOLDS["sum"], k)).lower(x).llvm_ir()
    assert ("\nwindow" in text) is (k == 8) is ("\nconsecutive" not in text)
    assert_same(lambda x: checked(x, FOLDS["sum"], k), x)


@needs_native
def test_short_loops_do_not_poll():
    def row(i, o):
        return td.fori_loop(0, 3, lambda j, o: o.at[i].add(o[i + j]), o)

    program = td.jit(lambda x: td.fori_loop(0, 9, row, x))
    assert "call i64 @gil_poll" not in program.lower(td.ones(20)).llvm_ir()
    many = td.jit(lambda x: td.fori_loop(0, 10**6, lambda i, o: o * 0.5, x))
    assert many.lower(td.ones(20)).llvm_ir().count("call i64 @gil_poll") == 1


@needs_native
@pytest.mark.parametrize(
    "fold, most", [(lambda w: w.sum(), 128), (lambda w: (td.abs(w) ** 1.3 + td.tanh(w)).sum(), 24)]
)
def test_windows_of_few_instructions_are_folded_as_scalars(fold, most):
    x = td.asarray(RANDOM.normal(size=300), dtype=td.float32)
    for size, is_window in ((most, True), (most + 8, False)):

        def program(x, size=size):
            starts = td.arange(300 - size)
            return td.scan(lambda c, i: (c, fold(lax.dynamic_slice(x, (i,), (size,)))), 0, starts)[1]

        scalars = td.jit(program).lower(x).llvm_ir().count("load float,")
        assert (scalars >= size) == is_window
        assert_same(program, x)


# -- windows of several dimensions -----------------------------------------------------------------------------------
def grid(dtype, *shape):
    x = values(dtype).numpy()
    return td.asarray(np.resize(x, math.prod(shape)).reshape(shape))


def blocks(x, fold, sizes):
    """Fold a block at each position along the first two axes, also beyond the end, in nested loops."""
    rest = (0,) * (x.ndim - 2)
    n, m = x.shape[:2]

    def fold_at(i, j):
        return td.tree.leaves(fold(lax.dynamic_slice(x, (i, j, *rest), sizes)))[0]

    def column(i, j, out):
        return out.at[i, j].set(fold_at(i - 1, j - 1))

    first = fold_at(0, 0)
    start = td.zeros((n, m), dtype=first.dtype)
    return td.fori_loop(0, n, lambda i, o: td.fori_loop(0, m, lambda j, o: column(i, j, o), o), start)


def dilated(x, fold, sizes):
    """Fold every second element of a block, in a ``while_loop`` around a ``scan``."""
    rows, columns = td.arange(sizes[0])[:, None] * 2, td.arange(sizes[1]) * 2

    def row(state):
        i, s = state
        folded = td.scan(lambda c, j: (c, fold(x[i + rows, columns + j])), 0, td.arange(-3, 3))[1]
        return i + 1, s + td.tree.leaves(folded)[0].sum()

    first = td.tree.leaves(fold(x[:2, :2]))[0]
    return td.while_loop(lambda s: s[0] < 3, row, (td.asarray(-3), td.zeros((), dtype=first.sum().dtype)))[1]


@needs_native
@pytest.mark.parametrize("name", share_each_commit(FOLDS, 2))
def test_blocks_have_the_bits_of_eager_loops(name):
    dtype = {"max": "float64", "sum": "float64", "argmin": "int32", "mean": "float16"}.get(name, "float32")
    for sizes in ((5, 5), (1, 7), (8, 7)):
        assert_same(lambda x, s=sizes: blocks(x, FOLDS[name], s), grid(dtype, 8, 7))
    assert_same(lambda x: blocks(x, FOLDS[name], (2, 3, 4)), grid(dtype, 3, 4, 4))
    assert_same(lambda x: dilated(x, FOLDS[name], (3, 2)), grid(dtype, 9, 8))


@needs_native
@pytest.mark.parametrize("name", ["sum", "max"])
def test_blocks_are_folded_as_scalars(name):
    text = td.jit(lambda x: blocks(x, FOLDS[name], (5, 5))).lower(grid("float32", 20, 20)).llvm_ir()
    assert "\nwindow" in text  # the first position along one axis comes from the outer loop
    lines = td.jit(lambda x, i: lax.dynamic_slice(x, (i, i), (3, 3)).max()).lower(
        grid("float32", 9, 9), td.asarray(3)
    )
    assert len(lines.kernels().steps) == 1 and "out_of_bounds" not in lines.llvm_ir()


def test_blocks_out_of_bounds_raise_as_eager_loops_do():
    x, messages = grid("float32", 9, 9), []

    def program(x):
        body = lambda c, i: (c, x[i + td.arange(3)[:, None], td.arange(2) + 2].sum())  # noqa: E731
        return td.scan(body, 0, td.arange(8))[1]

    for call in (program, td.jit(program)):
        with pytest.raises(errors.OutOfBoundsError) as fault:
            call(x)
        messages.append(str(fault.value))
    assert messages[0] == messages[1]
