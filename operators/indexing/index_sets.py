"""mask_indices, diag_indices_from, tril_indices_from and triu_indices_from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError
from ..creation.creation import full
from ..creation.grids import diag_indices, tril_indices, triu_indices
from ..declare.array_arguments import accept_arrays
from ..declare.shape_rules import check_shape, spec_of
from .take import nonzero

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.types import Tensor


def mask_indices(
    n: int, mask_func: Callable[[Tensor, int], Tensor], k: int = 0, *, size: int | None = None
) -> tuple[Tensor, ...]:
    """The indices of the elements of a square matrix that a function keeps.

    Args:
        n: the number of rows and columns.
        mask_func: a function of a matrix of ones and ``k``, whose result is not zero where elements are kept.
        k: the second argument of ``mask_func``.
        size: the number of indices; a trace requires it, because shapes must not depend on data.

    Returns:
        Two int64 tensors of one axis: rows and columns.

    Raises:
        ShapeError: ``n`` is negative.

    >>> import tandem as td
    >>> [x.tolist() for x in td.mask_indices(2, lambda x, k: td.triu(x, k=k))]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(mask_func(full(check_shape("mask_indices", (n, n)), 1), k), size=size)


@accept_arrays
def diag_indices_from(arr: Tensor) -> tuple[Tensor, ...]:
    """The indices of the main diagonal of a tensor whose axes all have one length; see :func:`diag_indices`.

    Raises:
        ShapeError: there are fewer than two axes, or the lengths differ.

    >>> import tandem as td
    >>> [x.tolist() for x in td.diag_indices_from(td.zeros((2, 2)))]
    [[0, 1], [0, 1]]
    """
    shape = spec_of(arr).shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise ShapeError(f"diag_indices_from: needs two or more axes of one length, not shape {shape}")
    return diag_indices(shape[0], len(shape))


def _matrix_shape(name: str, arr: Tensor) -> tuple[int, ...]:
    shape = spec_of(arr).shape
    if len(shape) != 2:
        raise ShapeError(f"{name}: needs a matrix, not shape {shape}")
    return shape


@accept_arrays
def tril_indices_from(arr: Tensor, k: int = 0) -> tuple[Tensor, ...]:
    """The indices of the elements on and below a diagonal of a matrix; see :func:`tril_indices`.

    Raises:
        ShapeError: the tensor is not a matrix.

    >>> import tandem as td
    >>> [x.tolist() for x in td.tril_indices_from(td.zeros((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


@accept_arrays
def triu_indices_from(arr: Tensor, k: int = 0) -> tuple[Tensor, ...]:
    """The indices of the elements on and above a diagonal of a matrix; see :func:`triu_indices`.

    Raises:
        ShapeError: the tensor is not a matrix.

    >>> import tandem as td
    >>> [x.tolist() for x in td.triu_indices_from(td.zeros((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)
