"""Segment reductions: rows are combined by the number of their segment; see ``jax.ops.segment_sum``.

An operator follows from its :class:`..scalar_ir.fold.Fold`: segments start as the fold's identity, and rows are
scattered into them. Rows of no segment go to one more, which is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...errors import (
    ConcretizationError,
    IndexArgumentError,
    ShapeError,
    UnsupportedError,
    ValueArgumentError,
)
from ...registry.dtypes import NUMERIC, REAL, DType, bool_, int64
from ...registry.values import TensorSpec
from ..creation.creation import full
from ..declare.derivatives import NotDifferentiable
from ..declare.docstrings import make_docstring
from ..declare.kinds import binary, composite
from ..declare.shape_rules import compute_dtype, spec_of
from ..elementwise.casting import astype
from ..elementwise.comparison import ge, logical_or, lt
from ..elementwise.selection import where
from ..indexing.gather import index, index_put
from ..indexing.index_reduce import COMBINE, combine_sorted, index_reduce
from ..indexing.slicing import basic_index
from ..scalar_ir.expr import NODES
from ..scalar_ir.fold import Fold
from .folds import MAX, MIN, PROD, SUM
from .folds import max as maximum_of
from .sorting import argsort

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

_TEXT = """Args:
    data: a tensor of at least one axis.
    segment_ids: a tensor of integers, the segment of each row of `data`; rows of no segment from 0 to
        `num_segments` - 1 are dropped.
    num_segments: the number of segments; None: the largest id and 1. Tracing and `vmap` require it.
    indices_are_sorted, unique_indices: accepted for compatibility with JAX; they have no effect.

Returns:
    A new tensor of the dtype of `data`, with a row for each segment; that of an empty segment is {empty}.
    float16 and bfloat16 are combined in float32.

