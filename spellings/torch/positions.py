"""Positions of values: bucketize, searchsorted, nonzero_static, msort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ShapeError
from ..operators.declare.shape_rules import is_tensor, spec_of
from ..operators.elementwise.casting import astype
from ..operators.indexing.take import nonzero
from ..operators.reductions.searching import searchsorted as _searchsorted
from ..operators.reductions.sorting import sort
from ..operators.shape.joining import stack
from ..operators.shape.views import reshape
from ..registry.dtypes import int32, int64
from ..transforms.vmap import vmap

if TYPE_CHECKING:
    from ..registry.types import Number, Tensor


def bucketize(
    input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The indices of the intervals between sorted boundaries that the elements are in.

    Args:
        input: a tensor or a number.
        boundaries: a sorted vector.
        out_int32: whether the indices are int32, not int64.
        right: whether an element that equals a boundary is behind it.

    >>> import tandem.torch as torch
    >>> torch.bucketize(torch.tensor([1, 2, 3]), torch.tensor([2])).tolist()
    [0, 0, 1]
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """The positions at which values keep vectors sorted.

    Args:
        sorted_sequence: a sorted vector, or a stack of them.
        input: any tensor, or a number; for a stack, with the same leading axes.
        out_int32: whether the positions are int32, not int64.
        right: whether positions are behind equal elements.
        side: ``"left"`` or ``"right"``, in place of ``right``.
        sorter: indices that sort the sequence, which is not sorted then.

    >>> import tandem.torch as torch
    >>> torch.searchsorted(torch.tensor([[1, 3], [5, 7]]), torch.tensor([[2], [8]])).tolist()
    [[1], [2]]
    """
    where_equal = side or ("right" if right else "left")
    lead = spec_of(sorted_sequence).shape[:-1]
    if not lead:
        result = _searchsorted(sorted_sequence, input, where_equal, sorter)
        return astype(result, int32) if out_int32 else result
    if not is_tensor(input) or spec_of(input).shape[:-1] != lead:
        raise ShapeError(f"searchsorted: a stack of vectors takes values with the leading axes {lead}")
    parts = [sorted_sequence, input] + ([] if sorter is None else [sorter])
    rows = [reshape(x, (-1, spec_of(x).shape[-1])) for x in parts]
    result = vmap(lambda one, two, *order: _searchsorted(one, two, where_equal, *order))(*rows)
    return astype(reshape(result, spec_of(input).shape), int32 if out_int32 else int64)


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The indices of the first ``size`` elements that are not 0, as rows; rows of ``fill_value`` if there are fewer.

    >>> import tandem.torch as torch
    >>> torch.tensor([0, 3]).nonzero_static(size=2).tolist()
    [[1], [-1]]
    """
    return stack(nonzero(input, size=size, fill_value=fill_value), 1)


def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis.

    >>> import tandem.torch as torch
    >>> torch.msort(torch.tensor([3, 1])).tolist()
    [1, 3]
    """
    return sort(input, axis=0)
