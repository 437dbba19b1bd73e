"""Native matrix products, in-place operators, joins and gathers on drawn shapes, strides and overlaps, beside NumPy."""

import random
import threading

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.eager.tensor.tensor import wrap
from tandem.registry.function import functions

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)
native_layer.install()
DTYPES = [np.float32, np.float64, np.complex64, np.complex128, np.int32, np.uint8, np.float16]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def calls(name):
    return native_layer.stubs().by_operator[functions[name].operator].calls


def drawn(rng, shape, dtype):
    """An array of a shape, laid out in some way."""
    numbers = np.random.default_rng(rng.randrange(2**31))
    wide = tuple(n + rng.choice([0, 0, 1]) for n in shape)
    order = rng.sample(range(len(shape)), len(shape))
    raw = numbers.integers(-4, 5, [wide[axis] for axis in order])
    if np.dtype(dtype).kind == "c":
        raw = raw + 1j * numbers.integers(-4, 5, raw.shape)
    array = raw.astype(dtype).transpose(np.argsort(order)) if shape else raw.astype(dtype)
    array = array[tuple(slice(0, n) for n in shape)]
    return np.asarray(array[tuple(slice(None, None, rng.choice([1, 1, 1, -1])) for _ in shape)])


def matrices(rng):
    """Two shapes that multiply."""
    m, k, n = (rng.choice([0, 1, 1, 2, 3, 5, 17]) for _ in range(3))
    lead = [rng.choice([1, 2, 3]) for _ in range(rng.choice([0, 0, 1, 2]))]
    left = [rng.choice([1, size]) for size in lead]
    one = rng.choice([(*left, m, k), (k,), (m, k)])
    two = rng.choice([(*lead, k, n), (k,), (k, n)])
    return one, two


@pytest.mark.parametrize("dtype", DTYPES)
def test_drawn_products(dtype):
    rng = random.Random(0)
    one = wrap(np.ones((2, 2), dtype))
    td.matmul(one, one), td.matmul(one, one)
    before = calls("td::matmul")
    for _ in range(400):
        a, b = (drawn(rng, shape, dtype) for shape in matrices(rng))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                td.matmul(wrap(a), wrap(b))._array, np.matmul(a, b)
            )  # small integers
    assert calls("td::matmul") == before + 400


def test_products_of_nan_and_infinity_and_of_nothing():
    a, b = np.array([[np.inf, 1.0], [0.0, np.nan]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    for x, y in ((a, b), (b, a), (a, b[0]), (b[0], a), (np.zeros((2, 0)), np.zeros((0, 3)))):
        with np.errstate(all="ignore"):
            want = np.matmul(x, y)
        for _ in range(3):
            np.testing.assert_array_equal(td.matmul(wrap(x), wrap(y))._array, want)


def test_large_products_let_other_threads_run():
    x, ticks, stop = wrap(np.ones((700, 700), np.float32)), [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(20):
            assert td.matmul(x, x)._array[0, 0] == 700
    finally:
        stop.set()
        thread.join()
    assert ticks[0] > 10


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex64])
def test_drawn_writes_in_place(dtype):
    rng = random.Random(0)
    for _ in range(400):
        base = drawn(rng, tuple(rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(0, 3))), dtype).copy()
        x = wrap(base.copy())
        other = rng.choice(
            [
                x,
                x[::-1] if x.shape else x,
                wrap(drawn(rng, base.shape[1:], dtype)),
                2,
                x[:1] if x.shape else x,
            ]
        )
        beside = other if isinstance(other, int) else other._array.copy()
        wanted, version = base + beside, x.storage().version
        if wanted.shape != base.shape:
            with pytest.raises(ValueError, match="shape"):
                x += other
            assert x.storage().version == version
            continue
        kept = x
        x += other
        assert x is kept
        assert x.storage().version == version + 1
        np.testing.assert_array_equal(x._array, wanted)


