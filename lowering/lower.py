"""Lowering: turn a traced graph into an executable, and expose every decision that was made for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .. import config
from ..errors import BackendUnavailableError, LoweringError
from ..registry.dispatch.observers import Note
from ..tracer.graph import Graph, Value
from .buffer_assignment import BufferAssignment, assign_buffers, nbytes_of
from .fusion.concat_in_place import find_pieces
from .fusion.groups import Partition
from .interpreter import interpret
from .kernel_selection import KernelSelection, Target
from .layout import Layout
from .loop_bodies import make_loop_thunk
from .passes.inline_producers import inline_producers, inline_ranges
from .passes.pipeline import folded_constants, optimize
from .passes.rematerialize import rematerialize
from .report import KernelTable, Row, describe_thunk
from .thunks import NodeThunk, Thunk, make_thunks, reads_and_writes


class Executable(Protocol):
    """A compiled graph, as :meth:`Lowered.compile` returns it."""

    def run(self, arrays: list[object]) -> list[Any]:
        """Run it on an array or Python scalar for each of the traced graph's parameters."""


class Backend(NamedTuple):
    """The functions that a backend registers for lowering.

    Attributes:
        target: returns the capabilities of the backend.
        compile: compiles a lowered graph to an executable.
        source: returns the emitted code as text.
        language: the language of that code: ``"LLVM IR"`` or ``"CUDA C"``.
        why_not: why an optimised graph is interpreted instead of compiled; None if it is compiled.
        prepare: a pass of the backend that runs after the common ones.
        scratch: bytes of kernel scratch memory that the steps need in the workspace.
    """

    target: Callable[[], Target]
    compile: Callable[[Lowered], Executable]
    source: Callable[[Lowered], str]
    language: str = "LLVM IR"
    why_not: Callable[[Graph], str | None] = lambda graph: None
    prepare: Callable[[Graph, str], Graph] = lambda graph, device: graph
    scratch: Callable[[Lowered], int] = lambda lowered: 0


backends: dict[str, Backend] = {}
_NOT_NATIVE = "native code is off (TANDEM_NATIVE=0) or not available"


def register_backend(device: str, backend: Backend) -> None:
    """Register a backend for a device type (``"cpu"``); it replaces an earlier one."""
    backends[device] = backend


class Output(NamedTuple):
    """The origin of one output of a graph.

    Attributes:
        kind: ``"parameter"`` (an argument, or a view of one), ``"storage"`` (a fresh buffer, or a view of one),
            ``"constant"`` (a copy of a folded constant, or a view of one) or ``"object"`` (a Python object).
        index: of the parameter, storage or constant; for an object its index among the outputs.
        layout: the layout of the output in that buffer; None for an object and for a weak parameter.
        same: whether the output is the whole parameter, storage or constant, not a view.
    """

    kind: str
    index: int  # type: ignore[assignment]  # tuples have a method of that name
    layout: Layout | None
    same: bool


