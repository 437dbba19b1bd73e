"""Lowering: from a traced graph to something that runs, with everything that was decided on the way open to view."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .. import config
from ..errors import BackendUnavailableError, LoweringError
from ..tracer.graph import Graph, Value
from .absorb import absorbed, with_counted
from .evaluate import interpret
from .fusion import Partition
from .layout import Layout
from .loop_bodies import loop_step
from .memory import MemoryPlan, nbytes_of, plan_memory
from .passes import folded_constants, optimize
from .pieces import pieces_of
from .recomputed import recomputed
from .report import KernelTable, Row, describe_group
from .resolve import Resolution, Target
from .steps import NodeStep, Step, make_steps, reads_and_writes


class Executable(Protocol):
    """What :meth:`Lowered.compile` gives."""

    def run(self, arrays: list[Any]) -> list[Any]:
        """Run it on an array or Python scalar for each of the traced graph's parameters."""


class Backend(NamedTuple):
    """What a backend registers.

    Attributes:
        target: what it can compute.
        compile: makes an executable.
        source: the code that it emits, as text.
        language: what that is written in: ``"LLVM IR"`` or ``"CUDA C"``.
        why_not: why an optimised graph is interpreted all the same; None if it is compiled.
        prepare: a pass of its own, after the others.
    """

    target: Callable[[], Target]
    compile: Callable[[Lowered], Executable]
    source: Callable[[Lowered], str]
    language: str = "LLVM IR"
    why_not: Callable[[Graph], str | None] = lambda graph: None
    prepare: Callable[[Graph, str], Graph] = lambda graph, device: graph


backends: dict[str, Backend] = {}
_NOT_NATIVE = "native code is off (TANDEM_NATIVE=0) or not available"


def register_backend(device: str, backend: Backend) -> None:
    """Make a backend known for a device type (``"cpu"``); the newest is in force."""
    backends[device] = backend


class Output(NamedTuple):
    """What a result of the graph is.

    Attributes:
        kind: ``"parameter"`` (an argument, or a view of one), ``"storage"`` (a fresh buffer, or a view of one),
            ``"constant"`` (a copy of a folded constant, or a view of that) or ``"object"`` (nothing was computed).
        index: of the parameter, storage or constant; for an object its place among the outputs.
        layout: where the result lies in it; None for an object and for a weak parameter.
        same: whether it is that parameter, storage or constant itself.
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
        folded: the constants that the passes have computed: (value, tensor).
        native: whether it is compiled; else the optimised graph is interpreted with the eager kernels.
        why_not: why it is interpreted.
        steps: what runs, in order (empty where it is interpreted).
        storages: the values that get a fresh buffer because a result lies in it.
        outputs: what each result is.
        memory: where the intermediates lie.
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
        self.resolution = Resolution(self.optimized, target, pieces_of)
        self.partition = Partition(self.optimized, self.resolution)
        self.steps: list[Step] = []
        if self.native:
            found = make_steps(self.optimized, self.resolution, self.partition, self.folded)
            self.steps = [self._with_bodies(step) for step in found]
        self.storages: list[Value] = []
        self.outputs = [self._output(place, o) for place, o in enumerate(self.optimized.outputs)]
        if target.absorbs:
            kept = {*self.optimized.parameters, *(value for value, _ in self.folded)}
            counted = with_counted(self.steps, self.folded)
            self.steps = recomputed(absorbed(counted, kept, self.storages), self.storages)
        self.memory: MemoryPlan = plan_memory(self.steps, self._placed())

    def _with_bodies(self, step: Step) -> Step:
        if not isinstance(step, NodeStep) or step.kind != "loop":
            return step
        return loop_step(step, lambda graph: Lowered(graph, self.backend, self.device))

    def _placed(self) -> set[Value]:
        return {*self.optimized.parameters, *self.storages}

    def _output(self, place: int, output: Any) -> Output:
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
        """How each node is computed, why, and in which group; prints as a table."""
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
        return KernelTable(rows, [describe_group(step) for step in self.steps])

    def llvm_ir(self) -> str:
        """The LLVM IR of the whole executable.

        Raises:
            BackendUnavailableError: nothing is emitted, because the graph is interpreted.
            LoweringError: it was lowered for another device, for which other code is emitted.
        """
        return self._source("LLVM IR", "the CPU", "cuda_source()")

    def cuda_source(self) -> str:
        """The CUDA C of the kernels, with the operators that each fuses, and of the other steps what serves them.

        Raises:
            BackendUnavailableError: nothing is emitted, because the graph is interpreted.
            LoweringError: it was lowered for the CPU; ``f.lower(x, device="cuda")`` lowers for CUDA.
        """
        return self._source("CUDA C", "CUDA", "llvm_ir()")

    def _source(self, language: str, where: str, instead: str) -> str:
        if self.backend is None:
            raise BackendUnavailableError(f"no code is emitted: {self.why_not}; the graph is interpreted")
        if self.backend.language != language:
            raise LoweringError(
                f"{language} is what runs on {where}, and this was lowered for {self.device!r}, for which "
                f"{self.backend.language} is emitted: see {instead}"
            )
        return self.backend.source(self)

    def compile(self) -> Executable:
        """An executable; see :class:`Executable`."""
        return Interpreted(self) if self.backend is None else self.backend.compile(self)

    # -- analyses --------------------------------------------------------------------------------------------------
    def memory_analysis(self) -> dict[str, int]:
        """Bytes of ``argument``, ``output``, ``temp`` (the workspace) and ``constant``; ``peak`` is their sum."""
        found = {
            "argument": sum(nbytes_of(v) for v in self.graph.parameters if v.weak is None),
            "output": sum(nbytes_of(v) for v in self.storages),
            "temp": self.memory.workspace,
            "constant": sum(nbytes_of(v) for v, _ in self.folded),
        }
        return found | {"peak": sum(found.values())}

    def cost_analysis(self) -> dict[str, float]:
        """``flops``: scalar operations of the nodes; ``bytes``: what the steps read from memory and write to it."""
        flops = float(sum(_flops(node) for node in self.optimized.nodes))
        touched = [value for step in self.steps for values in reads_and_writes(step) for value in values]
        return {"flops": flops, "bytes": float(sum(nbytes_of(v) for v in touched if v.weak is None))}


def _flops(node: Any) -> int:
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
    """The portable executable: the optimised graph, node by node, on the eager kernels."""

    def __init__(self, lowered: Lowered):
        self.lowered = lowered
        self._constants = [tensor for _, tensor in lowered.folded]

    def run(self, arrays: list[Any]) -> list[Any]:
        """Run it on an array or Python scalar for each of the traced graph's parameters."""
        return interpret(self.lowered.optimized, [*arrays, *self._constants])


def device_of(graph: Graph) -> str:
    """Where a graph runs: on the first CUDA device that one of its tensors lies on, else on the CPU."""
    made = (output for node in graph.nodes for output in node.outputs)
    devices = (value.spec.device for value in (*graph.parameters, *made))
    return next((device for device in devices if device.startswith("cuda")), "cpu")


def lower(graph: Graph, device: str = "cpu") -> Lowered:
    """Lower a traced graph.

    Args:
        graph: what to lower; it stays as it is.
        device: where it runs.

    Returns:
        A :class:`Lowered`.
    """
    backend = backends.get(device.partition(":")[0]) if config.flags.native else None
    return Lowered(graph, backend, device)
