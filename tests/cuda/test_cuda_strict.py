"""The test double of the driver rejects what a real driver rejects."""

import contextlib
import ctypes
import gc
import os
import threading

import numpy as np
import pytest
import tandem as td
from tandem import errors
from tandem.backends.cuda import load
from tandem.backends.cuda.runtime import launching, memory, toolkit
from tandem.backends.cuda.runtime.devices import device_at

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SOURCE = """extern "C" __global__ void __launch_bounds__(64) copy(const float *x, float *y) {
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
}
struct alignas(16) Four { float at[4]; };
extern "C" __global__ void wide(const float *x, float *y) {
    *reinterpret_cast<Four*>(y) = *reinterpret_cast<const Four*>(x);
}"""


@pytest.fixture
def kernels(cuda):
    """Launches of the kernels above: names, two addresses, and how."""
    at = device_at(0)
    at.make_current()
    module = launching.Module(SOURCE, at)

    def launch(name, one, two, grid=(1, 1, 1), block=(4, 1, 1), shared=0, stream=None):
        packed = launching.pack_parameters([ctypes.c_uint64(one), ctypes.c_uint64(two)])
        at.driver.cuLaunchKernel(module.function(name), *grid, *block, shared, stream, packed, None)

    return launch


def faults(cuda):
    found = cuda.host_faults()
    return cuda.host_fault_text().decode() if found else ""


def ones(size=64):
    return td.ones(size, device="cuda", dtype=td.float32)


def at(x):
    return x.storage().data_ptr


def test_work_runs_at_synchronization(cuda):
    stream, x = td.cuda.Stream(), ones()
    td.synchronize()
    before = cuda.host_count(b"launch")
    with stream:
        y = x + 1
    assert cuda.host_count(b"launch") == before + 1
    assert y.to("cpu")[0].item() != 2.0, "the default stream does not wait for the other one"
    td.cuda.current_stream().wait_stream(stream)
    assert y.to("cpu")[0].item() == 2.0


def test_a_default_stream_waits_for_streams_that_block(cuda):
    place, driver = ctypes.c_void_p(), toolkit.toolkit().driver
    device_at(0).make_current()
    driver.cuStreamCreateWithPriority(ctypes.addressof(place), 0, 0)
    x = ones()
    with td.cuda.Stream(handle=place.value):
        y = x + 1
    assert y[0].item() == 2.0
    del x, y
    driver.cuStreamDestroy_v2(place)


def test_page_locked_memory_is_read_late(cuda):
    x = td.ones(8).pin_memory()
    y = x.to("cuda", non_blocking=True)
    x.numpy()[...] = 5.0
    assert y.tolist() == [5.0] * 8
    z = y.to("cpu", non_blocking=True)
    assert z.tolist() != [5.0] * 8
    td.synchronize()
    assert z.tolist() == [5.0] * 8


def test_page_locked_memory_is_freed_after_copy(cuda):
    x = td.ones(8).pin_memory()
    y = x.to("cuda", non_blocking=True)
    del x
    z = (y + 1).to("cpu", non_blocking=True)
    del z
    assert y.tolist() == [1.0] * 8
    assert not faults(cuda)
    driver, place = toolkit.toolkit().driver, ctypes.c_void_p()
    driver.cuMemHostAlloc(ctypes.addressof(place), 8, 1)
    driver.cuMemcpyDtoHAsync_v2(place, at(y), 8, None)
    driver.cuMemFreeHost(place)
    assert "freed while it is copied" in faults(cuda)


def test_memory_of_kernels(kernels, cuda):
    x, y = ones(), ones()
    kernels("copy", at(x), at(y))
    assert not faults(cuda)
    host = np.ones(4, np.float32)
    kernels("copy", host.ctypes.data, at(y))
    assert "parameter 0 is no memory" in faults(cuda)
    freed = at(x)
    del x
    kernels("copy", freed, at(y))
    assert "parameter 0 is no memory" in faults(cuda)
    elsewhere = td.ones(4, device="cuda:1")
    device_at(0).make_current()
    kernels("copy", at(y), at(elsewhere))
    assert "parameter 1 is no memory" in faults(cuda)
    kernels("wide", at(y), at(y) + 16)
    assert not faults(cuda)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"block": (65, 1, 1)}, "LAUNCH_OUT_OF_RESOURCES"),
        ({"block": (1025, 1, 1)}, "INVALID_VALUE"),
        ({"block": (0, 1, 1)}, "INVALID_VALUE"),
        ({"grid": (0, 1, 1)}, "INVALID_VALUE"),
        ({"grid": (1, 65536, 1)}, "INVALID_VALUE"),
        ({"grid": (1, 1, 65536)}, "INVALID_VALUE"),
        ({"shared": 49153}, "INVALID_VALUE"),
        ({"stream": 12345}, "INVALID_HANDLE"),
    ],
)
def test_limits_of_launches(kernels, cuda, how, code):
    x = ones()
    with pytest.raises(errors.CudaError, match=code):
        kernels("copy", at(x), at(x), **how)
    cuda.host_faults()


