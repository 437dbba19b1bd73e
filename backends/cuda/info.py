"""Questions about CUDA devices, and which one a thread works on."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ...errors import ArgumentError
from . import devices
from . import toolkit as tools
from .devices import Device, DeviceProperties, device_at, device_count, device_of


def is_available() -> bool:
    """Whether tensors can lie on a CUDA device in this process.

    >>> import tandem as td
    >>> td.cuda.is_available() == (td.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def why_unavailable() -> str:
    """What is missing for CUDA here, of cupy, the driver and a GPU; empty where nothing is."""
    return "; ".join(tools.missing())


def _found(which: Any) -> Device:
    if which is None or isinstance(which, str):
        return device_of(which)
    if type(which) is not int:
        raise ArgumentError(f"a CUDA device is a name, such as 'cuda:1', or a number, not {which!r}")
    return device_at(which)


def get_device_name(device: str | int | None = None) -> str:
    """What the driver calls a device; None: the current one."""
    return _found(device).properties.name


def get_device_capability(device: str | int | None = None) -> tuple[int, int]:
    """The compute capability of a device, such as ``(9, 0)``; None: the current one."""
    found = _found(device).properties
    return found.major, found.minor


def get_device_properties(device: str | int | None = None) -> DeviceProperties:
    """What a device is; None: the current one."""
    return _found(device).properties


def current_device() -> int:
    """The number of the device that ``"cuda"`` means in this thread."""
    return devices.current_thread.index


def set_device(device: str | int) -> None:
    """Let ``"cuda"`` mean a device in this thread.

    Args:
        device: ``"cuda:1"``, or its number.
    """
    devices.current_thread.index = _found(device).index


class device:
    """Context manager in which ``"cuda"`` means one device.

    Args:
        which: ``"cuda:1"``, or its number.

    >>> import tandem as td
    >>> with td.cuda.device(1):  # doctest: +SKIP
    ...     x = td.zeros(3, device="cuda")
    """

    def __init__(self, which: str | int):
        self.index = _found(which).index
        self._before: list[int] = []

    def __enter__(self) -> device:
        self._before.append(devices.current_thread.index)
        devices.current_thread.index = self.index
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        devices.current_thread.index = self._before.pop()
