"""broadcast_arrays and meshgrid: functions of any number of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ShapeError, ValueArgumentError
from ...registry.native_type import accept_entry
from ..declare.array_arguments import accept_arrays
from ..declare.shape_rules import broadcast_shapes, convert_numbers, spec_of
from .joining import number_to_tensor
from .views import broadcast_to, reshape

if TYPE_CHECKING:
    from ...registry.types import Tensor


@accept_entry("broadcast_all", "broadcast_to")
@accept_arrays
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Broadcast tensors to their common shape.

    Args:
        arrays: tensors.

    Returns:
        A tuple of views of the tensors, all of the same shape.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> import tandem as td
    >>> [x.shape for x in td.broadcast_arrays(td.zeros((2, 1)), td.zeros(3))]
    [(2, 3), (2, 3)]
    """
    shape = broadcast_shapes("broadcast_arrays", *(spec_of(x).shape for x in arrays))
    return tuple([broadcast_to(number_to_tensor(x) if shape else x, shape) for x in convert_numbers(arrays)])


@accept_arrays
def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid, one tensor for each axis.

    Args:
        arrays: the coordinates along each axis: tensors of one axis, or 0-d ones.
        indexing: ``"xy"``: the first two axes of the results are exchanged, so that matrices have a row for each y and
            a column for each x; ``"ij"``: axis i of the results belongs to argument i.

    Returns:
        A tuple of tensors of the shape of the grid, each of its argument's dtype.

    Raises:
        ValueArgumentError: another ``indexing``.
        ShapeError: a tensor has more than one axis.

    >>> import tandem as td
    >>> [x.tolist() for x in td.meshgrid(td.arange(3), td.arange(2))]
    [[[0, 1, 2], [0, 1, 2]], [[0, 0, 0], [1, 1, 1]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    values = convert_numbers(arrays)
    specs = [spec_of(x) for x in values]
    for spec in specs:
        if len(spec.shape) > 1:
            raise ShapeError(f"meshgrid: coordinates have one axis, not shape {spec.shape}")
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    rows = [
        reshape(x, tuple(spec.size if other == axis else 1 for other in range(len(axes))))
        for x, spec, axis in zip(values, specs, axes)
    ]
    return tuple(x.clone() for x in broadcast_arrays(*rows))
