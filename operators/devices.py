"""Where results of creation operators may lie, and what is said where a backend is not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import lazy
from ..errors import ArgumentError, DeviceError, UnsupportedError
from ..registry.devices import is_outside
from ..registry.keys import DispatchKey
from ..registry.library import Handle
from ..registry.operator import Operator
from ..registry.values import describe
from .declare import LIBRARY

INSTALL = 'pip install "tandem-dispatch[cuda]"'


class _Assumed(threading.local):
    """The CUDA device that this thread traces for, as if it were there."""

    device: str | None = None


_assumed = _Assumed()


@contextmanager
def assuming(device: str) -> Iterator[str]:
    """For a ``with`` block, trace for a CUDA device whether it is there or not: tensors that would lie on the CPU count
    as lying there.

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


def assumed(device: str | None) -> str | None:
    """What a device counts as in this thread; None where nothing is assumed, or it is another kind of device."""
    found = _assumed.device
    if found is None or (device or "cpu") in ("cpu", "cuda"):
        return found
    return device if str(device).startswith("cuda:") else None


def check_device(name: str, device: str | None) -> str:
    """The device of a new tensor; None means the default, ``"cpu"``.

    Raises:
        BackendUnavailableError: ``"cuda"``, and CUDA cannot be used here.
        DeviceError: a CPU other than the one there is.
    """
    instead = assumed(device)
    if instead is not None:
        return instead
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


def elsewhere(name: str, value: Any, other: Any) -> DeviceError:
    """The error of two tensors, or their specs, on two devices."""
    return DeviceError(
        f"{name}: {describe(value)} lies on {value.device} and {describe(other)} on {other.device}; move one of them "
        f"with .to({other.device!r})"
    )


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
