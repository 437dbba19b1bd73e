"""Where results of creation operators may lie, and what is said where a backend is not there."""

from __future__ import annotations

from typing import Any

from .. import lazy
from ..errors import DeviceError, UnsupportedError
from ..registry.devices import is_outside
from ..registry.keys import DispatchKey
from ..registry.library import Handle
from ..registry.operator import Operator
from .declare import LIBRARY

INSTALL = 'pip install "tandem-dispatch[cuda]"'


def check_device(name: str, device: str | None) -> str:
    """The device of a new tensor; None means the default, ``"cpu"``.

    Raises:
        BackendUnavailableError: ``"cuda"``, and CUDA cannot be used here.
        DeviceError: a CPU other than the one there is.
    """
    kind, _, index = (device or "cpu").partition(":")
    if is_outside(kind):
        return device or ""
    if kind == "cuda":
        return str(lazy.cuda_backend().device_named(device, name))
    if kind not in ("cpu", "meta"):
        raise UnsupportedError(f"{name}: no backend for the device {device!r} is loaded; use device='cpu'")
    if index not in ("", "0"):
        raise DeviceError(f"{name}: there is one {kind} device, not {device!r}")
    return kind


def _load_cuda(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first call on CUDA: load the backend, which takes this kernel away, and go on; or say what is missing."""
    device = kwargs.get(op.binder.device_argument or "") or "cuda"
    lazy.cuda_backend().device_named(device, op.schema.name)
    return op.dispatch(keyset, args, kwargs)


def await_cuda() -> Handle:
    """Let the first call on CUDA load its backend."""
    return LIBRARY.fallback(_load_cuda, DispatchKey.CUDA)


# What operators without a kernel for these keys do; a backend that is loaded removes its handle.
NO_BACKEND = {"cuda": await_cuda()}
