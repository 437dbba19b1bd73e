"""Calls of a body from the code of its loop or branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...lowering.loop_bodies import Body
from ...registry.dtypes import bool_
from ...tracer.graph import Value
from .object_table import EmbeddedBody
from .step_cost import estimate_body

if TYPE_CHECKING:
    from .loop_writer import LoopWriter

MAX_INLINED_STEPS = 24  # of a body that becomes part of the code around its loop


class BodyCall:
    """Calls of one body from a loop.

    Attributes:
        body: the body.
        arrays, numbers: indices of the array inputs and of the scalar inputs.
        time: the estimated time of a call, in nanoseconds, until a loop in it polls for the first time.
    """

    def __init__(self, loop: LoopWriter, body: Body, name: str):
        self.loop, self.body, self.name = loop, body, name
        self.storages: list[Value] = [] if body.lowered is None else body.lowered.storages
        self.arrays = [i for i, value in enumerate(body.graph.inputs) if value.weak is None]
        self.time = 0.0
        self.numbers = [i for i, value in enumerate(body.graph.inputs) if value.weak is not None]

    def prepare(self, fixed: dict[int, str]) -> None:
        """Write everything that all calls share: the tables and the inputs that do not change."""
        loop, name = self.loop, self.name
        if self.body.lowered is None:
            return
        self.function, index = self._embed()
        loop.emit(f"%{name}_ca = getelementptr i8, ptr %tables, i64 {8 * index}")
        loop.emit(f"%{name}_c = load ptr, ptr %{name}_ca")
        words = len(self.arrays) + len(self.storages) + 3
        loop.reserve_slots(f"%{name}_t", words)
        loop.reserve_slots(f"%{name}_n", len(self.numbers) + 1)
        for slot, index in enumerate(self.numbers):
            loop.emit(f"%{name}_v{slot} = load i64, ptr {fixed[index]}")
            target = loop.offset_pointer(f"%{name}_n", 8 * slot)
            loop.emit(f"store i64 %{name}_v{slot}, ptr {target}")
        for slot, index in enumerate(self.arrays):
            if index in fixed:
                self._set(slot, fixed[index])
        if loop.step.workspace is not None:
            self._set(words - 3, loop.writer.pointer(loop.step.workspace))
        self._set(words - 2, f"%{name}_c")
        if loop.writer.has_state:
            self._set(words - 1, "%state")

    def _embed(self) -> tuple[str, int]:
        """Write the function of the body; return its name, and the index of its table of objects."""
        outer, lowered, ranges = self.loop.writer, self.body.lowered, self.loop.ranges.of_body(self.body)
        name = f"{outer.prefix}b{len(outer.callbacks)}_"
        writer = type(outer)(lowered, module=outer.module, prefix=name, ranges=ranges)
        is_small = len(lowered.steps) <= MAX_INLINED_STEPS
        function = writer.write_function("internal ", f"{name}body", " alwaysinline" if is_small else "")
        outer.inlined_steps += writer.inlined_steps + (len(lowered.steps) if is_small else 0)
        outer.functions += [*writer.functions, function]
        outer.extra += writer.extra
        outer.may_raise |= writer.may_raise
        outer.products += writer.products
        self.time = estimate_body(lowered, writer.loop_times)
        return f"{name}body", outer.table_index(EmbeddedBody(lowered, writer.callbacks))

    def _set(self, slot: int, pointer: str) -> None:
        """Store a pointer in a slot of the body's table of buffers."""
        self.loop.emit(f"store ptr {pointer}, ptr {self.loop.offset_pointer(f'%{self.name}_t', 8 * slot)}")

    def call(self, dynamic: dict[int, str], targets: Sequence[str]) -> None:
        """Call the body.

        Args:
            dynamic: pointers to the inputs that change from call to call, by index.
            targets: the pointer to each storage of the body.
        """
        if self.body.lowered is None:
            return
        loop, name = self.loop, self.name
        for slot, index in enumerate(self.arrays):
            if index in dynamic:
                self._set(slot, dynamic[index])
        for slot, pointer in enumerate(targets):
            self._set(len(self.arrays) + slot, pointer)
        failed = loop.new_register()
        loop.emit(f"{failed} = call i32 @{self.function}(ptr %{name}_t, ptr %{name}_n)")
        loop.return_if_failed(failed)

    def source(self, position: int, inputs: dict[int, str], targets: Sequence[str]) -> str:
        """Return the pointer to result ``index`` after a call."""
        kind, index = self.body.sources[position]
        if kind == "input":
            return inputs[index]
        if kind == "computed":
            return targets[index]
        pointer = self.loop.new_register()
        self.loop.emit(f"{pointer} = load ptr, ptr {self.loop.offset_pointer(f'%{self.name}_c', 8 * index)}")
        return pointer


def emit_branch_index(loop: LoopWriter) -> str:
    """Return the index of the branch to take.

    Negative values become 0; ``switch`` takes the last branch for larger values.
    """
    value = loop.node.args[1]
    dtype = bool_ if value.weak is bool else value.spec.dtype
    kind = f"i{8 * dtype.itemsize}"
    raw, wide, low, result = (loop.new_register() for _ in range(4))
    loop.emit(f"{raw} = load {kind}, ptr {loop.operands[0]}")
    if kind == "i64":
        loop.emit(f"{wide} = add i64 {raw}, 0")
    else:
        loop.emit(f"{wide} = {'sext' if dtype.kind == 'i' else 'zext'} {kind} {raw} to i64")
    loop.emit(f"{low} = icmp slt i64 {wide}, 0")
    loop.emit(f"{result} = select i1 {low}, i64 0, i64 {wide}")
    return result
