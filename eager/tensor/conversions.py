"""Conversions to a dtype as methods, with PyTorch's names: ``x.float()``, ``x.long()``, ..., and ``x.type()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import lazy
from ...registry import dtypes
from .methods import to

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.dtypes import DType
    from ...registry.types import DTypeLike
    from .tensor import Tensor

_torch = lazy.Module(".torch")


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


def type(self: Tensor, dtype: DTypeLike | Callable[..., Tensor] | None = None) -> Tensor | str:
    """Convert the tensor to a dtype; without an argument, return the name of its dtype.

    Args:
        self: any tensor.
        dtype: a dtype, or a constructor of PyTorch such as ``torch.LongTensor`` or its name, ``"torch.LongTensor"``.

    >>> import tandem.torch as torch
    >>> torch.tensor([1.5]).type(torch.LongTensor).tolist(), torch.tensor([1]).type("torch.FloatTensor").tolist()
    ([1], [1.0])
    """
    if dtype is None:
        return self.dtype.name
    target: Any = dtype
    if isinstance(dtype, str) and dtype.startswith("torch."):
        target = _find_constructor(dtype)
    return to(self, dtype=getattr(target, "dtype", target))


def _find_constructor(name: str) -> Any:
    """A constructor or dtype of PyTorch by its name, such as ``"torch.LongTensor"``; the name if there is none."""
    return getattr(_torch, name.removeprefix("torch."), name)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert the tensor to the dtype of another and move it to the device of that."""
    return to(self, dtype=other.dtype, device=other.device)
