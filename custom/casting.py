"""What autocast does with an operator from outside that has said how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..eager.autocast import AUTOCAST, BELOW_MODES, cached_cast, is_autocast_enabled
from ..eager.tensor import Tensor
from ..errors import DTypeError
from ..registry.binding import device_name
from ..registry.dtypes import DType, as_dtype
from ..registry.operator import Operator
from ..registry.state import adjusted


def autocast_kernel(device_type: str, dtype: Any) -> Callable[..., Any]:
    """A boxed kernel of the Autocast key that casts the floating-point tensors on a device."""
    device, target = device_name(device_type).partition(":")[0], as_dtype(dtype)
    if not target.is_floating:
        raise DTypeError(f"autocast casts to a floating-point dtype, not to {target}")

    def autocast_custom(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not is_autocast_enabled(device):
            return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES & ~AUTOCAST, args, kwargs)
        with adjusted(exclude=AUTOCAST):
            args = tuple([_cast(device, target, value) for value in args])
            kwargs = {name: _cast(device, target, value) for name, value in kwargs.items()}
            return op.dispatch(op.keyset(args, kwargs) & BELOW_MODES, args, kwargs)

    return autocast_custom


def _cast(device: str, dtype: DType, value: Any) -> Any:
    if type(value) is tuple:
        return tuple([_cast(device, dtype, item) for item in value])
    if isinstance(value, Tensor) and value.device.partition(":")[0] == device:
        return cached_cast(dtype, value)
    return value
