"""Loops and branches in emitted code: they call compiled bodies and move pointers; no Python runs per iteration.

A carry is a pointer. Where it points to follows from where the body's result goes: into the next place of a stacked
result that is the same value, or into one of two buffers in turn. Results are written where they belong by the body
itself; what a body hands on unchanged is copied.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Sequence
from typing import Any

from ...lowering.loop_bodies import Body, LoopStep
from ...registry.dtypes import bool_
from ...tracer.graph import Value

IS_X86 = platform.machine() in ("x86_64", "AMD64")
SIGNALS = 1024  # iterations between two looks for signals
FLUSH = 0x8040  # bits of MXCSR: denormal results, and denormal operands, are zero


class BodyTable:
    """What the table of objects holds for a compiled body: the addresses of its code and of its own tables."""

    def __init__(self, executable: Any):
        self.executable = executable
        self.words = (ctypes.c_void_p * 2)(executable.plan.address, executable.plan.tables)

    @property
    def address(self) -> int:
        """Where the two addresses lie."""
        return ctypes.addressof(self.words)


def _calls_back(body: Body) -> bool:
    """Whether Python may run inside a body, which is to find denormal numbers as they are everywhere."""
    steps = () if body.lowered is None else body.lowered.steps
    return any(
        any(map(_calls_back, step.bodies))
        if isinstance(step, LoopStep)
        else getattr(step, "kind", "") == "callback"
        for step in steps
    )


def nbytes(value: Value) -> int:
    """The bytes of a value's elements."""
    return int(value.spec.size * value.spec.dtype.itemsize)


class BodyCall:
    """Calls of one body from a loop.

    Attributes:
        body: the body.
        inputs: for each input of the body the register that points to it; set before each call.
    """

    def __init__(self, loop: LoopWriter, body: Body, name: str):
        self.loop, self.body, self.name = loop, body, name
        self.storages: list[Value] = [] if body.lowered is None else body.lowered.storages
        self.arrays = [i for i, value in enumerate(body.graph.inputs) if value.weak is None]
        self.numbers = [i for i, value in enumerate(body.graph.inputs) if value.weak is not None]

    def prepare(self, fixed: dict[int, str]) -> None:
        """What stays the same for all calls: the tables and the inputs that do not change."""
        loop, name = self.loop, self.name
        if self.body.lowered is None:
            return
        place = loop.writer.place(self.body)
        loop.do(f"%{name}_oa = getelementptr i8, ptr %tables, i64 {8 * place}")
        loop.do(f"%{name}_o = load ptr, ptr %{name}_oa")
        loop.do(f"%{name}_f = load ptr, ptr %{name}_o")
        loop.do(f"%{name}_ca = getelementptr i8, ptr %{name}_o, i64 8")
        loop.do(f"%{name}_c = load ptr, ptr %{name}_ca")
        words = len(self.arrays) + len(self.storages) + 2
        loop.do(f"%{name}_t = alloca [{words} x ptr]")
        loop.do(f"%{name}_n = alloca [{len(self.numbers) + 1} x i64]")
        for slot, place in enumerate(self.numbers):
            loop.do(f"%{name}_v{slot} = load i64, ptr {fixed[place]}")
            target = loop.moved(f"%{name}_n", 8 * slot)
            loop.do(f"store i64 %{name}_v{slot}, ptr {target}")
        for slot, place in enumerate(self.arrays):
            if place in fixed:
                self._set(slot, fixed[place])
        if loop.step.workspace is not None:
            self._set(words - 2, loop.writer.pointer(loop.step.workspace))
        self._set(words - 1, f"%{name}_c")

    def _set(self, slot: int, pointer: str) -> None:
        self.loop.do(f"store ptr {pointer}, ptr {self.loop.moved(f'%{self.name}_t', 8 * slot)}")

    def call(self, moving: dict[int, str], targets: Sequence[str]) -> None:
        """Call the body.

        Args:
            moving: pointers to the inputs that change from call to call.
            targets: for each storage of the body where it lies.
        """
        if self.body.lowered is None:
            return
        loop, name = self.loop, self.name
        for slot, place in enumerate(self.arrays):
            if place in moving:
                self._set(slot, moving[place])
        for slot, pointer in enumerate(targets):
            self._set(len(self.arrays) + slot, pointer)
        failed = loop.fresh()
        loop.do(f"{failed} = call i32 %{name}_f(ptr %{name}_t, ptr %{name}_n)")
        loop.check(failed)

    def source(self, place: int, inputs: dict[int, str], targets: Sequence[str]) -> str:
        """Where result ``place`` lies after a call."""
        kind, index = self.body.sources[place]
        if kind == "input":
            return inputs[index]
        if kind == "computed":
            return targets[index]
        pointer = self.loop.fresh()
        self.loop.do(f"{pointer} = load ptr, ptr {self.loop.moved(f'%{self.name}_c', 8 * index)}")
        return pointer


