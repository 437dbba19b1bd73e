"""Memory of hot jitted calls on CUDA tensors: references, cleanup after failures, streams.

They run on a double of the driver (no GPU is used), with blocks kept for the next result, as in use.
"""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
import tandem as td
from cuda_jit_harness import linked, native, on_cpu, random
from tandem import errors
from tandem.backends.cuda.launches.graphs import QUEUE
from tandem.registry.dispatch.keys import CUDA_KEYS, GRAD_CUDA_KEYS

pytestmark = [pytest.mark.usefixtures("caching"), native]


@pytest.fixture
def noop(cuda):
    """Kernels do not run."""
    cuda.host_noop(1)
    yield
    cuda.host_noop(0)


def several(x, w):
    """Several results, one of no elements, one that is an argument; several kernels, and scratch memory for them."""
    y = td.softmax(x * w, axis=0)
    return y, td.sum(td.softmax(y + 1, axis=1)), x[:0] + 1, w


def kept(f, *tensors):
    """Reference counts of what hot calls touch, and the accounts of the device's memory."""
    executable = f._specializations[0].executable
    pool = tensors[0]._data.buffer.pool
    objects = [
        *executable.fresh,
        executable,
        type(tensors[0]),
        type(tensors[0]._data),
        type(tensors[0]._data.buffer),
    ]
    objects += [f, pool, *tensors, *(x._data for x in tensors), *(x._data.buffer for x in tensors)]
    gc.collect()
    stats = td.cuda.memory_stats()
    counts = [(type(one).__name__, sys.getrefcount(one)) for one in objects]
    return counts, {name: stats[name] for name in ("blocks", "allocated", "reserved")}


@pytest.mark.parametrize("calls", [5000, pytest.param(100000, marks=pytest.mark.full)])
def test_hot_calls_keep_nothing(cuda, noop, calls):
    x, w = random(8, 6), random(8, 6, seed=1)
    f = td.jit(several)
    record = linked(f, x, w)
    results = [f(x, w), f(x, w)]  # below, the results of one call are there while the next makes its own
    del results
    before, hits, asked = kept(f, x, w), record.hits, cuda.host_count(b"alloc")
    keys = sys.getrefcount(GRAD_CUDA_KEYS), sys.getrefcount(CUDA_KEYS), sys.getrefcount(None)
    for _ in range(calls):
        results = f(x, w)
    now = sys.getrefcount(GRAD_CUDA_KEYS), sys.getrefcount(CUDA_KEYS), sys.getrefcount(None)
    assert all(abs(count - known) < 100 for count, known in zip(now, keys, strict=True))
    assert record.hits == hits + calls
    del results
    assert kept(f, x, w) == before
    assert cuda.host_count(b"alloc") == asked


@pytest.mark.parametrize("calls", [300, pytest.param(100000, marks=pytest.mark.full)])
def test_failing_calls_keep_nothing(cuda, noop, calls):
    x, w = random(8, 6), random(8, 6, seed=1)
    f = td.jit(several)
    linked(f, x, w)
    table, refuses = (
        f._specializations[0].executable.choice.submission.table,
        ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 701),
    )
    good = table[QUEUE]
    before = kept(f, x, w)
    table[QUEUE] = ctypes.cast(refuses, ctypes.c_void_p).value
    for _ in range(calls):
        with pytest.raises(errors.CudaError):
            f(x, w)
    table[QUEUE] = good
    assert kept(f, x, w) == before
    f(x, w)


@pytest.mark.parametrize("number", range(4))
def test_out_of_memory_in_the_middle_of_call(cuda, number):
    x, w = random(40, 30), random(40, 30, seed=1)
    f = td.jit(several)
    record = linked(f, x, w)
    want = [r.tolist() for r in f(x, w)]
    before, hits = kept(f, x, w), record.hits
    td.cuda.empty_cache()
    cuda.host_fail_allocation(number)
    first = cuda.host_live_bytes()
    try:
        found = f(x, w)
    except errors.OutOfMemoryError:
        found = None
    finally:
        cuda.host_fail_allocation(-1)
    assert record.hits == hits + 1
    del found
    td.cuda.empty_cache()
    assert cuda.host_live_bytes() <= first
    assert [r.tolist() for r in f(x, w)] == want
    assert kept(f, x, w)[0] == before[0]


