"""CUDA devices: enumeration, properties, and the current device of a thread."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ....errors import BackendUnavailableError, CudaError, DeviceError, OutOfMemoryError
from ....locks import ThreadLocal
from ....named_tuple import NamedTuple
from ....operators.creation.devices import INSTALL
from ....registry.operator import lock
from . import toolkit as tools
from .api import runtime


class DeviceProperties(NamedTuple):
    """The result of :func:`tandem.cuda.get_device_properties`.

    Attributes:
        name: the driver's name of the device.
        major, minor: the compute capability.
        total_memory: bytes.
        multi_processor_count: the number of its multiprocessors.
        warp_size: threads of a warp.
        max_threads_per_block: the most threads that a block can have.
        shared_memory_per_block: bytes of shared memory that a block can have by default.
        shared_memory_per_block_optin: bytes that a block can have after opting in.
        l2_cache_size: bytes.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    l2_cache_size: int


class Device:
    """One device, with its primary context retained.

    Attributes:
        index: the number of the device.
        name: ``"cuda:0"``.
        context: the driver's handle of the primary context, which cupy and PyTorch use too.
        properties: name, compute capability and sizes.
        arch: the architecture that code is compiled for, such as ``"sm_90"``.
        driver: the driver's functions.
        runtime: the runtime's functions; most of them act on the current device.
    """

    __slots__ = ("_is_only", "arch", "context", "driver", "index", "name", "properties", "runtime")

    def __init__(self, index: int):
        self.index, self.name, self.runtime = index, f"cuda:{index}", runtime()
        self.driver = driver = tools.toolkit().driver
        handle = driver.get("cuDeviceGet", ctypes.c_int, index)
        self.context = driver.get("cuDevicePrimaryCtxRetain", ctypes.c_void_p, handle)
        self.properties = _to_properties(self.runtime.getDeviceProperties(index))
        self._is_only = device_count() == 1
        self.arch = f"sm_{self.properties.major}{self.properties.minor}"

    def make_current(self) -> None:
        """Make this the device that driver calls of this thread act on.

        With several devices other libraries may change the context at any time, so it is set at each call.
        """
        if current_thread.context != self.context:
            self.driver.cuCtxSetCurrent(self.context)
            current_thread.context = self.context if self._is_only else None

    @contextlib.contextmanager
    def as_current(self) -> Iterator[None]:
        """Context manager: make the device's context current, and restore the former context at the end.

        Finalizers need it: they may run in the middle of another library's calls for another device.
        """
        driver, before = self.driver, ctypes.c_void_p()
        is_known = not driver.function("cuCtxGetCurrent")(ctypes.addressof(before))
        if before.value != self.context:
            driver.function("cuCtxSetCurrent")(self.context)
        try:
            yield
        finally:
            if is_known and before.value != self.context:
                driver.function("cuCtxSetCurrent")(before.value)
                current_thread.context = None  # which make_current may have set meanwhile

    def release_handle(
        self, function: str, handle: Any, ending: Callable[[], bool] = sys.is_finalizing
    ) -> None:
        """Release a handle from a finalizer, by a function of the runtime; errors are ignored.

        At interpreter exit nothing is done: the driver frees everything.
        """
        if not ending():
            with self.as_current(), contextlib.suppress(CudaError, OutOfMemoryError):
                getattr(self.runtime, function)(handle)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.properties.name}>"


def _to_properties(values: dict[str, Any]) -> DeviceProperties:
    """Convert cupy's dictionary of device properties."""
    return DeviceProperties(
        values["name"].decode(),
        values["major"],
        values["minor"],
        values["totalGlobalMem"],
        values["multiProcessorCount"],
        values["warpSize"],
        values["maxThreadsPerBlock"],
        values["sharedMemPerBlock"],
        values["sharedMemPerBlockOptin"],
        values["l2CacheSize"],
    )


class _Thread(ThreadLocal):
    """The current device of a thread.

    Attributes:
        index: the device that ``"cuda"`` means.
        context: the driver's current context; None before one is set.
    """

    index = 0
    context: int | None = None


class _Known:
    """The devices in use by index, and the number of devices; cleared when another toolkit is installed."""

    devices: dict[int, Device] = {}  # noqa: RUF012
    count: int | None = None


current_thread = _Thread()


def _forget() -> None:
    global current_thread
    _Known.devices, _Known.count = {}, None
    current_thread = _Thread()


tools.change_listeners.append(_forget)


def make_unavailable_error(what: str, device: str) -> BackendUnavailableError:
    """The exception that names the missing requirements of CUDA."""
    return BackendUnavailableError(
        f"{what}: device {device!r} needs CUDA, and {'; '.join(tools.missing_requirements())}; on a machine with an "
        f"NVIDIA GPU: {INSTALL}; without one use device='cpu'"
    )


def device_count() -> int:
    """The number of CUDA devices; 0 where CUDA cannot be used."""
    if tools.missing_requirements():
        return 0
    if _Known.count is None:
        _Known.count = int(runtime().getDeviceCount())
    return _Known.count or 0


def device_at(index: int) -> Device:
    """The device with a number.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        DeviceError: there is no such device.
    """
    result = _Known.devices.get(index)
    if result is None:
        if tools.missing_requirements():
            raise make_unavailable_error("cuda", f"cuda:{index}")
        if not 0 <= index < device_count():
            known = ", ".join(f"'cuda:{i}'" for i in range(device_count()))
            raise DeviceError(f"there is no device 'cuda:{index}'; there are {known}")
        with lock:
            result = _Known.devices.setdefault(index, Device(index))
    return result


def devices_in_use() -> list[int]:
    """The numbers of the devices that this process has used."""
    return sorted(_Known.devices)


def device_of(name: str | None) -> Device:
    """The device with a name such as ``"cuda:1"``; ``"cuda"`` and None mean the thread's current device.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        DeviceError: there is no such device.
    """
    index = (name or "").partition(":")[2]
    return device_at(int(index) if index else current_thread.index)
