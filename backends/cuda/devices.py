"""CUDA devices: which there are, what each can do, and which one this thread works on."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...errors import BackendUnavailableError, DeviceError
from ...operators.devices import INSTALL
from ...registry.operator import lock
from . import toolkit as tools

ATTRIBUTES = {
    "max_threads_per_block": 1,
    "shared_memory_per_block": 8,
    "warp_size": 10,
    "multi_processor_count": 16,
    "major": 75,
    "minor": 76,
    "l2_cache_size": 38,
    "shared_memory_per_block_optin": 97,
}
"""Names of the driver's CUdevice_attribute that properties show."""


class DeviceProperties(NamedTuple):
    """What a device is: what :func:`tandem.cuda.get_device_properties` gives.

    Attributes:
        name: as the driver calls it.
        major, minor: the compute capability.
        total_memory: bytes.
        multi_processor_count: the number of its multiprocessors.
        warp_size: threads of a warp.
        max_threads_per_block: the most threads that a block can have.
        shared_memory_per_block: bytes of shared memory that a block can have without asking.
        shared_memory_per_block_optin: bytes that it can have when it asks.
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
    """One device, its primary context retained.

    Attributes:
        index: its number.
        name: ``"cuda:0"``.
        context: the driver's handle of the primary context, which cupy and PyTorch use too.
        properties: what it is.
        arch: what code is compiled for, such as ``"sm_90"``.
    """

    __slots__ = ("_is_only", "arch", "context", "driver", "index", "name", "properties")

    def __init__(self, index: int, driver: Any):
        self.index, self.name, self.driver = index, f"cuda:{index}", driver
        handle = driver.get("cuDeviceGet", ctypes.c_int, index)
        self.context = driver.get("cuDevicePrimaryCtxRetain", ctypes.c_void_p, handle)
        self.properties = _properties(driver, handle)
        self._is_only = device_count() == 1
        self.arch = f"sm_{self.properties.major}{self.properties.minor}"

    def make_current(self) -> None:
        """Make it the device that the driver's calls of this thread mean.

        Where there are several devices other libraries may change that at any time, so that it is said each time.
        """
        if current_thread.context != self.context:
            self.driver.cuCtxSetCurrent(self.context)
            current_thread.context = self.context if self._is_only else None

    @contextlib.contextmanager
    def briefly(self) -> Iterator[None]:
        """A context manager: the device's context is current, and the one before is again afterwards.

        Objects are collected in the middle of anything, perhaps of another library's calls for another device.
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

    def give_back(self, function: str, handle: Any, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Give a handle back to the driver for an object that is collected; nothing is raised.

        When the interpreter ends nothing is done: the driver frees everything.
        """
        if not ending():
            with self.briefly():
                self.driver.function(function)(handle)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.properties.name}>"


def _properties(driver: Any, handle: int) -> DeviceProperties:
    text = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(ctypes.addressof(text), 256, handle)
    found = {
        name: driver.get("cuDeviceGetAttribute", ctypes.c_int, number, handle)
        for name, number in ATTRIBUTES.items()
    }
    total = driver.get("cuDeviceTotalMem_v2", ctypes.c_size_t, handle)
    return DeviceProperties(text.value.decode(), total_memory=total, **found)


class _Thread(threading.local):
    """What a thread works on.

    Attributes:
        index: the device that ``"cuda"`` means.
        context: the driver's context that is current; None as long as nobody has set one.
    """

    index = 0
    context: int | None = None


class _Known:
    """The devices in use by index, and how many there are; forgotten when another toolkit is used."""

    devices: dict[int, Device] = {}  # noqa: RUF012
    count: int | None = None


current_thread = _Thread()


def _forget() -> None:
    global current_thread
    _Known.devices, _Known.count = {}, None
    current_thread = _Thread()


tools.changed.append(_forget)


def refuse(what: str, device: str) -> BackendUnavailableError:
    """The exception that says which part CUDA lacks here."""
    return BackendUnavailableError(
        f"{what}: device {device!r} needs CUDA, and {'; '.join(tools.missing())}; on a machine with an NVIDIA GPU: "
        f"{INSTALL}; without one use device='cpu'"
    )


def device_count() -> int:
    """How many CUDA devices there are; 0 where CUDA cannot be used."""
    if tools.missing():
        return 0
    if _Known.count is None:
        driver = tools.toolkit().driver
        driver.cuInit(0)
        _Known.count = driver.get("cuDeviceGetCount", ctypes.c_int)
    return _Known.count or 0


def device_at(index: int) -> Device:
    """The device of a number.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        DeviceError: there is no such device.
    """
    found = _Known.devices.get(index)
    if found is None:
        if tools.missing():
            raise refuse("cuda", f"cuda:{index}")
        if not 0 <= index < device_count():
            known = ", ".join(f"'cuda:{i}'" for i in range(device_count()))
            raise DeviceError(f"there is no device 'cuda:{index}'; there are {known}")
        with lock:
            found = _Known.devices.setdefault(index, Device(index, tools.toolkit().driver))
    return found


def in_use() -> list[int]:
    """The numbers of the devices that this process has used."""
    return sorted(_Known.devices)


def device_of(name: str | None) -> Device:
    """The device of a name: ``"cuda:1"``; ``"cuda"`` and None mean the thread's current one.

    Raises:
        BackendUnavailableError: CUDA cannot be used here.
        DeviceError: there is no such device.
    """
    index = (name or "").partition(":")[2]
    return device_at(int(index) if index else current_thread.index)
