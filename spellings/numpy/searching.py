"""Functions of NumPy that find elements and positions, also in two sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..eager.tensor.construct import asarray
from ..errors import ArgumentError
from ..operators.declare.shape_rules import is_tensor, spec_of
from ..operators.elementwise.casting import astype
from ..operators.indexing.take import nonzero
from ..operators.reductions import set_operations, sorting
from ..operators.reductions.searching import isin
from ..operators.reductions.unique import unique
from ..operators.shape.joining import stack
from ..operators.shape.views import reshape
from ..registry.dtype_functions import result_type
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


@name_operator(set_operations.intersect1d, "return_indices", takes_none=True, most=3)
def intersect1d(
    ar1: Tensor,
    ar2: Tensor,
    assume_unique: bool = False,
    return_indices: bool = False,
    **options: Any,  # noqa: ANN401
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """The elements that two tensors have in common, sorted.

    Args:
        ar1, ar2: tensors of any shape.
        assume_unique: whether no element occurs twice in one tensor.
        return_indices: whether to return the positions of the first occurrences in both flattened tensors too.
        options: ``size`` and ``fill_value``, as for ``td.intersect1d``.

    >>> import tandem.numpy as np
    >>> [x.tolist() for x in np.intersect1d([1, 3, 3], [3, 1, 7], return_indices=True)]
    [[1, 3], [0, 1], [1, 0]]

    Source: ``numpy.intersect1d``.
    """
    if not return_indices:
        return set_operations.intersect1d(ar1, ar2, assume_unique, **options)
    if options:
        raise ArgumentError(f"intersect1d: {', '.join(options)} cannot be used with return_indices")
    dtype = result_type(ar1, ar2)
    one, first = unique(astype(ar1, dtype), return_index=True)
    two, second = unique(astype(ar2, dtype), return_index=True)
    in_one = isin(one, two)
    return one[in_one], first[in_one], second[isin(two, one)]
