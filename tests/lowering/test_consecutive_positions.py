"""Reads and updates at consecutive positions, ``x[start + arange(n)]``: values, errors, and vector loads."""

import functools

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import errors
from tandem.backends.cpu import target
from tandem.backends.cpu.codegen.intervals import find_interval, integers_of
from tandem.backends.cpu.codegen.window_rows import MOST_ELEMENTS
from tandem.jax import lax
from tandem.operators.scalar_ir.expr import apply, arg, const, select

SIZE = 37
RANDOM = np.random.default_rng(0)
DTYPES = ["float32", "float64", "float16", "int8", "int64", "bool", "complex64", "complex128"]
STARTS = [0, 1, 7, SIZE - 9, -1, -5, -9, -12, -SIZE, SIZE - 8, SIZE, 2**40, -(2**40)]


def array(dtype, *shape):
    return td.asarray((RANDOM.normal(size=shape) * 9).astype(dtype))


def assert_same(program, *arguments):
    """The jitted result, or the error, is that of the eager call."""
    compiled = td.jit(program)
    try:
        wanted = td.tree.leaves(program(*arguments))
    except errors.OutOfBoundsError as error:
        with pytest.raises(errors.OutOfBoundsError) as fault:
            compiled(*arguments)
        assert str(fault.value) == str(error)
        return
    for one, two in zip(td.tree.leaves(compiled(*arguments)), wanted, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one.numpy(), two.numpy())


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 37])
def test_reads_wrap_and_raise_as_eager_calls_do(start, count):
    x, at = array("float32", SIZE), td.asarray(start)
    assert_same(lambda x, at: x[at + td.arange(count)] * 2, x, at)
    assert_same(lambda x, at: x[td.arange(count) + at].sum(), x, at)
    assert_same(lambda x, at: (lax.dynamic_slice(x, (at,), (count,)) + 1).max(), x, at)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("count", [2, 9])
