"""Native entries of hot eager calls on CUDA tensors, on the test double of the driver."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import tandem as td
from cuda_entries import OFF, answered, array_of, calls, entries_of, heat, in_use, needs_native, one_and_two
from rotation import share_each_commit
from tandem import errors
from tandem.backends.cuda.runtime import memory


@pytest.fixture
def hot(cuda, request):
    with in_use(cuda, request):
        yield cuda


# -- elementwise operators ---------------------------------------------------------------------------------------------
DTYPES = [
    td.float32,
    td.float64,
    td.float16,
    td.bfloat16,
    td.int8,
    td.uint8,
    td.int32,
    td.int64,
    td.uint64,
    td.bool,
]
LAYOUTS = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a[::2, 1::2],
    lambda a: a.reshape((-1,))[1:],  # not aligned
    lambda a: a[::-1],
    lambda a: a[1],
    lambda a: a[1, 2],
]


def same(found, want):
    assert type(found) is td.backends.cuda.kernels.tensor.CudaTensor
    assert found.shape == want.shape
    assert found.dtype is want.dtype
    np.testing.assert_allclose(
        found.to("cpu").numpy().astype(np.float64), want.numpy().astype(np.float64), rtol=1e-2
    )


@pytest.mark.parametrize("dtype", share_each_commit(DTYPES, 3), ids=str)
def test_results_agree_with_the_cpu(hot, dtype):
    for lay in LAYOUTS:
        check_results(
            dtype, lay(td.asarray(array_of(dtype))), lay(td.asarray(array_of(dtype), device="cuda"))
        )


def check_results(dtype, here, there):
    same(answered("maximum", td.maximum, there, there), td.maximum(here, here))
    same(answered("eq", lambda: there == there), here == here)
    same(answered("where", td.where, there > 2, there, there), here)
    if dtype is not td.bool:
        same(answered("mul", lambda: there * 3), here * 3)
        same(answered("sub", lambda: 5 - there), 5 - here)
    if dtype.kind == "f":
        same(answered("exp", td.exp, there), td.exp(here))
        same(answered("add", lambda: there + True), here + True)
    if dtype in (td.float32, td.float64):
        same(answered("mul", lambda: there * 2.5), here * 2.5)


@one_and_two
@needs_native
def test_operands_that_broadcast(hot):
    x, row = td.asarray(array_of(td.float32)), td.asarray(array_of(td.float64)[2])
    same(answered("add", lambda a, b: a + b, x.to("cuda"), row.to("cuda")), x + row)
    column = td.asarray(array_of(td.float32)[:, :1])
    same(answered("mul", lambda a, b: a * b, column.to("cuda"), row.to("cuda")), column * row)


def test_overflowing_numbers_are_refused(hot):
    x = td.ones(3, dtype=td.int8, device="cuda")
    heat(lambda: x + 100)
    with pytest.raises(errors.ScalarOverflowError, match="300"):
        x + 300
    assert (x + 100).tolist() == [101] * 3
    heat(lambda: (x / 2, x**2))
    with pytest.raises(errors.ScalarOverflowError, match="300"):
        x / 300
    with pytest.raises(errors.ValueArgumentError, match="negative power"):
        x**-1
    assert ((x / 2).tolist(), (x**2).tolist()) == ([0.5] * 3, [1] * 3)
    heat(lambda: x * 1.5)
    assert (x * 1.5).dtype is td.float32
    y = td.ones(3, device="cuda")
    heat(lambda: y * 2)
    with pytest.raises((OverflowError, errors.TandemError)):
        y * 10**400


def test_subclasses_use_the_dispatcher(hot):
    x = td.asarray([1.0, 2.0], device="cuda")
    heat(lambda: x * x)
    y = td.asarray([1.0, 2.0], device="cuda", requires_grad=True)
    (y * x).sum().backward()
    assert y.grad.tolist() == [1.0, 2.0]
    with td.no_grad():
        assert not (y * x).requires_grad
    assert td.vmap(lambda row: row * row)(x).tolist() == [1.0, 4.0]
    assert td.grad(lambda v: (v * v).sum())(x).tolist() == [2.0, 4.0]
    assert (x * td.asarray(3.0)).tolist() == [3.0, 6.0]
    with pytest.raises(errors.DeviceError, match="cpu"):
        x * td.ones(2)
    with pytest.raises(errors.ShapeError):
        x * td.ones(3, device="cuda")


# -- others may see the calls ------------------------------------------------------------------------------------------
def test_modes_and_other_kernels_see_hot_calls(hot):
    x = td.ones(3, device="cuda")
    heat(lambda: (x + x, x.reshape((3, 1)), x.sum(), x[1]))
    seen = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            seen.append(op.schema.name)
            return op(*args, **kwargs)

    with Log():
        x + x, x.reshape((3, 1)), x.sum(), x[1]
    assert {"add", "reshape", "sum", "basic_index"} <= set(seen), seen
    mine, my_sum, my_view = (td.zeros(3, device="cuda") for _ in range(3))
    with td.Library("td", "IMPL") as library:
        library.impl("add.Tensor", lambda a, b: mine, "CUDA", allow_override=True)
        library.impl("sum", lambda a, *rest, **more: my_sum, "CUDA", allow_override=True)
        library.impl("basic_index", lambda a, *rest, **more: my_view, "CUDA", allow_override=True)
        assert (x + x) is mine and x.sum() is my_sum and x[1] is my_view
    assert (x + x).tolist() == [2.0] * 3
    before = calls("add")
    heat(lambda: x + x)
    assert OFF or calls("add") == before + 8  # the entry is back


def test_tensors_are_noted_while_a_level_is_open(hot):
    x = td.ones(3, device="cuda")
    heat(lambda: x * 2.0)

    def inside(v):
        made = x * 2.0
        made.add_(1.0)  # allowed, since it was made inside
        return (v * made).sum()

    assert td.grad(inside)(x).tolist() == [3.0] * 3


# -- memory ------------------------------------------------------------------------------------------------------------
def hot_work(x, m):
    y = x + x
    z = (y * 2.0).reshape((4, 4)).T
    return td.exp(z[1] - m[:, 2]).sum(), m.sum(0, keepdims=True), m.clone(), m[-1, 1:]


@one_and_two
@pytest.mark.parametrize("count", [3000, pytest.param(100_000, marks=pytest.mark.full)])
def test_nothing_grows(hot, count):
    x, m = td.ones(16, device="cuda"), td.ones((4, 4), device="cuda")
    hot.host_noop(1)
    heat(hot_work, x, m, times=50)
    watched = (None, True, x, m, x._data, x._data.buffer, x._data.layout, m._data.layout, x._data.buffer.pool)
    gc.collect()
    blocks, objects = td.cuda.memory_stats()["blocks"], len(gc.get_objects())
    before = [sys.getrefcount(one) for one in watched[2:]]
    fixed = [sys.getrefcount(one) for one in (None, True, type(x), x._keys)]
    for _ in range(count):
        hot_work(x, m)
    gc.collect()
    assert [sys.getrefcount(one) for one in watched[2:]] == before
    after = [sys.getrefcount(one) for one in (None, True, type(x), x._keys)]
    assert all(abs(one - two) < 100 for one, two in zip(fixed, after)), (fixed, after)
    assert td.cuda.memory_stats()["blocks"] == blocks
    assert len(gc.get_objects()) - objects < 50


@needs_native
def test_the_accounts_are_those_of_python(hot):
    def accounts():
        gc.collect()
        memory.empty_cache()
        td.cuda.reset_peak_memory_stats()
        before = td.cuda.memory_stats()
        kept = [hot_work(x, m) for _ in range(5)]
        del kept[2:]
        after = td.cuda.memory_stats()
        return {name: after[name] - before[name] for name in after}

    x, m = td.ones(16, device="cuda"), td.ones((4, 4), device="cuda")
    heat(hot_work, x, m)
    fast = accounts()
    with td.include_keys("Mode"):  # no mode is open: the dispatcher takes all calls
        slow = accounts()
    assert fast == slow
    assert fast["requests"] > 20


@needs_native
def test_buffers_go_back_without_python(hot, monkeypatch):
    x = td.ones(16, device="cuda")
    heat(lambda: x + x)
    monkeypatch.setattr(memory.Pool, "recycle", None)
    before = td.cuda.memory_stats()["returned"]
    x + x
    monkeypatch.undo()
    assert td.cuda.memory_stats()["returned"] == before + 1


def test_buffers_in_cycles_go_back(hot):
    x = td.ones(16, device="cuda")
    y = heat(lambda: x + x)
    gc.collect()
    blocks = td.cuda.memory_stats()["blocks"]
    loop = [y]
    loop.append(loop)
    gone = weakref.ref(y._data.buffer)
    del y, loop
    gc.collect()
    assert gone() is None
    assert td.cuda.memory_stats()["blocks"] == blocks - 1


@one_and_two
def test_out_of_memory_in_a_hot_call(hot):
    x = td.ones(50_000, device="cuda")
    heat(lambda: (x + x, x.sum()))
    td.cuda.empty_cache()
    hot.host_limit(300_000)
    references, blocks = sys.getrefcount(x._data), td.cuda.memory_stats()["blocks"]
    for _ in range(5):
        with pytest.raises(errors.OutOfMemoryError, match="cuda:0 has no memory for 256 KiB"):
            x + x
    assert (sys.getrefcount(x._data), td.cuda.memory_stats()["blocks"]) == (references, blocks)
    assert x.sum().item() == 50_000.0
    hot.host_limit(1 << 30)
    assert (x + x)[7].item() == 2.0


@needs_native
def test_host_memory_error_in_hot_call(hot):
    """Each object that a hot call makes may fail: Python answers, or says so, and nothing is lost."""
    testcapi = pytest.importorskip("_testcapi")
    x, m = td.ones(16, device="cuda"), td.ones((4, 4), device="cuda")
    work = [lambda: x + x, lambda: x * 2.0, lambda: m[1], lambda: m.T, lambda: m.sum(0), lambda: x.add_(0.0)]
    for one in work:
        heat(one)
    gc.collect()
    watched = [x, m, x._data, m._data, x._data.layout, x._data.buffer, x._data.buffer.pool]
    before, blocks = [sys.getrefcount(one) for one in watched], td.cuda.memory_stats()["blocks"]
    gc.disable()
    try:
        for one in work:
            for start in range(30):
                testcapi.set_nomemory(start, start + 1)
                try:
                    one()
                except MemoryError:
                    pass
                finally:
                    testcapi.remove_mem_hooks()
    finally:
        gc.enable()
    gc.collect()
    assert [sys.getrefcount(one) for one in watched] == before
    assert td.cuda.memory_stats()["blocks"] == blocks
    assert (x + x).tolist() == [2.0] * 16


@needs_native
def test_failed_launch_raises_in_python(hot):
    """The plan's kernel gets a grid that the driver refuses: Python launches the right one."""
    x = td.ones(16, device="cuda")
    heat(lambda: x + x)
    plan = next(iter(entries_of("add").cached_calls.values()))
    record = next(iter(plan.launches.values())).record
    before = td.cuda.memory_stats()["blocks"]
    record.set(16, 0)  # an empty grid
    for _ in range(100):
        with pytest.raises(errors.CudaError, match="INVALID_VALUE"):
            x + x
    record.set(16, 1)
    assert (x + x).tolist() == [2.0] * 16
    assert td.cuda.memory_stats()["blocks"] == before


