"""Moving tensors to devices from outside and back: one operator, so that gradients follow.

How elements get there is what :func:`tandem.register_device` was told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DeviceError, UnsupportedError
from ..operators.declare import Declaration
from ..operators.derivatives import Linear
from ..operators.rules import spec_of
from ..registry.devices import OUTSIDE, Transfers, device_listeners, transfers
from ..registry.function import make_function
from ..registry.keys import DispatchKey
from ..registry.library import Library
from ..registry.operator import operators
from ..registry.values import TensorSpec, describe
from .meta_tensor import MetaTensor
from .tensor import EAGER, Tensor

# The classes of tensors that nothing compiles for: a jitted function that is called with one runs as it is written.
UNCOMPILED: set[type] = {MetaTensor}

# The classes of tensors on other devices than the CPU that jitted functions are compiled for.
COMPILED: set[type] = set()

# Class -> what copies the elements of one of its tensors into the memory of another, by its kernel alone; it refuses
# memory that must not be written.
overwrite: dict[type, Callable[[Any, Any], None]] = {}

LIBRARY = Library("device", "DEF")
SCHEMA = "to(Tensor self, Device device, *, bool non_blocking=False) -> Tensor"

# Device kind -> what brings a CPU tensor to a device of a backend of the package: (tensor, device, non_blocking).
arrivals: dict[str, Callable[[Any, str, bool], Any]] = {}


def _meta(self: Any, device: str, *, non_blocking: bool = False) -> TensorSpec:
    return spec_of(self)._replace(device=device)


def _batched(info: Any, in_dims: Any, self: Any, device: str, *, non_blocking: bool) -> Any:
    return info.call(self, device, non_blocking=non_blocking), 0


LIBRARY.define(
    SCHEMA,
    Declaration(
        schema=SCHEMA,
        kind="transfer",
        doc="The tensor's elements on another device, as a new tensor.",
        meta=_meta,
        derivative=Linear({"self": lambda g, self_spec: to_device(g, self_spec.device)}),
        batching=_batched,
        method=False,
    ),
)
to_device: Any = make_function(operators["device::to"], "The tensor's elements on another device.")


def _from_cpu(self: Tensor, device: str, *, non_blocking: bool) -> Any:
    """The CPU's kernel."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return self.clone()
    if kind in arrivals:
        return arrivals[kind](self, device, non_blocking)
    function = _transfers(kind).from_cpu
    if function is None:
        raise UnsupportedError(
            f"the device {kind!r} was registered without from_cpu, so tensors cannot be moved there; "
            f"td.register_device({kind!r}, ..., from_cpu=function)"
        )
    return _checked(function(self, device), self, device, "from_cpu")


def _from_outside(self: Tensor, device: str, *, non_blocking: bool) -> Any:
    """The kernel of devices from outside: by way of the CPU."""
    kind = self.device.partition(":")[0]
    function = _transfers(kind).to_cpu
    if function is None:
        raise UnsupportedError(
            f"the device {kind!r} was registered without to_cpu, so {describe(self)} cannot be moved from there; "
            f"td.register_device({kind!r}, ..., to_cpu=function)"
        )
    found = _checked(function(self), self, "cpu", "to_cpu")
    return found if device == "cpu" else to_device(found, device)


def _transfers(kind: str) -> Transfers:
    if kind not in transfers:
        raise DeviceError(
            f"there is no device {kind!r}, or no longer; td.register_device({kind!r}, ...) makes it"
        )
    return transfers[kind]


def _checked(found: Any, source: Tensor, device: str, what: str) -> Any:
    """What a transfer gave, if it is what was asked for."""
    wanted = source.shape, source.dtype, device.partition(":")[0]
    if isinstance(found, Tensor) and (found.shape, found.dtype, found.device.partition(":")[0]) == wanted:
        return found
    seen = f"{found.spec} on {found.device}" if isinstance(found, Tensor) else describe(found)
    raise DeviceError(f"{what} gave {seen} where {source.spec} on {device} was asked for")


def _follow(device: str, entry: Transfers, registered: bool) -> None:
    """Autograd records the tensors of a device in their own ``_meta`` as long as it is registered."""
    if entry.tensor_class is not None:
        for classes in (EAGER, UNCOMPILED):
            (classes.add if registered else classes.discard)(entry.tensor_class)


LIBRARY.impl("to", _from_cpu, DispatchKey.CPU)
for _key in OUTSIDE:
    LIBRARY.impl("to", _from_outside, _key)
device_listeners.append(_follow)
