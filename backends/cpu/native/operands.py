"""Operand types of a call, as the native entries code them; used on the Python side of a miss."""

from __future__ import annotations

from typing import Any

from ....eager.tensor import Tensor, dtype_of
from .records import CODES, WEAK_CODES
from .rt_operands import CODE_BITS

_CODE_OF = {dtype: code for code, dtype in enumerate(CODES)}
_WEAK_OF = {kind: code for code, kind in WEAK_CODES.items()}


def code_of(value: Any) -> int | None:
    """The code of one operand; None for what native code does not take."""
    if type(value) is Tensor:
        return _CODE_OF[dtype_of(value._array)]
    return _WEAK_OF.get(type(value))


def elementwise_key(*args: Any) -> int | None:
    """The key of a call of an elementwise operator."""
    key = 0
    for i, value in enumerate(args):
        code = code_of(value)
        if code is None:
            return None
        key |= code << CODE_BITS * i
    return key


def cast_key(self: Any, dtype: Any, **kwargs: Any) -> int | None:
    """The key of a cast: the tensor's dtype and the one that is wanted."""
    code = code_of(self)
    return None if code is None or dtype not in _CODE_OF else code | _CODE_OF[dtype] << CODE_BITS
