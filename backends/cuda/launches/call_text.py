"""LLVM IR of ``main``, the function that launches the kernels of a lowered graph in a stream."""

from __future__ import annotations

import sys

from ....errors import LoweringError
from ....lowering.fusion.loop_ir import FusedKernel
from ....lowering.layout import contiguous
from ....lowering.lower import Lowered
from ....lowering.thunks import KernelThunk, NodeThunk, is_empty
from ....registry.values import align_up
from ....tracer.graph import Value
from ...cpu.callback import CALLBACKS
from ...cpu.compile import MAIN, MainWriter, load_from_table
from ...cpu.object_table import TableItem
from ..blas.gemm_text import calls_of, write_blas_loads, write_product
from ..codegen.fused import write_cuda
from ..codegen.kernel import WORKSPACE, CudaKernel
from .graphs import CAPTURED, CAPTURES, EXEC, HANDLES, LAUNCH_GRAPH, PAIRS, QUEUE, SET
from .prewritten import make_launches
from .prewritten_text import FAULT, Address, DeviceNumber, ParameterWriter, Scratch, fault_number

ALIGNMENT = 256
LAUNCH, STREAM = 0, 1  # after the table of constants and callables: the submission's table, the stream


def write_kernels(step: KernelThunk, commented: bool = False) -> list[CudaKernel]:
    """Write the kernels of a step.

    Args:
        step: the step.
        commented: whether comments name the operators; without comments equal graphs have equal kernels.
    """
    if is_empty(step):
        return []
    comments = [f"{node.op.name} ({node.source or 'unknown line'})" for node in step.nodes]
    private = [step.params.index(value) for value in step.temporaries]
    kernel = _share_parameters(step)._replace(name=f"tandem_{step.kernel.name}")
    return write_cuda(kernel, comments if commented else (), private=private)


def _share_parameters(step: KernelThunk) -> FusedKernel:
    """The kernel of a step, with one parameter for a value and the result that takes over its memory.

    The pointers of two parameters are ``__restrict__``: the compiler may reorder their accesses.
    """
    if step.updated is None or step.updated.source not in step.params:
        return step.kernel
    source, out = (step.params.index(value) for value in (step.updated.source, step.updated.out))
    buffers = [b._replace(param=out) if b.param == source else b for b in step.kernel.buffers]
    return step.kernel._replace(buffers=tuple(buffers))


