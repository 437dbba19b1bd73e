"""The double of the driver is as strict as a driver may be: what a device would not forgive, it does not either."""

import ctypes

import numpy as np
import pytest
import tandem as td
from cuda_host.fixture import cuda  # noqa: F401
from tandem import errors
from tandem.backends.cuda import modules, toolkit
from tandem.backends.cuda.devices import device_at

SOURCE = """extern "C" __global__ void __launch_bounds__(64) copy(const float *x, float *y) {
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
}
struct alignas(16) Four { float at[4]; };
extern "C" __global__ void wide(const float *x, float *y) {
    *reinterpret_cast<Four*>(y) = *reinterpret_cast<const Four*>(x);
}"""


@pytest.fixture
def kernels(cuda):  # noqa: F811
    """Launches of the kernels above: names, two addresses, and how."""
    at = device_at(0)
    at.make_current()
    module = modules.Module(SOURCE, at)

    def launch(name, one, two, grid=(1, 1, 1), block=(4, 1, 1), shared=0, stream=None):
        packed = modules.Parameters([ctypes.c_uint64(one), ctypes.c_uint64(two)])
        at.driver.cuLaunchKernel(module.function(name), *grid, *block, shared, stream, packed.address, None)

    return launch


def faults(cuda):  # noqa: F811
    found = cuda.host_faults()
    return cuda.host_fault_text().decode() if found else ""


def ones(size=64):
    return td.ones(size, device="cuda", dtype=td.float32)


def at(x):
    return x.storage().data_ptr


def test_work_is_done_when_somebody_waits(cuda):  # noqa: F811
    stream, x = td.cuda.Stream(), ones()
    td.synchronize()
    before = cuda.host_count(b"launch")
    with stream:
        y = x + 1
    assert cuda.host_count(b"launch") == before + 1
    assert y.to("cpu")[0].item() != 2.0, "the default stream does not wait for the other one"
    td.cuda.current_stream().wait_stream(stream)
    assert y.to("cpu")[0].item() == 2.0


def test_a_default_stream_waits_for_streams_that_block(cuda):  # noqa: F811
    place, driver = ctypes.c_void_p(), toolkit.toolkit().driver
    device_at(0).make_current()
    driver.cuStreamCreateWithPriority(ctypes.addressof(place), 0, 0)
    x = ones()
    with td.cuda.Stream(handle=place.value):
        y = x + 1
    assert y[0].item() == 2.0
    del x, y
    driver.cuStreamDestroy_v2(place)


def test_page_locked_memory_is_read_late(cuda):  # noqa: F811
    x = td.ones(8).pin_memory()
    y = x.to("cuda", non_blocking=True)
    x.numpy()[...] = 5.0
    assert y.tolist() == [5.0] * 8
    z = y.to("cpu", non_blocking=True)
    assert z.tolist() != [5.0] * 8
    td.synchronize()
    assert z.tolist() == [5.0] * 8


def test_page_locked_memory_is_freed_when_it_has_been_copied(cuda):  # noqa: F811
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


def test_memory_of_kernels(kernels, cuda):  # noqa: F811
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
def test_limits_of_launches(kernels, cuda, how, code):  # noqa: F811
    x = ones()
    with pytest.raises(errors.CudaError, match=code):
        kernels("copy", at(x), at(x), **how)
    cuda.host_faults()


def test_streams_and_events_belong_to_devices(kernels, cuda):  # noqa: F811
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


def test_a_context_is_current(cuda):  # noqa: F811
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


def test_what_is_collected_needs_no_current_context(cuda):  # noqa: F811
    driver = toolkit.toolkit().driver
    x, stream, event = ones(), td.cuda.Stream(), td.cuda.Event()
    event.record(stream)
    module = modules.Module(SOURCE, device_at(0))
    memory = td.ones(4).pin_memory()
    driver.cuCtxSetCurrent(None)
    del x, stream, event, module, memory
    place = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.addressof(place))
    assert not place.value, "another library's context stays current"
    assert not faults(cuda)
    driver.cuCtxSetCurrent(device_at(0).context)