def test_updates_wrap_and_raise_as_eager_calls_do(start, count):
    x, at, value = array("float32", SIZE), td.asarray(start), array("float32", count)
    assert_same(lambda x, at, v: x.at[at + td.arange(count)].set(v * 2), x, at, value)
    assert_same(lambda x, at, v: x.at[at + td.arange(count)].add(v * 2), x, at, value)
    assert_same(lambda x, at, v: lax.dynamic_update_slice(x, v + 1, (at,)), x, at, value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_each_dtype(dtype):
    x, at, value = array(dtype, SIZE), td.asarray(5), array(dtype, 11)
    assert_same(lambda x, at: lax.dynamic_slice(x, (at,), (11,)), x, at)
    assert_same(lambda x, at: x[at + td.arange(11)], x, at)
    assert_same(lambda x, v, at: lax.dynamic_update_slice(x, v, (at,)), x, value, at)
    assert_same(lambda x, v, at: x.at[at + td.arange(11)].set(v), x, value, at)


@pytest.mark.parametrize("starts", [(0, 0), (2, 5), (-1, -3), (9, 99), (-99, 4)])
def test_blocks_of_matrices(starts):
    x, at = array("float64", 12, SIZE), td.asarray(starts)
    assert_same(lambda x, at: lax.dynamic_slice(x, (at[0], at[1]), (4, 9)) * 2, x, at)
    assert_same(lambda x, at: lax.dynamic_slice(x, (at[0], at[1]), (4, 9)).sum(1), x, at)
    assert_same(lambda x, at: lax.dynamic_slice(x, (at[0], at[1]), (4, 9)).sum(0), x, at)
    assert_same(lambda x, at: x[at[0] + td.arange(3), at[1]], x, at)
    assert_same(lambda x, at: x[at[0], at[1] + td.arange(3)], x, at)
    assert_same(lambda x, at: x.T[at[1] + td.arange(3)], x, at)
    assert_same(lambda x, at: lax.dynamic_update_slice(x, x[:4, :9] * 2, (at[0], at[1])), x, at)


@pytest.mark.parametrize("batched", [True, False])
def test_windows(batched):
    x = array("float32", 100)

    def window(start):
        rows = lax.dynamic_slice(x, (start,), (8,))
        return rows.sum(), rows.argmax(), rows[::-1] * rows

    def program(starts):
        return td.vmap(window)(starts) if batched else td.scan(lambda c, k: (c, window(k)), 0, starts)[1]

    assert_same(program, td.arange(-20, 120))
    assert_same(program, td.asarray(RANDOM.integers(-200, 200, 50)))


def test_updates_of_windows_in_loops():
    def program(x):
        def step(k, x):
            return lax.dynamic_update_slice(x, lax.dynamic_slice(x, (k + 1,), (5,)) * 0.5, (k,))

        return td.fori_loop(-3, 50, step, x)

    assert_same(program, array("float64", SIZE))


def test_empty_windows_and_gradients():
    x, at = array("float64", SIZE), td.asarray(4)
    assert_same(lambda x, at: lax.dynamic_slice(x, (at,), (0,)), x, at)
    assert_same(lambda x, at: td.grad(lambda x: (lax.dynamic_slice(x, (at,), (9,)) ** 2).sum())(x), x, at)


def test_ranges_are_read_at_positions():
    at = td.asarray([3, 0, 2])
    assert_same(lambda at: td.arange(4)[at] * 2, at)
    assert_same(lambda at: td.arange(4)[at + td.arange(3) - 2], at)


def test_intervals_of_expressions():
    x, n = arg(0, td.int64), const(7, td.int64)
    every = integers_of(td.int64)
    clipped = apply("minimum", apply("maximum", x, 0), 5)
    assert find_interval(clipped) == (0, 5)
    assert find_interval(apply("maximum", x, 3)) == (3, every.high)
    assert find_interval(apply("minimum", x, 3)) == (every.low, 3)
    assert find_interval(select(apply("lt", x, 0), clipped, n)) == (0, 7)
    assert find_interval(x) == find_interval(apply("add", x, n)) == every
    assert find_interval(apply("sub", clipped, n)) == (-7, -2)
    assert find_interval(apply("mul", clipped, const(-3, td.int64))) == (-15, 0)
    assert find_interval(apply("floordiv", apply("sub", clipped, n), const(2, td.int64))) == (-4, -1)
    assert find_interval(apply("remainder", x, n)) == (0, 6)
    assert find_interval(apply("remainder", x, const(-7, td.int64))) == every


def clipped(x, at, n):
    return lax.dynamic_slice(x, (at,), (n,))


def unclipped(x, at, n):
    return x[at + td.arange(n)]


@needs_native
@pytest.mark.parametrize("read", [clipped, unclipped])
@pytest.mark.parametrize(
    "program",
    [
        lambda read, x, at: read(x, at, 16) * 2,
        lambda read, x, at: read(td.concatenate([x] * 4), at, MOST_ELEMENTS + 1).sum(),
        lambda read, x, at: td.vmap(lambda k: read(x, k, 16).max())(td.arange(9) + at),
        lambda read, x, at: td.scan(lambda c, k: (c, read(x, k, 16)), 0, td.arange(9))[1],
    ],
)
def test_windows_are_vectors_in_memory(program, read):
    text = td.jit(functools.partial(program, read)).lower(array("float32", SIZE), td.asarray(3)).llvm_ir()
    assert ("\nconsecutive" in text) is (read is unclipped)  # and a loop that checks each position
    assert ".gather." not in text or read is unclipped


@needs_native
def test_windows_are_updated_in_vectors():
    program = td.jit(lambda x, at: lax.dynamic_update_slice(x, x[:16] * 2, (at,)))
    text = program.lower(array("float32", SIZE), td.asarray(3)).llvm_ir()
    lanes = target.vector_target().vector_bytes // 4
    assert "out_of_bounds" not in text and f"store <{lanes} x float>" in text
