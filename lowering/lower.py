"""Lowering: turn a traced graph into an executable, and expose every decision that was made for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .. import config, lazy
from ..errors import BackendUnavailableError, LoweringError
from ..named_tuple import NamedTuple
from ..registry.dispatch.observers import Note
from ..tracer.graph import Graph, Node, Value
from .buffer_assignment import Aliases, BufferAssignment, assign_buffers, nbytes_of
from .fusion.groups import Partition
from .fusion.pieces import find_pieces
from .fusion.ranges import Range, match_constant_range, match_range
from .interpreter import interpret
from .kernel_selection import KernelSelection, Target
from .layout import Layout
from .loop_bodies import LoopThunk, make_loop_thunk
from .passes.pipeline import folded_constants, optimize
from .thunks import KernelThunk, NodeThunk, Thunk, make_thunks, reads_and_writes

if TYPE_CHECKING:
    from .report import KernelTable

_affine_gathers = lazy.Module(".lowering.passes.affine_gathers")
_destinations = lazy.Module(".lowering.destinations")
_in_place = lazy.Module(".lowering.in_place")
_inline_gathers = lazy.Module(".lowering.passes.inline_gathers")
_inline_producers = lazy.Module(".lowering.passes.inline_producers")
_inline_reads = lazy.Module(".lowering.passes.inline_reads")
_inline_update_values = lazy.Module(".lowering.passes.inline_update_values")
_report = lazy.Module(".lowering.report")
_rematerialize = lazy.Module(".lowering.passes.rematerialize")


class Executable(Protocol):
    """A compiled graph, as :meth:`Lowered.compile` returns it."""

    def run(self, arrays: list[object]) -> list[Any]:
        """Run it on an array or Python scalar for each of the traced graph's parameters."""


class Backend(NamedTuple):
    """The functions that a backend registers for lowering.

    Attributes:
        target: returns the capabilities of the backend.
        compile: compiles a lowered graph to an executable; for the CPU backends/cpu/compile.py:compile_lowered.
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
        backend: the backend; None if the graph is interpreted.
        why_not: why the graph is interpreted; None if it is compiled.
        steps: the thunks in execution order (empty if the graph is interpreted).
        storages: the values whose freshly allocated buffers hold results.
        outputs: the origin of each result.
        memory: the buffer assignment of the intermediates.
        emitted: code that the backend emitted early to measure its scratch memory; None otherwise.
        donated: parameters whose memory the steps may write, if nothing reads their old elements later.
        placed: the numbers of the results that do not move into a donated parameter: the caller has memory for them.
        aliases: values that are stored in the memory of another value: one that an update takes over.
        written: the numbers of the donated parameters that the steps write.
    """

    optimized: Graph
    resolution: KernelSelection
    partition: Partition
    memory: BufferAssignment

    def __init__(
        self,
        graph: Graph,
        backend: Backend | None,
        device: str = "cpu",
        donated: Sequence[Value] = (),
        placed: Sequence[int] = (),
    ):
        self.graph, self.device, self.backend = graph, device, backend
        self.why_not: str | None = None if backend is not None else _NOT_NATIVE
        self.folded: list[tuple[Value, Any]] = []
        self.steps: list[Thunk] = []
        self.storages: list[Value] = []
        self.outputs: list[Output] = []
        self.emitted: Any = None
        self.donated, self.placed, self.aliases = tuple(donated), tuple(placed), Aliases()
        self.written: set[int] = set()

    @property
    def native(self) -> bool:
        """Whether the graph is compiled; otherwise it is interpreted with the eager kernels."""
        return self.backend is not None

    # -- for people ------------------------------------------------------------------------------------------------
    def kernels(self) -> KernelTable:
        """The kernel choice of each node, its reason and its fusion group, as a printable table."""
        rows = []
        numbers = {group.index: index for index, group in enumerate(self.partition.groups)}
        for node in self.optimized.nodes:
            choice = self.resolution.choices[node]
            group = self.partition.of.get(node)
            if not self.native:
                choice = choice._replace(kind="interpreted", why=self.why_not or "")
            number = None if group is None or not self.native else numbers[group.index]
            value = str(node.outputs[0].spec) if node.outputs else "-"
            rows.append(_report.Row(value, node.op.name, *choice, number, node.source))
        table: KernelTable = _report.KernelTable(rows, [_report.describe_thunk(step) for step in self.steps])
        return table

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


