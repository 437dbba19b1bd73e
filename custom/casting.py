"""Autocast kernels of custom operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.layers.autocast import BELOW_MODES, cached_cast, is_autocast_enabled
from ..eager.tensor.tensor import Tensor
from ..errors import DTypeError
from ..registry.dispatch.guards import adjust_keys
from ..registry.dispatch.keys import AUTOCAST, AUTOCAST_OF_BACKEND, BACKEND_OF_DEVICE, DispatchKey
from ..registry.dtypes import DType, as_dtype
from ..registry.operator import Operator
from ..registry.values import to_device_name

if TYPE_CHECKING:
    from ..registry.types import Args, DTypeLike, Function, Kwargs


def autocast_key(device_type: str) -> DispatchKey:
    """Return the autocast key of a device type."""
    return AUTOCAST_OF_BACKEND[BACKEND_OF_DEVICE[to_device_name(device_type).partition(":")[0]]]


def autocast_kernel(device_type: str, dtype: DTypeLike) -> Function:
    """Make a boxed autocast kernel that casts the floating-point tensors on a device."""
    device, target = to_device_name(device_type).partition(":")[0], as_dtype(dtype)
    if not target.is_floating:
        raise DTypeError(f"autocast casts to a floating-point dtype, not to {target}")

    own = 1 << autocast_key(device_type)

    def autocast_custom(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
        others = keyset & AUTOCAST & ~own  # of arguments on other devices
        if not is_autocast_enabled(device):
            bits = op.keyset(args, kwargs) & BELOW_MODES & ~AUTOCAST
            return op.dispatch(bits | others, args, kwargs)
        with adjust_keys(exclude=AUTOCAST):
            args = tuple([_cast(device, target, value) for value in args])
            kwargs = {name: _cast(device, target, value) for name, value in kwargs.items()}
            return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES | others, args, kwargs)

    return autocast_custom


def _cast(device: str, dtype: DType, value: object) -> object:
    if type(value) is tuple:
        return tuple([_cast(device, dtype, item) for item in value])
    if isinstance(value, Tensor) and value.device.partition(":")[0] == device:
        return cached_cast(dtype, value)
    return value
