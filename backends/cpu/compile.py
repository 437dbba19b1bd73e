"""Compile a lowered graph to machine code: a module with the fused kernels and a ``main`` that runs the steps."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...lowering.buffer_assignment import nbytes_of
from ...lowering.cost_model import CELL_BYTES
from ...lowering.fusion.loop_ir import move_offsets, structure_of
from ...lowering.kernel_selection import Target
from ...lowering.loop_bodies import LoopThunk
from ...lowering.lower import Backend, Lowered, register_backend
from ...lowering.thunks import KernelThunk, NodeThunk, is_empty
from ...registry.dtypes import DType
from ...registry.values import align_up
from ...tracer.graph import Graph, Value
from . import gil
from .cache import SourceText
from .codegen.blocks import reserve_stack
from .codegen.fused import write_fused
from .codegen.text import Module
from .executable import CpuExecutable, make_calling_convention
from .fastpath.compiler import engine
from .fastpath.glue.layout import find_fault, find_node_loop, find_ufunc_fault
from .gil import MAIN as MAIN
from .object_table import EmbeddedBody, TableItem, make_object_table, write_check
from .target import can_emit
from .timestamps import DECLARATION, TIMES_SLOT, TimestampedExecutable, write_timestamp

if TYPE_CHECKING:
    from .fastpath.glue.products import ProductCode

_loops, _scans = lazy.Module(".backends.cpu.loop_writer"), lazy.Module(".backends.cpu.scans")
_blas, _products = lazy.Module(".backends.cpu.blas"), lazy.Module(".backends.cpu.fastpath.glue.products")
_callback = lazy.Module(".backends.cpu.callback")
_calls = lazy.Module(".backends.cpu.native_kernels.calls")
_decompose = lazy.Module(".backends.cpu.native_kernels.decompose")
_expand = lazy.Module(".backends.cpu.native_kernels.expand")
_foreign_calls = lazy.Module(".backends.cpu.foreign_calls")
_scalars = lazy.Functions(".backends.cpu.codegen.scalars")
_random_bits = lazy.Module(".backends.cpu.random_bits")
MAX_STACK_BYTES = 1024  # of small intermediates and tables of one function
MAX_OPTIMIZED_STEPS = 48  # of such bodies: LLVM unrolls their loops, and forwards stored elements
PART_STEPS = 128  # of a function: the time that LLVM takes for one grows faster than its length
STACK_WORDS = 64  # the longest table of addresses on the stack; a longer one is in the workspace


class MainWriter:
    """The LLVM IR of a module: kernels, and the ``main`` that calls them.

    Attributes:
        callbacks: the nodes that callbacks serve, and bodies of loops, in the order of the table of objects.
        has_state: whether the code receives the GIL state of the call; see :mod:`.gil`.
        may_raise: whether the code calls functions that may set an exception, which ``main`` looks for.
        stamps: whether the code writes the time after each step; see :mod:`.timestamps`.
        products: what code of matrix products that is called must compute.
    """

    stack_words, cell_bytes = STACK_WORDS, CELL_BYTES

    def __init__(
        self,
        lowered: Lowered,
        stamps: bool = False,
        module: Module | None = None,
        prefix: str = "",
        ranges: Any = None,
    ):
        self.lowered, self.module, self.stamps = lowered, module or Module(find_node_loop), stamps
        self.prefix = prefix
        self.lines: list[str] = []
        self.extra: list[str] = []
        self.callbacks: list[TableItem] = []
        self.constants: list[Value] = [value for value, _ in lowered.folded]
        self.arrays = [v for v in lowered.graph.parameters if v.weak is None]
        self.scalars = [v for v in lowered.graph.parameters if v.weak is not None]
        self.offsets = lowered.memory.offsets()
        self.known, self.registers, self.table_words = dict[Value, str](), 0, 0
        self.between_parts: set[Value] = set()  # intermediates that several functions use
        self.scratch_used = self.scratch_needed = 0  # bytes of scratch memory: of this step, and the maximum
        self.has_state = self.may_raise = False
        self.products: list[ProductCode] = []
        self.functions: list[str] = []
        self.cells: list[str] = []
        self.cell_of: dict[Value, str] = {}
        self.stack_used = self.inlined_steps = 0
        self.structures: dict[int, object] = {}
        self.calls: Counter[object] = Counter()
        self.ranges = ranges  # a ScalarRanges, None before the first loop
        self.loop_times: dict[int, float] = {}  # in nanoseconds, until the first poll, by the loop's step

    def write(self) -> str:
        """Return the whole module."""
        inner = gil.has_state(self.lowered)
        main = self.write_function("internal " if inner else "", gil.BODY if inner else MAIN)
        if inner:
            placed = len(self.arrays) + len(self.lowered.storages)
            self.extra.append(gil.main_text(placed + gil.STATE, self.may_raise))
        texts = [_callback.CALLBACKS] if "@call_back(" in "".join([*self.functions, main]) else []
        if self.may_raise and not texts:
            texts = [_callback.PENDING]
        parts = [*texts, *dict.fromkeys(self.extra), *self.functions, main, str(self.module)]
        text = "\n".join(parts)
        return str(_scalars.write_as_scalars(text)) if "<1 x " in text else text

    def write_function(self, linkage: str, name: str, attributes: str = "") -> str:
        """Return the function that runs the steps; helpers are in the module, and in `functions`."""
        self.has_state = gil.has_state(self.lowered)
        kernels = ((n, s.kernel) for n, s in enumerate(self.lowered.steps) if isinstance(s, KernelThunk))
        self.structures = {number: structure_of(move_offsets(kernel)[0]) for number, kernel in kernels}
        self.calls = Counter(self.structures.values())
        releasing, count = gil.release_points(self.lowered.steps), len(self.lowered.steps)
        if count <= 2 * PART_STEPS:
            return self._write_part(range(count), releasing, linkage, name, attributes)
        parts, calls = [range(at, min(at + PART_STEPS, count)) for at in range(0, count, PART_STEPS)], []
        lifetimes = self.lowered.memory.intervals
        self.between_parts = {i.value for i in lifetimes if i.first // PART_STEPS != i.last // PART_STEPS}
        for at, numbers in enumerate(parts):
            part = f"{name}_part{at}"
            self.functions.append(self._write_part(numbers, releasing, "internal ", part, " noinline"))
            calls += [
                f"  %r{at} = call i32 @{part}(ptr %buffers, ptr %scalars)",
                f"  %f{at} = icmp ne i32 %r{at}, 0",
                f"  br i1 %f{at}, label %failed, label %after{at}",
                f"after{at}:",
            ]
        head = f"define {linkage}i32 @{name}(ptr %buffers, ptr %scalars){attributes} {{"
        return "\n".join([head, "entry:", *calls, "  ret i32 0", "failed:", "  ret i32 1", "}"])

    def _write_part(
        self, numbers: range, releasing: set[int], linkage: str, name: str, attributes: str
    ) -> str:
        """Return the function that runs some of the steps."""
        self.lines, self.cells, self.cell_of, self.stack_used, self.table_words = [], [], {}, 0, 0
        for number in numbers:
            self.known, self.scratch_used = {}, 0  # reload addresses: keeping them would fill the stack
            if number in releasing:
                self.lines.append(gil.RELEASE)
            self._write_step(self.lowered.steps[number], number)
            self.lines += write_timestamp(number + 1) if self.stamps else []
        placed = len(self.arrays) + len(self.lowered.storages)
        tables = (
            load_from_table("%tables", "%buffers", placed + 1) if self.constants or self.callbacks else []
        )
        if self.stamps:
            tables += load_from_table("%stamps", "%buffers", placed + TIMES_SLOT)
            tables += write_timestamp(0) if numbers.start == 0 else []
            self.extra.append(DECLARATION)
        if self.has_state:
            tables += load_from_table("%state", "%buffers", placed + gil.STATE)
            self.extra.append(gil.DECLARATIONS)
        tables += [*self.table_allocation(), *self.cells]
        head = f"define {linkage}i32 @{name}(ptr %buffers, ptr %scalars){attributes} {{"
        return "\n".join([head, "entry:", *tables, *self.lines, "  ret i32 0", "}"])

    def _write_step(self, step: Any, number: int) -> None:
        if isinstance(step, LoopThunk):
            _loops.LoopWriter(self, step, number).write()
        elif isinstance(step, NodeThunk):
            writers = {"blas": self._multiply, "native": self._native, "callback": self._callback}
            writers[step.kind](step, number)
        elif not is_empty(step):
            self._kernel(step, number)

    # -- addresses -------------------------------------------------------------------------------------------------
    def pointer(self, value: Value) -> str:
        """Return the register with the address of a value's buffer, which is loaded at its first use."""
        value = self.lowered.aliases.owner(value)
        result = self.known.get(value) or self._find_cell(value)
        if result is None:
            result = self.known[value] = f"%p{self.registers}"
            self.registers += 1
            self.lines += self._load_address(value, result)
        return result

    def _find_cell(self, value: Value) -> str | None:
        """Return the register of a small intermediate's memory on the stack; None if it has none."""
        if value not in self.cell_of:
            is_small = self.cell_bytes > 0 and value in self.offsets and nbytes_of(value) <= self.cell_bytes
            register = f"%cell{len(self.cells)}"
            if (
                not is_small
                or value in self.between_parts
                or not self.allocate_cell(register, nbytes_of(value))
            ):
                return None
            self.cell_of[value] = register
        return self.cell_of[value]

    def move_pointer(self, value: Value, start: int) -> str:
        """Return the register with the address of the first byte of a value's buffer that a kernel works on."""
        pointer = self.pointer(value)
        if not start:
            return pointer
        self.registers += 1
        self.lines.append(f"  %p{self.registers - 1} = getelementptr i8, ptr {pointer}, i64 {start}")
        return f"%p{self.registers - 1}"

    def _load_address(self, value: Value, register: str) -> list[str]:
        placed = [*self.arrays, *self.lowered.storages]
        if value.weak is not None:
            return [f"  {register} = getelementptr i8, ptr %scalars, i64 {8 * self.scalars.index(value)}"]
        if value in self.offsets:
            base = f"{register}w"
            return [
                *load_from_table(base, "%buffers", len(placed)),
                f"  {register} = getelementptr i8, ptr {base}, i64 {self.offsets[value]}",
            ]
        if value in self.constants:
            return load_from_table(register, "%tables", self.constants.index(value))
        return load_from_table(register, "%buffers", placed.index(value))

    def allocate_cell(self, register: str, nbytes: int) -> bool:
        """Reserve memory on the stack, which LLVM replaces by registers where no call gets its address.

        Return False, and reserve nothing, if the function uses much of the stack; then all later calls return False.
        """
        self.stack_used += -(-nbytes // 16) * 16
        if self.stack_used > MAX_STACK_BYTES:
            return False
        self.cells += reserve_stack(register, f"[{nbytes} x i8]", 16 if nbytes <= 16 else 64)
        return True

    def table_allocation(self) -> list[str]:
        """Return the instruction that reserves the table of addresses, which all steps use in turn."""
        return [f"  %table = alloca [{self.table_words} x ptr]"] if self.table_words else []

    def _table(self, values: list[Value], number: int) -> tuple[str, list[str]]:
        """Return the register of a table of values' addresses, and the instructions that fill it."""
        return self.fill_table([self.pointer(value) for value in values], number)

    def fill_table(self, pointers: Sequence[str], number: int) -> tuple[str, list[str]]:
        """Return the register of a table of addresses, and the instructions that fill it."""
        table, lines = "%table", []
        if len(pointers) <= self.stack_words:
            self.table_words = max(self.table_words, len(pointers), 1)
        else:
            table = f"%t{number}"
            lines = self.allocate_scratch(table, 8 * len(pointers))
        for index, pointer in enumerate(pointers):
            if not index:
                lines.append(f"  store ptr {pointer}, ptr {table}")
                continue
            entry = f"%t{number}_{index}"
            lines.append(f"  {entry} = getelementptr i8, ptr {table}, i64 {8 * index}")
            lines.append(f"  store ptr {pointer}, ptr {entry}")
        return table, lines

    def table_index(self, item: TableItem) -> int:
        """Add the object for a callback or a compiled body to the table of objects; return its index."""
        self.callbacks.append(item)
        return len(self.constants) + len(self.callbacks) - 1

    def allocate_scratch(self, register: str, nbytes: int) -> list[str]:
        """Return instructions that compute the address of scratch memory of the current step."""
        offset = self.lowered.memory.workspace - self.lowered.memory.scratch + self.scratch_used
        self.scratch_used += align_up(nbytes)
        self.scratch_needed = max(self.scratch_needed, self.scratch_used)
        base = f"{register}b"
        placed = len(self.arrays) + len(self.lowered.storages)
        return [
            *load_from_table(base, "%buffers", placed),
            f"  {register} = getelementptr i8, ptr {base}, i64 {offset}",
        ]

    # -- steps -----------------------------------------------------------------------------------------------------
    def _kernel(self, step: KernelThunk, number: int) -> None:
        kernel, starts = move_offsets(step.kernel)
        structure = self.structures[number]
        if structure not in self.module.kernels:
            kernel = kernel._replace(name=self.prefix + kernel.name)
            scratch = write_fused(self.module, kernel, calls=self.calls[structure], in_loop=bool(self.prefix))
            self.module.kernels[structure] = kernel.name, scratch
        name, scratch = self.module.kernels[structure]
        pointers = [self.move_pointer(value, starts.get(param, 0)) for param, value in enumerate(step.params)]
        table, lines = self.fill_table(pointers, number)
        self.lines += lines
        memory = "null"
        if scratch.below + scratch.above:
            memory = f"%m{number}"
            self.lines += self.allocate_scratch(f"%w{number}", scratch.below + scratch.above)
            self.lines.append(f"  {memory} = getelementptr i8, ptr %w{number}, i64 {scratch.below}")
        result = f"  %e{number} = call i64" if scratch.checks else "  call void"
        self.lines.append(f"{result} @{name}(ptr {table}, ptr %scalars, ptr {memory})")
        if scratch.checks:
            self.lines += write_check(self, scratch, memory, number)

    def _multiply(self, step: NodeThunk, number: int) -> None:
        product = _blas.ProductCall(step)
        indices = []
        for key, (root, layout) in zip("ab", step.operands, strict=True):
            offset = layout.offset * product.dtype.itemsize
            self.lines.append(f"  %g{number}{key} = getelementptr i8, ptr {self.pointer(root)}, i64 {offset}")
            indices.append(f"ptr %g{number}{key}")
        indices.append(f"ptr {self.pointer(step.node.outputs[0])}")
        symbol = product.write(self.module)
        self.products += [product.needs] if product.needs else []
        if not symbol:
            symbol = product.symbol
            indices.append(f"ptr @{product.name}")
            self.module.declare(symbol, "void", *["ptr"] * 4, pure=False)
            self.extra.append(product.table)
        self.lines.append(f"  call void @{symbol}({', '.join(indices)})")

    def _native(self, step: NodeThunk, number: int) -> None:
        if _random_bits.explain_random_bits(step.node):
            words = _random_bits.RandomBitsCall(self, step, number)
            self.extra.append(words.function)
            self.lines += words.lines
            return
        if step.node.op.decl.native is not None:
            self.lines += _calls.LoopCallWriter(self, step, number).write()
            return
        if _foreign_calls.is_scan(step.node):
            self.lines += _scans.scan_lines(self, step, number)
            return
        call = _foreign_calls.ForeignCall(self, step, number)
        self.extra.append(call.declaration)
        self.module.imports[call.symbol] = call.address
        self.lines += call.lines

    def _callback(self, step: NodeThunk, number: int) -> None:
        self.lines += self.callback_lines(step, number)

    def callback_lines(self, step: NodeThunk, number: int) -> list[str]:
        """Return instructions that call a node's eager kernel."""
        values = [root for root, _ in step.operands]
        table, lines = self._table([*values, *step.node.outputs], number)
        return [
            *_callback.skip_lines(step, self.pointer, number),
            *lines,
            *self.call_lines(step, table, number),
            f"  %f{number} = icmp ne i32 %r{number}, 0",
            f"  br i1 %f{number}, label %failed{number}, label %after{number}",
            f"failed{number}:",
            "  ret i32 1",
            f"after{number}:",
        ]

    def call_lines(self, item: TableItem, argument: str, number: int) -> list[str]:
        """Return instructions that call a Python function of the table of objects with an address."""
        return [
            *load_from_table(f"%o{number}", "%tables", self.table_index(item)),
            *([gil.ACQUIRE] if self.has_state else []),
            f"  %r{number} = call i32 @call_back(ptr %o{number}, ptr {argument})",
        ]


def load_from_table(register: str, table: str, index: int) -> list[str]:
    """Return instructions that load an entry of a table of pointers."""
    return [
        f"  {register}a = getelementptr i8, ptr {table}, i64 {8 * index}",
        f"  {register} = load ptr, ptr {register}a",
    ]


def llvm_ir(lowered: Lowered) -> str:
    """Return the module of a lowered graph and the bodies of its loops."""
    return MainWriter(lowered).write()


def scratch_bytes(lowered: Lowered) -> int:
    """Return the bytes of scratch memory that a graph's steps need; the IR emitted to compute them is cached."""
    lowered.emitted = writer, _ = _write_main(lowered, False)
    return writer.scratch_needed


def compile_lowered(lowered: Lowered, stamps: bool = False) -> CpuExecutable:
    """Compile a lowered graph, or load its code from the disk cache.

    Args:
        lowered: the graph.
        stamps: whether the code writes the time after each step; see :mod:`.timestamps`.
    """
    known, lowered.emitted = lowered.emitted, None
    writer, text = known if known and not stamps else _write_main(lowered, stamps)
    tables = make_object_table(EmbeddedBody(lowered, writer.callbacks))
    is_unrolled = 0 < writer.inlined_steps <= MAX_OPTIMIZED_STEPS
    passes = engine.Passes.UNROLL if is_unrolled else engine.Passes.FUNCTIONS
    code = _compile_shared(
        SourceText(text), writer.has_state, tuple(sorted(_imports(writer).items())), passes
    )
    convention = make_calling_convention(lowered, code[MAIN], tables)
    stamped = TimestampedExecutable(lowered, functools.partial(compile_lowered, lowered, stamps=True))
    return CpuExecutable(lowered, convention, (code, tables), stamped)


def _write_main(lowered: Lowered, stamps: bool) -> tuple[MainWriter, str]:
    """Return the writer of a graph's module, and the module's text."""
    writer = MainWriter(lowered, stamps)
    return writer, writer.write()


def _imports(writer: MainWriter) -> dict[str, int]:
    """Return the addresses of the functions that a module calls: users' functions and matrix products."""
    products = _products.find_products(writer.products) if writer.products else {}
    return writer.module.imports | products


@functools.lru_cache(maxsize=256)
def _compile_shared(
    source: SourceText, state: bool, imports: tuple[tuple[str, int], ...], passes: engine.Passes
) -> engine.Code:
    """Return the code of a module; equal graphs share it."""
    text, source.text = source.text, ""
    known = {**dict(imports), **(gil.gil_function_addresses() if state else {})}
    return engine.compile_ir(text, [MAIN], known, passes=passes)


def _prepare(graph: Graph) -> Graph:
    """Decompose operators without a native kernel, and convert operands to the dtypes that loops compute in."""
    decls = [node.op.decl for node in graph.nodes if node.op.decl is not None]
    if any(decl.decomposition is not None or decl.explicit for decl in decls):
        graph = _decompose.decompose(graph)
    if any(getattr(node.op.decl, "native", None) for node in graph.nodes):
        graph = _expand.expand_native_calls(graph)
    return graph


def _emits(dtype: DType) -> bool:
    """Return whether kernels of a dtype are emitted: of complex numbers if NumPy's inner loops can be called."""
    return can_emit(dtype) and not (dtype.kind == "c" and find_ufunc_fault(np.exp))


register_backend(
    "cpu",
    Backend(
        lambda: Target(
            _emits,
            lambda node: _blas.explain_product(node) if node.op.decl.kind == "contraction" else None,
            lambda node: _foreign_calls.explain_native(node),
            loops=True,
            copies=lambda node, layouts: _foreign_calls.operands_to_copy(node, layouts),
            reduces=lambda dtype: dtype.kind != "c",
            indexes=True,
            updates=True,
        ),
        compile_lowered,
        llvm_ir,
        why_not=lambda graph: find_fault() or None,
        prepare=lambda graph, device: _prepare(graph),
        scratch=scratch_bytes,
    ),
)