class Lowered:
    """A lowered graph.

    Attributes:
        graph: the graph that was traced.
        device: where it runs.
        optimized: the graph after the passes.
        folded: the constants that the passes computed: (value, tensor).
        native: whether the graph is compiled; otherwise it is interpreted with the eager kernels.
        why_not: why the graph is interpreted; None if it is compiled.
        steps: the thunks in execution order (empty if the graph is interpreted).
        storages: the values whose freshly allocated buffers hold results.
        outputs: the origin of each result.
        memory: the buffer assignment of the intermediates.
        emitted: code that the backend emitted early to measure its scratch memory; None otherwise.
    """

    def __init__(self, graph: Graph, backend: Backend | None, device: str = "cpu"):
        self.graph, self.device = graph, device
        self.optimized = optimize(graph)
        self.why_not: str | None = _NOT_NATIVE
        if backend is not None:
            prepared = backend.prepare(self.optimized, device)
            self.why_not = backend.why_not(prepared)
            self.optimized = self.optimized if self.why_not else prepared
        self.backend = backend = None if self.why_not else backend
        self.native = backend is not None
        self.folded = folded_constants(self.optimized, graph)
        target = backend.target() if backend is not None else Target(lambda dtype: False, lambda node: None)
        self.resolution = KernelSelection(self.optimized, target, find_pieces)
        self.partition = Partition(self.optimized, self.resolution)
        self.steps: list[Thunk] = []
        if self.native:
            result = make_thunks(self.optimized, self.resolution, self.partition, self.folded)
            self.steps = [self._lower_bodies(step) for step in result]
        self.storages: list[Value] = []
        self.outputs = [self._describe_output(place, o) for place, o in enumerate(self.optimized.outputs)]
        if target.inlines_producers:
            kept = {*self.optimized.parameters, *(value for value, _ in self.folded)}
            counted = inline_ranges(self.steps, self.folded)
            self.steps = rematerialize(inline_producers(counted, kept, self.storages), self.storages)
        self.memory: BufferAssignment = assign_buffers(self.steps, self._values_with_buffers())
        self.emitted: Any = None
        if backend is not None:
            self.memory = self.memory.with_scratch(backend.scratch(self))

    def _lower_bodies(self, step: Thunk) -> Thunk:
        if not isinstance(step, NodeThunk) or step.kind != "loop":
            return step
        return make_loop_thunk(step, lambda graph: Lowered(graph, self.backend, self.device))

    def _values_with_buffers(self) -> set[Value]:
        return {*self.optimized.parameters, *self.storages}

    def _describe_output(self, place: int, output: object) -> Output:
        if not isinstance(output, Value):
            return Output("object", place, None, True)
        root, layout = self.resolution.root(output)
        same = root is output
        parameters, constants = self.graph.parameters, [value for value, _ in self.folded]
        for kind, values in (("parameter", parameters), ("constant", constants)):
            if root in values:
                return Output(kind, values.index(root), None if root.weak else layout, same)
        if root not in self.storages:
            self.storages.append(root)
        return Output("storage", self.storages.index(root), layout, same)

    # -- for people ------------------------------------------------------------------------------------------------
    def kernels(self) -> KernelTable:
        """The kernel choice of each node, its reason and its fusion group, as a printable table."""
        rows = []
        numbers = {group.index: place for place, group in enumerate(self.partition.groups)}
        for node in self.optimized.nodes:
            choice = self.resolution.choices[node]
            group = self.partition.of.get(node)
            if not self.native:
                choice = choice._replace(kind="interpreted", why=self.why_not or "")
            number = None if group is None or not self.native else numbers[group.index]
            value = str(node.outputs[0].spec) if node.outputs else "-"
            rows.append(Row(value, node.op.name, *choice, number, node.source))
        return KernelTable(rows, [describe_thunk(step) for step in self.steps])

    def llvm_ir(self) -> str:
        """The LLVM IR of the whole executable.

        Raises:
            BackendUnavailableError: the graph is interpreted, so no code is emitted.
            LoweringError: the graph was lowered for another device.
        """
        return self._emit_source("LLVM IR", "the CPU", "cuda_source()")

    def cuda_source(self) -> str:
        """The CUDA C source of the kernels, annotated with the operators that each one fuses.

        Raises:
            BackendUnavailableError: the graph is interpreted, so no code is emitted.
            LoweringError: the graph was lowered for the CPU; ``f.lower(x, device="cuda")`` lowers for CUDA.
        """
        return self._emit_source("CUDA C", "CUDA", "llvm_ir()")

    def _emit_source(self, language: str, where: str, instead: str) -> str:
        if self.backend is None:
            raise BackendUnavailableError(f"no code is emitted: {self.why_not}; the graph is interpreted")
        if self.backend.language != language:
            raise LoweringError(
                f"{language} runs on {where}, but this graph was lowered for {self.device!r}, which runs "
                f"{self.backend.language}: call {instead}"
            )
        return self.backend.source(self)

    def compile(self) -> Executable:
        """Compile the steps; see :class:`Executable`."""
        return Interpreted(self) if self.backend is None else self.backend.compile(self)

    # -- analyses --------------------------------------------------------------------------------------------------
    def memory_analysis(self) -> dict[str, int]:
        """Bytes of ``argument``, ``output``, ``temp`` (the workspace) and ``constant``; ``peak`` is their sum."""
        mapping = {
            "argument": sum(nbytes_of(v) for v in self.graph.parameters if v.weak is None),
            "output": sum(nbytes_of(v) for v in self.storages),
            "temp": self.memory.workspace,
            "constant": sum(nbytes_of(v) for v, _ in self.folded),
        }
        return mapping | {"peak": sum(mapping.values())}

    def cost_analysis(self) -> dict[str, float]:
        """``flops``: scalar operations of the nodes; ``bytes``: bytes that the steps read from and write to memory."""
        flops = float(sum(_count_flops(node) for node in self.optimized.nodes))
        touched = [value for step in self.steps for values in reads_and_writes(step) for value in values]
        return {"flops": flops, "bytes": float(sum(nbytes_of(v) for v in touched if v.weak is None))}


def _count_flops(node: Any) -> int:
    decl, size = node.op.decl, int(sum(o.spec.size for o in node.outputs))
    if decl is None or decl.kind in ("view", "creation"):
        return 0
    if decl.kind == "contraction" and isinstance(node.args[0], Value):
        steps = int(node.args[0].shape[0]) if node.op.name == "control::sum_products" else 1
        return 2 * size * steps * int(node.args[0].shape[-1])
    if decl.kind == "convolution":
        return 2 * size * math.prod(int(n) for n in node.args[1].shape[1:])
    if decl.kind in ("reduction", "scan"):
        return int(node.args[0].spec.size)
    return size


class Interpreted:
    """The portable executable: interprets the optimised graph node by node with the eager kernels."""

    def __init__(self, lowered: Lowered):
        self.lowered = lowered
        self._constants = [tensor for _, tensor in lowered.folded]

    def run(self, arrays: list[object]) -> list[Any]:
        """Run it on an array or Python scalar for each of the traced graph's parameters."""
        return interpret(self.lowered.optimized, [*arrays, *self._constants])

    def run_profiled(self, arrays: list[object], note: Note) -> list[object]:
        """Run the graph and report each node to a profiler."""
        return interpret(self.lowered.optimized, [*arrays, *self._constants], note)


def device_of(graph: Graph) -> str:
    """The device of a graph: the first CUDA device among those of its tensors, else the CPU."""
    made = (output for node in graph.nodes for output in node.outputs)
    devices = (value.spec.device for value in (*graph.parameters, *made))
    return next((device for device in devices if device.startswith("cuda")), "cpu")


def lower(graph: Graph, device: str = "cpu") -> Lowered:
    """Lower a traced graph.

    Args:
        graph: the traced graph, which is not changed.
        device: the device to lower for.
    """
    backend = backends.get(device.partition(":")[0]) if config.flags.native else None
    return Lowered(graph, backend, device)
