"""Public queries of CUDA devices, and the current device of a thread (``td.cuda``)."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ....errors import ArgumentError
from . import devices
from . import toolkit as tools
from .devices import Device, DeviceProperties, device_at, device_count, device_of


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


def _to_device(which: Any) -> Device:
    if which is None or isinstance(which, str):
        return device_of(which)
    if type(which) is not int:
        raise ArgumentError(f"a CUDA device must be a name, such as 'cuda:1', or a number, not {which!r}")
    return device_at(which)


def get_device_name(device: str | int | None = None) -> str:
    """The name of a device; None means the current one."""
    return _to_device(device).properties.name


def get_device_capability(device: str | int | None = None) -> tuple[int, int]:
    """The compute capability of a device, such as ``(9, 0)``; None means the current one."""
    value = _to_device(device).properties
    return value.major, value.minor


def get_device_properties(device: str | int | None = None) -> DeviceProperties:
    """The properties of a device; None means the current one."""
    return _to_device(device).properties


def current_device() -> int:
    """The number of the device that ``"cuda"`` means in this thread."""
    return devices.current_thread.index


def set_device(device: str | int) -> None:
    """Set the device that ``"cuda"`` means in this thread.

    Args:
        device: ``"cuda:1"``, or a number.
    """
    devices.current_thread.index = _to_device(device).index


class device:
    """Context manager in which ``"cuda"`` means one device.

    Args:
        which: ``"cuda:1"``, or a number.

    >>> import tandem as td
    >>> with td.cuda.device(1):  # doctest: +SKIP
    ...     x = td.zeros(3, device="cuda")
    """

    def __init__(self, which: str | int):
        self.index = _to_device(which).index
        self._before: list[int] = []

    def __enter__(self) -> device:
        self._before.append(devices.current_thread.index)
        devices.current_thread.index = self.index
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        devices.current_thread.index = self._before.pop()
