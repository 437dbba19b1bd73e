"""From a lowered graph to machine code: a module with the fused kernels and a ``main`` that runs the steps."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from ...lowering.loop_bodies import Body, LoopStep
from ...lowering.lowered import Backend, Lowered, register_backend
from ...lowering.resolve import Target
from ...lowering.steps import KernelStep, NodeStep, is_empty
from ...operators.rules import promoted_dtype
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...tracer.graph import Graph, Node, Value, bodies_of, body_inputs
from ...tracer.infer import stand_in
from .blas import Gemm, library_reason, pointers
from .callback import make_callback
from .emit.fused import write_fused
from .emit.host import host
from .emit.text import Module
from .executable import CallPlan, CpuExecutable, Parameter
from .loop_writer import BodyTable, LoopWriter
from .native import engine
from .row_reads import RowRead, rows_reason
from .user_calls import NativeCall, native_reason
from .words import WordsCall, words_reason

MAIN = "tandem_main"
CALLBACKS = """
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare void @Py_DecRef(ptr)
define internal i32 @call_back(ptr %callable, ptr %table) {
entry:
  %argument = call ptr @PyLong_FromVoidPtr(ptr %table)
  %nothing = icmp eq ptr %argument, null
  br i1 %nothing, label %failed, label %call
call:
  %result = call ptr @PyObject_CallOneArg(ptr %callable, ptr %argument)
  call void @Py_DecRef(ptr %argument)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %failed, label %done
done:
  call void @Py_DecRef(ptr %result)
  ret i32 0
failed:
  ret i32 1
}
"""


def _native_reason(node: Node) -> str | None:
    return words_reason(node) or rows_reason(node) or native_reason(node)


def emits(dtype: DType) -> bool:
    """Whether code is emitted for a dtype on this machine."""
    return dtype.kind != "c" and (dtype is not dt.float16 or host().f16c)


class MainWriter:
    """The text of a module: kernels, and the ``main`` that calls them.

    Attributes:
        callbacks: the nodes that are served by callbacks, and bodies of loops, in the order of the table of objects.
    """

    def __init__(self, lowered: Lowered):
        self.lowered, self.module = lowered, Module()
        self.lines: list[str] = []
        self.extra: list[str] = []
        self.callbacks: list[NodeStep | Body] = []
        self.constants: list[Value] = [value for value, _ in lowered.folded]
        self.arrays = [v for v in lowered.graph.parameters if v.weak is None]
        self.scalars = [v for v in lowered.graph.parameters if v.weak is not None]
        self.offsets = lowered.memory.offsets()
        self.known: dict[Value, str] = {}

    def write(self) -> str:
        """The whole module."""
        for number, step in enumerate(self.lowered.steps):
            if isinstance(step, LoopStep):
                LoopWriter(self, step, number).write()
            elif isinstance(step, NodeStep):
                writers = {"blas": self._gemm, "native": self._native, "callback": self._callback}
                writers[step.kind](step, number)
            elif not is_empty(step):
                self._kernel(step, number)
        placed = len(self.arrays) + len(self.lowered.storages)
        tables = loaded("%tables", "%buffers", placed + 1) if self.constants or self.callbacks else []
        main = [f"define i32 @{MAIN}(ptr %buffers, ptr %scalars) {{", "entry:", *tables, *self.lines]
        helpers = CALLBACKS if any(isinstance(item, NodeStep) for item in self.callbacks) else ""
        return "\n".join([helpers, *dict.fromkeys(self.extra), *main, "  ret i32 0", "}", str(self.module)])

    # -- addresses -------------------------------------------------------------------------------------------------
    def pointer(self, value: Value) -> str:
        """The register with the address of a value's buffer, loaded at its first use."""
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = f"%p{len(self.known)}"
            self.lines += self._located(value, found)
        return found

    def _located(self, value: Value, register: str) -> list[str]:
        placed = [*self.arrays, *self.lowered.storages]
        if value.weak is not None:
            return [f"  {register} = getelementptr i8, ptr %scalars, i64 {8 * self.scalars.index(value)}"]
        if value in self.offsets:
            base = f"{register}w"
            return [
                *loaded(base, "%buffers", len(placed)),
                f"  {register} = getelementptr i8, ptr {base}, i64 {self.offsets[value]}",
            ]
        if value in self.constants:
            return loaded(register, "%tables", self.constants.index(value))
        return loaded(register, "%buffers", placed.index(value))

    def _table(self, values: list[Value], number: int) -> tuple[str, list[str]]:
        """A table of addresses on the stack, and the instructions that make it."""
        table = f"%t{number}"
        lines = [f"  {table} = alloca [{max(len(values), 1)} x ptr]"]
        for place, pointer in enumerate([self.pointer(value) for value in values]):
            lines.append(f"  {table}_{place} = getelementptr i8, ptr {table}, i64 {8 * place}")
            lines.append(f"  store ptr {pointer}, ptr {table}_{place}")
        return table, lines

    def place(self, item: NodeStep | Body) -> int:
        """The place in the table of objects of what serves a callback, or describes a compiled body."""
        self.callbacks.append(item)
        return len(self.constants) + len(self.callbacks) - 1

    # -- steps -----------------------------------------------------------------------------------------------------
    def _kernel(self, step: KernelStep, number: int) -> None:
        write_fused(self.module, step.kernel)
        table, lines = self._table(list(step.params), number)
        self.lines += lines
        self.lines.append(f"  call void @{step.kernel.name}(ptr {table}, ptr %scalars)")

    def _gemm(self, step: NodeStep, number: int) -> None:
        gemm = Gemm(step, f"gemm{number}")
        name, text = gemm.function(self.module)
        self.extra.append(text)
        size = gemm.dtype.itemsize
        places = []
        for key, (root, layout) in zip("ab", step.operands, strict=True):
            self.lines.append(
                f"  %g{number}{key} = getelementptr i8, ptr {self.pointer(root)}, i64 {layout.offset * size}"
            )
            places.append(f"ptr %g{number}{key}")
        places.append(f"ptr {self.pointer(step.node.outputs[0])}")
        self.lines.append(f"  call void @{name}({', '.join(places)})")

    def _native(self, step: NodeStep, number: int) -> None:
        if words_reason(step.node):
            words = WordsCall(self, step, number)
            self.extra.append(words.function)
            self.lines += words.lines
            return
        if rows_reason(step.node):
            self.lines += RowRead(self, step, number).lines
            return
        call = NativeCall(self, step, number)
        self.extra.append(call.declaration)
        self.module.imports[call.symbol] = call.address
        self.lines += call.lines

    def _callback(self, step: NodeStep, number: int) -> None:
        self.lines += self.called_back(step, number)

    def called_back(self, step: NodeStep, number: int) -> list[str]:
        """Instructions that call a node's eager kernel."""
        values = [root for root, _ in step.operands]
        table, lines = self._table([*values, *step.node.outputs], number)
        return [
            *lines,
            *loaded(f"%o{number}", "%tables", self.place(step)),
            f"  %r{number} = call i32 @call_back(ptr %o{number}, ptr {table})",
            f"  %f{number} = icmp ne i32 %r{number}, 0",
            f"  br i1 %f{number}, label %failed{number}, label %after{number}",
            f"failed{number}:",
            "  ret i32 1",
            f"after{number}:",
        ]