Raises:
    ShapeError: `segment_ids` is not one number for each row.
    IndexArgumentError: `segment_ids` are not integers.
    DTypeError: the dtype of `data` is not supported.
    ValueArgumentError: `num_segments` is negative.
    UnsupportedError: `num_segments` is not given and the ids have no values yet, as inside `td.jit`."""


def segment_reduction(
    name: str, fold: Fold, *, doc: str, dtypes: Sequence[DType], reference: str, empty: str, example: str = ""
) -> OperatorFunction[Tensor]:
    """Declare the segment reduction of a fold.

    Args:
        name: its name.
        fold: how rows are combined, without ``prepare`` and ``finish``; gradients flow if a scatter operator does so.
        doc: one sentence.
        dtypes: the accepted dtypes.
        reference: the function that tests compare with.
        empty: the identity in words.
        example: ``"call -> result"``, a doctest.

    Returns:
        The operator's function.

    Raises:
        ValueError: the fold returns an index, or prepares or finishes elements.
    """
    if fold.returns_index or not fold.is_plain:
        raise ValueError(f"{name}: {fold!r} does more than combine elements; apply the rest before and after")
    combine_rows = _make_scatter(name, fold, dtypes)

    @composite(
        f"{name}(Tensor data, Tensor segment_ids, int? num_segments=None, bool indices_are_sorted=False, "
        "bool unique_indices=False) -> Tensor",
        doc=make_docstring(doc, _TEXT.format(empty=empty), example),
        reference=reference,
        samples="samples.reductions.segment_samples",
        errors="samples.reductions.segment_errors",
        dtypes=dtypes,
        method=False,
    )
    def reduce_segments(
        data: Tensor,
        segment_ids: Tensor,
        num_segments: int | None,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> Tensor:
        spec = spec_of(data)
        compute_dtype(name, "same", dtypes, (spec,))
        _check_ids(name, spec, spec_of(segment_ids))
        count = _count_segments(name, segment_ids) if num_segments is None else num_segments
        if count < 0:
            raise ValueArgumentError(f"{name}: num_segments must not be negative, and is {count}")
        ids = astype(segment_ids, int64, copy=False)
        slots = where(logical_or(lt(ids, 0), ge(ids, count)), count, ids)
        dtype, row = fold.accumulation_dtype(spec.dtype, spec.dtype), spec.shape[1:]
        start = full((count + 1, *row), fold.identity(dtype), dtype=dtype, device=spec.device)
        result = combine_rows(start, slots, astype(data, dtype, copy=False))
        kept = basic_index(result, tuple((0, size, 1) for size in (count, *row)))
        return astype(kept, spec.dtype, copy=False)

    return reduce_segments


def _check_ids(name: str, data: TensorSpec, ids: TensorSpec) -> None:
    if not ids.dtype.is_integer:
        raise IndexArgumentError(f"{name}: segment_ids are integers, not {ids.dtype}; cast with astype")
    if not data.shape or ids.shape != data.shape[:1]:
        raise ShapeError(
            f"{name}: segment_ids have one number for each row of data, but the shapes are {ids.shape} and {data.shape}"
        )


def _count_segments(name: str, segment_ids: Tensor) -> int:
    """The number of segments up to the largest id."""
    if not spec_of(segment_ids).size:
        return 0
    try:
        return max(int(maximum_of(segment_ids)) + 1, 0)
    except (ConcretizationError, UnsupportedError):
        raise UnsupportedError(
            f"{name}: the number of segments depends on values that are not known here; pass num_segments=n"
        ) from None


def _make_scatter(
    name: str, fold: Fold, dtypes: Sequence[DType]
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """``scatter(start, slots, rows)``, which combines as a fold does: an operator, or composed of a sort and a scan."""
    ufuncs = {NODES[node].numpy if node else "" for node in map(fold.node, dtypes)}
    ufunc = ufuncs.pop() if len(ufuncs) == 1 else ""
    if ufunc == "add":
        return lambda start, slots, rows: index_put(start, (slots,), rows, accumulate=True)
    if ufunc in COMBINE:
        return lambda start, slots, rows: index_reduce(start, (slots,), rows, reduce=ufunc)
    combine = binary(
        f"{name}_combine",
        fold.combine,
        doc=f"Two values combined by {fold.name}.",
        dtypes=dtypes,
        reference="-",
        method=False,
        derivative=NotDifferentiable(f"the combination of {fold.name} has no declared derivative"),
    )

    def scatter_sorted(start: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
        order = argsort(slots)
        return combine_sorted(start, index(slots, (order,)), index(rows, (order,)), combine)

    return scatter_sorted


segment_sum = segment_reduction(
    "segment_sum",
    SUM,
    doc="The sums of the rows of each segment.",
    example="td.segment_sum(td.asarray([1, 2, 3]), td.asarray([0, 2, 0]), 4) -> [4, 0, 2, 0]",
    reference="references.arrays.segment_sum",
    dtypes=NUMERIC,
    empty="0",
)
segment_prod = segment_reduction(
    "segment_prod",
    PROD,
    doc="The products of the rows of each segment.",
    example="td.segment_prod(td.asarray([1, 2, 3]), td.asarray([0, 2, 0]), 4) -> [3, 1, 2, 1]",
    reference="references.arrays.segment_prod",
    dtypes=NUMERIC,
    empty="1",
)
segment_max = segment_reduction(
    "segment_max",
    MAX,
    doc="The largest elements of the rows of each segment; NaN if there is one.",
    example="td.segment_max(td.asarray([1.0, 2.0, 3.0]), td.asarray([0, 2, 0]), 3) -> [3.0, -inf, 2.0]",
    reference="references.arrays.segment_max",
    dtypes=(bool_, *REAL),
    empty="the least value of the dtype, -inf for floats",
)
segment_min = segment_reduction(
    "segment_min",
    MIN,
    doc="The smallest elements of the rows of each segment; NaN if there is one.",
    example="td.segment_min(td.asarray([1.0, 2.0, 3.0]), td.asarray([0, 2, 0]), 3) -> [1.0, inf, 2.0]",
    reference="references.arrays.segment_min",
    dtypes=(bool_, *REAL),
    empty="the largest value of the dtype, inf for floats",
)
