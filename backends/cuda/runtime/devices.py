"""CUDA devices: enumeration, properties, the current device of a thread, and their public queries (``td.cuda``)."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from ....errors import ArgumentError, BackendUnavailableError, CudaError, DeviceError, OutOfMemoryError
from ....locks import ThreadLocal
from ....named_tuple import NamedTuple
from ....operators.creation.devices import INSTALL
from ....registry.operator import lock
from . import toolkit as tools
from .api import Runtime, translate_cupy_errors


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


# cupy's names of the properties after the first
_PROPERTIES = (
    *("major", "minor", "totalGlobalMem", "multiProcessorCount", "warpSize", "maxThreadsPerBlock"),
    *("sharedMemPerBlock", "sharedMemPerBlockOptin", "l2CacheSize"),
)


class Device:
    """One device, with its primary context retained.

    Attributes:
        index: the number of the device.
        name: ``"cuda:0"``.
        context: the driver's handle of the primary context, which cupy and PyTorch use too.
        properties: name, compute capability and sizes.
        arch: the architecture that code is compiled for, such as ``"sm_90"``.
        driver: the driver's functions.
        runtime: the runtime's functions, which make the device current.
    """

    __slots__ = (
        *("_is_only", "_set_context", "arch", "context", "driver", "index", "name", "properties", "runtime"),
    )

    def __init__(self, index: int):
        self.index, self.name, self.runtime = index, f"cuda:{index}", Runtime(self.make_current)
        self.driver, self._is_only = tools.toolkit().driver, device_count() == 1
        self._set_context = self.driver.function("cuCtxSetCurrent")
        self.context: int | None = None
        with translate_cupy_errors(self.name):
            tools.toolkit().cupy().cuda.Device(index).use()
        self.context, _ = self._get_context()
        values = self.runtime.getDeviceProperties(index)
        self.properties = DeviceProperties(values["name"].decode(), *[values[name] for name in _PROPERTIES])
        self.arch = f"sm_{self.properties.major}{self.properties.minor}"

    def make_current(self) -> None:
        """Make this the device that driver calls of this thread act on.

        With several devices other libraries may change the context at any time, so it is set at each call.
        """
        if current_thread.context != self.context:
            status = self._set_context(self.context)
            if status:
                raise self.driver.fault("cuCtxSetCurrent", status)
            current_thread.context = self.context if self._is_only else None

    def _get_context(self) -> tuple[int | None, bool]:
        """The thread's current context, and whether the driver knows it."""
        result = ctypes.c_void_p()
        status = self.driver.function("cuCtxGetCurrent")(ctypes.addressof(result))
        return result.value, not status

    @contextlib.contextmanager
    def as_current(self) -> Iterator[None]:
        """Context manager: make the device's context current, and restore the former context at the end.

        Finalizers need it: they may run in the middle of another library's calls for another device.
        """
        before, is_known = self._get_context()
        if before != self.context:
            self._set_context(self.context)
        try:
            yield
        finally:
            if is_known and before != self.context:
                self._set_context(before)
                current_thread.context = None  # which make_current may have set meanwhile

    def finalize(self, work: Callable[[], object], ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Run the work of a finalizer; errors of the device are ignored, since the next call on it raises them.

        At interpreter exit nothing is done: the driver frees everything.
        """
        if not ending():
            with self.as_current(), contextlib.suppress(CudaError, OutOfMemoryError):
                work()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.properties.name}>"


class _Thread(ThreadLocal):
    """The current device and streams of a thread.

    Attributes:
        index: the device that ``"cuda"`` means.
        context: the driver's current context; None before one is set.
        streams: the current stream of each device; None or missing: the default stream.
        entered: the former device and stream of each stream that is used as a context manager.
    """

    index = 0
    context: int | None = None

    def __init__(self) -> None:
        self.streams: dict[int, Any] = {}
        self.entered: list[tuple[int, Any]] = []


current_thread = _Thread()
devices_in_use: dict[int, Device] = {}


def _forget() -> None:
    global current_thread
    devices_in_use.clear()
    _count_devices.cache_clear()
    current_thread = _Thread()


tools.change_listeners.append(_forget)


def make_unavailable_error(what: str, device: str) -> BackendUnavailableError:
    """The exception that names the missing requirements of CUDA."""
    return BackendUnavailableError(
        f"{what}: device {device!r} needs CUDA, and {why_unavailable()}; on a machine with an "
        f"NVIDIA GPU: {INSTALL}; without one use device='cpu'"
    )


@functools.cache
def _count_devices() -> int:
    return int(tools.toolkit().cupy().cuda.runtime.getDeviceCount())


def device_at(index: int) -> Device:
    """The device with a number.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        DeviceError: there is no such device.
    """
    result = devices_in_use.get(index)
    if result is None:
        if tools.missing_requirements():
            raise make_unavailable_error("cuda", f"cuda:{index}")
        if not 0 <= index < device_count():
            known = ", ".join(f"'cuda:{i}'" for i in range(device_count()))
            raise DeviceError(f"there is no device 'cuda:{index}'; there are {known}")
        with lock:
            result = devices_in_use.setdefault(index, Device(index))
    return result


def device_of(which: str | int | None) -> Device:
    """The device with a name such as ``"cuda:1"``, or a number; ``"cuda"`` and None mean the thread's current device.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        DeviceError: there is no such device.
    """
    if type(which) is int:
        return device_at(which)
    if which is not None and not isinstance(which, str):
        raise ArgumentError(f"a CUDA device must be a name, such as 'cuda:1', or a number, not {which!r}")
    index = (which or "").partition(":")[2]
    return device_at(int(index) if index else current_thread.index)


# -- public queries ----------------------------------------------------------------------------------------------------
def device_count() -> int:
    """The number of CUDA devices; 0 where CUDA cannot be used."""
    return 0 if tools.missing_requirements() else _count_devices()


def is_available() -> bool:
    """Whether tensors can be on a CUDA device in this process.

    >>> import tandem as td
    >>> td.cuda.is_available() == (td.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def why_unavailable() -> str:
    """The missing requirements of CUDA, of cupy, the driver and a GPU; empty if CUDA can be used."""
    return "; ".join(tools.missing_requirements())


def get_device_name(device: str | int | None = None) -> str:
    """The name of a device; None means the current one."""
    return device_of(device).properties.name


def get_device_capability(device: str | int | None = None) -> tuple[int, int]:
    """The compute capability of a device, such as ``(9, 0)``; None means the current one."""
    return device_of(device).properties[1:3]


def get_device_properties(device: str | int | None = None) -> DeviceProperties:
    """The properties of a device; None means the current one."""
    return device_of(device).properties


def current_device() -> int:
    """The number of the device that ``"cuda"`` means in this thread."""
    return current_thread.index


def set_device(device: str | int) -> None:
    """Set the device that ``"cuda"`` means in this thread.

    Args:
        device: ``"cuda:1"``, or a number.
    """
    current_thread.index = device_of(device).index


class device:
    """Context manager in which ``"cuda"`` means one device.

    Args:
        which: ``"cuda:1"``, or a number.

    >>> import tandem as td
    >>> with td.cuda.device(1):  # doctest: +SKIP
    ...     x = td.zeros(3, device="cuda")
    """

    def __init__(self, which: str | int):
        self.index = device_of(which).index
        self._before: list[int] = []

    def __enter__(self) -> device:
        self._before.append(current_thread.index)
        current_thread.index = self.index
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        current_thread.index = self._before.pop()