def test_what_cannot_be_written_in_place():
    x, whole = wrap(np.ones((2, 3), np.float32)), wrap(np.arange(3))
    fixed = wrap(np.broadcast_to(np.float32(1), (2, 3)))
    for _ in range(3):
        with pytest.raises(TypeError):
            whole += 0.5
        with pytest.raises(NotImplementedError):
            fixed.add_(x)
        with pytest.raises(ValueError, match="shape"):
            x[0].add_(x)
    assert whole._array.tolist() == [0, 1, 2]


def test_leaves_are_updated_only_under_no_grad():
    w = td.asarray(np.ones(3, np.float32)).requires_grad_()
    before = calls("td::sub_.Tensor")
    for _ in range(4):
        with td.no_grad():
            w -= 0.25
    assert calls("td::sub_.Tensor") >= before + 2
    assert w._array.tolist() == [0.0, 0.0, 0.0]
    assert w.storage().version == 4
    with pytest.raises(RuntimeError):
        w -= 0.25
    h = w * 2.0
    for _ in range(3):
        h *= 3.0
    h.sum().backward()
    assert w.grad._array.tolist() == [54.0, 54.0, 54.0]


def test_gradients_through_entries_that_record():
    x = td.asarray(np.arange(6, dtype=np.float64).reshape(2, 3)).requires_grad_()
    index = td.asarray(np.array([1, 0, 1]))
    take, cast = functions["td::index"], functions["td::cast"]
    for _ in range(4):
        x.grad = None
        y = td.concat([take(x, [index]), td.cumsum(x, 1)], 0)
        z = td.matmul(y, td.permute(cast(y, td.float64), (1, 0))) + td.sum(td.clone(x))
        td.sum(z).backward()
        got = x.grad._array

    def value(array):
        y = np.concatenate([array[[1, 0, 1]], np.cumsum(array, 1)])
        return (y @ y.T + array.sum()).sum()

    step = 1e-6
    for at in np.ndindex(2, 3):
        shift = np.zeros((2, 3))
        shift[at] = step
        slope = (value(x._array + shift) - value(x._array - shift)) / (2 * step)
        assert abs(slope - got[at]) < 1e-5 * abs(slope)


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_drawn_joins(name):
    rng, function = random.Random(0), getattr(td, name)
    reference = {"concat": np.concatenate, "stack": np.stack}[name]
    for _ in range(300):
        shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randint(1, 3))]
        axis = rng.randrange(len(shape))
        arrays = []
        for _ in range(rng.randint(1, 4)):
            own = list(shape)
            if name == "concat":
                own[axis] = rng.choice([0, 1, 2, 3])
            arrays.append(drawn(rng, tuple(own), rng.choice([np.float32])))
        axis -= rng.choice([0, len(shape) + (name == "stack")])
        want = reference(arrays, axis)
        np.testing.assert_array_equal(function(list(map(wrap, arrays)), axis)._array, want)
        np.testing.assert_array_equal(function(tuple(map(wrap, arrays)), axis=axis)._array, want)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64, np.complex128])
def test_drawn_gathers_and_reshapes(dtype):
    rng = random.Random(0)
    for _ in range(300):
        array = drawn(rng, tuple(rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(1, 4))), dtype)
        axis = rng.randrange(array.ndim)
        size = array.shape[axis]
        index = drawn(
            rng, tuple(rng.choice([0, 1, 2, 3]) for _ in range(rng.randint(0, 2))), np.int64
        ) % size - rng.choice([0, size])
        np.testing.assert_array_equal(
            td.take(wrap(array), wrap(index), axis)._array, np.take(array, index, axis)
        )
        shape = rng.choice([(-1,), (array.size, 1), (1, -1, array.shape[-1]), (array.shape[0], -1)])
        got = td.reshape(wrap(array), shape)._array
        np.testing.assert_array_equal(got, array.reshape(shape))
        assert np.shares_memory(got, array) == np.shares_memory(array.reshape(shape), array)