# -- streams and threads -----------------------------------------------------------------------------------------------
@one_and_two
def test_streams(hot):
    x = td.ones(1000, device="cuda")
    heat(td.add, x, x)
    td.cuda.synchronize()
    stream = td.cuda.Stream()
    with stream:
        for _ in range(5):
            y = x + x  # of another pool: the stream is noted
            assert y._data.buffer.pool.stream is stream
        mine = td.ones(1000, device="cuda")
        before = calls("mul")
        found = heat(lambda: mine * mine)
        assert OFF or calls("mul") > before
        assert found._data.buffer.pool.stream is stream
        with td.cuda.default_stream():
            assert (x + x)._data.buffer.pool.stream is td.cuda.default_stream()
        assert (mine * mine)._data.buffer.pool.stream is stream
    assert stream in x._data.buffer.users
    waits = hot.host_count(b"wait")
    del x
    assert hot.host_count(b"wait") > waits  # the default stream waits for the other
    z = td.ones(1000, device="cuda")
    assert (z + z)._data.buffer.pool.stream is td.cuda.default_stream()
    stream.synchronize()
    assert y.sum().item() == 2000.0


@one_and_two
def test_threads_have_streams_of_their_own(hot):
    x, wrong = td.ones(100, device="cuda"), []
    heat(lambda: x + x)
    stream = td.cuda.Stream()
    td.cuda.synchronize()

    def work(own):
        with own:
            mine = td.ones(100, device="cuda")
            for _ in range(300):
                found = (mine + mine) * 2.0
                if found._data.buffer.pool.stream is not own:
                    wrong.append("stream")
            if found.tolist() != [4.0] * 100:
                wrong.append("value")

    threads = [threading.Thread(target=work, args=(own,)) for own in (stream, td.cuda.default_stream())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    stats = td.cuda.memory_stats()
    assert stats["blocks"] == stats["requests"] - stats["returned"]
