"""The CUDA runtime on the test double: memory and streams."""

import ctypes
import gc
import sys
import threading

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.backends.cuda.runtime import memory
from tandem.backends.cuda.runtime.devices import device_at


# -- memory ------------------------------------------------------------------------------------------------------------
def test_memory_goes_back(cuda):
    before = cuda.host_live_blocks()
    x = td.ones((100, 100), device="cuda")
    y = (x + 1)[10:20]
    assert cuda.host_live_blocks() == before + 2
    assert td.cuda.memory_allocated() >= 80000
    del x
    assert y.sum().item() == 2000.0
    del y
    assert cuda.host_live_blocks() == before


def test_blocks_are_used_again(caching):
    x = td.ones(1000, device="cuda")
    for _ in range(3):
        y = x + 1
        del y
    td.cuda.reset_peak_memory_stats()
    asked = caching.host_count(b"alloc")
    before = td.cuda.memory_stats()
    for _ in range(1000):
        x + 1
    after = td.cuda.memory_stats()
    assert caching.host_count(b"alloc") == asked
    assert after["requests"] == before["requests"] + 1000
    assert (after["misses"], after["allocated"], after["blocks"]) == tuple(
        before[name] for name in ("misses", "allocated", "blocks")
    )
    assert td.cuda.max_memory_allocated() == before["allocated"] + memory.size_class(4000)
    del x
    assert td.cuda.memory_allocated() == before["allocated"] - memory.size_class(4000)
    assert td.cuda.memory_reserved() > 0
    td.cuda.empty_cache()
    assert td.cuda.memory_reserved() == td.cuda.memory_allocated()