def loaded(register: str, table: str, place: int) -> list[str]:
    return [
        f"  {register}a = getelementptr i8, ptr {table}, i64 {8 * place}",
        f"  {register} = load ptr, ptr {register}a",
    ]


class Tables:
    """What the code is given beside its arguments: data of constants, then callables of callbacks.

    Code itself refers to neither, so that equal graphs share it. Kept as long as the executable.
    """

    def __init__(self, constants: list[Any], callables: list[Any]):
        self.arrays = [np.ascontiguousarray(tensor._array) for tensor in constants]
        self.callables = callables
        objects = (c.address if isinstance(c, BodyTable) else id(c) for c in callables)
        addresses = [*(a.__array_interface__["data"][0] for a in self.arrays), *objects]
        self.words = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    @property
    def address(self) -> int:
        """Where the table lies."""
        return ctypes.addressof(self.words)


def llvm_ir(lowered: Lowered) -> str:
    """The module of a lowered graph, and those of the bodies of its loops."""
    writer = MainWriter(lowered)
    texts = [writer.write()]
    texts += [llvm_ir(item.lowered) for item in writer.callbacks if isinstance(item, Body)]
    return "\n; ---- the body of a loop ----\n".join(texts)


def compile_lowered(lowered: Lowered) -> CpuExecutable:
    """Compile a lowered graph, or load its code from the disk cache."""
    writer = MainWriter(lowered)
    text = writer.write()
    tables = Tables([tensor for _, tensor in lowered.folded], [_served(item) for item in writer.callbacks])
    code = _shared(text, "@blas_" in text, tuple(sorted(writer.module.imports.items())))
    return CpuExecutable(lowered, call_plan(lowered, code[MAIN], tables), (code, tables))


def _served(item: NodeStep | Body) -> Any:
    """What the table of objects holds for a callback or a compiled body."""
    return make_callback(item) if isinstance(item, NodeStep) else BodyTable(compile_lowered(item.lowered))


@functools.lru_cache(maxsize=256)
def _shared(text: str, blas: bool, imports: tuple[tuple[str, int], ...]) -> engine.Code:
    """The code of a module, shared by equal graphs."""
    return engine.compile_ir(text, [MAIN], {**dict(imports), **(pointers() if blas else {})}, level=1)


def call_plan(lowered: Lowered, address: int, tables: Any) -> CallPlan:
    """How to call compiled code that is given some :class:`Tables`, or what a backend has like them."""
    ranges = integer_ranges(lowered.optimized)
    parameters: list[Parameter] = []
    counts = {True: 0, False: 0}
    for value in lowered.graph.parameters:
        weak = value.weak is not None
        parameters.append(Parameter(value.spec, value.weak, counts[weak], tuple(ranges.get(value, ()))))
        counts[weak] += 1
    storages = tuple(value.spec for value in lowered.storages)
    workspace = lowered.memory.workspace
    outputs, constants = tuple(lowered.outputs), tuple(tables.arrays)
    return CallPlan(address, tuple(parameters), storages, workspace, outputs, constants, tables.address)


def integer_ranges(graph: Graph) -> dict[Value, list[DType]]:
    """For each Python integer passed at run time the integer dtypes that it meets in promotion, and has to fit."""
    found: dict[Value, list[DType]] = {}
    for node in graph.nodes:
        for body in bodies_of(node):
            inner = integer_ranges(body)
            for value, given in body_inputs(node):
                if type(given) is Value and given.weak is int:
                    known = found.setdefault(given, [])
                    known += [dtype for dtype in inner.get(value, ()) if dtype not in known]
        integers = [v for v in node.inputs if v.weak is int]
        if integers and node.op.decl is not None and node.op.decl.is_elementwise:
            met = _met(node)
            for value in integers:
                if met.is_integer and met not in found.setdefault(value, []):
                    found[value].append(met)
    return found


def _met(node: Node) -> DType:
    return promoted_dtype(
        node.op.schema.name, [stand_in(a) if isinstance(a, Value) else a for a in node.args]
    )


register_backend(
    "cpu",
    Backend(lambda: Target(emits, library_reason, _native_reason, loops=True), compile_lowered, llvm_ir),
)
