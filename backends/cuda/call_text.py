"""The function that runs a lowered graph: LLVM IR that puts one kernel after the other into a stream."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...lowering.layout import contiguous
from ...lowering.lowered import Lowered
from ...lowering.memory import aligned
from ...lowering.steps import KernelStep, NodeStep, is_empty
from ...tracer.graph import Value
from ..cpu.compile import CALLBACKS, MAIN, MainWriter, loaded
from .direct import launches_of
from .direct_text import Address, DirectWriter, Scratch, Word
from .emit.fused import write_cuda
from .emit.kernel import WORKSPACE, CudaKernel
from .gemm_text import blas_lines, plan_of, product_lines
from .graphs import CAPTURED, CAPTURES, EXEC, GO, HANDLES, PAIRS, QUEUE, SET

ALIGNMENT = 256
LAUNCH, STREAM = 0, 1  # behind the table of constants and callables: the table of the way, the stream


def kernels_of(step: KernelStep, commented: bool = False) -> list[CudaKernel]:
    """The kernels of a step.

    Args:
        step: the step.
        commented: whether they say which operators they compute; else equal graphs have equal kernels.
    """
    if is_empty(step):
        return []
    comments = [f"{node.op.name} ({node.source or 'unknown line'})" for node in step.nodes]
    private = [step.params.index(value) for value in step.temporaries]
    kernel = dataclasses.replace(step.kernel, name=f"tandem_{step.kernel.name}")
    return write_cuda(kernel, comments if commented else (), private=private)


class CallWriter(MainWriter):
    """The text of ``main(buffers, scalars)``, which puts the kernels of a lowered graph into a stream.

    It returns 0, the driver's status where a launch fails, -1 with an exception set, or ``CAPTURED``. ``buffers`` holds
    what a CPU executable's does, the addresses being the device's; then the table of a :class:`.graphs.Way`, and the
    stream.

    Args:
        lowered: the graph.
        replays: whether the kernels are the nodes of a CUDA graph, which is launched at the end; the table is then that
            of a :class:`.graphs.Replay`.

    Attributes:
        launched: the kernels, in the order of their launches.
        nodes: those that eager kernels serve, in the order of the table of callables; None stands for cuBLAS.
            Numbers that depend on the device are among them.
        workspace: bytes of scratch memory: intermediates, then what a kernel needs while it runs.
    """

    def __init__(self, lowered: Lowered, replays: bool = False):
        super().__init__(lowered)
        self.replays = replays
        self.launched: list[CudaKernel] = []
        self.nodes: list[NodeStep | Word | None] = []
        self.most = 1  # parameters of a launch
        self.temporaries = -(-lowered.memory.workspace // ALIGNMENT) * ALIGNMENT
        self.workspace = lowered.memory.workspace

    def write(self) -> str:
        """The whole module."""
        for number, step in enumerate(self.lowered.steps):
            if isinstance(step, KernelStep):
                for kernel in kernels_of(step):
                    self._launch(kernel, list(step.params))
            elif step.kind == "native":
                self._direct(step)
            elif not self._product(step, number):
                self.lines += self.called_back(step, number)
        behind = len(self.arrays) + len(self.lowered.storages) + 2
        head = [
            *loaded("%tables", "%buffers", behind - 1),
            *loaded("%launches", "%buffers", behind + LAUNCH),
            *loaded("%stream", "%buffers", behind + STREAM),
            *loaded("%driver", "%launches", SET if self.replays else QUEUE),
            f"  %values = alloca [{self.most} x i64]",
            f"  %places = alloca [{self.most} x ptr]",
        ]
        for place in range(self.most):
            head += [
                f"  %value{place} = getelementptr i8, ptr %values, i64 {8 * place}",
                f"  %place{place} = getelementptr i8, ptr %places, i64 {8 * place}",
                f"  store ptr %value{place}, ptr %place{place}",
            ]
        head += self._replay_head() if self.replays else []
        main = [f"define i32 @{MAIN}(ptr %buffers, ptr %scalars) {{", "entry:", *head, *self.lines]
        helpers = CALLBACKS if self.callbacks else ""
        end = (
            ["  %done = call i32 %go(ptr %graph, ptr %stream)", "  ret i32 %done"]
            if self.replays
            else ["  ret i32 0"]
        )
        return "\n".join([helpers, *main, *end, "}", str(self.module)])

    def _replay_head(self) -> list[str]:
        """What is looked at and laid out once for all nodes."""
        return [
            *loaded("%graph", "%launches", EXEC),
            *loaded("%go", "%launches", GO),
            "  %node = alloca [9 x i64]",
            "  store [9 x i64] zeroinitializer, ptr %node",
            "  %node_places = getelementptr i8, ptr %node, i64 40",
            "  store ptr %places, ptr %node_places",
            *loaded("%captures", "%launches", CAPTURES),
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

    def _product(self, step: NodeStep, number: int) -> bool:
        """Write a matrix product, if it is one that machine code can ask cuBLAS for."""
        plan = plan_of(step) if step.kind == "blas" else None
        if plan is None:
            return False
        if None not in self.nodes:
            self.nodes.append(None)
            self.lines += [*loaded("%blas", "%tables", self.place(step)), *blas_lines()]
        out = step.node.outputs[0]
        one, two, made = (self.pointer(value) for value in (*(root for root, _ in step.operands), out))
        self.lines += product_lines(plan, out.spec.dtype, (one, two, made), f"%m{number}_")
        return True

    def called_back(self, step: NodeStep, number: int) -> list[str]:
        """Instructions that call a node's eager kernel, which puts its work into the same stream."""
        self.nodes.append(step)
        lines = super().called_back(step, number)
        return [line.replace("  ret i32 1", "  ret i32 -1") for line in lines]

    def _launch(self, kernel: CudaKernel, params: Sequence[Value]) -> None:
        number = len(self.launched)
        self.launched.append(kernel)
        self.most = max(self.most, len(kernel.params) + len(kernel.scalars))
        self._reserve(kernel)
        for place, param in enumerate(kernel.params):
            pointer = self._own_workspace() if param == WORKSPACE else self.pointer(params[param])
            self.lines.append(f"  store ptr {pointer}, ptr %value{place}")
        for place, (slot, _) in enumerate(kernel.scalars, len(kernel.params)):
            self.lines += [
                f"  %s{number}_{place}a = getelementptr i8, ptr %scalars, i64 {8 * slot}",
                f"  %s{number}_{place} = load i64, ptr %s{number}_{place}a",
                f"  store i64 %s{number}_{place}, ptr %value{place}",
            ]
        self._start(kernel, number)

    def _direct(self, step: NodeStep) -> None:
        """Launch kernels that are no part of the graph's own."""
        values = [*step.operands, *((out, contiguous(out.shape)) for out in step.node.outputs)]

        def address(word: Address | Scratch | Word) -> str:
            if isinstance(word, Word):
                register = f"%w{len(self.nodes)}"
                self.nodes.append(word)
                writer.lines += loaded(register, "%tables", self.place(step))
                return register
            if isinstance(word, Scratch):
                base, offset = self._own_workspace(), word.offset
            else:
                root, layout = values[word.place]
                base, offset = self.pointer(root), layout.offset * root.spec.dtype.itemsize
            register = f"{writer.prefix}p{len(writer.lines)}"
            writer.lines.append(f"  {register} = getelementptr i8, ptr {base}, i64 {offset}")
            return register

        for kernel, params in launches_of(step):
            number = len(self.launched)
            self.launched.append(kernel)
            self.most = max(self.most, len(params))
            self._reserve(kernel)
            writer = DirectWriter(address, f"%d{number}_")
            writer.write(params)
            self.lines += writer.lines
            self._start(kernel, number)
            self.lines += writer.after

    def _reserve(self, kernel: CudaKernel) -> None:
        """Let the workspace have room for what a kernel needs while it runs."""
        if kernel.temporaries:
            self.workspace = max(self.workspace, self.temporaries + aligned(kernel.temporaries))

    def _start(self, kernel: CudaKernel, number: int) -> None:
        """Launch a kernel whose parameters are stored."""
        self.lines += [
            *(self._set(kernel, number) if self.replays else self._queue(kernel, number)),
            f"  %e{number} = icmp ne i32 %c{number}, 0",
            f"  br i1 %e{number}, label %refused{number}, label %queued{number}",
            f"refused{number}:",
            f"  ret i32 %c{number}",
            f"queued{number}:",
        ]

    def _queue(self, kernel: CudaKernel, number: int) -> list[str]:
        sizes = ", ".join(f"i32 {size}" for size in (*kernel.grid, *kernel.block, kernel.shared))
        return [
            *loaded(f"%h{number}", "%launches", HANDLES + number),
            f"  %c{number} = call i32 %driver(ptr %h{number}, {sizes}, ptr %stream, ptr %places, ptr null)",
        ]

    def _set(self, kernel: CudaKernel, number: int) -> list[str]:
        """Hand a node's parameters over: a CUDA_KERNEL_NODE_PARAMS (function, sizes, where the values lie)."""
        lines = [*loaded(f"%n{number}", "%launches", PAIRS + 2 * number)]
        lines += [
            *loaded(f"%h{number}", "%launches", PAIRS + 2 * number + 1),
            f"  store ptr %h{number}, ptr %node",
        ]
        for place, size in enumerate((*kernel.grid, *kernel.block, kernel.shared)):
            lines += [
                f"  %z{number}_{place} = getelementptr i8, ptr %node, i64 {8 + 4 * place}",
                f"  store i32 {size}, ptr %z{number}_{place}",
            ]
        return [*lines, f"  %c{number} = call i32 %driver(ptr %graph, ptr %n{number}, ptr %node)"]

    def _own_workspace(self) -> str:
        """The register with the address of what kernels need while they run."""
        found = "%own"
        if found not in self.known.values():
            self.known[Value(self.lowered.optimized.nodes[0].outputs[0].spec)] = found
            self.lines += [
                *loaded("%ownw", "%buffers", len(self.arrays) + len(self.lowered.storages)),
                f"  {found} = getelementptr i8, ptr %ownw, i64 {self.temporaries}",
            ]
        return found
