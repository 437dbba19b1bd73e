"""Folds of one short window at a traced position, in scalars: LLVM vectorizes the loop around them over windows.

A step of a loop that folds ``x[i : i + 8]`` could load it as a vector, and join the halves of that. The elements are
loaded and combined one by one instead, in the same order, which takes about as many instructions; and in a loop over
neighbouring positions an instruction computes several windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....operators.scalar_ir.expr import Expr
from .folds.order import BufferedRow, fold_row
from .folds.reducers import FloatSum, Reducer
from .text import REGISTER
from .vector_stage import VectorStage, consecutive_accesses
from .vectors import Access, Body, VectorLoop

if TYPE_CHECKING:
    from .fused import StagePrinter

MOST_ELEMENTS = 64


def is_window(stage: StagePrinter, items: Sequence[Reducer]) -> bool:
    """Return whether a stage only folds one short window, in a single block."""
    if stage.kernel.outer or len(stage.shape) != 1 or not 1 < stage.shape[0] <= MOST_ELEMENTS:
        return False
    if len(items) < len(stage.stage.body) or any(isinstance(x, (BufferedRow, FloatSum)) for x in items):
        return False
    return bool(consecutive_accesses(stage))


def write_window(stage: StagePrinter, items: list[Reducer]) -> list[str]:
    """Write the folds of a window; return the combined value of each, a scalar.

    If positions may be out of bounds or negative, they are checked one by one in code with vectors.
    """
    f = stage.f
    with f.width(1):
        window = _Window(stage, items)
        fixed, read = window.hoist_invariants()
        firsts = window.first_positions(fixed)
        condition = window.in_bounds(firsts)
    if not condition:
        with f.width(1):
            return window.write_consecutive(fixed, read, firsts)
    inside, elements, end = (f.fresh(name) for name in ("window", "elements", "end"))
    f.branch(condition, inside, elements)
    f.label(inside)
    with f.width(1):
        one = window.write_consecutive(fixed, read, firsts)
    one_block = f.block
    f.jump(end)
    f.label(elements)
    stage.checks_each_position = True
    two, two_block = stage.write_values(items), f.block
    f.jump(end)
    f.label(end)
    return [
        f.op(f"phi {REGISTER[x.state[x.picks]]} [ {a}, %{one_block} ], [ {b}, %{two_block} ]")
        for x, a, b in zip(items, one, two, strict=True)
    ]


class _Window(VectorStage):
    """The elements of a window, one after the other."""

    def __init__(self, stage: StagePrinter, items: Sequence[Reducer]):
        super().__init__(stage, stage.uses, "0", str(stage.shape[0]), [], self._collect)
        self.items = items
        self.values: list[list[str]] = [[] for _ in items]

    def _collect(self, loop: VectorLoop, carried: list[str], known: dict[Expr, str]) -> list[str]:
        """Note the values of an element."""
        for reduction, values in zip(self.stage.reduces, self.values, strict=True):
            values.append(known[reduction.value])
        return []

    def run(self, tail: int, used: Sequence[Access], body: Body) -> list[str]:
        """Write the body for each element, and fold the values."""
        f = self.f
        for number in range(self.stage.shape[0]):
            loop = VectorLoop(f, str(number), self.count, 0)
            for access in used:
                access.stage(loop.index, loop)
            body(loop, [])
        result = []
        for x, values in zip(self.items, self.values, strict=True):
            vector, type_ = fold_row(f, x, values), REGISTER[x.state[x.picks]]
            result.append(f.op(f"extractelement <1 x {type_}> {vector}, i64 0"))
        return result
