"""External devices: register a device name for a backend key of another package.

Source: ``torch.utils.rename_privateuse1_backend``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, RegistrationError, ValueArgumentError
from ..named_tuple import NamedTuple
from .dispatch.keys import BACKEND_OF_DEVICE, DispatchKey, parse_key
from .formatting import short_repr
from .library import Handle
from .operator import lock
from .values import TensorBase

EXTERNAL_KEYS = (DispatchKey.PrivateUse1, DispatchKey.PrivateUse2)
"""The backend keys reserved for external devices."""

# The devices that the package itself defines.
BUILT_IN = tuple(BACKEND_OF_DEVICE)


class Transfers(NamedTuple):
    """Functions that copy tensors to a device and back.

    Attributes:
        from_cpu: ``from_cpu(tensor, device)``: a tensor on the device with the elements of a CPU tensor.
        to_cpu: ``to_cpu(tensor)``: a CPU tensor with the elements of one on the device.
        tensor_class: the class of its tensors.
    """

    from_cpu: Callable[[Any, str], object] | None
    to_cpu: Callable[[Any], object] | None
    tensor_class: type | None = None


transfers: dict[str, Transfers] = {}
# Called with each device that is registered (True) or removed (False).
device_listeners: list[Callable[[str, Transfers, bool], None]] = []


def register_device(
    name: str,
    key: str | DispatchKey = "PrivateUse1",
    *,
    from_cpu: Callable[[Any, str], object] | None = None,
    to_cpu: Callable[[Any], object] | None = None,
    tensor_class: type | None = None,
) -> Handle:
    """Register a device name for an external backend.

    ``"npu"`` and ``"npu:0"`` are then devices: creation functions called with ``device="npu"`` dispatch to the
    backend's key, ``x.to("npu")`` copies a tensor with ``from_cpu``, and ``y.to("cpu")`` copies it back
    with ``to_cpu``.

    Args:
        name: letters, digits and underscores, such as ``"npu"``.
        key: ``"PrivateUse1"`` or ``"PrivateUse2"``: the dispatch key of the backend's tensors and kernels.
        from_cpu: makes a tensor on the device from one on the CPU; called with that tensor and the device's name.
        to_cpu: makes a CPU tensor from one on the device.
        tensor_class: the subclass of Tensor for tensors on the device. Autograd records these tensors; jitted functions
            called with one run uncompiled, because nothing is compiled for the device.

    Returns:
        A handle; its ``remove()`` unregisters the name.

    Raises:
        ArgumentError: the name or a function has a wrong type.
        ValueArgumentError: the name is not an identifier, or the key is not reserved for external backends.
        RegistrationError: the name or the key is already in use.

    >>> import tandem as td
    >>> with td.register_device("npu", "PrivateUse1"):
    ...     td.zeros(2, device="npu")
    Traceback (most recent call last):
    tandem.errors.NoKernelError: operator td::full has no kernel for the dispatch key PrivateUse1
    ...
    """
    parsed, made = _check_name_and_key(name, key), _make_transfers(from_cpu, to_cpu, tensor_class)
    with lock:
        if name in BACKEND_OF_DEVICE:
            raise RegistrationError(
                f"there is a device {name!r} already; remove it first, or take another name"
            )
        taken = next((device for device, used in BACKEND_OF_DEVICE.items() if used is parsed), None)
        if taken is not None:
            raise RegistrationError(f"{parsed.name} is the key of the device {taken!r} already")
        BACKEND_OF_DEVICE[name] = parsed
        transfers[name] = made
        _notify(name, True)
    return Handle(lambda: _remove_device(name))


def _check_name_and_key(name: str, key: str | DispatchKey) -> DispatchKey:
    if not isinstance(name, str):
        raise ArgumentError(f"register_device takes a name, such as 'npu', not {short_repr(name)}")
    if not name.isidentifier():
        raise ValueArgumentError(f"{name!r} cannot name a device; a name is one word, such as 'npu'")
    parsed = parse_key(key)
    if parsed not in EXTERNAL_KEYS or not isinstance(parsed, DispatchKey):
        raise ValueArgumentError(
            f"{key} is not reserved for external devices; {' and '.join(k.name for k in EXTERNAL_KEYS)} are"
        )
    return parsed


def _make_transfers(from_cpu: Any, to_cpu: Any, tensor_class: Any) -> Transfers:
    for function in (from_cpu, to_cpu):
        if function is not None and not callable(function):
            raise ArgumentError(f"register_device: a transfer is a function, not {short_repr(function)}")
    is_tensor = isinstance(tensor_class, type) and issubclass(tensor_class, TensorBase)
    if tensor_class is not None and not is_tensor:
        raise ArgumentError(
            f"register_device: tensor_class is a subclass of td.Tensor, not {short_repr(tensor_class)}"
        )
    return Transfers(from_cpu, to_cpu, tensor_class)


def _remove_device(name: str) -> None:
    with lock:
        if name in transfers:
            _notify(name, False)
            del BACKEND_OF_DEVICE[name], transfers[name]


def _notify(name: str, registered: bool) -> None:
    for listener in device_listeners:
        listener(name, transfers[name], registered)


def is_external(device: str) -> bool:
    """Whether a device was registered by :func:`register_device`."""
    return device.partition(":")[0] in transfers