class DeviceMainWriter(MainWriter):
    """Writes ``main(buffers, scalars)``, which launches the kernels of a lowered graph in a stream.

    ``main`` returns 0, the driver's status if a launch fails, -1 with an exception set, or ``CAPTURED``. ``buffers`` is
    that of a CPU executable, with device addresses; then the table of a :class:`.graphs.Submission`, and the stream.

    Args:
        lowered: the graph.
        replays: whether the kernels are the nodes of a CUDA graph, which is launched at the end; the table is then that
            of a :class:`.graphs.Replay`.

    Attributes:
        launched: the kernels, in the order of their launches.
        nodes: the entries of the table of callables: nodes computed by eager kernels, None for cuBLAS, and numbers that
            depend on the device.
        workspace: bytes of scratch memory: intermediates, then the workspace of single kernels.
    """

    stack_words, cell_bytes = sys.maxsize, 0  # the workspace is the device's memory

    def __init__(self, lowered: Lowered, replays: bool = False):
        super().__init__(lowered)
        self.replays = replays
        self.launched: list[CudaKernel] = []
        self.nodes: list[NodeThunk | DeviceNumber | None] = []
        self.numbers: dict[DeviceNumber, str] = {}
        self.most = 1  # the largest number of parameters of a launch
        self.temporaries = -(-lowered.memory.workspace // ALIGNMENT) * ALIGNMENT
        self.workspace = lowered.memory.workspace

    def write(self) -> str:
        """The whole module."""
        for number, step in enumerate(self.lowered.steps):
            if isinstance(step, KernelThunk):
                for kernel in write_kernels(step):
                    self._launch(kernel, step)
            elif step.kind == "native":
                self._launch_prewritten(step)
            elif not self._product(step, number):
                self.lines += self.callback_lines(step, number)
        behind = len(self.arrays) + len(self.lowered.storages) + 2
        head = [
            *load_from_table("%tables", "%buffers", behind - 1),
            *load_from_table("%launches", "%buffers", behind + LAUNCH),
            *load_from_table("%stream", "%buffers", behind + STREAM),
            *load_from_table("%driver", "%launches", SET if self.replays else QUEUE),
            f"  %values = alloca [{self.most} x i64]",
            f"  %parameters = alloca [{self.most} x ptr]",
        ]
        for index in range(self.most):
            head += [
                f"  %value{index} = getelementptr i8, ptr %values, i64 {8 * index}",
                f"  %parameter{index} = getelementptr i8, ptr %parameters, i64 {8 * index}",
                f"  store ptr %value{index}, ptr %parameter{index}",
            ]
        head += self._replay_head() if self.replays else []
        main = [
            f"define i32 @{MAIN}(ptr %buffers, ptr %scalars) {{",
            "entry:",
            *head,
            *self.table_allocation(),
            *self.lines,
        ]
        helpers = CALLBACKS if self.callbacks else ""
        end = (
            ["  %done = call i32 %go(ptr %graph, ptr %stream)", "  ret i32 %done"]
            if self.replays
            else ["  ret i32 0"]
        )
        return "\n".join([helpers, *main, *end, "}", str(self.module)])

    def _replay_head(self) -> list[str]:
        """Instructions that check for stream capture and prepare the node parameters, once for all nodes."""
        return [
            *load_from_table("%graph", "%launches", EXEC),
            *load_from_table("%go", "%launches", LAUNCH_GRAPH),
            "  %node = alloca [9 x i64]",
            "  store [9 x i64] zeroinitializer, ptr %node",
            "  %node_parameters = getelementptr i8, ptr %node, i64 40",
            "  store ptr %parameters, ptr %node_parameters",
            *load_from_table("%captures", "%launches", CAPTURES),
            "  %capture = alloca i32",
            "  store i32 0, ptr %capture",
            "  %asked = call i32 %captures(ptr %stream, ptr %capture)",
            "  %captured = load i32, ptr %capture",
            "  %both = or i32 %asked, %captured",
            "  %free = icmp eq i32 %both, 0",
            "  br i1 %free, label %alone, label %elsewhere",
            "elsewhere:",
            f"  ret i32 {CAPTURED}",
            "alone:",
        ]

    def _product(self, step: NodeThunk, number: int) -> bool:
        """Write a matrix product as calls of cuBLAS; False if Python has to make them."""
        plan = calls_of(step) if step.kind == "blas" else None
        if plan is None:
            return False
        if None not in self.nodes:
            self.lines += [*load_from_table("%blas", "%tables", self._add_entry(None)), *write_blas_loads()]
        out = step.node.outputs[0]
        one, two, made = (self.pointer(value) for value in (*(root for root, _ in step.operands), out))
        self.lines += write_product(plan, out.spec.dtype, (one, two, made), f"%m{number}_")
        return True

    def callback_lines(self, step: NodeThunk, number: int) -> list[str]:
        """Instructions that call a node's eager kernel, which puts its work into the same stream."""
        lines = super().callback_lines(step, number)
        return [line.replace("  ret i32 1", "  ret i32 -1") for line in lines]

    def _launch(self, kernel: CudaKernel, step: KernelThunk) -> None:
        """Write the launch of a fused kernel and its arguments."""
        number = len(self.launched)
        self.launched.append(kernel)
        words = [FAULT, *(fault_number(*check) for check in kernel.checks)] if kernel.checks else []
        behind = len(kernel.params) + len(kernel.scalars)
        first = behind + len(kernel.constants)
        self.most = max(self.most, first + len(words))
        self._reserve(kernel)
        for index, param in enumerate(kernel.params):
            pointer = self._own_workspace() if param == WORKSPACE else self.pointer(step.params[param])
            self.lines.append(f"  store ptr {pointer}, ptr %value{index}")
        for index, (slot, _) in enumerate(kernel.scalars, len(kernel.params)):
            self.lines += [
                f"  %s{number}_{index}a = getelementptr i8, ptr %scalars, i64 {8 * slot}",
                f"  %s{number}_{index} = load i64, ptr %s{number}_{index}a",
                f"  store i64 %s{number}_{index}, ptr %value{index}",
            ]
        for index, constant in enumerate(kernel.constants, behind):
            self.lines.append(f"  store i64 {constant}, ptr %value{index}")
        for index, word in enumerate(words, first):
            self.lines.append(f"  store ptr {self._load_number(word)}, ptr %value{index}")
        self._start(kernel, number)

    def _load_number(self, word: DeviceNumber) -> str:
        """The register with a number that depends on the device; the number is loaded at its first use."""
        register = self.numbers.get(word)
        if register is None:
            register = self.numbers[word] = f"%w{len(self.nodes)}"
            self.lines += load_from_table(register, "%tables", self._add_entry(word))
        return register

    def _add_entry(self, entry: NodeThunk | DeviceNumber | None) -> int:
        """Add an entry to the table of callables; return its index after the constants."""
        self.nodes.append(entry)
        return len(self.constants) + len(self.nodes) - 1

    def table_index(self, item: TableItem) -> int:
        """Add the object for a callback to the table; return its index."""
        if not isinstance(item, NodeThunk):
            raise LoweringError(f"{item!r} is not called from code that launches kernels")
        self.callbacks.append(item)
        return self._add_entry(item)

    def _launch_prewritten(self, step: NodeThunk) -> None:
        """Write the launches of prewritten kernels."""
        values = [*step.operands, *((out, contiguous(out.shape)) for out in step.node.outputs)]

        def address(word: Address | Scratch | DeviceNumber) -> str:
            if isinstance(word, DeviceNumber):
                return self._load_number(word)
            if isinstance(word, Scratch):
                base, offset = self._own_workspace(), word.offset
            else:
                root, layout = values[word.number]
                base, offset = self.pointer(root), layout.offset * root.spec.dtype.itemsize
            register = f"{writer.prefix}p{len(writer.lines)}"
            writer.lines.append(f"  {register} = getelementptr i8, ptr {base}, i64 {offset}")
            return register

        for kernel, params in make_launches(step):
            number = len(self.launched)
            self.launched.append(kernel)
            self.most = max(self.most, len(params))
            self._reserve(kernel)
            writer = ParameterWriter(address, f"%d{number}_")
            writer.write(params)
            self.lines += writer.lines
            self._start(kernel, number)
            self.lines += writer.after

    def _reserve(self, kernel: CudaKernel) -> None:
        """Extend the workspace by the scratch memory of a kernel."""
        if kernel.temporaries:
            self.workspace = max(self.workspace, self.temporaries + align_up(kernel.temporaries))

    def _start(self, kernel: CudaKernel, number: int) -> None:
        """Write the launch of a kernel whose parameters are stored."""
        self.lines += [
            *(self._set(kernel, number) if self.replays else self._queue(kernel, number)),
            f"  %e{number} = icmp ne i32 %c{number}, 0",
            f"  br i1 %e{number}, label %refused{number}, label %queued{number}",
            f"refused{number}:",
            f"  ret i32 %c{number}",
            f"queued{number}:",
        ]

    def _queue(self, kernel: CudaKernel, number: int) -> list[str]:
        """Return the call of cuLaunchKernel."""
        sizes = ", ".join(f"i32 {size}" for size in (*kernel.grid, *kernel.block, kernel.shared))
        return [
            *load_from_table(f"%h{number}", "%launches", HANDLES + number),
            f"  %c{number} = call i32 %driver(ptr %h{number}, {sizes}, ptr %stream, ptr %parameters, ptr null)",
        ]

    def _set(self, kernel: CudaKernel, number: int) -> list[str]:
        """Write the update of a graph node by a CUDA_KERNEL_NODE_PARAMS (function, sizes, address of the values)."""
        lines = [*load_from_table(f"%n{number}", "%launches", PAIRS + 2 * number)]
        lines += [
            *load_from_table(f"%h{number}", "%launches", PAIRS + 2 * number + 1),
            f"  store ptr %h{number}, ptr %node",
        ]
        for index, size in enumerate((*kernel.grid, *kernel.block, kernel.shared)):
            lines += [
                f"  %z{number}_{index} = getelementptr i8, ptr %node, i64 {8 + 4 * index}",
                f"  store i32 {size}, ptr %z{number}_{index}",
            ]
        return [*lines, f"  %c{number} = call i32 %driver(ptr %graph, ptr %n{number}, ptr %node)"]

    def _own_workspace(self) -> str:
        """The register with the address of the kernels' scratch memory."""
        result = "%own"
        if result not in self.known.values():
            self.known[Value(self.lowered.optimized.nodes[0].outputs[0].spec)] = result
            self.lines += [
                *load_from_table("%ownw", "%buffers", len(self.arrays) + len(self.lowered.storages)),
                f"  {result} = getelementptr i8, ptr %ownw, i64 {self.temporaries}",
            ]
        return result
