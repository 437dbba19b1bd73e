"""Memory, threads and random arguments of native calls."""

import contextlib
import gc
import operator
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from native_entries import fail_each_allocation, stubs
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.eager.tensor.tensor import Tensor, wrap
from tandem.registry.function import functions

pytestmark = [
    pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"),
]


@pytest.fixture(autouse=True)
def hot():
    native_layer.install()
    with config.override(hot_calls=1, hot_composites=1):
        yield


# -- what is held ------------------------------------------------------------------------------------------------------
def calls_to_count():
    x, y = wrap(np.arange(12, dtype=np.float32).reshape(3, 4)), wrap(np.ones((3, 1), np.float32))
    bad, large = wrap(np.ones((5, 5), np.float32)), wrap(np.ones((300, 300), np.float32))
    z, turned, places = wrap(np.ones((3, 4), np.complex64)), td.permute(x, (1, 0)), wrap(np.array([2, 0]))
    plan, outside, fixed = ((0, 2, 1), 1), wrap(np.array([7])), wrap(np.broadcast_to(x._array, (2, 3, 4)))
    basic_index, index = functions["td::basic_index"], functions["td::index"]
    mask, row = x > 5.0, td.ones((7,))
    return (x, y, bad, large, z, turned, places, mask, row), {
        "pooled": lambda: td.add(large, 1.0),
        "same": lambda: td.add(x, x),
        "broadcast": lambda: td.add(x, y),
        "scalar": lambda: td.add(x, 2),
        "complex": lambda: td.mul(z, 2j),
        "complex sum": lambda: td.sum(z, axis=0),
        "sum": lambda: td.sum(x, axis=0, keepdims=True),
        "argmax": lambda: td.argmax(x, axis=1),
        "reshape": lambda: td.reshape(x, (4, 3)),
        "reshape that moves": lambda: td.reshape(turned, (12,)),
        "permute": lambda: td.permute(x, (1, 0)),
        "basic_index": lambda: basic_index(x, plan),
        "in place": lambda: wrap(x._array).add_(y),
        "matmul": lambda: td.matmul(x, turned),
        "matmul that moves": lambda: td.matmul(x[:, ::-1], turned),
        "vector": lambda: td.matmul(turned, y),
        "cast": lambda: td.astype(x, td.int64),
        "no cast": lambda: td.astype(x, td.float32, copy=False),
        "clone": lambda: td.clone(turned),
        "contiguous": lambda: td.contiguous(turned),
        "cumsum": lambda: td.cumsum(x, 0),
        "cumsum that moves": lambda: td.cumsum(turned),
        "concat": lambda: td.concat([x, x]),
        "stack": lambda: td.stack((x, x), 1),
        "index": lambda: index(x, (places,)),
        "full": lambda: td.full((2, 3), 2.5),
        "zeros": lambda: td.zeros((3,), dtype=td.int8),
        "take": lambda: td.take(x, places, 1),
        "mask": lambda: x[mask],
        "write at a mask": lambda: operator.setitem(wrap(x._array), mask, 2.5),
        "bad mask": lambda: bad[mask],
        "bad write at a mask": lambda: operator.setitem(x, mask, row),
        "bad shapes": lambda: td.add(x, bad),
        "bad axis": lambda: td.sum(x, 9),
        "bad type": lambda: td.add(x, None),
        "bad in place": lambda: x.add_(bad),
        "bad target": lambda: fixed.add_(x),
        "bad matmul": lambda: td.matmul(x, x),
        "bad index": lambda: td.take(x, outside, 0),
        "bad concat": lambda: td.concat([x, bad]),
        "bad full": lambda: td.full((-1,), 2.5),
        "bad scan": lambda: td.cumsum(x, 5),
        "bad cast": lambda: td.astype(z, td.float32),
    }


def attempt(call):
    with contextlib.suppress(TypeError, ValueError, IndexError, NotImplementedError):
        call()


@pytest.mark.parametrize("name", list(calls_to_count()[1]))
def test_reference_counts_do_not_drift(name):
    tensors, calls = calls_to_count()
    shared = (np.dtype(np.float32), np.dtype(np.int64), None, True, False, 0, 2, tensors[0]._keys, Tensor)
    for _ in range(50):
        attempt(calls[name])
    gc.collect()
    watched = [*tensors, *(t._array for t in tensors), *shared]
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(5_000 if "bad" not in name else 500):
        attempt(calls[name])
    gc.collect()
    after = [sys.getrefcount(item) for item in watched]
    assert all(abs(a - b) <= 10 for a, b in zip(after, before, strict=True)), list(
        zip(before, after, strict=True)
    )


@pytest.mark.parametrize("name", [n for n in calls_to_count()[1] if "bad" not in n and n != "no cast"])
def test_each_allocation_may_fail(name):
    hooks = pytest.importorskip("_testcapi")
    tensors, calls = calls_to_count()
    fail_each_allocation(hooks, calls[name])  # what Python and NumPy keep for themselves is there from now on
    gc.collect()
    watched = [*tensors, *(t._array for t in tensors), np.dtype(np.float32)]
    before = [sys.getrefcount(item) for item in watched]
    assert fail_each_allocation(hooks, calls[name])
    gc.collect()
    assert [sys.getrefcount(item) for item in watched] == before


def test_views_keep_their_memory_alive():
    x = wrap(np.arange(6.0))
    y = td.reshape(td.permute(td.reshape(x, (2, 3)), (0, 1)), (6,))
    alive = weakref.ref(x._array)
    del x
    gc.collect()
    assert y._array.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert alive() is not None


def test_many_threads_at_once():
    x, failures = wrap(np.arange(100, dtype=np.float32)), []

    def work():
        for _ in range(2000):
            if float(td.sum(td.add(x, 1.0))._array) != 5050.0:
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_functions_look_like_functions():
    assert td.add.__name__ == "add"
    assert pickle.loads(pickle.dumps(td.add)) is td.add
    assert weakref.ref(td.add)() is td.add
    assert "self" in str(__import__("inspect").signature(td.add))


def test_random_arguments_never_crash():
    rng = np.random.default_rng(3)
    pool = [
        None,
        1,
        -1,
        2.5,
        True,
        "x",
        (),
        (1,),
        (0, -1),
        [1, 2],
        2**80,
        float("nan"),
        object(),
        np.float32(1),
    ]
    pool += [wrap(np.zeros(s, d)) for s in ((), (1,), (2, 3), (0, 2)) for d in ("f4", "i8", "?", "f8", "u1")]
    pool += [np.ones(2), Tensor, wrap(np.ones((3, 4), "f4").T), wrap(np.ones(7, "f4")[::-2])]
    chosen = stubs()
    for _ in range(4000):
        stub = chosen[rng.integers(len(chosen))]
        args = [pool[rng.integers(len(pool))] for _ in range(rng.integers(0, 4))]
        kwargs = {"axis": pool[rng.integers(len(pool))]} if rng.random() < 0.2 else {}
        try:
            stub.function(*args, **kwargs)
        except Exception:
            continue
