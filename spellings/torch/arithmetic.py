"""Elementwise functions with PyTorch's results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.elementwise import closeness
from ..operators.elementwise.arithmetic import pow
from ..operators.elementwise.casting import astype
from ..operators.elementwise.closeness import array_equal
from ..registry.dtypes import complex128, float64
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from ..registry.types import Number, Tensor


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal, as one bool; ``eq`` compares elements."""
    return bool(array_equal(input, other))


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, as one bool; ``isclose`` compares elements."""
    return bool(closeness.allclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan))


def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Powers in float64 or complex128.

    >>> import tandem.torch as torch
    >>> torch.float_power(torch.tensor([3]), 2).dtype
    tandem.float64
    """
    tensors = [x for x in (input, exponent) if isinstance(x, TensorBase)]
    wide = complex128 if any(x.dtype.kind == "c" for x in tensors) else float64
    return pow(*(astype(x, wide) if isinstance(x, TensorBase) else x for x in (input, exponent)))
