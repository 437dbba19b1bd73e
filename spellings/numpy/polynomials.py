"""Polynomials: ``polydiv`` with the remainder of NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.tensor import Tensor
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.casting import astype
from ..operators.reductions import polynomials
from ..operators.shape.rearrange import expand_dims
from ..registry.dtypes import float64
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import TensorLike

_CLOSE = 1e-8  # leading coefficients of the remainder up to this are zero


def polydiv(u: TensorLike, v: TensorLike) -> tuple[Tensor, Tensor]:
    """The quotient and the remainder of two polynomials; the coefficient of the highest power is first.

    Args:
        u, v: the coefficients: tensors of one axis, or numbers; integers are computed in float64.

    Returns:
        ``(quotient, remainder)``. The remainder has no leading zeros; of traced tensors, the values of which are
        unknown, it has one coefficient less than ``v``.

    Raises:
        ShapeError: a tensor has more than one axis, or no elements.

    >>> import tandem.numpy as np
    >>> [part.tolist() for part in np.polydiv([1, 3, 2], [1, 1])]
    [[1.0, 2.0], [0.0]]

    Source: ``numpy.polydiv``.
    """
    first, second = _to_coefficients(u), _to_coefficients(v)
    quotient, rest = polynomials.polydiv(first, second)
    count, kept = spec_of(rest).size, max(spec_of(second).size - 1, 1)
    rest = rest[max(count - kept, 0) :]
    if type(rest) is Tensor:
        sizes = abs(rest.numpy())
        start = next((at for at, size in enumerate(sizes) if not size <= _CLOSE), len(sizes) - 1)
        rest = rest[start:]
    return quotient, rest


def _to_coefficients(x: TensorLike) -> Tensor:
    """Coefficients as a tensor of floats."""
    result = asarray(x)
    spec = spec_of(result)
    result = result if spec.shape else expand_dims(result, 0)
    return result if spec.dtype.is_inexact else astype(result, float64)