def test_a_device_that_is_full(cuda):
    x = random(1000)
    f = td.jit(lambda x: (td.exp(x), td.sum(td.softmax(x * 2, axis=0))))
    linked(f, x)
    want, alive = [r.tolist() for r in f(x)], []
    cuda.host_limit(1 << 18)
    with pytest.raises(errors.OutOfMemoryError, match="no memory for"):
        while True:
            alive.append(f(x))
    assert len(alive) > 10
    for results in alive:
        assert [r.tolist() for r in results] == want
    del alive, results
    assert [r.tolist() for r in f(x)] == want


def test_streams_and_threads_have_memory_of_their_own():
    f = td.jit(lambda x, s: td.sum(td.softmax(td.tanh(x * s), axis=0) * x))
    x = random(100)
    want = [f(x, s / 4).item() for s in range(4)]
    linked(f, x, 1.0)
    wrong, pools = [], set()

    def work(number):
        with td.cuda.Stream() as stream:
            y = x + 0
            for _ in range(200):
                found = f(y, number / 4)
                pools.add(found._data.buffer.pool)
                if found._data.buffer.pool.stream is not stream or found.item() != want[number]:
                    wrong.append(number)

    (record,) = f._specializations[0].records.values()
    hits = record.hits
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(pools) == 4
    assert record.hits == hits + 800


def test_external_memory_is_held_until_stream_is_done(cuda):
    f = td.jit(lambda x: td.tanh(x) * 2)
    mine, lent = random(50), td.asarray(Lent(random(50)))
    assert lent._data.buffer.pool is None
    record = linked(f, mine)
    want = [f(x).tolist() for x in (mine, lent)]
    with td.cuda.Stream() as stream:
        for x, expected in zip((mine, lent), want, strict=True):
            for calls in range(3):
                hits = record.hits
                assert f(x).tolist() == expected
                assert record.hits == hits + bool(calls)
            assert stream in x._data.buffer.users
        waits, address = cuda.host_count(b"wait"), mine._data.ptr
        del mine, x
    again = random(50)
    assert again._data.ptr == address
    assert cuda.host_count(b"wait") > waits
    lent._data.buffer.users = "nothing that holds streams"
    assert f(lent) is not None
    lent._data.buffer.users = None


class Lent:
    """Memory of another library."""

    def __init__(self, tensor):
        self.tensor, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__


def test_arguments_that_need_more_than_machine_code():
    """The same numbers in every layout, and what is written is written, however often a function was called."""
    wide = random(8, 12)
    f = td.jit(lambda x, y: (x * 2 + y, x))
    x = wide[1:, 1:]
    y = random(7, 11, seed=1)
    aligned = random(7, 11, seed=2)
    linked(f, aligned, y)
    for given in (x, wide[:7, :11], wide.reshape(96)[1:78].reshape(7, 11), wide.T[:7, :8][:, :1] + aligned):
        for _ in range(40):
            total, same = f(given, y)
            assert same is given
        np.testing.assert_array_equal(on_cpu(total).numpy(), given.cpu().numpy() * 2 + y.cpu().numpy())

    def write(x, y):
        x.add_(y)
        return x * 2

    g = td.jit(write, donate_argnums=1)
    ours, theirs, one = random(5), random(5), td.ones(5, device="cuda")
    for _ in range(40):
        np.testing.assert_array_equal(on_cpu(g(ours, one)).numpy(), on_cpu(write(theirs, one)).numpy())
    assert ours.tolist() == theirs.tolist()


def test_levels_of_transforms_are_left_to_python():
    x, y = random(5), random(5, seed=1)
    f = td.jit(lambda x: td.tanh(x) * 2)
    linked(f, y)
    plain = lambda x: td.sum(x * f(y))  # noqa: E731
    np.testing.assert_allclose(on_cpu(td.grad(plain)(x)).numpy(), on_cpu(f(y)).numpy(), rtol=1e-6)
    assert f(y)._data.buffer.pool is y._data.buffer.pool


def test_host_memory_error_leaves_state_unchanged():
    hooks = pytest.importorskip("_testcapi", reason="this build of CPython comes without its test module")
    x, w = random(8, 6), random(8, 6, seed=1)
    f = td.jit(several)
    record = linked(f, x, w)
    want = [r.tolist() for r in f(x, w)]
    before, failures, hits = kept(f, x, w)[0], 0, record.hits
    for k in range(40):
        gc.collect()
        hooks.set_nomemory(k, k + 1)
        try:
            f(x, w)
        except MemoryError:
            failures += 1
        finally:
            hooks.remove_mem_hooks()
    assert failures >= 5
    assert record.hits > hits
    assert [r.tolist() for r in f(x, w)] == want
    assert kept(f, x, w)[0] == before
    assert td.cuda.memory_stats()["blocks"] == 2
