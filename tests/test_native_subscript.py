"""``x[key]`` through its native entry selects what the Python code of the method selects."""

import gc
import random
import sys

import numpy as np
import pytest
from tandem import config
from tandem.backends.cpu import native as native_layer
from tandem.eager.tensor import Tensor, wrap

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)

BASE = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
ARRAYS = [BASE, BASE.transpose(3, 1, 0, 2), BASE[::-1, :, ::2], BASE[:, :0], BASE[0, 0, 0, :3], np.array(7)]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        wrap(BASE)[0]
        wrap(BASE)[0]
        yield


def method():
    return Tensor.__dict__["__getitem__"]


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
    rng, before = random.Random(0), method().record.calls
    for _ in range(4000):
        x = wrap(rng.choice(ARRAYS))
        key = (
            tuple(draw_item(rng) for _ in range(rng.randint(0, 5))) if rng.random() < 0.8 else draw_item(rng)
        )
        assert outcome(method().function, x, key) == outcome(method(), x, key), (x._array.shape, key)
    assert method().record.calls > before + 1000


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
