"""Where results of creation operators may lie, and what is said where a backend is not there."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import BackendUnavailableError, DeviceError, UnsupportedError
from ..registry.devices import is_outside
from ..registry.keys import DispatchKey
from ..registry.operator import Operator
from .declare import LIBRARY

INSTALL = 'pip install "tandem-dispatch[cuda]"'


def unavailable(name: str, device: str) -> Exception:
    """The exception that says why an operator cannot run on a device, and what would work."""
    if device.startswith("cuda"):
        return BackendUnavailableError(
            f"{name}: device {device!r} needs a CUDA backend, and none is loaded; on a machine with an NVIDIA GPU: "
            f"{INSTALL}; without one use device='cpu'"
        )
    return UnsupportedError(f"{name}: no backend for the device {device!r} is loaded; use device='cpu'")


def check_device(name: str, device: str | None) -> str:
    """The device of a new tensor; None means the default, ``"cpu"``.

    Raises:
        BackendUnavailableError: ``"cuda"``, and no CUDA backend is loaded.
        DeviceError: a CPU other than the one there is.
    """
    kind, _, index = (device or "cpu").partition(":")
    if is_outside(kind):
        return device or ""
    if kind not in ("cpu", "meta"):
        raise unavailable(name, device or "")
    if index not in ("", "0"):
        raise DeviceError(f"{name}: there is one {kind} device, not {device!r}")
    return kind


def _no_backend(device: str) -> Any:
    def refuse(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
        raise unavailable(op.schema.name, kwargs.get(op.binder.device_argument or "") or device)

    refuse.__qualname__ = f"no_{device}_backend"
    return refuse


# What operators without a kernel for these keys do; a backend that is loaded removes its handle.
NO_BACKEND = {
    "cuda": LIBRARY.fallback(_no_backend("cuda"), DispatchKey.CUDA),
}
