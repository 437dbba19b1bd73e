"""The operator ``device::to``, which moves tensors between devices, so that gradients flow through moves.

For registered devices the transfer functions given to :func:`tandem.register_device` copy the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import DeviceError, UnsupportedError
from ...operators.declare.declaration import Declaration
from ...operators.declare.derivatives import Linear
from ...operators.declare.shape_rules import spec_of
from ...registry.dispatch.keys import BACKEND_OF_DEVICE, DispatchKey
from ...registry.external_devices import EXTERNAL_KEYS, Transfers, device_listeners, transfers
from ...registry.function import make_function
from ...registry.library import Library
from ...registry.operator import operators
from ...registry.values import TensorSpec, describe, to_device_name
from ..meta.tensor import MetaTensor
from .dunders import by_name
from .tensor import EAGER, Tensor

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import TensorOrSpec

# Tensor classes without a compiler: a jitted function called with one runs eagerly.
UNCOMPILED: set[type] = {MetaTensor}

# Tensor classes on devices other than the CPU for which jitted functions are compiled.
COMPILED: set[type] = set()

# By tensor class: a function that copies the elements of one tensor into the memory of another; it raises for memory
# that must not be written.
overwrite: dict[type, Callable[[Any, Any], None]] = {}

LIBRARY = Library("device", "DEF")
SCHEMA = "to(Tensor self, Device device, *, bool non_blocking=False) -> Tensor"

# By device kind: a function (tensor, device, non_blocking) that copies a CPU tensor to a device of a built-in backend.
from_cpu_transfers: dict[str, Callable[[Tensor, str, bool], Tensor]] = {}


def _meta(self: TensorOrSpec, device: str, *, non_blocking: bool = False) -> TensorSpec:
    return spec_of(self)._replace(device=device)


def _batched(
    info: Any, in_dims: object, self: Tensor, device: str, *, non_blocking: bool
) -> tuple[Tensor, int]:
    return info.call(self, device, non_blocking=non_blocking), 0


LIBRARY.define(
    SCHEMA,
    Declaration(
        schema=SCHEMA,
        kind="transfer",
        doc="The tensor's elements on another device, as a new tensor.",
        shape_rule=_meta,
        derivative=Linear({"self": lambda g, self_spec: to_device(g, self_spec.device)}),
        batching=_batched,
        method=False,
    ),
)
to_device: OperatorFunction[Tensor] = make_function(
    operators["device::to"], "The tensor's elements on another device."
)


def _from_cpu(self: Tensor, device: str, *, non_blocking: bool) -> Tensor:
    """The CPU kernel of ``to``."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return self.clone()
    if kind in from_cpu_transfers:
        return from_cpu_transfers[kind](self, device, non_blocking)
    function = _transfers(kind).from_cpu
    if function is None:
        raise UnsupportedError(
            f"the device {kind!r} was registered without from_cpu, so tensors cannot be moved there; "
            f"td.register_device({kind!r}, ..., from_cpu=function)"
        )
    return _check_result(function(self, device), self, device, "from_cpu")


def _from_outside(self: Tensor, device: str, *, non_blocking: bool) -> Tensor:
    """The kernel of ``to`` for registered devices: copy by way of the CPU."""
    kind = self.device.partition(":")[0]
    function = _transfers(kind).to_cpu
    if function is None:
        raise UnsupportedError(
            f"the device {kind!r} was registered without to_cpu, so {describe(self)} cannot be moved from there; "
            f"td.register_device({kind!r}, ..., to_cpu=function)"
        )
    result = _check_result(function(self), self, "cpu", "to_cpu")
    return result if device == "cpu" else to_device(result, device)


def copy_tensor(x: Tensor) -> Tensor:
    """Copy a tensor by ``clone``, or by way of the CPU on a registered device without a kernel for it.

    Raises:
        NoKernelError: the device has neither a clone kernel nor transfers in both directions.
    """
    clone, kind = by_name("clone"), x.device.partition(":")[0]
    can_move = kind in transfers and None not in transfers[kind][:2]
    if can_move and clone.operator.table[BACKEND_OF_DEVICE[kind]].kind == "missing":
        return to_device(clone(to_device(x, "cpu")), x.device)  # either transfer may share memory
    return clone(x)


def _transfers(kind: str) -> Transfers:
    if kind not in transfers:
        raise DeviceError(
            f"the device {kind!r} is not registered; register it with td.register_device({kind!r}, ...)"
        )
    return transfers[kind]


def _check_result(result: object, source: Tensor, device: str, what: str) -> Tensor:
    """Check the shape, dtype and device of a transfer's result and return it."""
    wanted = source.shape, source.dtype, device.partition(":")[0]
    if isinstance(result, Tensor) and (result.shape, result.dtype, result.device.partition(":")[0]) == wanted:
        return result
    seen = f"{result.spec} on {result.device}" if isinstance(result, Tensor) else describe(result)
    raise DeviceError(f"{what} returned {seen} instead of {source.spec} on {device}")


def _track_device_class(device: str, entry: Transfers, registered: bool) -> None:
    """Add the tensor class of a registered device to EAGER and UNCOMPILED, or remove it."""
    if entry.tensor_class is not None:
        for classes in (EAGER, UNCOMPILED):
            (classes.add if registered else classes.discard)(entry.tensor_class)


LIBRARY.impl("to", _from_cpu, DispatchKey.CPU)
for _key in EXTERNAL_KEYS:
    LIBRARY.impl("to", _from_outside, _key)
device_listeners.append(_track_device_class)


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
    kind = to_device_name(device).partition(":")[0]
    if kind in synchronizers:
        synchronizers[kind](device)
