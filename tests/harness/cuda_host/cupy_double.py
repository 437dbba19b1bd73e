"""Test double of cupy: its runtime, modules, streams, and the memory pool.

It follows cupy where it could matter: calls go to the current device, and to the first one if there is none; modules
are loaded once for each path and device; what CUDA refuses is a RuntimeError with a ``status``; a lack of memory is
cupy's own MemoryError. A test compares the names that are used here with those of the cupy that is installed.
"""

import ctypes
import threading

from .cupy_memory import MemoryPool


class CUDAError(RuntimeError):
    """A status of the driver, as cupy raises it."""

    def __init__(self, status, text):
        self.status = status
        super().__init__(text)


class Calls:
    """The driver's functions, with cupy's exceptions, for the current device."""

    def __init__(self, driver):
        self.driver, self.inside = driver, threading.local()

    def __getattr__(self, name):
        function = self.driver.function(name)

        def call(*args):
            self.device()
            status = function(*args)
            if status:
                raise CUDAError(status, str(self.driver.fault(name, status)))

        return call

    def get(self, name, kind, *args):
        place = kind()
        getattr(self, name)(ctypes.addressof(place), *args)
        return place.value

    def device(self):
        """The number of the current device; the runtime makes the first one current where there is none."""
        place = ctypes.c_void_p()
        self.driver.cuCtxGetCurrent(ctypes.addressof(place))
        if place.value is None:
            self.use(0)
        return self.driver.get("cuCtxGetDevice", ctypes.c_int)

    def use(self, index):
        self.driver.cuCtxSetCurrent(self.driver.get("cuDevicePrimaryCtxRetain", ctypes.c_void_p, index))

    @property
    def stream(self):
        """The handle of the thread's current stream on the current device."""
        stack = getattr(self.inside, "streams", ())
        return stack[-1].ptr if stack else 0


def stream_class(calls):
    class Stream:
        def __init__(self, ptr):
            self.ptr = ptr

        @classmethod
        def from_external(cls, obj):
            version, ptr = obj.__cuda_stream__()
            assert version == 0
            return cls(ptr)

        def __enter__(self):
            calls.inside.streams = [*getattr(calls.inside, "streams", ()), self]
            return self

        def __exit__(self, *exception):
            calls.inside.streams = calls.inside.streams[:-1]

    Stream.null = Stream(0)
    return Stream


def device_class(calls):
    class Device:
        def __init__(self, index):
            self.id, self._before = index, []

        def __enter__(self):
            self._before.append(calls.device())
            calls.use(self.id)
            return self

        def __exit__(self, *exception):
            calls.use(self._before.pop())

        def use(self):
            calls.use(self.id)

        def synchronize(self):
            with self:
                calls.cuCtxSynchronize()

    return Device


class Function:
    def __init__(self, ptr):
        self.ptr = ptr


class RawKernel:
    def __init__(self, cupy, path, name):
        self._cupy, self._path, self.name = cupy, path, name

    @property
    def kernel(self):
        """The function on the current device."""
        calls = self._cupy.calls
        key = self._path, calls.device()
        if key not in self._cupy.loaded:
            self._cupy.loaded[key] = calls.get("cuModuleLoad", ctypes.c_void_p, str(self._path).encode())
        module = self._cupy.loaded[key]
        return Function(calls.get("cuModuleGetFunction", ctypes.c_void_p, module, self.name.encode()))

    @property
    def max_dynamic_shared_size_bytes(self):
        raise NotImplementedError

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size):
        self._cupy.calls.cuFuncSetAttribute(self.kernel.ptr, 8, size)


PROPERTIES = {  # cupy's names of what the driver calls by number
    "maxThreadsPerBlock": 1,
    "sharedMemPerBlock": 8,
    "warpSize": 10,
    "multiProcessorCount": 16,
    "l2CacheSize": 38,
    "major": 75,
    "minor": 76,
    "sharedMemPerBlockOptin": 97,
}
COPIES = {1: "cuMemcpyHtoDAsync_v2", 2: "cuMemcpyDtoHAsync_v2", 3: "cuMemcpyDtoDAsync_v2"}


class Attributes:
    def __init__(self, type, device):
        self.type, self.device = type, device


