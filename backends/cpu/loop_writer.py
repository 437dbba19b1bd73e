"""Loops and branches in emitted code: calls of compiled bodies on moved pointers; no Python runs per iteration.

A carry is a pointer. Its next value follows from where the body writes its result: into the next item of a stacked
result that is the same value, or into one of two buffers in turn. The body writes results in place; a result that is
one of its inputs is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...lowering.buffer_assignment import nbytes_of
from ...lowering.loop_bodies import Body, LoopThunk
from ...tracer.graph import Value
from . import loop_counters, scalar_ranges
from .body_calls import BodyCall, emit_branch_index
from .codegen.text import PARTS, REGISTER
from .loop_frame import Iteration, LoopFrame
from .target import IS_X86, MXCSR_FLUSH

WORD = 8  # bytes; LLVM makes a copy of at most so many one of an integer, and keeps numbers in its registers then


def _has_callback(body: Body) -> bool:
    """Return whether a body may run Python code, which must see denormal numbers as usual."""
    steps = () if body.lowered is None else body.lowered.steps
    return any(
        any(map(_has_callback, step.bodies))
        if isinstance(step, LoopThunk)
        else getattr(step, "kind", "") == "callback"
        for step in steps
    )


class LoopWriter:
    """Writes one loop or branch into ``main``."""

    def __init__(self, writer: Any, step: LoopThunk, number: int):
        self.writer, self.step, self.number, self.name = writer, step, number, f"l{number}"
        self.node = step.node
        self._count = 0
        self.operands: list[str] = []
        self.cells: dict[int, str] = {}
        self.pools: dict[int, str] = {}  # the buffer that is free in this iteration, for carries that move on
        self.numbers: dict[int, loop_counters.Counter] = {}  # that are captured, and positions depend on
        self.fixed: set[int] = set()  # carries whose memory stays the same
        self.length: int | str | None = None  # the number of iterations, if it is known when the loop begins
        self.ranges = scalar_ranges.LoopRanges(self, number)
        flush = self.node.kwargs.get("flush", False)
        self.flushes = flush and IS_X86 and not any(map(_has_callback, step.bodies))

    # -- text ------------------------------------------------------------------------------------------------------
    def emit(self, text: str) -> None:
        """Append an instruction."""
        self.writer.lines.append(f"  {text}")

    def allocate_scratch(self, register: str, nbytes: int) -> None:
        """Reserve scratch memory for the duration of the loop."""
        self.writer.lines += self.writer.allocate_scratch(register, nbytes)

    def reserve_slots(self, register: str, count: int) -> None:
        """Reserve words for the duration of the loop: on the stack if they are few."""
        if count > self.writer.stack_words or not self.writer.allocate_cell(register, 8 * count):
            self.allocate_scratch(register, 8 * count)

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.writer.lines.append(f"{self.name}_{name}:")

    def jump(self, name: str) -> None:
        """Branch to another block."""
        self.emit(f"br label %{self.name}_{name}")

    def new_register(self) -> str:
        """Return the name of a new register."""
        self._count += 1
        return f"%{self.name}_r{self._count}"

    def offset_pointer(self, pointer: str, offset: int | str) -> str:
        """Return a pointer plus a number of bytes."""
        if offset == 0:
            return pointer
        result = self.new_register()
        self.emit(f"{result} = getelementptr i8, ptr {pointer}, i64 {offset}")
        return result

    def copy(self, target: str, source: str, value: Value) -> None:
        """Copy the bytes of a value, unless source and target are the same register."""
        dtype, count = value.spec.dtype, nbytes_of(value)
        if target == source or not count:
            return
        if dtype.kind in "fc" and count <= WORD:
            part = PARTS.get(dtype, dtype)
            for offset in range(0, count, part.itemsize):
                self._copy_number(REGISTER[part], target, source, offset)
            return
        self.writer.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
        self.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)")

    def _copy_number(self, type_: str, target: str, source: str, offset: int) -> None:
        number, source = self.new_register(), self.offset_pointer(source, offset)
        self.emit(f"{number} = load {type_}, ptr {source}, align 1")
        self.emit(f"store {type_} {number}, ptr {self.offset_pointer(target, offset)}, align 1")

    def return_if_failed(self, failed: str) -> None:
        """Return from ``main`` with 1 if a body has failed; its exception is set."""
        self._count += 1
        end, on = f"{self.name}_failed{self._count}", f"{self.name}_on{self._count}"
        flag = self.new_register()
        self.emit(f"{flag} = icmp ne i32 {failed}, 0")
        self.emit(f"br i1 {flag}, label %{end}, label %{on}")
        self.writer.lines.append(f"{end}:")
        self.restore_mode()
        self.writer.lines += ["  ret i32 1", f"{on}:"]

    # -- steps -----------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Write the loop or branch."""
        self.operands = [
            "null"
            if number in self.step.counted
            else self.writer.move_pointer(root, layout.offset * root.spec.dtype.itemsize)
            for number, (root, layout) in enumerate(self.step.operands)
        ]
        for value in (*self.node.outputs, *self.step.temporaries):
            self.writer.pointer(value)
        forms = {"scan": self._scan, "while_loop": self._while, "switch": self._switch}
        self._set_flush_mode()
        forms[self.node.op.schema.name]()
        self.restore_mode()

    def _set_flush_mode(self) -> None:
        """Flush denormal numbers to zero from here on."""
        if not self.flushes:
            return
        for name in ("st", "ld"):
            self.writer.module.declare(f"llvm.x86.sse.{name}mxcsr", "void", "ptr")
        self.allocate_scratch(f"%{self.name}_mode", 4)
        self.allocate_scratch(f"%{self.name}_flush", 4)
        self.emit(f"call void @llvm.x86.sse.stmxcsr(ptr %{self.name}_mode)")
        old, new = self.new_register(), self.new_register()
        self.emit(f"{old} = load i32, ptr %{self.name}_mode")
        self.emit(f"{new} = or i32 {old}, {MXCSR_FLUSH}")
        self.emit(f"store i32 {new}, ptr %{self.name}_flush")
        self.resume_flush()

    def resume_flush(self) -> None:
        """Flush denormal numbers to zero again, after `restore_mode`."""
        if self.flushes:
            self.emit(f"call void @llvm.x86.sse.ldmxcsr(ptr %{self.name}_flush)")

    def restore_mode(self) -> None:
        """Restore the processor's previous treatment of denormal numbers."""
        if self.flushes:
            self.emit(f"call void @llvm.x86.sse.ldmxcsr(ptr %{self.name}_mode)")

    def _spare_buffer(self, index: int, current: str) -> str:
        """Return a buffer of a carry that holds no value that is still read."""
        if index in self.pools:
            return self.pools[index]
        one, two = (self.writer.pointer(value) for value in self.step.doubles[index])
        if index in self.cells:
            return str(two)
        is_one, result = self.new_register(), self.new_register()
        self.emit(f"{is_one} = icmp eq ptr {current}, {one}")
        self.emit(f"{result} = select i1 {is_one}, ptr {two}, ptr {one}")
        return result

    def _write_loop(
        self,
        carried: int,
        calls: Sequence[BodyCall],
        write_iteration: Iteration,
        length: int | None = None,
        bound: loop_counters.Bound | None = None,
    ) -> None:
        """Write a loop of known length, or until a bound or a condition, and the copies of its final carries."""
        self.cells = {j: cell for j in range(carried) if (cell := self._reserve_cell(j))}
        firsts = [self._first_carry(j) for j in range(carried)]
        self.fixed = {j for j in range(carried) if self.step.bodies[-1].sources[j] == ("input", j)}
        pools = {j: [str(self.writer.pointer(v)) for v in pool] for j, pool in self.step.moves.pools.items()}
        buffers = [pointer for pool in pools.values() for pointer in pool]
        frame = LoopFrame(self, [*firsts, *buffers], sum(call.time for call in calls))
        counters = self.numbers | loop_counters.load_counters(self, carried)
        self.length = length
        if bound is not None and bound.counter in counters:
            pointers = [*firsts, *self.operands[carried:]]
            self.length = loop_counters.count_iterations(self, counters[bound.counter], bound, pointers)
        if length is not None:
            counters |= loop_counters.count_items(self, length, reverse=self.node.kwargs["reverse"])

        def write_and_rotate(frame: LoopFrame, state: list[str]) -> list[str]:
            rest, rotated = state[carried:], list[str]()
            for j, pool in pools.items():
                (self.pools[j], *others), rest = rest[: len(pool)], rest[len(pool) :]
                rotated += [*others, self.pools[j]]
            return [*write_iteration(frame, state[:carried]), *rotated]

        state = frame.write(counters, write_and_rotate)
        for index, (register, output) in enumerate(zip(state[:carried], self.node.outputs)):
            if index in self.cells:
                self.copy(self.writer.pointer(output), register, output)
            elif index not in self.step.in_place.values():
                self._copy_result(output, register)

    def _reserve_cell(self, index: int) -> str:
        """Return memory for a small carry in all iterations, which LLVM replaces by a register; empty for others."""
        size = nbytes_of(self.node.outputs[index])
        if not 0 < size <= self.writer.cell_bytes:
            return ""
        if index not in self.step.in_place:
            return str(self.writer.pointer(self.step.doubles[index][0]))
        cell = f"%{self.name}_cell{index}"
        return cell if self.writer.allocate_cell(cell, size) else ""

    def _first_carry(self, index: int) -> str:
        """Return the pointer to the first value of a carry: a copy if it has a cell or if the body writes it."""
        operand, pointer = self.operands[index], self.cells.get(index)
        if pointer is None and index not in self.step.owned:
            return operand
        out = self.node.outputs[index]
        if pointer is None:
            pointer = str(self.writer.pointer(self._find_start(index)))
        number = loop_counters.constant_number(self, index)
        if number is not None and index in self.cells:
            self.emit(f"store i{8 * out.spec.dtype.itemsize} {number}, ptr {pointer}")  # so LLVM knows it
        else:
            self.copy(pointer, operand, out)
        return pointer

    def _find_start(self, index: int) -> Value:
        """Return the memory in which a carry begins that the body writes."""
        if index in self.step.moves.starts:
            return self.step.moves.starts[index]
        return self.node.outputs[index] if index in self.step.in_place else self.step.doubles[index][0]

    def _copy_result(self, output: Value, register: str) -> None:
        """Copy a final carry to the result, unless the result's buffer holds it already."""
        target, is_there = self.writer.pointer(output), self.new_register()
        number = is_there.removeprefix(f"%{self.name}_r")
        self.emit(f"{is_there} = icmp eq ptr {target}, {register}")
        self.emit(f"br i1 {is_there}, label %{self.name}_there{number}, label %{self.name}_copy{number}")
        self.label(f"copy{number}")
        self.copy(target, register, output)
        self.jump(f"there{number}")
        self.label(f"there{number}")

    def _scan(self) -> None:
        body, carried, items = self.step.bodies[0], len(self.node.args[1]), len(self.node.args[2])
        length, reverse = self.node.kwargs["length"], self.node.kwargs["reverse"]
        call = BodyCall(self, body, f"{self.name}_b")
        first = carried + items
        self.ranges.read_loop(carried)
        self.numbers = loop_counters.load_fixed_numbers(self, first)
        fixed = {i: self.operands[i] for i in range(first, len(self.operands))}
        call.prepare(fixed)
        cells = self._reserve_row_cells(body, carried)

        def write_iteration(frame: LoopFrame, state: list[str]) -> list[str]:
            at = frame.iteration
            if reverse:
                at = self.new_register()
                self.emit(f"{at} = sub i64 {length - 1}, {frame.iteration}")
            dynamic = dict(enumerate(state))
            for i in range(carried, first):
                counter, size = frame.counters.get(i), nbytes_of(body.graph.inputs[i])
                dynamic[i] = counter.memory if counter else self._item_pointer(self.operands[i], size, at)
            inputs = {**dynamic, **fixed}
            rows = [
                self._item_pointer(self.writer.pointer(out), nbytes_of(body.graph.outputs[carried + k]), at)
                for k, out in enumerate(self.node.outputs[carried:])
            ]
            held = [cells.get(k, row) for k, row in enumerate(rows)]
            targets = self._storage_pointers(body, carried, state, held)
            call.call(dynamic, targets)
            for k, row in enumerate(rows):
                source = call.source(carried + k, inputs, targets)
                self.copy(row, source, body.graph.outputs[carried + k])
            return self._next_carries(call, carried, state, inputs, targets)

        self._write_loop(carried, [call], write_iteration, length)

    def _reserve_row_cells(self, body: Body, carried: int) -> dict[int, str]:
        """Reserve memory for the numbers that are both stacked and the next values of carries.

        LLVM replaces it by registers; it would load the numbers from the stacked results, which it takes to overlap.
        """
        result: dict[int, str] = {}
        for k, value in enumerate(body.graph.outputs[carried:]):
            cell = f"%{self.name}_row{k}"
            is_carry = body.sources[carried + k] in body.sources[:carried]
            if is_carry and 0 < nbytes_of(value) <= WORD and self.writer.allocate_cell(cell, WORD):
                result[k] = cell
        return result

    def _item_pointer(self, pointer: str, size: int, at: str) -> str:
        """Return the pointer to item ``at`` of a stacked value."""
        offset = self.new_register()
        self.emit(f"{offset} = mul i64 {at}, {size}")
        return self.offset_pointer(pointer, offset)

    def _storage_pointers(
        self, body: Body, carried: int, state: Sequence[str], rows: Sequence[str]
    ) -> list[str]:
        """Return the pointers to the storages of the body in this iteration."""
        mapping: dict[int, str] = {}
        for k, row in enumerate(rows):
            kind, index = body.sources[carried + k]
            if kind == "computed":
                mapping.setdefault(index, row)
        for j in range(carried):
            kind, index = body.sources[j]
            if kind == "computed" and index not in mapping:
                mapping[index] = self._spare_buffer(j, state[j])
        return [mapping[index] for index in range(len(mapping))]

    def _next_carries(
        self,
        call: BodyCall,
        carried: int,
        state: Sequence[str],
        inputs: dict[int, str],
        targets: Sequence[str],
    ) -> list[str]:
        """Return the pointers to the carries of the next iteration."""
        result = []
        for j in range(carried):
            kind, index = call.body.sources[j]
            source = call.source(j, inputs, targets)
            taken = any(call.body.sources[i] == (kind, index) for i in range(j))
            is_own = kind == "computed" and not taken and not self._is_also_stacked(j, kind, index, carried)
            is_kept = kind == "input" and (index == j or (index >= carried and j not in self.step.owned))
            if not is_own and not is_kept and j not in self.step.moves.sources:
                target = self._spare_buffer(j, state[j])
                self.copy(target, source, self.node.outputs[j])
                source = target
            result.append(source)
        for j, cell in self.cells.items():  # after all of them have been read
            self.copy(cell, result[j], self.node.outputs[j])
        return result

    def _is_also_stacked(self, carry: int, kind: str, index: int, carried: int) -> bool:
        """Return whether the body would write into a stacked result, which holds the next value of a carry too."""
        stacked = self.step.bodies[-1].sources[carried:]
        return carry in self.step.owned and (kind, index) in stacked

    def _while(self) -> None:
        condition, body = self.step.bodies
        carried = len(self.node.args[2])
        bound = loop_counters.find_bound(self.step, carried)
        self.ranges.read_loop(carried, bound)
        self.numbers = loop_counters.load_fixed_numbers(self, carried)
        asks, call = BodyCall(self, condition, f"{self.name}_a"), BodyCall(self, body, f"{self.name}_b")
        fixed = {i: self.operands[i] for i in range(carried, len(self.operands))}
        asks.prepare(fixed)
        call.prepare(fixed)

        def write_iteration(frame: LoopFrame, state: list[str]) -> list[str]:
            dynamic = dict(enumerate(state))
            inputs = {**dynamic, **fixed}
            if self.length is None:
                self._ask(asks, inputs, dynamic)
            targets = self._storage_pointers(body, carried, state, [])
            call.call(dynamic, targets)
            return self._next_carries(call, carried, state, inputs, targets)

        self._write_loop(carried, [asks, call], write_iteration, bound=bound)

    def _ask(self, condition: BodyCall, inputs: dict[int, str], dynamic: dict[int, str]) -> None:
        """Leave the loop unless the condition holds."""
        flag = [self.writer.pointer(self.step.flag)]
        condition.call(dynamic, flag)
        byte, holds = self.new_register(), self.new_register()
        self.emit(f"{byte} = load i8, ptr {condition.source(0, inputs, flag)}")
        self.emit(f"{holds} = icmp ne i8 {byte}, 0")
        body = f"body{self._count}"
        self.emit(f"br i1 {holds}, label %{self.name}_{body}, label %{self.name}_done")
        self.label(body)

    def _switch(self) -> None:
        bodies = self.step.bodies
        self.ranges.read_branches()
        calls = [BodyCall(self, body, f"{self.name}_b{i}") for i, body in enumerate(bodies)]
        fixed = dict(enumerate(self.operands[1:]))
        results = {operand: self.node.outputs[out] for operand, out in self.step.in_place.items()}
        for operand, value in {**self.step.copies, **results}.items():
            fixed[operand - 1] = self.writer.pointer(value)
            self.copy(fixed[operand - 1], self.operands[operand], value)
        for call in calls:
            call.prepare(fixed)
        self.writer.loop_times[self.number] = max(call.time for call in calls)
        index, last = emit_branch_index(self), len(bodies) - 1
        cases = " ".join(f"i64 {i}, label %{self.name}_case{i}" for i in range(last))
        self.emit(f"switch i64 {index}, label %{self.name}_case{last} [ {cases} ]")
        for i, call in enumerate(calls):
            self.label(f"case{i}")
            mapping: dict[int, str] = {}
            for result, (kind, position) in zip(self.node.outputs, call.body.sources):
                if kind == "computed":
                    mapping.setdefault(position, self.writer.pointer(result))
            targets = [mapping[position] for position in range(len(mapping))]
            call.call({}, targets)
            for position, result in enumerate(self.node.outputs):
                self.copy(self.writer.pointer(result), call.source(position, fixed, targets), result)
            self.jump("done")
        self.label("done")
