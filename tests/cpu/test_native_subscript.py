"""Native entries of ``x[key]`` and ``x[key] = value`` agree with the Python methods."""

import gc
import random
import sys

import numpy as np
import pytest
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.eager.tensor.tensor import Tensor, wrap

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)

BASE = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
ARRAYS = [BASE, BASE.transpose(3, 1, 0, 2), BASE[::-1, :, ::2], BASE[:, :0], BASE[0, 0, 0, :3], np.array(7)]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        for _ in range(2):
            wrap(BASE)[0]
            wrap(BASE.copy())[0] = 1.0
        yield


def method(name="__getitem__"):
    return Tensor.__dict__[name]


def outcome(function, x, key):
    try:
        found = function(x, key)
    except Exception as error:
        return type(error)
    shares = np.shares_memory(found._array, x._array)
    place = found._array.ctypes.data - x._array.ctypes.data if shares else None
    return (
        found._array.shape,
        found._array.tolist(),
        place,
        found._storage is x._storage,
        found._array.flags.writeable,
    )


def draw_item(rng):
    kind = rng.random()
    if kind < 0.35:
        return rng.randint(-6, 6)
    if kind < 0.75:
        bounds = [rng.choice([None, rng.randint(-7, 7)]) for _ in range(2)]
        return slice(*bounds, rng.choice([None, 1, 2, -1, -2, 3, 0]))
    return rng.choice(
        [None, Ellipsis, None, Ellipsis, "x", 2.5, True, 2**70, [0], slice(2**70), slice("a", None)]
    )


def test_random_keys():
    rng, before = random.Random(0), method().stub.calls
    for _ in range(4000):
        x = wrap(rng.choice(ARRAYS))
        key = (
            tuple(draw_item(rng) for _ in range(rng.randint(0, 5))) if rng.random() < 0.8 else draw_item(rng)
        )
        assert outcome(method().function, x, key) == outcome(method(), x, key), (x._array.shape, key)
    assert method().stub.calls > before + 1000


def test_references_do_not_drift():
    x = wrap(np.ones((4, 4)))
    x[0]
    gc.collect()
    before = [sys.getrefcount(item) for item in (x, x._array, x._storage)]
    for _ in range(20_000):
        x[0], x[1:, None], x[..., -1], x[0, 0]
    assert [sys.getrefcount(item) for item in (x, x._array, x._storage)] == before


def test_each_allocation_may_fail():
    hooks = pytest.importorskip("_testcapi")
    failed, array = 0, np.ones((4, 4))
    for k in range(30):
        x = wrap(array)
        try:
            hooks.set_nomemory(k, k + 1)
            try:
                x[1:, 0]
            finally:
                hooks.remove_mem_hooks()
        except MemoryError:
            failed += 1
    gc.collect()
    assert failed
    assert sys.getrefcount(array) <= 4


# -- tensors of integers -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_integer_tensor_indexes_first_axis(dtype):
    before = method().stub.calls
    for array in ARRAYS[:4]:
        last = array.shape[0] - 1
        for index in (
            np.array([0, last, 0], dtype),
            np.array(last, dtype),
            np.array([[last], [0]], dtype)[:, ::-1],
        ):
            got = wrap(array)[wrap(index)]
            np.testing.assert_array_equal(got._array, array[index])
            assert not np.shares_memory(got._array, array)
    assert method().stub.calls == before + 12


@pytest.mark.parametrize("index", [[2], [-3], [2**63 - 1], [-(2**63)], [0, 9]])
def test_a_position_outside_is_an_index_error(index):
    for _ in range(3):
        with pytest.raises(IndexError):
            wrap(BASE)[wrap(np.array(index))]


def test_masks_floats_and_scalars_take_the_python_path():
    x = wrap(BASE)
    np.testing.assert_array_equal(x[wrap(BASE > 50)]._array, BASE[BASE > 50])
    with pytest.raises(IndexError):
        x[wrap(np.array([0.5]))]
    with pytest.raises(IndexError):
        wrap(np.array(7))[wrap(np.array([0]))]


# -- writing -----------------------------------------------------------------------------------------------------------
def written(function, array, key, value):
    x = wrap(array.copy(order="K"))
    try:
        function(x, key, value)
    except Exception as error:
        np.testing.assert_array_equal(x._array, array)
        return type(error)
    return x._array.tolist(), x.storage().version


