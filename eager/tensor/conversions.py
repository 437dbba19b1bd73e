"""Conversions to a dtype as methods, with PyTorch's names: ``x.float()``, ``x.long()``, ..., and ``x.type()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry import dtypes
from .methods import to

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.dtypes import DType
    from ...registry.types import DTypeLike
    from .tensor import Tensor


def _make_conversion(dtype: DType) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return to(self, dtype=dtype)

    convert.__doc__ = f"Convert the tensor to {dtype.name}; return the tensor itself if it has that dtype."
    return convert


bfloat16 = _make_conversion(dtypes.bfloat16)
bool = _make_conversion(dtypes.bool_)
byte = _make_conversion(dtypes.uint8)
cdouble = _make_conversion(dtypes.complex128)
cfloat = _make_conversion(dtypes.complex64)
char = _make_conversion(dtypes.int8)
double = _make_conversion(dtypes.float64)
float = _make_conversion(dtypes.float32)
half = _make_conversion(dtypes.float16)
int = _make_conversion(dtypes.int32)
long = _make_conversion(dtypes.int64)
short = _make_conversion(dtypes.int16)


def type(self: Tensor, dtype: DTypeLike | None = None) -> Tensor | str:
    """Convert the tensor to a dtype; without an argument, return the name of its dtype."""
    return self.dtype.name if dtype is None else to(self, dtype=dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert the tensor to the dtype of another and move it to the device of that."""
    return to(self, dtype=other.dtype, device=other.device)
