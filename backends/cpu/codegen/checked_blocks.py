"""Updates of many single elements, in blocks: the indices of a block are checked in vectors before it is written.

If all are in bounds, and none is negative, the elements are written without further tests; otherwise each index is
checked where it is used, so that the first one that is out of bounds is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....lowering.fusion.loop_ir import Reduce, Stage
from ....operators.reductions.folds import ALL_TRUE
from ....operators.scalar_ir.expr import Expr, apply, order
from ....registry.dtypes import DType
from .vectors import Use

if TYPE_CHECKING:
    from .stage_printer import StagePrinter

BLOCK = 512  # points: their indices stay in the first cache
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
    """Write the loop over blocks."""
    f, checks, size = stage.f, stage.checks, stage.shape[0]
    f.module.declare("llvm.smin.i64", "i64", "i64", "i64")
    with f.loop("0", str(size), str(BLOCK)) as loop:
        count = f.op(f"call i64 @llvm.smin.i64(i64 {f.op(f'sub i64 {size}, {loop.index}')}, i64 {BLOCK})")
        inside = {name: use.offset_along(f, 0, loop.index) for name, use in uses.items()}
        known = _write_checks(stage, inside, loop.index, count)
        with f.when(known):
            checks.passed = frozenset(update.map for update in stage.updates)
            stage.write_vectors(inside, [], [], loop.index, count, "0")
            checks.passed = frozenset()
        with f.when(f.op(f"xor i1 {known}, true")):
            stage.write_vectors(inside, [], [], loop.index, count, "0")


def _write_checks(stage: StagePrinter, uses: dict[str, Use], offset: str, count: str) -> str:
    """Write a loop over the vectors of a block; return whether all indices are in bounds, and none is negative."""
    f = stage.f
    conditions = [
        condition
        for update in stage.updates
        for e, axis in zip(update.indices, update.map.axes, strict=True)
        for condition in _conditions(e, axis.size)
    ]
    value = conditions[0]
    for other in conditions[1:]:
        value = apply("and", value, other)
    reduction, outer = Reduce(ALL_TRUE, value, "in_bounds"), (f.shared, f.is_split)
    with f.width(f.lanes):  # a stage sets its own
        checks = stage.with_body(Stage(stage.stage.dims, (reduction,)))
        reducer = checks.make_reducer(reduction)
        inside = {name: uses[name] for name in checks.uses}
        (state,) = checks.write_vectors(inside, [reducer], [reducer.initial(f)], offset, count, "0")
        result = reducer.collapse(f, state)
    f.shared, f.is_split = outer
    return result


def _conditions(index: Expr, size: int) -> list[Expr]:
    """Return the conditions that an index is in bounds and not negative, in the dtype of the integer that it is."""
    while index.op == "cast" and _keeps_values(index.args[0].dtype, index.dtype):
        index = index.args[0]
    dtype = index.dtype
    result = [apply("ge", index, 0)] if dtype.kind == "i" else []
    bits = 8 * dtype.itemsize - (dtype.kind == "i")
    if size < 2**bits:
        result.append(apply("lt", index, size))
    return result or [apply("eq", index, index)]


def _keeps_values(source: DType, target: DType) -> bool:
    """Return whether a cast from one dtype of integers to another never changes a number."""
    widens = source.is_integer and target.is_integer and source.itemsize < target.itemsize
    return widens and (source.kind == "u" or target.kind == "i")
