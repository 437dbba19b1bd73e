"""Calls of inner loops in compiled graphs: which loop computes a node, and the LLVM IR of its call in ``main``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import LoweringError
from ....lowering.layout import Layout, contiguous
from ....lowering.thunks import NodeThunk
from ....named_tuple import NamedTuple
from ....operators.declare.native_kernel import NativeKernel
from ....registry.dtypes import DType
from ....registry.values import TensorSpec
from ....tracer.graph import Node, Value, map_values
from ..codegen.text import PARTS, REGISTER, literal
from ..fastpath.runtime.rt_loops import Failures
from ..object_table import LoopFailureReport, stop_flushing
from ..target import IS_X86
from .loop_code import compile_driver
from .providers import Loop, find_loop
from .tables import WORDS, find_core_sizes, fits, is_single_call, make_call_table

DRIVER = "call_loop"


class LoopChoice(NamedTuple):
    """The loop that computes a call.

    Attributes:
        name: provider and name.
        loop: the loop.
        extra: numbers that follow the tensors as operands, and their dtype.
        failure: the message of the error where the loop fails; empty if it cannot.
        error: the class of the error.
        is_finite: whether the first operand must be finite.
        axis: the core axis, not negative; None for the last axes. Results without that axis keep their order.
    """

    name: str
    loop: Loop
    extra: tuple[tuple[float, DType], ...]
    failure: str
    error: type[Exception]
    is_finite: bool
    axis: int | None

    def move_axis(self, layout: Layout) -> Layout:
        """Return the layout of an operand with its core axis last."""
        if self.axis is None or not layout.shape:
            return layout
        shape, strides = list(layout.shape), list(layout.strides)
        shape.append(shape.pop(self.axis))
        strides.append(strides.pop(self.axis))
        return Layout(tuple(shape), tuple(strides), layout.offset)


def choose_loop(
    kernel: NativeKernel, args: Any, kwargs: Any, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> LoopChoice | None:
    """Return the first loop of a native kernel that computes a call and can be used.

    Args:
        kernel: the native kernel.
        args, kwargs: the operator's arguments, with specs in place of tensors.
        inputs, outputs: the specs of its tensors and of its results.
    """
    candidates, axis = kernel.candidates(args, kwargs), None
    if kernel.axis is not None and candidates:
        rank = len(inputs[0].shape)
        axis = kernel.axis(*args, **kwargs) % rank
        axis = None if axis == rank - 1 else axis
    for candidate in candidates:
        extra = tuple((number, PARTS.get(inputs[0].dtype, inputs[0].dtype)) for number in candidate.extra)
        dtypes = (*(x.dtype for x in inputs), *(dtype for _, dtype in extra), *(x.dtype for x in outputs))
        shapes = [*(x.shape for x in inputs), *[()] * len(extra), *(x.shape for x in outputs)]
        core = () if not inputs else tuple(inputs[0].shape[-2:])
        loop = find_loop(candidate.provider, candidate.name, dtypes, core)
        if loop is None:
            continue
        choice = LoopChoice(str(candidate), loop, extra, kernel.failure, kernel.error, kernel.is_finite, axis)
        moved = [choice.move_axis(contiguous(shape)).shape for shape in shapes]
        if find_core_sizes(loop.signature, moved) is not None:
            return choice
    return None


def find_loop_call(node: Node) -> LoopChoice | None:
    """Return the loop that computes a node; None if there is none, or an argument is a number known at run time."""
    kernel = node.op.decl.native
    if kernel is None or any(value.weak is not None for value in node.inputs):
        return None
    kwargs = {name: map_values(_spec_of, arg) for name, arg in node.kwargs.items()}
    specs = [value.spec for value in node.inputs], [value.spec for value in node.outputs]
    choice = choose_loop(kernel, map_values(_spec_of, node.args), kwargs, *specs)
    if choice is None:
        return None
    return choice if fits(_make_table(choice, node, [contiguous(x.shape) for x in specs[0]])) else None


def _spec_of(value: Value) -> TensorSpec:
    return value.spec


def _make_table(choice: LoopChoice, node: Node, layouts: Sequence[Layout]) -> list[int]:
    whole = [*layouts, *[contiguous(())] * len(choice.extra), *(contiguous(x.shape) for x in node.outputs)]
    sizes = [
        *(value.spec.dtype.itemsize for value in node.inputs),
        *(dtype.itemsize for _, dtype in choice.extra),
        *(value.spec.dtype.itemsize for value in node.outputs),
    ]
    whole = [choice.move_axis(layout) for layout in whole]
    return make_call_table(choice.loop.signature, whole, sizes, choice.loop.failures, choice.is_finite)


def explain_loop_call(node: Node) -> str | None:
    """Return which loop computes a node, or None if none does."""
    choice = find_loop_call(node)
    return None if choice is None else f"the loop {choice.name}"


def can_fail(step: NodeThunk) -> bool:
    """Return whether a call may have to raise an exception."""
    choice = find_loop_call(step.node) if getattr(step.node.op.decl, "native", None) is not None else None
    return choice is not None and (choice.loop.may_raise or choice.loop.failures != Failures.NEVER)


class LoopCallWriter:
    """Writes the call of a node's loop into ``main``."""

    def __init__(self, writer: Any, step: NodeThunk, number: int):
        choice = find_loop_call(step.node)
        if choice is None:
            raise LoweringError(f"{step.node.op.name}: its loop is gone")
        self.writer, self.step, self.number, self.choice = writer, step, number, choice
        self.name = f"{writer.prefix}loop{number}"

    def write(self) -> list[str]:
        """Return the instructions; constants and declarations are added to the module."""
        if all(out.spec.size == 0 for out in self.step.node.outputs):
            return []
        words = _make_table(self.choice, self.step.node, [layout for _, layout in self.step.operands])
        values = ", ".join(f"i64 {word}" for word in words)
        self.writer.extra.append(
            f"@{self.name}_table = private unnamed_addr constant [{len(words)} x i64] [{values}]\n"
        )
        loop, module = self.choice.loop, self.writer.module
        self.writer.may_raise |= loop.may_raise
        module.declare(loop.symbol, "void", *["ptr"] * 4, pure=False)
        module.imports[loop.symbol] = loop.address
        lines, pointers = self._pointers()
        table, more = self.writer.fill_table(pointers, self.number)
        lines += more
        if is_single_call(words) and not self.choice.failure:
            return [*lines, *self._call_directly(words, table)]
        module.declare(DRIVER, "i64", *["ptr"] * 4, pure=False)
        module.imports[DRIVER] = compile_driver(DRIVER)[DRIVER]
        given = f"ptr @{loop.symbol}, ptr {self._data()}, ptr {table}, ptr @{self.name}_table"
        lines.append(f"  %n{self.number} = call i64 @{DRIVER}({given})")
        return lines + (self._check(table) if self.choice.failure else [])

    def _call_directly(self, words: Sequence[int], table: str) -> list[str]:
        """Return the instructions of a call of the loop itself, as `rt_loops.call_loop` would make it."""
        start = f"ptr @{self.name}_table"
        dims, steps = (f"getelementptr (i8, {start}, i64 {words[WORDS[name]]})" for name in ("dims", "steps"))
        given = f"ptr {table}, ptr {dims}, ptr {steps}, ptr {self._data()}"
        return [f"  call void @{self.choice.loop.symbol}({given})"]

    def _pointers(self) -> tuple[list[str], list[str]]:
        """Return instructions that compute the addresses of operands and results, and their registers."""
        lines, pointers = [], []
        for index, (root, layout) in enumerate(self.step.operands):
            register = f"%q{self.number}_{index}"
            offset = layout.offset * root.spec.dtype.itemsize
            lines.append(f"  {register} = getelementptr i8, ptr {self.writer.pointer(root)}, i64 {offset}")
            pointers.append(register)
        for index, (value, dtype) in enumerate(self.choice.extra):
            name = f"@{self.name}_number{index}"
            text = f"{REGISTER[dtype]} {literal(value, dtype)}"
            self.writer.extra.append(f"{name} = private unnamed_addr constant {text}\n")
            pointers.append(name)
        pointers += [self.writer.pointer(out) for out in self.step.node.outputs]
        return lines, pointers

    def _data(self) -> str:
        loop, module = self.choice.loop, self.writer.module
        if loop.words:
            values = ", ".join(f"i64 {word}" for word in loop.words)
            name = f"@{self.name}_words"
            self.writer.extra.append(
                f"{name} = private unnamed_addr constant [{len(loop.words)} x i64] [{values}]\n"
            )
            return name
        if not loop.data:
            return "null"
        name = f"{loop.symbol}_data"
        module.helper(name, f"@{name} = external global i8")
        module.imports[name] = loop.data
        return f"@{name}"

    def _check(self, table: str) -> list[str]:
        """Return instructions that raise the error of a loop that failed."""
        n, memory = self.number, f"%n{self.number}_mode"
        return [
            *self.writer.allocate_scratch(memory, 32),
            f"  %n{n}_is = icmp ne i64 %n{n}, 0",
            f"  br i1 %n{n}_is, label %loop_failed{n}, label %loop_done{n}",
            f"loop_failed{n}:",
            *(stop_flushing(self.writer, f"%n{n}_flush", memory) if IS_X86 else ()),
            *self.writer.call_lines(LoopFailureReport(self.choice.error, self.choice.failure), table, n),
            "  ret i32 1",
            f"loop_done{n}:",
        ]
