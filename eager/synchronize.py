"""Waiting for devices."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import DeviceError
from ..registry.binding import device_name

# Device kind -> what waits for it. A CPU call is finished when it returns, so nothing stands for the CPU.
synchronizers: dict[str, Callable[[str], None]] = {}


def synchronize(device: str | None = None) -> None:
    """Wait until the work that was given to devices is done; call it before you read a clock.

    Calls on the CPU are finished when they return. Backends that queue their work wait here.

    Args:
        device: one device, such as ``"cuda:1"``; None for all.

    Raises:
        DeviceError: no such device.

    >>> import tandem as td
    >>> td.synchronize()

    Source: ``torch.cuda.synchronize``.
    """
    if device is None:
        for kind, wait in list(synchronizers.items()):
            wait(kind)
        return
    if not isinstance(device, str):
        raise DeviceError(f"synchronize takes the name of a device, such as 'cpu', not {device!r}")
    kind = device_name(device).partition(":")[0]
    if kind in synchronizers:
        synchronizers[kind](device)