def test_streams_and_events_belong_to_devices(kernels, cuda):
    driver, x, other = toolkit.toolkit().driver, ones(), td.cuda.Stream("cuda:1")
    device_at(0).make_current()
    with pytest.raises(errors.CudaError, match="another device"):
        kernels("copy", at(x), at(x), stream=other.handle)
    event = td.cuda.Event()
    event.record()
    device_at(1).make_current()
    with pytest.raises(errors.CudaError, match="another device"):
        driver.cuEventRecord(event.handle, other.handle)
    assert faults(cuda)


def test_a_context_is_current(cuda):
    driver, x = toolkit.toolkit().driver, ones()
    driver.cuCtxSetCurrent(None)
    for call in (
        lambda: driver.cuStreamSynchronize(None),
        lambda: driver.cuMemsetD8Async(at(x), 0, 4, None),
        lambda: driver.cuMemFree_v2(at(x)),
    ):
        with pytest.raises(errors.CudaError, match="no context is current"):
            call()
    assert faults(cuda)
    device_at(0).driver.cuCtxSetCurrent(device_at(0).context)


def test_what_is_collected_needs_no_current_context(cuda):
    driver = toolkit.toolkit().driver
    x, stream, event = ones(), td.cuda.Stream(), td.cuda.Event()
    event.record(stream)
    module = launching.Module(SOURCE, device_at(0))
    memory = td.ones(4).pin_memory()
    driver.cuCtxSetCurrent(None)
    del x, stream, event, module, memory
    place = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.addressof(place))
    assert not place.value, "another library's context stays current"
    assert not faults(cuda)
    driver.cuCtxSetCurrent(device_at(0).context)


@pytest.mark.parametrize("seed", range(6))
def test_programs_on_several_streams(cuda, seed):
    """Tensors go from stream to stream and are dropped at any time; memory is used again, and nobody sees it."""
    rng = np.random.default_rng([seed, SEED])
    with td.config.override(cuda_caching=True):
        memory._forget()
        streams = [td.cuda.default_stream(), td.cuda.Stream(), td.cuda.Stream()]
        jitted = td.jit(lambda x, y: td.tanh((td.tanh(x) * y).sum(0) + x))
        kept = []
        for _ in range(120):
            place = int(rng.integers(3))
            with streams[place] if place else contextlib.nullcontext():
                found = [kept[int(i)] for i in rng.integers(0, len(kept), 2)] if kept else []
                for _, _, home in found:
                    streams[place].wait_stream(streams[home])
                kept.append((*_next(rng, found, jitted), place))
            while len(kept) > 5:
                kept.pop(int(rng.integers(len(kept))))
        for x, want, home in kept:
            td.cuda.default_stream().wait_stream(streams[home])
            # the errors of tanh grow along a chain of programs; memory of another tensor differs by more
            np.testing.assert_allclose(x.to("cpu").numpy(), want, rtol=2e-2, atol=2e-2)
        del kept, found, x
        td.synchronize()
        td.cuda.empty_cache()


def _next(rng, found, jitted):
    """One more tensor and what is to be in it."""
    kind = int(rng.integers(6)) if found else 0
    if kind == 0:
        want = rng.normal(size=(7, 9)).astype(np.float32)
        return td.asarray(want, device="cuda"), want
    (x, a, _), (y, b, _) = found
    if kind == 1:
        return td.tanh(x + y), np.tanh(a + b)
    if kind == 2:
        return td.tanh((x @ y.T) @ y), np.tanh((a @ b.T) @ b)
    if kind == 3:
        return td.sort(x, axis=0), np.sort(a, 0)
    if kind == 4:
        return jitted(x, y), np.tanh((np.tanh(a) * b).sum(0) + a)
    return td.from_dlpack(Lender(x)), a


