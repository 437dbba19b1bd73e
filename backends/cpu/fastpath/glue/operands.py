"""Codes of operand types, as native entries compute them, for calls without a variant."""

from __future__ import annotations

from typing import Any

from .....eager.tensor.tensor import Tensor, dtype_of
from .....eager.tensor.weak_scalars import number_of
from ..runtime.rt_base import CODE_BITS
from .structs import CODES, WEAK_CODES

_CODE_OF = {dtype: code for code, dtype in enumerate(CODES)}
_WEAK_OF = {kind: code for code, kind in WEAK_CODES.items()}


def operand_code(value: Any) -> int | None:
    """Return the code of one operand; None if native code does not accept it.

    Native twin: backends/cpu/fastpath/runtime/rt_operands.py:operand_code
    """
    if type(value) is Tensor:
        return _CODE_OF[dtype_of(value._array)]
    return _WEAK_OF.get(type(value))


def find_elementwise_key(*args: Any) -> int | None:
    """Return the key of a call of an elementwise operator."""
    key = 0
    for i, value in enumerate(args):
        code = operand_code(number_of(value))
        if code is None:
            return None
        key |= code << CODE_BITS * i
    return key


def find_cast_key(self: Any, dtype: Any, **kwargs: Any) -> int | None:
    """Return the key of a cast: the tensor's dtype and the target dtype."""
    code = operand_code(self)
    return None if code is None or dtype not in _CODE_OF else code | _CODE_OF[dtype] << CODE_BITS