class LoopWriter:
    """Writes one loop or branch into ``main``."""

    def __init__(self, writer: Any, step: LoopStep, number: int):
        self.writer, self.step, self.name = writer, step, f"l{number}"
        self.node = step.node
        self._count = 0
        self.operands: list[str] = []
        flush = self.node.kwargs.get("flush", False)
        self.flushes = flush and IS_X86 and not any(map(_calls_back, step.bodies))

    # -- text ------------------------------------------------------------------------------------------------------
    def do(self, text: str) -> None:
        """Write an instruction."""
        self.writer.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.writer.lines.append(f"{self.name}_{name}:")

    def jump(self, name: str) -> None:
        """Go on in another block."""
        self.do(f"br label %{self.name}_{name}")

    def fresh(self) -> str:
        """A new register."""
        self._count += 1
        return f"%{self.name}_r{self._count}"

    def moved(self, pointer: str, offset: int | str) -> str:
        """A pointer plus a number of bytes."""
        if offset == 0:
            return pointer
        found = self.fresh()
        self.do(f"{found} = getelementptr i8, ptr {pointer}, i64 {offset}")
        return found

    def copy(self, target: str, source: str, count: int) -> None:
        """Copy bytes, unless it is known that they are there."""
        if target != source and count:
            self.writer.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr", "ptr", "i64", "i1")
            self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)")

    def check(self, failed: str) -> None:
        """Leave ``main`` if a body has failed, with its exception set."""
        self._count += 1
        end, on = f"{self.name}_failed{self._count}", f"{self.name}_on{self._count}"
        flag = self.fresh()
        self.do(f"{flag} = icmp ne i32 {failed}, 0")
        self.do(f"br i1 {flag}, label %{end}, label %{on}")
        self.writer.lines.append(f"{end}:")
        self._leave()
        self.writer.lines += ["  ret i32 1", f"{on}:"]

    # -- steps -----------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Write it."""
        self.operands = [
            self._operand(value, root) for value, (root, _) in zip(self.node.inputs, self.step.operands)
        ]
        for value in (*self.node.outputs, *self.step.temporaries):
            self.writer.pointer(value)
        forms = {"scan": self._scan, "while_loop": self._while, "switch": self._switch}
        self._enter()
        forms[self.node.op.schema.name]()
        self._leave()

    def _enter(self) -> None:
        """From here on denormal numbers are zero."""
        if not self.flushes:
            return
        for name in ("st", "ld"):
            self.writer.module.declare(f"llvm.x86.sse.{name}mxcsr", "void", "ptr")
        self.do(f"%{self.name}_mode = alloca i32")
        self.do(f"%{self.name}_flush = alloca i32")
        self.do(f"call void @llvm.x86.sse.stmxcsr(ptr %{self.name}_mode)")
        old, new = self.fresh(), self.fresh()
        self.do(f"{old} = load i32, ptr %{self.name}_mode")
        self.do(f"{new} = or i32 {old}, {FLUSH}")
        self.do(f"store i32 {new}, ptr %{self.name}_flush")
        self.do(f"call void @llvm.x86.sse.ldmxcsr(ptr %{self.name}_flush)")

    def _leave(self) -> None:
        """Denormal numbers are themselves again."""
        if self.flushes:
            self.do(f"call void @llvm.x86.sse.ldmxcsr(ptr %{self.name}_mode)")

    def _operand(self, value: Value, root: Value) -> str:
        return str(self.writer.pointer(root))

    def _double(self, place: int, current: str) -> str:
        """The one of a carry's two buffers that is not being read."""
        one, two = (self.writer.pointer(value) for value in self.step.doubles[place])
        is_one, found = self.fresh(), self.fresh()
        self.do(f"{is_one} = icmp eq ptr {current}, {one}")
        self.do(f"{found} = select i1 {is_one}, ptr {two}, ptr {one}")
        return found

    def _begin(self, carried: int) -> list[str]:
        """The head of a loop: the carries as registers."""
        self.jump("pre")
        self.label("pre")
        self.jump("head")
        self.label("head")
        state = [f"%{self.name}_c{j}" for j in range(carried)]
        for j, register in enumerate(state):
            first = self.operands[j]
            self.do(
                f"{register} = phi ptr [ {first}, %{self.name}_pre ], [ %{self.name}_d{j}, %{self.name}_next ]"
            )
        i = f"%{self.name}_i"
        self.do(f"{i} = phi i64 [ 0, %{self.name}_pre ], [ {i}n, %{self.name}_next ]")
        self.do(f"{i}n = add i64 {i}, 1")
        return state

    def _look_for_signals(self) -> None:
        """Now and then let Python handle signals, so that a loop without end can be interrupted."""
        self.writer.module.declare("PyErr_CheckSignals", "i32", pure=False)
        rest, due, failed = self.fresh(), self.fresh(), self.fresh()
        self.do(f"{rest} = and i64 %{self.name}_in, {SIGNALS - 1}")
        self.do(f"{due} = icmp eq i64 {rest}, 0")
        self.do(f"br i1 {due}, label %{self.name}_look, label %{self.name}_next")
        self.label("look")
        self.do(f"{failed} = call i32 @PyErr_CheckSignals()")
        self.check(failed)
        self.jump("next")

    def _end(self, state: Sequence[str], after: Sequence[str]) -> None:
        """The end of a loop: the next carries."""
        self._look_for_signals()
        self.label("next")
        for j, pointer in enumerate(after):
            self.do(f"%{self.name}_d{j} = getelementptr i8, ptr {pointer}, i64 0")
        self.jump("head")
        self.label("done")
        for register, output in zip(state, self.node.outputs):
            self.copy(self.writer.pointer(output), register, nbytes(output))

    def _scan(self) -> None:
        body, carried, items = self.step.bodies[0], len(self.node.args[1]), len(self.node.args[2])
        length, reverse = self.node.kwargs["length"], self.node.kwargs["reverse"]
        call = BodyCall(self, body, f"{self.name}_b")
        first = carried + items
        call.prepare({i: self.operands[i] for i in range(first, len(self.operands))})
        state = self._begin_counted(carried, length)
        at = f"%{self.name}_i"
        if reverse:
            at = self.fresh()
            self.do(f"{at} = sub i64 {length - 1}, %{self.name}_i")
        inputs = dict(enumerate(state))
        for i in range(carried, first):
            inputs[i] = self._row(self.operands[i], nbytes(body.graph.inputs[i]), at)
        inputs.update({i: self.operands[i] for i in range(first, len(self.operands))})
        outputs = self.node.outputs[carried:]
        rows = [
            self._row(self.writer.pointer(out), nbytes(body.graph.outputs[carried + k]), at)
            for k, out in enumerate(outputs)
        ]
        targets = self._targets(body, carried, state, rows)
        call.call({i: pointer for i, pointer in inputs.items() if i < first}, targets)
        for k, row in enumerate(rows):
            source = call.source(carried + k, inputs, targets)
            self.copy(row, source, nbytes(body.graph.outputs[carried + k]))
        self._end(state, self._following(call, carried, state, inputs, targets))

    def _begin_counted(self, carried: int, length: int) -> list[str]:
        state = self._begin(carried)
        i = f"%{self.name}_i"
        self.do(f"{i}m = icmp slt i64 {i}, {length}")
        self.do(f"br i1 {i}m, label %{self.name}_body, label %{self.name}_done")
        self.label("body")
        return state

    def _row(self, pointer: str, size: int, at: str) -> str:
        """Item ``at`` of something stacked."""
        offset = self.fresh()
        self.do(f"{offset} = mul i64 {at}, {size}")
        return self.moved(pointer, offset)

    def _targets(self, body: Body, carried: int, state: Sequence[str], rows: Sequence[str]) -> list[str]:
        """Where the storages of the body lie in this iteration."""
        found: dict[int, str] = {}
        for k, row in enumerate(rows):
            kind, index = body.sources[carried + k]
            if kind == "computed":
                found.setdefault(index, row)
        for j in range(carried):
            kind, index = body.sources[j]
            if kind == "computed" and index not in found:
                found[index] = self._double(j, state[j])
        return [found[index] for index in range(len(found))]

    def _following(
        self,
        call: BodyCall,
        carried: int,
        state: Sequence[str],
        inputs: dict[int, str],
        targets: Sequence[str],
    ) -> list[str]:
        """Where the carries lie in the next iteration."""
        found = []
        for j in range(carried):
            kind, index = call.body.sources[j]
            source = call.source(j, inputs, targets)
            taken = any(call.body.sources[i] == (kind, index) for i in range(j))
            is_own = kind == "computed" and not taken
            if not is_own and not (kind == "input" and (index == j or index >= carried)):
                target = self._double(j, state[j])
                self.copy(target, source, nbytes(self.node.outputs[j]))
                source = target
            found.append(source)
        return found

    def _while(self) -> None:
        condition, body = self.step.bodies
        carried = len(self.node.args[2])
        asks, call = BodyCall(self, condition, f"{self.name}_a"), BodyCall(self, body, f"{self.name}_b")
        fixed = {i: self.operands[i] for i in range(carried, len(self.operands))}
        asks.prepare(fixed)
        call.prepare(fixed)
        state = self._begin(carried)
        inputs = {**dict(enumerate(state)), **fixed}
        moving = dict(enumerate(state))
        flag = [self.writer.pointer(self.step.flag)]
        asks.call(moving, flag)
        byte, holds = self.fresh(), self.fresh()
        self.do(f"{byte} = load i8, ptr {asks.source(0, inputs, flag)}")
        self.do(f"{holds} = icmp ne i8 {byte}, 0")
        self.do(f"br i1 {holds}, label %{self.name}_body, label %{self.name}_done")
        self.label("body")
        targets = self._targets(body, carried, state, [])
        call.call(moving, targets)
        self._end(state, self._following(call, carried, state, inputs, targets))

    def _switch(self) -> None:
        bodies = self.step.bodies
        calls = [BodyCall(self, body, f"{self.name}_b{i}") for i, body in enumerate(bodies)]
        fixed = dict(enumerate(self.operands[1:]))
        for call in calls:
            call.prepare(fixed)
        index, last = self._index(), len(bodies) - 1
        cases = " ".join(f"i64 {i}, label %{self.name}_case{i}" for i in range(last))
        self.do(f"switch i64 {index}, label %{self.name}_case{last} [ {cases} ]")
        for i, call in enumerate(calls):
            self.label(f"case{i}")
            found: dict[int, str] = {}
            for out, (kind, place) in zip(self.node.outputs, call.body.sources):
                if kind == "computed":
                    found.setdefault(place, self.writer.pointer(out))
            targets = [found[place] for place in range(len(found))]
            call.call({}, targets)
            for place, out in enumerate(self.node.outputs):
                self.copy(self.writer.pointer(out), call.source(place, fixed, targets), nbytes(out))
            self.jump("done")
        self.label("done")

    def _index(self) -> str:
        """The number of the branch to take, from 0; what is beyond the last is the last."""
        value = self.node.args[1]
        dtype = bool_ if value.weak is bool else value.spec.dtype
        kind = f"i{8 * dtype.itemsize}"
        raw, wide, low, found = (self.fresh() for _ in range(4))
        self.do(f"{raw} = load {kind}, ptr {self.operands[0]}")
        if kind == "i64":
            self.do(f"{wide} = add i64 {raw}, 0")
        else:
            self.do(f"{wide} = {'sext' if dtype.kind == 'i' else 'zext'} {kind} {raw} to i64")
        self.do(f"{low} = icmp slt i64 {wide}, 0")
        self.do(f"{found} = select i1 {low}, i64 0, i64 {wide}")
        return found
