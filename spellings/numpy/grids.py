"""Coordinates of grids: ``meshgrid`` and ``indices`` with NumPy's arguments ``sparse`` and ``copy``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ShapeError, ValueArgumentError
from ..operators.creation import grids
from ..operators.creation.creation import arange
from ..operators.declare.shape_rules import spec_of
from ..operators.shape.grids import broadcast_arrays
from ..operators.shape.grids import meshgrid as _meshgrid
from ..operators.shape.views import reshape
from .creation import asarray, replace_type

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


def meshgrid(
    *xi: Tensor, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid, one tensor for each axis.

    Args:
        xi: the coordinates along each axis: tensors of at most one axis.
        copy: whether the results have memory of their own; False: they are views of the arguments.
        sparse: whether the results have length 1 along the axes of the other arguments.
        indexing: ``"xy"``: the first two axes of the results are exchanged; ``"ij"``: they are not.

    Raises:
        ValueArgumentError: another ``indexing``.
        ShapeError: a tensor has more than one axis.

    >>> import tandem.numpy as np
    >>> [x.shape for x in np.meshgrid([1, 2, 3], [4.0, 5.0], sparse=True)]
    [(1, 3), (2, 1)]

    Source: ``numpy.meshgrid``.
    """
    if copy and not sparse:
        return _meshgrid(*xi, indexing=indexing)
    if indexing not in ("xy", "ij"):
        raise ValueArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    values = [asarray(x) for x in xi]
    if any(len(spec_of(x).shape) > 1 for x in values):
        raise ShapeError("meshgrid: coordinates have at most one axis")
    rows = _put_along_axes(values, indexing == "xy")
    results = tuple(rows) if sparse else broadcast_arrays(*rows)
    return tuple(x.clone() for x in results) if copy else results


def _put_along_axes(values: Sequence[Tensor], swaps_first: bool) -> list[Tensor]:
    """Tensors of one axis, each along an axis of its own."""
    axes = list(range(len(values)))
    if swaps_first and len(axes) > 1:
        axes[:2] = 1, 0
    return [
        reshape(x, tuple(spec_of(x).size if other == axis else 1 for other in range(len(axes))))
        for x, axis in zip(values, axes)
    ]


def indices(
    dimensions: Sequence[int],
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    device: str | None = None,
) -> Any:  # noqa: ANN401
    """The indices of a grid.

    Args:
        dimensions: the shape of the grid.
        dtype: the dtype of the indices; None: int64.
        sparse: whether to return a tuple of tensors that broadcast, and not one tensor.
        device: the device of the result; None: the CPU.

    Returns:
        A tensor of shape ``(len(dimensions), *dimensions)``, or a tuple of tensors with one long axis each.

    Raises:
        ShapeError: a size is negative.

    >>> import tandem.numpy as np
    >>> [x.tolist() for x in np.indices((2, 3), sparse=True)]
    [[[0], [1]], [[0, 1, 2]]]

    Source: ``numpy.indices``.
    """
    chosen = replace_type(int if dtype is None else dtype)
    if not sparse:
        return grids.indices(dimensions, dtype=chosen, device=device)
    return tuple(_put_along_axes([arange(size, dtype=chosen, device=device) for size in dimensions], False))
