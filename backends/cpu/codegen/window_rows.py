"""Folds of one short window at a traced position, in scalars: LLVM vectorizes the loop around them over windows.

A step of a loop that folds ``x[i : i + 8]``, or the block of 5 x 5 elements at ``(i, j)``, could load rows of it as
vectors, and join the halves of these. The elements are loaded and combined one by one instead, in the same order, which
takes about as many instructions; and in a loop over neighbouring positions an instruction computes several windows.

Short rows that are updated element by element are read so, too: a vector would wait for the last of these stores.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....lowering.fusion.loop_ir import IndexedAxis
from ....named_tuple import NamedTuple
from ....operators.scalar_ir.cost import cost_without_reads
from ....operators.scalar_ir.expr import Expr
from ....registry import dtypes as dt
from .folds.order import block_length, block_reducer, fold_row, is_ordered
from .intervals import add_intervals, find_interval
from .nodes import emit_exprs
from .text import REGISTER
from .vector_stage import load_leaf

if TYPE_CHECKING:
    from .stage_printer import StagePrinter

MOST_ELEMENTS = 128
MOST_UPDATED = 16  # elements that are loaded one by one where a vector would wait for the last of them
MOST_INSTRUCTIONS = 1024  # of all elements: LLVM takes long for more, and spills registers


class Position(NamedTuple):
    """An affine position: the sum of ``terms``, and of the position along each dimension of the window times a step.

    Attributes:
        terms: expressions that are the same at all points of the window, each with a factor.
        steps: the step along each dimension of the stage.
    """

    terms: tuple[tuple[Expr, int], ...]
    steps: tuple[int, ...]

    def add(self, other: Position) -> Position:
        """Return the sum with another position."""
        steps = tuple(one + two for one, two in zip(self.steps, other.steps, strict=True))
        return Position((*self.terms, *other.terms), steps)

    def scale(self, factor: int) -> Position:
        """Return the product with a factor."""
        terms = tuple((e, one * factor) for e, one in self.terms)
        return Position(terms, tuple(one * factor for one in self.steps))

    def span(self, shape: Sequence[int]) -> tuple[int, int]:
        """Return the smallest and the largest distance of a position from that of the first point."""
        ends = [step * (size - 1) for step, size in zip(self.steps, shape, strict=True)]
        return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)

    def is_in_bounds(self, shape: Sequence[int], size: int) -> bool:
        """Return whether all positions are those of an axis of ``size`` elements, whatever the operands are."""
        if any(factor != 1 for _, factor in self.terms):
            return False
        low, high = add_intervals(find_interval(e) for e, _ in self.terms)
        before, after = self.span(shape)
        return low + before >= 0 and high + after < size


def find_window(stage: StagePrinter) -> Window | None:
    """Return the window that a stage folds; None if it does something else, or if the window is long."""
    if stage.kernel.outer or not 1 < stage.count <= MOST_ELEMENTS or stage.updates:
        return None
    if not stage.reduces or len(stage.reduces) < len(stage.stage.body):
        return None
    if stage.count * sum(cost_without_reads(r.value) for r in stage.reduces) > MOST_INSTRUCTIONS:
        return None
    window = Window(stage)
    return window if window.find_positions() and (window.positions or window.reads_updated) else None


class Window:
    """The elements of a window, one after the other.

    Attributes:
        items: the reducer of each fold.
        varying: the expressions that are not the same at all points.
        positions: for each read at positions that vary, the position along each indexed axis.
        reads_updated: whether the elements are few and were just written one by one.
        scattered: the reads at positions that are data, each of which is checked; only where few are read.
    """

    def __init__(self, stage: StagePrinter):
        self.stage, self.f = stage, stage.f
        self.items = [block_reducer(r.fold, r.value.dtype) for r in stage.reduces]
        self.varying: set[Expr] = set()
        self.positions: dict[Expr, tuple[Position, ...]] = {}
        self.scattered: set[Expr] = set()
        for e in stage.exprs:
            if self._varies(e):
                self.varying.add(e)
        self.reads_updated = self._reads_updated()

    def _varies(self, e: Expr) -> bool:
        name = {"load": e.payload, "gather": getattr(e.payload, "buffer", "")}.get(e.op)
        if e.op == "index" or any(a in self.varying for a in e.args):
            return True
        return name is not None and any(self.stage.uses[name].strides)

    def _reads_updated(self) -> bool:
        buffers = [
            self.stage.uses[e.payload if e.op == "load" else e.payload.buffer].buffer
            for e in self.varying
            if e.op in ("load", "gather")
        ]
        return self.stage.count <= MOST_UPDATED and any(buffer.is_updated for buffer in buffers)

    def find_positions(self) -> bool:
        """Find the positions of reads at indices; return whether all may be affine, in bounds, and folds short."""
        stage = self.stage
        orders = [r.value.dtype for r in stage.reduces if is_ordered(r.fold, r.value.dtype)]
        if any(stage.count > block_length(dtype) for dtype in orders):
            return False
        for e in stage.exprs:
            if e.op != "gather" or e not in self.varying:
                continue
            known = tuple(one for index in e.args if (one := self._find_position(index)) is not None)
            if len(known) < len(e.args):
                if not self.reads_updated:
                    return False
                self.scattered.add(e)
                continue
            for one, axis in zip(known, e.payload.axes, strict=True):
                if self._last_first(one, axis) < 0:
                    return False
            self.positions[e] = known
        return True

    def _last_first(self, position: Position, axis: IndexedAxis) -> int:
        """Return the largest position along an axis that the lowest element of the window may have."""
        low, high = position.span(self.stage.shape)
        return int(axis.size) - 1 - (high - low)

    def _find_position(self, e: Expr) -> Position | None:
        """Return the affine function that an index is; None if it is not one."""
        dims = self.stage.dims
        if e not in self.varying:
            return Position(((e, 1),), (0,) * len(dims))
        if e.op == "index":
            return Position((), tuple(int(d == e.payload) for d in dims))
        if e.dtype is not dt.int64 or e.op not in ("add", "sub", "mul"):
            return None
        if e.op == "mul":
            factor = next((a for a in e.args if a.op == "const"), None)
            other = self._find_position(e.args[1] if e.args[0] is factor else e.args[0])
            return None if factor is None or other is None else other.scale(int(factor.payload))
        one, two = map(self._find_position, e.args)
        if one is None or two is None:
            return None
        return one.add(two.scale(-1) if e.op == "sub" else two)

    # -- code ------------------------------------------------------------------------------------------------------
    def write(self) -> list[str]:
        """Write the folds; return the combined value of each, a scalar.

        If positions may be out of bounds or negative, they are checked one by one in code with vectors.
        """
        f, stage = self.f, self.stage
        with f.width(1):
            fixed = self._write_invariants()
            firsts = {e: self._write_firsts(e, fixed) for e in self.positions}
            condition = self._write_condition(firsts)
            if not condition:
                return self._write_folds(fixed, firsts)
        inside, elements, end = (f.fresh(name) for name in ("window", "elements", "end"))
        f.branch(condition, inside, elements)
        f.label(inside)
        with f.width(1):
            one = self._write_folds(fixed, firsts)
        one_block = f.block
        f.jump(end)
        f.label(elements)
        stage.checks_each_position = True
        two = stage.write_values([stage.make_reducer(r) for r in stage.reduces])
        two_block = f.block
        f.jump(end)
        f.label(end)
        return [
            f.op(f"phi {REGISTER[x.state[x.picks]]} [ {a}, %{one_block} ], [ {b}, %{two_block} ]")
            for x, a, b in zip(self.items, one, two, strict=True)
        ]

    def _write_invariants(self) -> dict[Expr, str]:
        """Write what is the same at all points; return the registers."""
        f, stage, fixed = self.f, self.stage, dict[Expr, str]()
        for e in stage.exprs:
            if e in self.varying:
                continue
            if e.op in ("load", "gather"):
                use = stage.uses[e.payload if e.op == "load" else e.payload.buffer]
                if e.op == "gather":
                    use = stage.checks.locate(use, e.payload, [fixed[a] for a in e.args])
                fixed[e] = f.load_splat(e.dtype, use.base)
            elif e.op in ("row", "scalar"):
                fixed[e] = load_leaf(stage, e)
            else:
                emit_exprs(f, [e], fixed)
        return fixed

    def _write_firsts(self, e: Expr, fixed: dict[Expr, str]) -> list[str]:
        """Return the position of the first point along each axis that a gather indexes, i64."""
        f, result = self.f, []
        for position in self.positions[e]:
            total = "0"
            for term, factor in position.terms:
                value = f.op(f"extractelement <1 x i64> {fixed[term]}, i64 0")
                value = value if factor == 1 else f.op(f"mul i64 {value}, {factor}")
                total = value if total == "0" else f.op(f"add i64 {total}, {value}")
            result.append(total)
        return result

    def _write_condition(self, firsts: dict[Expr, list[str]]) -> str:
        """Return the condition that no position is out of bounds or negative; empty if that is known."""
        f, result, tested = self.f, "", set[tuple[Position, int]]()
        for e, at in firsts.items():
            for first, position, axis in zip(at, self.positions[e], e.payload.axes, strict=True):
                known = position.is_in_bounds(self.stage.shape, axis.size)
                if known or (position, axis.size) in tested:
                    continue
                tested.add((position, axis.size))
                low = position.span(self.stage.shape)[0]
                lowest = f.op(f"add i64 {first}, {low}") if low else first
                holds = f.op(f"icmp ule i64 {lowest}, {self._last_first(position, axis)}")
                result = f.op(f"and i1 {result}, {holds}") if result else holds
        return result

    def _write_folds(self, fixed: dict[Expr, str], firsts: dict[Expr, list[str]]) -> list[str]:
        """Write the elements, and fold them."""
        f, stage, result = self.f, self.stage, []
        bases = {e: self._write_base(e, at) for e, at in firsts.items()}
        values: list[list[str]] = [[] for _ in self.items]
        for point in itertools.product(*map(range, stage.shape)):
            known = dict(fixed)
            for e in stage.exprs:
                if e.op == "index":
                    known[e] = f.splat(point[stage.dims.index(e.payload)], dt.int64)
                elif e.op in ("load", "gather") and e in self.varying:
                    if e in self.scattered:
                        bases[e] = self._write_scattered_base(e, known)
                    known[e] = self._load(e, bases, point)
            emit_exprs(f, [r.value for r in stage.reduces], known)
            for r, elements in zip(stage.reduces, values, strict=True):
                elements.append(known[r.value])
        for x, elements in zip(self.items, values, strict=True):
            type_ = REGISTER[x.state[x.picks]]
            result.append(
                f.op(f"extractelement <1 x {type_}> {fold_row(f, x, elements, self.reads_updated)}, i64 0")
            )
        return result

    def _write_base(self, e: Expr, firsts: Sequence[str]) -> str:
        """Return the address of the element that a gather reads at the first point."""
        f, base = self.f, self.stage.uses[e.payload.buffer].base
        for first, axis in zip(firsts, e.payload.axes, strict=True):
            base = f.address(base, f.op(f"mul i64 {first}, {axis.stride * e.dtype.itemsize}"))
        return base

    def _write_scattered_base(self, e: Expr, known: dict[Expr, str]) -> str:
        """Return the address that a gather at checked positions reads where all dimensions of the window begin."""
        stage = self.stage
        emit_exprs(self.f, list(e.args), known)
        indices = [known[index] for index in e.args]
        return stage.checks.locate(stage.uses[e.payload.buffer], e.payload, indices).base

    def _load(self, e: Expr, bases: dict[Expr, str], point: Sequence[int]) -> str:
        """Load an element at a point."""
        use = self.stage.uses[e.payload if e.op == "load" else e.payload.buffer]
        strides = list(use.strides)
        for position, axis in zip(self.positions.get(e, ()), getattr(e.payload, "axes", ())):
            strides = [s + step * axis.stride for s, step in zip(strides, position.steps, strict=True)]
        offset = sum(s * at for s, at in zip(strides, point, strict=True)) * use.buffer.dtype.itemsize
        base = bases.get(e, use.base)
        # LLVM joins loads of integers that are compared to vectors, but not volatile ones
        kind = "volatile " if self.reads_updated and e.dtype.kind in "iu" else ""
        return self.f.load_vector(e.dtype, self.f.address(base, str(offset)) if offset else base, kind)