class Runtime:
    """The functions of ``cupy.cuda.runtime`` by cupy's names, with its parameters."""

    hostAllocPortable = 1  # noqa: N815
    eventDefault, eventDisableTiming = 0, 2  # noqa: N815
    streamNonBlocking = 1  # noqa: N815
    memoryTypeUnregistered, memoryTypeDevice = 0, 2  # noqa: N815

    def __init__(self, calls):
        self._calls = calls

    def check_status(self, status):
        if status:
            raise CUDAError(status, str(self._calls.driver.fault("check_status", status)))

    def driverGetVersion(self):
        return self._calls.driver.get("cuDriverGetVersion", ctypes.c_int)

    def getDeviceCount(self):
        driver = self._calls.driver
        driver.cuInit(0)
        return driver.get("cuDeviceGetCount", ctypes.c_int)

    def getDeviceProperties(self, device):
        driver, name = self._calls.driver, ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(ctypes.addressof(name), 256, device)
        found = {
            key: driver.get("cuDeviceGetAttribute", ctypes.c_int, number, device)
            for key, number in PROPERTIES.items()
        }
        total = driver.get("cuDeviceTotalMem_v2", ctypes.c_size_t, device)
        return {"name": name.value, "totalGlobalMem": total, **found}

    def deviceSynchronize(self):
        self._calls.cuCtxSynchronize()

    def malloc(self, size):
        return self._calls.get("cuMemAlloc_v2", ctypes.c_uint64, size)

    def hostAlloc(self, size, flags):
        return self._calls.get("cuMemHostAlloc", ctypes.c_void_p, size, flags)

    def freeHost(self, ptr):
        self._calls.cuMemFreeHost(ptr)

    def free(self, ptr):
        self._calls.cuMemFree_v2(ptr)

    def memGetInfo(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._calls.cuMemGetInfo_v2(ctypes.addressof(free), ctypes.addressof(total))
        return free.value, total.value

    def memcpyAsync(self, dst, src, size, kind, stream):
        getattr(self._calls, COPIES[kind])(dst, src, size, stream or None)

    def memcpyPeerAsync(self, dst, dstDevice, src, srcDevice, size, stream):
        self._calls.cuMemcpyPeerAsync(dst, None, src, None, size, stream or None)

    def memsetAsync(self, ptr, value, size, stream):
        self._calls.cuMemsetD8Async(ptr, value, size, stream or None)

    def pointerGetAttributes(self, ptr):
        try:
            return Attributes(2, self._calls.get("cuPointerGetAttribute", ctypes.c_int, 9, ptr))
        except CUDAError as fault:
            if fault.status != 1:
                raise
            return Attributes(0, -2)

    def streamCreateWithPriority(self, flags, priority):
        return self._calls.get("cuStreamCreateWithPriority", ctypes.c_void_p, flags, priority)

    def streamDestroy(self, stream):
        self._calls.cuStreamDestroy_v2(stream)

    def streamSynchronize(self, stream):
        self._calls.cuStreamSynchronize(stream or None)

    def streamQuery(self, stream):
        """Its status, as cupy gives it."""
        self._calls.device()
        return self._calls.driver.function("cuStreamQuery")(stream or None)

    def streamWaitEvent(self, stream, event, flags=0):
        self._calls.cuStreamWaitEvent(stream or None, event, flags)

    def eventCreateWithFlags(self, flags):
        return self._calls.get("cuEventCreate", ctypes.c_void_p, flags)

    def eventDestroy(self, event):
        self._calls.cuEventDestroy_v2(event)

    def eventRecord(self, event, stream):
        self._calls.cuEventRecord(event, stream or None)

    def eventSynchronize(self, event):
        self._calls.cuEventSynchronize(event)

    def eventQuery(self, event):
        """Its status, as cupy gives it."""
        self._calls.device()
        return self._calls.driver.function("cuEventQuery")(event)

    def eventElapsedTime(self, start, end):
        return self._calls.get("cuEventElapsedTime", ctypes.c_float, start, end)

    def graphInstantiate(self, graph):
        return self._calls.get("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, 0)

    def graphExecDestroy(self, graphExec):
        self._calls.cuGraphExecDestroy(graphExec)

    def graphDestroy(self, graph):
        self._calls.cuGraphDestroy(graph)


class _Cuda:
    def __init__(self, calls):
        self.calls, self.runtime = calls, Runtime(calls)
        self.Stream, self.Device = stream_class(calls), device_class(calls)
        self.pool = MemoryPool(calls)

    def alloc(self, size):
        return self.pool.malloc(size)


class CupyDouble:
    """The module, on one driver."""

    def __init__(self, driver):
        self.calls, self.loaded = Calls(driver), {}
        self.cuda = _Cuda(self.calls)

    def RawModule(self, *, path):
        return _RawModule(self, path)

    def get_default_memory_pool(self):
        return self.cuda.pool


class _RawModule:
    def __init__(self, cupy, path):
        assert type(path) is str, f"cupy takes a str, not {path!r}"
        self._cupy, self._path = cupy, path

    def get_function(self, name):
        found = RawKernel(self._cupy, self._path, name)
        assert found.kernel.ptr
        return found