def _count_flops(node: Node) -> int:
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


# -- the stages --------------------------------------------------------------------------------------------------------
def optimize_graph(lowered: Lowered) -> None:
    """Run the common passes, then that of the backend; a graph that the backend cannot compile is interpreted."""
    lowered.optimized = optimize(lowered.graph)
    if lowered.backend is None:
        return
    prepared = lowered.backend.prepare(lowered.optimized, lowered.device)
    lowered.why_not = lowered.backend.why_not(prepared)
    if lowered.why_not is None:
        lowered.optimized = prepared
    else:
        lowered.backend = None


def select_kernels(lowered: Lowered) -> None:
    """Choose how each node is computed."""
    lowered.folded = folded_constants(lowered.optimized, lowered.graph)
    backend = lowered.backend
    target = Target(lambda dtype: False, lambda node: None) if backend is None else backend.target()
    lowered.resolution = KernelSelection(lowered.optimized, target, find_pieces)


def fuse_nodes(lowered: Lowered) -> None:
    """Form the groups of nodes that one kernel computes."""
    lowered.partition = Partition(lowered.optimized, lowered.resolution)


def schedule_groups(lowered: Lowered) -> None:
    """Make a thunk of each group, by fusion/schedule.py:schedule if it is fused; lower bodies of loops and branches."""
    if lowered.native:
        thunks = make_thunks(lowered.optimized, lowered.resolution, lowered.partition, lowered.folded)
        lowered.steps = [_lower_bodies(lowered, thunk) for thunk in thunks]


def _lower_bodies(lowered: Lowered, step: Thunk) -> Thunk:
    if not isinstance(step, NodeThunk) or step.kind != "loop":
        return step

    def lower_body(graph: Graph, donated: Sequence[Value], placed: Sequence[int]) -> Lowered:
        return run_stages(Lowered(graph, lowered.backend, lowered.device, donated, placed))

    return make_loop_thunk(step, lower_body, lambda value: _find_integer_range(lowered, value))


def _find_integer_range(lowered: Lowered, value: Value) -> Range | None:
    """The numbers that a value counts, if it is a range of integers along its only axis."""
    if len(value.shape) != 1 or not value.spec.dtype.is_integer:
        return None
    if value.node is not None and lowered.resolution.choices[value.node].kind == "range":
        numbers = match_range(value.node)
        return numbers if numbers is not None and type(numbers.start) is type(numbers.step) is int else None
    tensor = next((tensor for folded, tensor in lowered.folded if folded is value), None)
    return None if tensor is None else match_constant_range(tensor._array)


def locate_outputs(lowered: Lowered) -> None:
    """Find the buffer and the layout of each output."""
    lowered.outputs = [_describe_output(lowered, n, o) for n, o in enumerate(lowered.optimized.outputs)]


def _describe_output(lowered: Lowered, index: int, output: object) -> Output:
    if not isinstance(output, Value):
        return Output("object", index, None, True)
    root, layout = lowered.resolution.root(output)
    same = root is output
    parameters, constants = lowered.graph.parameters, [value for value, _ in lowered.folded]
    for kind, values in (("parameter", parameters), ("constant", constants)):
        if root in values:
            return Output(kind, values.index(root), None if root.weak else layout, same)
    if root not in lowered.storages:
        lowered.storages.append(root)
    return Output("storage", lowered.storages.index(root), layout, same)


def inline_and_rematerialize(lowered: Lowered) -> None:
    """On backends with expensive launches, compute cheap intermediates in each kernel that reads them."""
    lowered.steps = _drop_unread_ranges(lowered)
    if lowered.resolution.target.inlines_producers:
        kept = {*lowered.optimized.parameters, *(value for value, _ in lowered.folded)}
        counted = _inline_producers.inline_ranges(lowered.steps, lowered.folded)
        inlined = _inline_producers.inline_producers(counted, kept, lowered.storages)
        lowered.steps = _rematerialize.rematerialize(inlined, lowered.storages)


def _has_index_maps(step: Thunk) -> bool:
    """Whether a step is a kernel that reads or writes at integer positions."""
    return isinstance(step, KernelThunk) and any(stage.has_index_maps() for stage in step.kernel.stages)


