"""Updates of many single elements, in blocks: the indices of a block are checked in vectors before it is written.

If all are in bounds, and none is negative, the elements are written without further tests; otherwise each index is
checked where it is used, so that the first one that is out of bounds is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....lowering.fusion.loop_ir import Reduce, Stage
from ....operators.scalar_ir.expr import Expr, cast, const, order
from ....operators.scalar_ir.fold import Fold, accumulate_as_result
from ....registry.dtypes import DType, int32, int64
from .vectors import Use

if TYPE_CHECKING:
    from .stage_printer import StagePrinter
    from .text import Function

BLOCK = 16  # points: the checks of a block overlap with the writes of the one before it
_UNION = Fold("bitwise_or", lambda a, b: a | b, lambda dtype: 0, accumulate_as_result)
MIN_POINTS = 64  # of a dimension that is worth a second loop
_CHEAP = frozenset("load const cast add sub mul index scalar row".split())


def has_checked_blocks(stage: StagePrinter) -> bool:
    """Return whether a stage of one dimension updates single elements, at indices that are cheap to compute."""
    if len(stage.shape) != 1 or stage.shape[0] < MIN_POINTS or not stage.updates:
        return False
    indices = [e for update in stage.updates for e in update.indices]
    return all(map(stage.is_updated_by_element, stage.updates)) and all(
        e.op in _CHEAP for e in order(*indices)
    )


def write_checked_blocks(stage: StagePrinter, uses: dict[str, Use]) -> None:
    """Write the loop over blocks, and the points after the last one."""
    f, checks, size = stage.f, stage.checks, stage.shape[0]
    whole = size - size % BLOCK
    with f.loop("0", str(whole), str(BLOCK)) as loop:
        inside = _advance(f, uses, loop.index)
        known = _write_checks(stage, inside, loop.index)
        with f.when(known):
            checks.passed = frozenset(update.map for update in stage.updates)
            stage.write_vectors(inside, [], [], loop.index, str(BLOCK), "0")
            checks.passed = frozenset()
        with f.when(f.op(f"xor i1 {known}, true")):
            stage.write_vectors(inside, [], [], loop.index, str(BLOCK), "0")
    if rest := size - whole:
        stage.write_vectors(_advance(f, uses, str(whole)), [], [], str(whole), str(rest), "0")


def _advance(f: Function, uses: dict[str, Use], offset: str) -> dict[str, Use]:
    """Return the uses of buffers from a point on."""
    return {name: use.offset_along(f, 0, offset) for name, use in uses.items()}


def _write_checks(stage: StagePrinter, uses: dict[str, Use], offset: str) -> str:
    """Write a loop over the vectors of a block; return whether all indices are in bounds, and none is negative."""
    f = stage.f
    signs, outer = _combine_signs(stage), (f.shared, f.is_split)
    reduction = Reduce(_UNION, signs, "signs")
    with f.width(f.lanes):  # a stage sets its own
        checks = stage.with_body(Stage(stage.stage.dims, (reduction,)))
        reducer = checks.make_reducer(reduction)
        inside = {name: uses[name] for name in checks.uses}
        (state,) = checks.write_vectors(inside, [reducer], [reducer.initial(f)], offset, str(BLOCK), "0")
        result = reducer.collapse(f, state)
    f.shared, f.is_split = outer
    return f.op(f"icmp sge i{8 * signs.dtype.itemsize} {result}, 0")


def _combine_signs(stage: StagePrinter) -> Expr:
    """Return an integer that is negative if an index of a point is out of bounds or negative.

    For an index i of n elements that is ``i | (n - 1 - i)``: three instructions of integers, where comparisons would
    make vectors of single bits, which processors without AVX-512 have no registers for.
    """
    bounded = [
        (_strip_casts(e), axis.size)
        for update in stage.updates
        for e, axis in zip(update.indices, update.map.axes, strict=True)
    ]
    dtype = int32 if all(e.dtype.itemsize <= 4 and size < 2**31 for e, size in bounded) else int64
    value = const(0, dtype)
    for e, size in bounded:
        index = cast(e, dtype)
        value = value | index | (const(size - 1, dtype) - index)
    return value


def _strip_casts(index: Expr) -> Expr:
    """Return an index without the casts to wider integers."""
    while index.op == "cast" and _keeps_values(index.args[0].dtype, index.dtype):
        index = index.args[0]
    return index


def _keeps_values(source: DType, target: DType) -> bool:
    """Return whether a cast from one dtype of integers to another never changes a number."""
    widens = source.is_integer and target.is_integer and source.itemsize < target.itemsize
    return widens and (source.kind == "u" or target.kind == "i")