@pytest.mark.parametrize("calls", [20000, pytest.param(100000, marks=pytest.mark.full)])
def test_nothing_grows(caching, calls):
    """Kernels do not run here: what is counted is the host's objects and the device's blocks."""
    x, y = td.ones(16, device="cuda"), td.ones((4, 4), device="cuda")

    def work():
        z = (x + x).reshape((4, 4)).T + y
        z.add_(1.0)
        return z.sum(0)

    caching.host_noop(1)
    try:
        for _ in range(50):
            work()
        gc.collect()
        blocks, objects = td.cuda.memory_stats()["blocks"], len(gc.get_objects())
        references = sys.getrefcount(x), sys.getrefcount(x._data), sys.getrefcount(x._data.layout)
        for _ in range(calls // 5):
            work()
        gc.collect()
        assert td.cuda.memory_stats()["blocks"] == blocks
        assert abs(len(gc.get_objects()) - objects) < 50
        assert references == (sys.getrefcount(x), sys.getrefcount(x._data), sys.getrefcount(x._data.layout))
    finally:
        caching.host_noop(0)


def test_size_classes():
    for nbytes in (1, 511, 512, 513, 4096, 5000, 100_000, 1 << 20, (1 << 20) + 1, 123_456_789):
        size = memory.size_class(nbytes)
        assert nbytes <= size <= max(512, 2 * nbytes)
        assert size == memory.size_class(size)
        assert size % 256 == 0


def test_work_continues_after_out_of_memory_error(caching):
    caching.host_limit(1 << 20)
    x = td.ones(50_000, device="cuda")
    with pytest.raises(errors.OutOfMemoryError) as caught:
        td.ones((1000, 1000), device="cuda")
    assert isinstance(caught.value, MemoryError)
    for part in ("cuda:0", "4 MiB", "1 MiB", "in 1 blocks"):
        assert part in str(caught.value), caught.value
    assert (x + 1).sum().item() == 100_000.0
    assert td.cuda.memory_stats()["retries"] >= 1


def test_cache_is_released_before_out_of_memory(caching):
    caching.host_limit(1 << 20)
    x = td.ones(100_000, device="cuda")
    del x
    y = td.ones(180_000, device="cuda")  # fits only without what the pool keeps
    assert y[0].item() == 1.0
    assert td.cuda.memory_stats()["retries"] == 1


def test_garbage_is_collected_before_memory_runs_out(caching):
    caching.host_limit(1 << 20)

    class Cycle:
        pass

    one = Cycle()
    one.itself, one.tensor = one, td.ones(100_000, device="cuda")
    gc.collect()
    del one
    assert td.ones(150_000, device="cuda").shape == (150_000,)


@pytest.mark.parametrize("number", range(6))
def test_each_allocation_may_fail(cuda, number):
    x = td.asarray(np.arange(12.0).reshape(3, 4), device="cuda")
    blocks, want = cuda.host_live_blocks(), x.tolist()

    def work():
        y = (x.T + 1).reshape((12,))
        return td.concat([y, y[td.asarray([1, 2])]]).sum()

    work()
    blocks = cuda.host_live_blocks()
    cuda.host_fail_allocation(number)
    real = memory.gc.collect
    try:
        memory.gc.collect = lambda: cuda.host_fail_allocation(0)  # the second try fails too
        with pytest.raises(errors.OutOfMemoryError):
            work()
    finally:
        memory.gc.collect = real
        cuda.host_fail_allocation(-1)
    assert cuda.host_live_blocks() == blocks
    assert x.tolist() == want
    assert work().item() > 0


# -- streams -----------------------------------------------------------------------------------------------------------
def test_streams(cuda):
    assert td.cuda.current_stream() is td.cuda.default_stream()
    stream = td.cuda.Stream()
    with stream:
        assert td.cuda.current_stream() is stream
        x = td.ones(3, device="cuda") + 1
        with td.cuda.Stream("cuda:1") as other:
            assert td.cuda.current_device() == 1
            assert td.cuda.current_stream("cuda:0") is stream
            assert td.cuda.current_stream() is other
    assert td.cuda.current_stream() is td.cuda.default_stream()
    assert td.cuda.current_device() == 0
    td.cuda.current_stream().wait_stream(stream)
    assert (x + 1).tolist() == [3.0] * 3
    assert stream.query()
    stream.synchronize()
    assert "cuda:0" in repr(stream)


def test_memory_of_another_stream_waits_for_its_users(caching):
    stream = td.cuda.Stream()
    x = td.ones(1000, device="cuda")
    with stream:
        x + 1
    waits = caching.host_count(b"wait")
    del x
    assert caching.host_count(b"wait") == waits + 1  # the default stream waits for the other


def test_memory_that_lives_long_keeps_few_streams(cuda):
    x, held = td.ones(1000, device="cuda"), cuda.host_count(b"stream")
    f = td.jit(lambda x: td.exp(x) * 2)
    td.synchronize("cuda")
    for number in range(100):
        with td.cuda.Stream() as stream:
            y = f(x) if number % 2 else x + 1
        stream.synchronize()
        assert y.tolist()[0] == pytest.approx(2 * np.e if number % 2 else 2.0)
        del stream, y
    gc.collect()
    assert len(x._data.buffer.users) <= memory.MAX_USERS
    assert cuda.host_count(b"stream") - held <= memory.MAX_USERS


def test_events(cuda):
    start, end = td.cuda.Event(enable_timing=True), td.cuda.Event(enable_timing=True)
    assert start.query()
    start.record()
    td.ones(3, device="cuda")
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    with pytest.raises(errors.ArgumentError, match="enable_timing"):
        td.cuda.Event().elapsed_time(end)
    stream = td.cuda.Stream("cuda:1")
    with pytest.raises(errors.DeviceError, match="cuda:0"):
        start.record(stream)
    events = cuda.host_count(b"event")
    del start, end
    assert cuda.host_count(b"event") == events - 2


def test_a_stream_of_another_library(cuda):
    made = td.cuda.Stream()
    with td.cuda.Stream(handle=made.handle) as stream:
        assert stream.handle == made.handle
        assert td.ones(2, device="cuda").tolist() == [1.0, 1.0]
    del stream
    assert made.query()


def test_synchronize(cuda):
    before = cuda.host_count(b"synchronize")
    td.ones(2, device="cuda")
    td.synchronize("cuda:0")
    td.synchronize()
    assert cuda.host_count(b"synchronize") >= before + 2
    with pytest.raises(errors.DeviceError):
        td.synchronize("cuda:9")


def test_synchronize_waits_for_devices_without_a_default_stream(cuda):
    with td.cuda.Stream("cuda:1"):
        td.ones(2, device="cuda")
        before = cuda.host_count(b"synchronize")
        td.synchronize()
    assert cuda.host_count(b"synchronize") > before


def test_a_graph_replays_its_launches(cuda):
    """The double's graphs, which the compiled path uses: launches are recorded, not run, and their parameters kept."""
    x, y = td.ones(8, device="cuda"), td.zeros(8, device="cuda")
    y.add_(x)
    at, stream = device_at(0), td.cuda.Stream()
    with stream:
        at.driver.cuStreamBeginCapture_v2(stream.handle, 0)
        y.add_(x)
        y.mul_(2.0)
        graph = _end(at, stream)
    assert y.tolist() == [1.0] * 8
    made = at.driver.get("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, 0)
    for _ in range(2):
        at.driver.cuGraphLaunch(made, stream.handle)
    td.cuda.current_stream().wait_stream(stream)
    assert y.tolist() == [10.0] * 8
    at.driver.cuGraphExecDestroy(made)
    at.driver.cuGraphDestroy(graph)


def _end(at, stream):
    place = ctypes.c_void_p()
    at.driver.cuStreamEndCapture(stream.handle, ctypes.addressof(place))
    return place.value


def test_threads(cuda):
    x, wrong = td.arange(100, device="cuda", dtype=td.float32), []

    def work(number):
        for _ in range(30):
            if (x * number + 1).sum().item() != 4950 * number + 100:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