def _drop_unread_ranges(lowered: Lowered) -> list[Thunk]:
    """The steps without kernels of ranges that loops count themselves."""
    read = {value for step in lowered.steps for value in reads_and_writes(step)[0]} | set(lowered.storages)
    choices = lowered.resolution.choices
    return [
        step
        for step in lowered.steps
        if not isinstance(step, KernelThunk)
        or not step.nodes
        or choices[step.nodes[0]].kind != "range"
        or step.params[0] in read
    ]


def load_at_affine_positions(lowered: Lowered) -> None:
    """Load elements at positions that are affine functions of the point without index maps."""
    if lowered.native and lowered.resolution.target.indexes and any(map(_has_index_maps, lowered.steps)):
        lowered.steps = _affine_gathers.load_at_affine_positions(
            lowered.steps, lowered.folded, lowered.storages
        )


def inline_gathers(lowered: Lowered) -> None:
    """Compute elements at integer positions where they are read."""
    if lowered.native and lowered.resolution.target.indexes and any(map(_has_index_maps, lowered.steps)):
        lowered.steps = _inline_gathers.inline_gathers(
            lowered.steps, lowered.folded, lowered.storages, lowered.resolution.target.inlines_producers
        )


def store_into_destinations(lowered: Lowered) -> None:
    """Let kernels store their results in the parts of buffers that these would be copied to."""
    choices = lowered.resolution.choices.values()
    if lowered.native and any(choice.kind == "pieces" for choice in choices):
        _destinations.store_into_destinations(lowered)


def inline_reads(lowered: Lowered) -> None:
    """Compute values at the points where kernels read them, where that is cheaper than storing them.

    Where launches are expensive, a launch for each region of a kernel's space would cost more.
    """
    target = lowered.resolution.target
    if lowered.native and target.indexes and not target.inlines_producers and len(lowered.steps) > 1:
        _inline_reads.inline_reads(lowered)


def inline_update_values(lowered: Lowered) -> None:
    """Compute the values of updates at one position in the kernels that write them."""
    updates = lowered.native and lowered.resolution.target.updates
    if updates and any(isinstance(s, KernelThunk) and s.updated for s in lowered.steps):
        _inline_update_values.inline_update_values(lowered)


def count_positions(lowered: Lowered) -> None:
    """Compute constant ranges where they are positions: consecutive ones are vectors in memory."""
    steps, constants = lowered.steps, lowered.folded
    if lowered.native and constants and any(map(_has_index_maps, steps)):
        counted = iter(_inline_producers.inline_ranges(filter(_has_index_maps, steps), constants))
        lowered.steps = [next(counted) if _has_index_maps(step) else step for step in steps]


def update_in_place(lowered: Lowered) -> None:
    """Let updates and results take over the memory of values that are dead; copy the others before an update."""
    updates = (s.in_place if isinstance(s, LoopThunk) else getattr(s, "updated", None) for s in lowered.steps)
    if any(updates):
        _in_place.update_steps(lowered)
    if lowered.donated:
        _in_place.store_results_in_donated(lowered)


def assign_memory(lowered: Lowered) -> None:
    """Assign the intermediates, then the kernels' scratch memory, to the workspace."""
    with_buffers = {*lowered.optimized.parameters, *lowered.storages}
    lowered.memory = assign_buffers(lowered.steps, with_buffers, lowered.aliases)
    if lowered.backend is not None:
        lowered.memory = lowered.memory.with_scratch(lowered.backend.scratch(lowered))


Stage = Callable[[Lowered], None]
STAGES: tuple[Stage, ...] = (
    optimize_graph,
    select_kernels,
    fuse_nodes,
    schedule_groups,
    locate_outputs,
    inline_and_rematerialize,
    load_at_affine_positions,
    inline_gathers,
    store_into_destinations,
    inline_reads,
    inline_update_values,
    count_positions,
    update_in_place,
    assign_memory,
)
"""The stages of lowering in order; each fills in the attributes of the graph's :class:`Lowered`."""


def run_stages(lowered: Lowered) -> Lowered:
    """Run all stages."""
    for stage in STAGES:
        stage(lowered)
    return lowered


def lower(graph: Graph, device: str = "cpu", donated: Sequence[Value] = ()) -> Lowered:
    """Lower a traced graph.

    Args:
        graph: the traced graph, which is not changed.
        device: the device to lower for.
        donated: parameters whose memory results may be stored in.
    """
    backend = backends.get(device.partition(":")[0]) if config.flags.native else None
    return run_stages(Lowered(graph, backend, device, donated))
