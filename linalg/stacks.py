"""``diagonal`` and ``trace`` of the last two axes, as the array API standard defines them (NumPy: the first two)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.declare.shape_rules import spec_of
from ..operators.shape import diagonals
from ..registry.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from ..registry.types import Tensor


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of each matrix in a stack.

    Args:
        x: a tensor of shape ``(..., M, N)``.
        offset: the diagonal: 0 is the main one, positive offsets are above it.

    Returns:
        A tensor of shape ``(..., min(M, N))`` for the main one.

    Raises:
        OutOfBoundsError: there are fewer than two axes.

    >>> import tandem as td
    >>> td.linalg.diagonal(td.ones((5, 2, 3))).shape
    (5, 2)
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """The sum along a diagonal of each matrix in a stack.

    Args:
        x: a tensor of shape ``(..., M, N)``.
        offset: the diagonal: 0 is the main one, positive offsets are above it.
        dtype: the dtype to sum in; None: that of the tensor, int64 for small integers.

    Returns:
        A tensor of shape ``(...)``.

    Raises:
        OutOfBoundsError: there are fewer than two axes.

    >>> import tandem as td
    >>> td.linalg.trace(td.ones((5, 2, 3))).shape
    (5,)
    """
    if dtype is not None and spec_of(x).dtype is not as_dtype(dtype):
        x = x.astype(dtype)
    return diagonals.trace(x, offset, -2, -1)
