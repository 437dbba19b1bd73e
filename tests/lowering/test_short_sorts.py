"""Sorts of at most 8 elements are comparisons in compiled code: eager bits, and no call of a loop."""

import itertools

import numpy as np
import pytest
import tandem as td
from rotation import share_each_commit
from tandem import config
from tandem.lowering.passes.short_sorts import LONGEST

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
DTYPES = [td.float64, td.float32, td.float16, td.bfloat16, td.int8, td.int64, td.uint8, td.uint64]


def draw(rng, dtype, shape):
    """Numbers with many equal ones; floats have zeros of both signs, infinities and NaNs of both signs."""
    if dtype.is_integer:
        return td.asarray(rng.integers(0, 5, shape)).astype(dtype)
    numbers = np.array([-1.0, 1.0, -0.0, 0.0, np.inf, -np.inf, np.nan, -np.nan])
    return td.asarray(rng.choice(numbers, shape)).astype(dtype)


def sort_by_positions(x, axis, descending):
    """The reference: NumPy's stable order, of the reversed elements if it is descending."""
    values = x.numpy().astype(np.float64) if not x.dtype.is_integer else x.numpy()
    if not descending:
        return np.argsort(values, axis, kind="stable")
    order = np.flip(np.argsort(np.flip(values, axis), axis, kind="stable"), axis)
    return values.shape[axis] - 1 - order


@pytest.mark.parametrize("dtype", share_each_commit(DTYPES, 3), ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9, 17, 300])
def test_equal_elements_keep_their_order(dtype, size):
    rng = np.random.default_rng(size)
    few = (size + 1) // 2

    def sort(x, axis, descending):
        order = td.argsort(x, axis=axis, descending=descending)
        return (
            td.sort(x, axis=axis, descending=descending),
            order,
            td.topk(x, few, axis, largest=descending).indices,
        )

    for axis, descending in itertools.product((0, 1), (False, True)):
        x = draw(rng, dtype, (7, size) if axis else (size, 7))
        order = sort_by_positions(x, axis, descending)
        for function in (sort, td.jit(sort, static_argnums=(1, 2))):
            values, positions, first = function(x, axis, descending)
            assert values.numpy().tobytes() == np.take_along_axis(x.numpy(), order, axis).tobytes()
            assert positions.numpy().tolist() == order.tolist()
            assert first.numpy().tolist() == np.take(order, range(few), axis).tolist()


@native
@pytest.mark.parametrize("dtype", [td.float64, td.float32, td.float16], ids=str)
def test_hot_calls_keep_signs_and_nans(dtype):
    rng = np.random.default_rng(0)
    for size in (4, 6, 7, 16, 100, 1000):
        x = draw(rng, dtype, (5, size))
        want = np.take_along_axis(x.numpy(), sort_by_positions(x, 1, False), 1)
        for _ in range(200):
            result = td.sort(x)
        assert result.numpy().tobytes() == want.tobytes()


@native
def test_short_sorts_fuse():
    median = td.jit(lambda x: td.sort(x[:, 1:6] * 2.0, axis=1)[:, 2] + 1.0)
    x = td.asarray(np.random.default_rng(0).normal(size=(50, 7)))
    np.testing.assert_array_equal(median(x).numpy(), np.median(x.numpy()[:, 1:6] * 2, 1) + 1)
    assert len(median.lower(x).kernels().steps) == 1
    long = td.jit(td.sort).lower(td.zeros((4, LONGEST + 1)))
    assert any("sort_values" in step for step in long.kernels().steps)


def test_gradients_pass_to_the_sources():
    weights = td.arange(4.0)
    grad = td.grad(lambda x: (td.sort(x) * weights).sum())
    x = td.asarray([3.0, 1.0, 2.0, 0.0])
    assert td.jit(grad)(x).tolist() == grad(x).tolist() == [3.0, 1.0, 2.0, 0.0]


def test_loops_and_batches():
    x = td.asarray(np.random.default_rng(0).normal(size=(6, 5)))
    want = np.sort(x.numpy(), 1).tolist()
    assert td.jit(lambda x: td.scan(lambda c, row: (c, td.sort(row)), 0, x)[1])(x).tolist() == want
    assert td.jit(td.vmap(td.sort))(x).tolist() == want


@native
def test_kernels_that_replace_the_operators_are_called():
    with td.Library("td", "IMPL") as library:
        library.impl("sort_values", lambda x, **options: x * 0.0, "CPU")
        assert td.jit(td.sort)(td.asarray([3.0, 1.0])).tolist() == [0.0, 0.0]
    assert td.jit(td.sort)(td.asarray([3.0, 1.0])).tolist() == [1.0, 3.0]