class Lender:
    """A tensor as another library's array, on that library's stream."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)


def test_external_memory_is_returned_after_use(cuda):
    """A producer that uses its memory again as soon as it is told."""
    x, stream = ones(), td.cuda.Stream()
    stream.wait_stream(td.cuda.default_stream())
    with stream:
        y = td.from_dlpack(Lender(x))
        z = y * 3
        del y
    x.zero_()
    assert z.to("cpu").tolist() == [3.0] * 64


def test_the_message_after_a_fork(cuda):
    driver = toolkit.toolkit().driver
    assert "spawn" not in str(driver.fault("cuLaunchKernel", 3))
    driver._process = -1
    assert "start processes by 'spawn'" in str(driver.fault("cuLaunchKernel", 3))


def test_memory_outlives_destroyed_consumer_stream(cuda):
    with td.config.override(cuda_caching=True):
        memory._forget()
        x, stream = ones(), td.cuda.Stream()
        capsule = x.__dlpack__(stream=stream.handle)
        synchronized = cuda.host_count(b"synchronize")
        del stream, capsule
        td.synchronize()
        with td.cuda.Stream():
            del x
        assert cuda.host_count(b"synchronize") == synchronized + 2
        td.cuda.empty_cache()


def test_faults_of_unsynchronized_stream_are_reported(cuda):
    x, stream = td.arange(4, device="cuda"), td.cuda.Stream()
    x[td.asarray([1])].tolist()
    stream.wait_stream(td.cuda.default_stream())
    with stream:
        y = x[td.asarray([1, 9])]
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(errors.OutOfBoundsError, match="index 9 is out of bounds for axis 0 with size 4"):
        stream.synchronize()
    assert y.to("cpu").tolist() == [1, 0]


def test_streams_go_with_their_memory(cuda):
    with td.config.override(cuda_caching=True):
        memory._forget()
        td.ones(1, device="cuda")
        gc.collect()
        td.cuda.empty_cache()
        blocks, streams = cuda.host_live_blocks(), cuda.host_count(b"stream")
        kept = []
        for _ in range(5):
            with td.cuda.Stream():
                kept.append(ones(100) + 1)
        gc.collect()
        assert cuda.host_count(b"stream") == streams + 5
        td.synchronize()
        assert [x.sum().item() for x in kept] == [200.0] * 5
        del kept
        gc.collect()
        td.cuda.empty_cache()
        assert (cuda.host_live_blocks(), cuda.host_count(b"stream")) == (blocks, streams)


def use(x, w):
    """Calls of each kind, hot after some of them."""
    y = x + x
    y.add_(1.0)
    return [y.sum().item(), JITTED(x, w).tolist(), (w @ w).tolist(), x[2:5].tolist(), td.sort(x).tolist()]


JITTED = td.jit(lambda x, w: td.relu(td.tanh(x).reshape((4, 4)) @ w).sum(0))


def test_one_device_in_many_threads(cuda):
    """Where there is one device its context stays current; each thread sets it, whatever it calls first."""
    cuda.host_devices(1)
    try:
        with toolkit.install(toolkit.toolkit()):
            x, w = ones(16), td.ones((4, 4), device="cuda")
            want, got = use(x, w), []
            for _ in range(20):
                use(x, w)
            firsts = [
                lambda: (x + x).tolist() == [2.0] * 16,
                lambda: JITTED(x, w).tolist() == want[1],
                lambda: x.sum().item() == 16.0,
                lambda: (w @ w).tolist() == want[2],
                lambda: all(use(x, w) == want for _ in range(10)),
            ]
            threads = [threading.Thread(target=lambda one=one: got.append(one())) for one in firsts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert got == [True] * len(firsts)
            assert not faults(cuda)
            load.unload()
    finally:
        cuda.host_devices(2)


def test_other_libraries_change_the_current_device(cuda):
    x, w = ones(16), td.ones((4, 4), device="cuda")
    want = use(x, w)
    for _ in range(20):
        use(x, w)
    driver = toolkit.toolkit().driver
    for context in (device_at(1).context, None):
        for call in (
            lambda: (x + x).tolist(),
            lambda: JITTED(x, w).tolist(),
            lambda: (w @ w).tolist(),
            lambda: use(x, w),
        ):
            driver.cuCtxSetCurrent(context)
            call()
    assert use(x, w) == want
    assert not faults(cuda)


def test_graph_collected_by_another_thread_needs_no_context(cuda):
    f, x = td.jit(lambda x: td.cumsum(td.softmax(td.exp(x), axis=-1), 0).sum(0)), ones().reshape((8, 8))
    with td.config.override(cuda_graphs=1):
        for _ in range(3):
            f(x)
    td.synchronize()
    held = [f]
    del f
    gc.collect()

    def drop():
        held.clear()
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()
    assert not faults(cuda)
