"""Checks of device arguments, and the lazy loading of the CUDA backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ... import lazy
from ...errors import ArgumentError, DeviceError, UnsupportedError
from ...locks import ThreadLocal
from ...registry.dispatch.keys import DispatchKey
from ...registry.dispatch.unwinding import register_thread_local
from ...registry.external_devices import is_external
from ...registry.library import Handle
from ...registry.operator import Operator
from ..declare.declaration import LIBRARY

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

cuda = lazy.Module(".backends.cuda.load")

INSTALL = 'pip install "tandem-dispatch[cuda]"'


class _AssumedDevice(ThreadLocal):
    """The CUDA device that this thread traces for, whether it exists or not."""

    device: str | None = None


_assumed = register_thread_local(_AssumedDevice())


@contextmanager
def assume_device(device: str) -> Iterator[str]:
    """A context manager that traces for a CUDA device, whether it exists or not: CPU tensors count as being on it.

    Args:
        device: ``"cuda"`` or ``"cuda:1"``.

    Returns:
        A context manager that yields the device's full name.

    Raises:
        ArgumentError: it is another device.
    """
    kind, _, index = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind != "cuda" or not (index or "0").isdecimal():
        raise ArgumentError(f"lower: device is 'cpu', 'cuda' or 'cuda:1', not {device!r}")
    before, _assumed.device = _assumed.device, f"cuda:{index or 0}"
    try:
        yield _assumed.device
    finally:
        _assumed.device = before


def assumed_device(device: str | None) -> str | None:
    """The device that replaces ``device`` while this thread traces for CUDA; None if it is not replaced."""
    result = _assumed.device
    if result is None or (device or "cpu") in ("cpu", "cuda"):
        return result
    return device if str(device).startswith("cuda:") else None


def check_device(name: str, device: str | None) -> str:
    """The device of a new tensor; None means the default, ``"cpu"``.

    Raises:
        BackendUnavailableError: ``"cuda"``, and CUDA is not available.
        DeviceError: an index other than 0 for a CPU or meta device.
    """
    instead = assumed_device(device)
    if instead is not None:
        return instead
    kind, _, index = (device or "cpu").partition(":")
    if is_external(kind):
        return device or ""
    if kind == "cuda":
        return str(cuda.resolve_device(device, name))
    if kind not in ("cpu", "meta"):
        raise UnsupportedError(f"{name}: no backend for the device {device!r} is loaded; use device='cpu'")
    if index not in ("", "0"):
        raise DeviceError(f"{name}: there is one {kind} device, not {device!r}")
    return kind


def _load_cuda(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """The first call on CUDA: load the backend, which takes this kernel away, and go on; or say what is missing."""
    device = kwargs.get(op.binder.device_argument or "") or "cuda"
    cuda.resolve_device(device, op.schema.name)
    return op.dispatch(keyset, args, kwargs)


def register_cuda_loader() -> Handle:
    """Let the first call on CUDA load its backend."""
    return LIBRARY.fallback(_load_cuda, DispatchKey.CUDA)


# Fallbacks of backends that are not loaded yet; loading a backend removes its handle.
NO_BACKEND = {"cuda": register_cuda_loader()}
