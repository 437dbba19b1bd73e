"""``unique_consecutive``: the first of each run of equal elements, or slices along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import ne
from ..operators.indexing.take import nonzero
from ..operators.reductions.folds import any as any_along
from ..operators.reductions.scans import cumsum
from ..operators.shape.joining import concat
from ..operators.shape.rearrange import moveaxis
from ..operators.shape.views import reshape
from ..registry.dtypes import bool_, int64

if TYPE_CHECKING:
    from ..registry.types import Tensor


def _flatten(rows: Tensor) -> Tensor:
    """The slices along the first axis as rows of a matrix."""
    count = spec_of(rows).shape[0]
    return reshape(rows, (count, -1)) if spec_of(rows).size else rows.new_zeros((count, 1))


def _group_rows(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first row of each run of equal rows, the run of each row, and the lengths of runs."""
    count = spec_of(rows).shape[0]
    flat = _flatten(rows)
    changes = any_along(ne(flat[1:], flat[:-1]), 1)
    is_first = concat([changes.new_ones((min(count, 1),), dtype=bool_), changes])
    (starts,) = nonzero(is_first)
    ends = concat([starts[1:], starts.new_full((min(count, 1),), count)])
    return rows[starts], cumsum(astype(is_first, int64), 0) - 1, ends - starts


def _select(
    values: Tensor, inverse: Tensor, counts: Tensor, wants_inverse: bool, wants_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    others = ([inverse] if wants_inverse else []) + ([counts] if wants_counts else [])
    return (values, *others) if others else values


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The tensor without the elements that equal the one before; with ``dim``, slices along that axis.

    Args:
        input: any tensor, which is flattened without ``dim``.
        return_inverse: whether to return the group of each element, too.
        return_counts: whether to return the sizes of the groups, too.
        dim: the axis.

    >>> import tandem.torch as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    rows = reshape(input, (-1,)) if dim is None else moveaxis(input, dim, 0)
    values, inverse, counts = _group_rows(rows)
    if dim is None:
        return _select(values, reshape(inverse, spec_of(input).shape), counts, return_inverse, return_counts)
    return _select(moveaxis(values, 0, dim), inverse, counts, return_inverse, return_counts)
