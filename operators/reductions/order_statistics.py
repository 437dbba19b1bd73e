"""Order statistics of PyTorch, with the indices of the elements: ``kthvalue``, ``topk``, ``mode``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ValueArgumentError
from ...registry.dtypes import REAL, bool_
from ..creation.creation import arange
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.named_results import ValuesAndIndices
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.casting import stop_gradient
from ..elementwise.comparison import eq, logical_not
from ..elementwise.selection import where
from ..indexing.take import take_along_axis
from ..shape.repeating import roll
from ..shape.splitting import slice_axis
from ..shape.views import reshape
from .extrema import running_max, take_at
from .folds import argmax
from .selection import find_rank
from .sorting import FEW_OF, argsort, argtopk

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ORDERED = (bool_, *REAL)
_TEXT = """Args:
    self: a real tensor of at least one axis; NaN counts as the largest.{more}

Returns:
    ``(values, indices)``, a named tuple; the indices are int64.

Raises:
    {error}OutOfBoundsError: there is no such axis."""
_KEEPDIMS = "\n    axis: the axis.\n    keepdims: whether the axis remains, with length 1."


def _check_count(name: str, k: int, least: int, size: int) -> None:
    if not least <= k <= size:
        raise ValueArgumentError(
            f"{name}: k must be between {least} and {size}, the length of the axis, not {k}"
        )


@composite(
    "kthvalue(Tensor self, int k, int axis=-1, *, bool keepdims=False) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The k-th smallest elements along an axis, and their indices.",
        _TEXT.format(
            more="\n    k: the position in ascending order, from 1." + _KEEPDIMS,
            error="ValueArgumentError: ``k`` is not between 1 and the length of the axis.\n    ",
        ),
        "td.kthvalue(td.asarray([5, 1, 3]), 2).values -> 3",
    ),
    reference="references.order.kthvalue",
    samples="samples.order.kth_samples",
    errors="samples.order.kth_errors",
    dtypes=_ORDERED,
    result_type=ValuesAndIndices,
)
def kthvalue(self: Tensor, k: int, axis: int, *, keepdims: bool) -> tuple[Tensor, Tensor]:
    shape = spec_of(self).shape
    along = normalize_axis("kthvalue", axis, len(shape))
    _check_count("kthvalue", k, 1, shape[along])
    if k * FEW_OF <= shape[along]:
        position = slice_axis(argtopk(self, k, axis=along, descending=False), along, k - 1, k)
    else:
        position = find_rank(self, k - 1, along)
    return take_at(self, position, along, keepdims)


@composite(
    "topk(Tensor self, int k, int axis=-1, *, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The k largest or smallest elements along an axis, and their indices.",
        _TEXT.format(
            more="""
    k: how many.
    axis: the axis.
    largest: whether to return the largest elements, from the largest on, or the smallest from the smallest on.
    sorted: whether the order matters; the results are always sorted.""",
            error="ValueArgumentError: ``k`` is negative, or larger than the length of the axis.\n    ",
        ),
        "td.topk(td.asarray([5, 1, 3]), 2).values -> [5, 3]",
    ),
    reference="references.order.topk",
    samples="samples.order.topk_samples",
    errors="samples.order.topk_errors",
    dtypes=_ORDERED,
    result_type=ValuesAndIndices,
)
def topk(self: Tensor, k: int, axis: int, *, largest: bool, sorted: bool) -> tuple[Tensor, Tensor]:
    shape = spec_of(self).shape
    along = normalize_axis("topk", axis, len(shape))
    _check_count("topk", k, 0, shape[along])
    indices = argtopk(self, k, axis=along, descending=largest)
    return take_along_axis(self, indices, along), indices


@composite(
    "mode(Tensor self, int axis=-1, *, bool keepdims=False) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The most frequent elements along an axis, and the index of the last of each; the smallest of several.",
        _TEXT.format(more=_KEEPDIMS, error="ShapeError: the axis has no elements.\n    "),
        "td.mode(td.asarray([3, 1, 3, 1, 2])).values -> 1",
    ),
    reference="references.order.mode",
    samples="samples.order.mode_samples",
    errors="samples.order.mode_errors",
    dtypes=_ORDERED,
    result_type=ValuesAndIndices,
)
def mode(self: Tensor, axis: int, *, keepdims: bool) -> tuple[Tensor, Tensor]:
    spec = spec_of(self)
    along = normalize_axis("mode", axis, len(spec.shape))
    order = argsort(self, axis=along)
    ordered = take_along_axis(stop_gradient(self), order, along)
    column = [n if at == along else 1 for at, n in enumerate(spec.shape)]
    numbers = reshape(arange(spec.shape[along], device=spec.device), column)
    is_start = logical_not(eq(ordered, roll(ordered, 1, along)))
    start = running_max(where(is_start, numbers, 0), along)  # of the run of equal elements
    last = argmax(numbers - start, along, keepdims=True)  # of the first of the longest runs
    return take_at(self, take_along_axis(order, last, along), along, keepdims)
