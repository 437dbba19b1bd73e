"""The intervals of integers in nested loops, as far as they are known when the loops are compiled.

A counter of a loop from a constant to a constant has an interval, and so have the integers that the body computes from
it: the first value, the number of iterations and the captured numbers of an inner loop. Where positions are in bounds
for all integers of these intervals, the inner loop tests no counter; where it is short, it never polls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...lowering.fusion.loop_ir import Store, target_of
from ...lowering.loop_bodies import Body, find_step
from ...lowering.thunks import KernelThunk, find_constant_number
from ...tracer.graph import Value
from .codegen.intervals import Interval, find_interval, integers_of
from .loop_counters import MOST_ITERATIONS

if TYPE_CHECKING:
    from ...lowering.lower import Lowered
    from .loop_counters import Bound
    from .loop_writer import LoopWriter


class ScalarRanges:
    """The intervals of the scalar integers of one graph, as the steps store them one after the other.

    Args:
        lowered: the lowered graph.
        inputs: the intervals of its parameters, by number.
    """

    def __init__(self, lowered: Lowered, inputs: Mapping[int, Interval]):
        self.lowered = lowered
        self.known = {lowered.graph.parameters[number]: interval for number, interval in inputs.items()}
        self._count = 0

    def read_steps(self, count: int) -> None:
        """Read the first steps, as far as they have not been read."""
        for step in self.lowered.steps[self._count : count]:
            if isinstance(step, KernelThunk):
                self._read_kernel(step)
            else:
                for value in step.node.outputs:
                    self.known.pop(self.lowered.aliases.owner(value), None)
        self._count = count

    def find(self, value: Value) -> Interval | None:
        """Return the interval of a value, if it is known."""
        constant = find_constant_number(value, self.lowered.resolution, self.lowered.folded)
        if type(constant) is int:
            number = Interval(constant, constant)
            return number if integers_of(value.spec.dtype).contains(number) else None
        owner = self._find_owner(value)
        return None if owner is None else self.known.get(owner)

    def _find_owner(self, value: Value) -> Value | None:
        """Return the scalar integer whose memory a value is; None for other values, and for elements of arrays."""
        owner = self.lowered.aliases.owner(value)
        is_same = _is_integer(owner) and owner.spec == value.spec
        return owner if is_same else None

    def _read_kernel(self, step: KernelThunk) -> None:
        """Set the intervals of the scalars that a kernel stores. All values of a stage are computed first."""
        values = {b.name: step.params[b.param] for b in step.kernel.buffers if b.param is not None}
        owners = {name: one for name, value in values.items() if (one := self._find_owner(value)) is not None}
        for stage in step.kernel.stages if owners else ():
            loads = {name: self.known[value] for name, value in owners.items() if value in self.known}
            written = {target_of(s): s for s in stage.body if target_of(s) in owners}
            intervals = {
                name: find_interval(s.value, loads) for name, s in written.items() if isinstance(s, Store)
            }
            for name in written:
                self.known.pop(owners[name], None)
            for name, interval in intervals.items():
                self.known[owners[name]] = interval


def _is_integer(value: Value) -> bool:
    """Return whether a value is an array of one integer, of rank 0."""
    return not value.spec.shape and value.weak is None and value.spec.dtype.is_integer


class LoopRanges:
    """The intervals of the inputs of a loop's body, or of the branches of a ``switch``.

    Args:
        loop: the loop.
        number: the number of its step in the graph.

    Attributes:
        inputs: by the number of the input.
        most_iterations: the largest number of iterations; None if it is not known.
    """

    def __init__(self, loop: LoopWriter, number: int):
        self.loop, self.body = loop, loop.step.bodies[-1]
        writer = loop.writer
        if writer.ranges is None:
            writer.ranges = ScalarRanges(writer.lowered, {})
        self.known: ScalarRanges = writer.ranges
        self.known.read_steps(number)
        self.inputs: dict[int, Interval] = {}
        self.most_iterations: int | None = None

    def read_branches(self) -> None:
        """Set the intervals of the inputs of branches."""
        for number in range(len(self.body.graph.inputs)):
            self._add(number, self._find_operand(number + 1))

    def read_loop(self, carried: int, bound: Bound | None = None) -> None:
        """Set the intervals of what a loop counts, and of numbers that it does not change.

        Args:
            carried: the number of carries.
            bound: the condition of a ``while_loop``, if it is known.
        """
        graph = self.body.graph
        for number, value in enumerate(graph.inputs):
            is_fixed = number >= carried or graph.outputs[number] is value
            if is_fixed and number not in self.loop.step.counted:
                self._add(number, self._find_operand(number))
        if bound is not None:
            self._count(bound)
        else:
            self.most_iterations = self.loop.node.kwargs.get("length")
        self._add_counters(carried)

    def of_body(self, body: Body) -> ScalarRanges | None:
        """Return the ranges with which the steps of a body begin; None for a condition: it sees one integer more."""
        is_condition = self.loop.node.op.schema.name == "while_loop" and body is not self.body
        return None if is_condition else ScalarRanges(body.lowered, self.inputs)

    def _add(self, number: int, interval: Interval | None) -> None:
        if interval is not None and _is_integer(self.body.graph.inputs[number]):
            self.inputs[number] = interval

    def _find_operand(self, number: int) -> Interval | None:
        """Return the interval of an operand of the loop."""
        return self.known.find(self.loop.step.operands[number][0])

    def _count(self, bound: Bound) -> None:
        """Add the interval of the counter that ends the loop."""
        first = self._find_operand(bound.counter)
        stop = self.inputs.get(bound.number) if bound.is_input else Interval(bound.number, bound.number)
        if first is None or stop is None:
            return
        low, high = (first.low, stop.high - 1) if bound.step > 0 else (stop.low + 1, first.high)
        most = max(-(-(high - low + 1) // abs(bound.step)), 0)
        self.most_iterations = most if most < MOST_ITERATIONS else None
        if most:
            self.inputs[bound.counter] = Interval(low, high)

    def _add_counters(self, carried: int) -> None:
        """Add the intervals of the counters of a loop with a known number of iterations."""
        if not self.most_iterations:
            return
        numbers: dict[int, tuple[Interval, int]] = {}
        for number in range(carried):
            step = find_step(self.body.graph, number)
            first = self._find_operand(number) if step is not None and number not in self.inputs else None
            if step is not None and first is not None:
                numbers[number] = first, step
        for number, items in self.loop.step.counted.items():
            start = int(items.start)
            numbers[number] = Interval(start, start), int(items.step)
        for number, (first, step) in numbers.items():
            distance = (self.most_iterations - 1) * step
            interval = Interval(first.low + min(distance, 0), first.high + max(distance, 0))
            if integers_of(self.body.graph.inputs[number].spec.dtype).contains(interval):
                self.inputs[number] = interval
