"""Floats that are assigned to elements of integer tensors: their fractions are dropped, as NumPy and PyTorch do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry.dtypes import float64
from .construct import asarray
from .tensor import Tensor

if TYPE_CHECKING:
    from ...registry.dtypes import DType

WHOLE = 2.0**53
"""Floats of smaller magnitude are converted to integers without loss."""


def drop_fractions(x: Tensor, value: object) -> object:
    """A float, or a tensor of floats, as integers of the dtype of a tensor.

    Returns:
        The integers, which wrap as casts of tensors do; None for other values and tensors.
    """
    if type(x) is not Tensor or not x.dtype.is_integer:
        return None
    if type(value) is float:
        if -WHOLE < value < WHOLE and _fits(int(value), x.dtype):
            return int(value)
        return asarray(value, float64).astype(x.dtype)
    return value.astype(x.dtype) if type(value) is Tensor and value.dtype.is_floating else None


def _fits(number: int, dtype: DType) -> bool:
    is_signed = dtype.kind == "i"
    limit = 1 << (dtype.bits - is_signed)
    return (-limit if is_signed else 0) <= number < limit
