"""Inline the values of updates: the kernel that writes elements of a buffer computes them, too.

An update at one position (a row, a column, a window of a carry) often writes what was computed from elements of its
buffer at another position, as in ``a.at[:, i].set(f(a[:, i - 1]))``. A kernel of its own would store the value in an
intermediate. The kernel of the update may compute it in place, although it does not know whether the two positions
differ: along the other axes both kernels are at the same point.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...operators.scalar_ir.expr import Expr, order
from ...tracer.graph import Value
from ..fusion.loop_ir import FusedKernel, Store, Update
from ..point_accesses import reads_what_it_writes
from ..step_tables import StepTables
from ..thunks import KernelThunk, Thunk, reads_and_writes
from .inline_producers import Producer, merge_producer

if TYPE_CHECKING:
    from ..lower import Lowered


def inline_update_values(lowered: Lowered) -> None:
    """Let the kernels of updates at one position compute the values that only they read."""
    lowered.steps = _Steps(lowered).run()


class _Steps(StepTables):
    """The steps of a graph: a step that has been inlined leaves None behind."""

    def run(self) -> list[Thunk]:
        """Inline each value that can be inlined."""
        for position, step in enumerate(self.steps):
            if isinstance(step, KernelThunk) and _updates_one_position(step):
                for value in step.params:
                    self._inline(value, position)
        return [step for step in self.steps if step is not None]

    def _inline(self, value: Value, position: int) -> None:
        """Inline a value into the update at a position, if only that reads it and stays in place."""
        writers = self.writers[value]
        if value in self.kept or self.readers[value] != [position] or len(writers) != 1:
            return
        (start,) = writers
        producer, update = _find_producer(self.steps[start], value), self.steps[position]
        if producer is None or not isinstance(update, KernelThunk) or update.updated is None:
            return
        reads, _ = reads_and_writes(producer.step)
        if any(start < n < position for read in reads for n in self.writers[read]):
            return
        if any(n < position for read in reads for n in self.updaters[read]):
            return  # a read of the old value may be moved before its update
        merged, source = merge_producer(update, producer), update.updated.source
        if merged is None or math.prod((*merged.kernel.outer, *merged.kernel.inner)) != value.spec.size:
            return
        out, device = update.updated.out, self.lowered.device
        if source in merged.params and not reads_what_it_writes(merged, source, out, device):
            return
        self.steps[start], self.steps[position] = None, merged
        for read in reads:
            self.readers[read] = sorted({*self.readers[read], position} - {start})


def _find_producer(step: Thunk | None, value: Value) -> Producer | None:
    """The kernel that computes a value and nothing else, and reads at fixed positions only."""
    if not isinstance(step, KernelThunk) or step.updated is not None or step.temporaries:
        return None
    if len(step.kernel.stages) != 1 or len(step.kernel.stages[0].body) != 1:
        return None
    statement = step.kernel.stages[0].body[0]
    if not isinstance(statement, Store):
        return None
    target = next(b for b in step.kernel.buffers if b.name == statement.buffer)
    is_value = target.param is not None and step.params[target.param] is value
    if not is_value or statement.value.dtype is not target.dtype:
        return None
    gathers = [e for e in order(statement.value) if e.op == "gather"]
    if not all(_is_fixed(index, step.kernel) for e in gathers for index in e.args):
        return None
    return Producer(step, value, target, statement.value)


def _updates_one_position(step: KernelThunk) -> bool:
    """Whether a kernel is an update whose indices are the same at all points: it fails before it has written."""
    statements = [statement for stage in step.kernel.stages for statement in stage.body]
    return len(statements) == 1 and all(
        isinstance(one, Update) and all(_is_fixed(index, step.kernel) for index in one.indices)
        for one in statements
    )


def _is_fixed(expr: Expr, kernel: FusedKernel) -> bool:
    """Whether an expression has the same value at all points of a kernel."""
    fixed = {b.name for b in kernel.buffers if not any(b.strides)}
    return all(e.op != "index" and (e.op != "load" or e.payload in fixed) for e in order(expr))