def draw_value(rng, array, key):
    try:
        shape = array[key].shape
    except Exception:
        shape = (2,)
    kind = rng.random()
    if kind < 0.3:
        return rng.choice([2.5, 3, True, -1, 1j, 2**70, None, "x"])
    shape = tuple(1 if rng.random() < 0.2 else n for n in shape)[rng.choice([0, 0, 1]) :]
    dtype = array.dtype if kind < 0.85 else rng.choice([np.float64, np.int8, np.complex64])
    return wrap(np.arange(int(np.prod(shape))).astype(dtype).reshape(shape))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex128])
def test_random_writes(dtype):
    rng, before = random.Random(1), method("__setitem__").stub.calls
    for _ in range(1500):
        array = rng.choice(ARRAYS).astype(dtype, order="K")
        key = tuple(draw_item(rng) for _ in range(rng.randint(0, 4)))
        value = draw_value(rng, array, key)
        python, native = (
            written(one, array, key, value) for one in (method("__setitem__").function, method("__setitem__"))
        )
        assert python == native, (array.shape, key, value)
    assert method("__setitem__").stub.calls > before + 100


def test_overlapping_writes_behave_as_from_copies():
    shift, before = (slice(1, None), slice(None, -1)), method("__setitem__").stub.calls
    for to, of in (shift, shift[::-1], (slice(0, 2), slice(3, 5)), (slice(None), slice(None, None, -1))):
        x, want = wrap(np.arange(6.0)), np.arange(6.0)
        x[to] = x[of]
        want[to] = want[of].copy()
        np.testing.assert_array_equal(x._array, want)
        x[to] += x[of]
        want[to] += want[of].copy()
        np.testing.assert_array_equal(x._array, want)
    assert method("__setitem__").stub.calls == before + 8


def test_keys_may_have_tensors_of_one_integer():
    array, at, calls = (
        np.arange(12.0).reshape(3, 4),
        wrap(np.array(-1, np.int16)),
        method("__getitem__").stub.calls,
    )
    x = wrap(array)
    assert (
        x[at, 1].item() == 9.0
        and x[0, :at].tolist() == [0.0, 1.0, 2.0]
        and x[at].tolist() == array[-1].tolist()
    )
    row = x[at, 1:]
    row[0] = 50.0  # a copy, as of other tensors
    assert x[2, 1].item() == 9.0
    x[at, 0] = 7.0
    x[wrap(np.array([0, 1]))] = 5.0
    assert x[2, 0].item() == 7.0 and x[:2].tolist() == [[5.0] * 4] * 2
    assert method("__getitem__").stub.calls >= calls + 7
    for key in (wrap(np.array(3)), (0, wrap(np.array(4, np.uint64))), wrap(np.array([0, 5]))):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 1.0


def test_read_only_memory_is_not_written():
    x = wrap(np.broadcast_to(np.ones(3, np.float32), (2, 3)))
    with pytest.raises(NotImplementedError):
        x[0] = 1.0


def test_views_see_writes_and_versions():
    x = wrap(np.zeros((2, 3), np.float32))
    row = x[1]
    x[:, 1] = 5.0
    assert row._array.tolist() == [0.0, 5.0, 0.0]
    assert row.storage().version == x.storage().version == 1


def test_writes_hold_no_references():
    x, value = wrap(np.ones((4, 4), np.float32)), wrap(np.ones(4, np.float32))
    index = wrap(np.array([1, 0]))
    x[0] = value
    gc.collect()
    items = (x, x._array, value, value._array, x._storage, None, index, index._array)
    before = [sys.getrefcount(item) for item in items]
    for _ in range(5000):
        x[1] = value
        x[:, 2] = 3
        x[index]
    assert all(abs(sys.getrefcount(item) - count) < 10 for item, count in zip(items, before, strict=True))


def test_each_allocation_of_a_write_may_fail():
    hooks = pytest.importorskip("_testcapi")
    failed, array = 0, np.ones((4, 4))
    value, index = wrap(np.ones(4)), wrap(np.array([1, 0]))
    for k in range(30):
        x = wrap(array)
        try:
            hooks.set_nomemory(k, k + 1)
            try:
                x[1:, 0] = 2.0
                x[0] = value
                x[index]
            finally:
                hooks.remove_mem_hooks()
        except MemoryError:
            failed += 1
    gc.collect()
    assert failed
    assert sys.getrefcount(array) <= 4
