"""Functions of NumPy that find elements and positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..operators.declare.shape_rules import is_tensor, spec_of
from ..operators.indexing.take import nonzero
from ..operators.reductions import sorting
from ..operators.shape.joining import stack
from ..operators.shape.views import reshape
from .array_likes import name_operator

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike


def argwhere(a: Tensor) -> Tensor:
    """The indices of elements that are not zero, one row for each."""
    return stack(nonzero(a), 1)


def flatnonzero(a: Tensor) -> Tensor:
    """The indices of elements that are not zero, in the flattened tensor."""
    return nonzero(a if getattr(a, "ndim", 0) == 1 else reshape(a, (spec_of(a).size,)))[0]


@name_operator(sorting.sort, "kind", "order", "stable", takes_none=True, most=2)
def sort(
    a: Tensor,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
) -> Tensor:
    """The elements in sorted order along an axis; those of the flattened tensor if it is None.

    Args:
        a: a tensor of real dtype.
        axis: the axis, or None.
        kind, order, stable: accepted for compatibility with NumPy; the order is always stable, which takes no longer.
        descending: whether the largest element is first.

    >>> import tandem.numpy as np
    >>> np.sort(np.array([[3, 1], [2, 0]]), None).tolist()
    [0, 1, 2, 3]

    Source: ``numpy.sort``.
    """
    given, along = _along(a, axis)
    return sorting.sort(given, axis=along, descending=descending)


@name_operator(sorting.argsort, "kind", "order", "stable", takes_none=True, most=2)
def argsort(
    a: Tensor,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
) -> Tensor:
    """The positions of the elements in sorted order; arguments are those of :func:`sort`.

    >>> import tandem.numpy as np
    >>> np.argsort(np.array([[3, 1], [2, 0]]), axis=None).tolist()
    [3, 1, 2, 0]

    Source: ``numpy.argsort``.
    """
    given, along = _along(a, axis)
    return sorting.argsort(given, axis=along, descending=descending)


def _along(a: TensorLike, axis: int | None) -> tuple[Tensor, int]:
    """A tensor and an axis; for None, the flattened tensor and its axis."""
    tensor: Tensor = a if is_tensor(a) else asarray(a)  # type: ignore[assignment]
    return (reshape(tensor, (-1,)), 0) if axis is None else (tensor, axis)
