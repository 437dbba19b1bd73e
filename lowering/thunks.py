"""Thunks: the executable steps of a lowered graph (emitted kernels, library calls, callbacks), in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from .. import lazy
from ..eager.tensor.tensor import Tensor
from ..named_tuple import NamedTuple
from ..operators.scalar_ir.expr import Expr
from ..registry.dtypes import UNSIGNED, DType, uint64
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value
from .fusion.groups import Group, Partition
from .fusion.index_maps import unaligned_inputs
from .fusion.loop_ir import Buffer, FusedKernel, Stage, Store, load
from .fusion.pieces import find_pieces, is_update, make_piece_kernel
from .fusion.ranges import make_range_kernel, match_range
from .fusion.schedule import ScheduleContext, schedule
from .kernel_selection import FUSED, KernelSelection, uniform_constant
from .layout import Layout, contiguous

_updates = lazy.Module(".lowering.fusion.updates")


class AliasCandidate(NamedTuple):
    """A result that may be stored in the memory of an operand.

    Attributes:
        source: the value whose memory is taken over.
        layout: the layout of the operand in that memory.
        out: the result.
    """

    source: Value
    layout: Layout
    out: Value


class KernelThunk(NamedTuple):
    """An emitted kernel.

    Attributes:
        kernel: its loop IR.
        params: the values of its parameters.
        temporaries: the values that only it uses.
        nodes: the nodes that it computes.
        updated: for a kernel that writes some elements of a result, that result and the value that has its other
            elements: the result takes over its memory, or begins as a copy.
        rows: values of no node that it stores for other kernels: what these need of each of its rows.
    """

    kernel: FusedKernel
    params: tuple[Value, ...]
    temporaries: tuple[Value, ...]
    nodes: tuple[Node, ...]
    updated: AliasCandidate | None = None
    rows: tuple[Value, ...] = ()


class NodeThunk:
    """A node that one call computes: a library kernel, a C function of the user, or a callback to its eager kernel.

    Attributes:
        kind: ``"blas"``, ``"native"`` or ``"callback"``.
        operands: for each Value argument, in order, the value whose buffer holds it and its layout there.
    """

    def __init__(self, kind: str, node: Node, operands: Iterable[tuple[Value, Layout]]) -> None:
        self.kind, self.node, self.operands = kind, node, tuple(operands)

    @property
    def reads(self) -> list[Value]:
        """The values whose buffers the step reads."""
        return [root for root, _ in self.operands]

    @property
    def temporaries(self) -> list[Value]:
        """Values whose buffers the step needs only while it runs."""
        return []


Thunk = KernelThunk | NodeThunk


class Uses:
    """The escaping values: those that need a buffer because another step reads them or because they are results."""

    def __init__(self, graph: Graph, resolution: KernelSelection, partition: Partition):
        self.resolution, self.partition = resolution, partition
        self.escaping: set[Value] = set()
        for node in graph.nodes:
            if resolution.choices[node].kind != "view":
                self._read(node)
        for output in graph.outputs:
            if isinstance(output, Value):
                self.escaping.add(resolution.root(output)[0])

    def _read(self, node: Node) -> None:
        fused = self.resolution.choices[node].kind in (*FUSED, "update")
        group = self.partition.of[node]
        in_memory = unaligned_inputs(node)
        for value in node.inputs:
            root = self.resolution.root(value)[0]
            maker = self.partition.maker.get(root)
            inlined = (
                fused
                and value not in in_memory
                and root.node is not None
                and self.resolution.choices[root.node].kind == "constant"
            )
            if maker is not None and not inlined and (maker is not group or not fused):
                self.escaping.add(root)


def find_uniform_number(tensor: Tensor) -> bool | int | float | None:
    """The Python number that all elements of a folded constant equal, or None."""
    array = tensor._array if isinstance(tensor, Tensor) else np.asarray(tensor)
    if array.size == 0 or array.dtype.kind == "c":
        return None
    first = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    if not (first == first[0]).all():
        return None
    number = array.reshape(-1)[0].item()
    return number if isinstance(number, (bool, int, float)) else None


def find_constant_number(
    value: Value, resolution: KernelSelection, folded: list[tuple[Value, Any]]
) -> bool | int | float | None:
    """The number that all elements of a value equal, if it is a result of ``full`` or a uniform folded constant."""
    if value.node in resolution.choices and resolution.choices[value.node].kind == "constant":
        return uniform_constant(value.node)
    tensor = next((tensor for constant, tensor in folded if constant is value), None)
    return None if tensor is None else find_uniform_number(tensor)


def find_constant_numbers(
    graph: Graph, resolution: KernelSelection, folded: list[tuple[Value, Any]]
) -> dict[Value, bool | int | float]:
    """The values all of whose elements equal one number: results of ``full`` and uniform folded constants."""
    mapping = {value: find_uniform_number(tensor) for value, tensor in folded}
    for node in graph.nodes:
        if resolution.choices[node].kind == "constant":
            mapping[node.outputs[0]] = uniform_constant(node)
    return {value: number for value, number in mapping.items() if number is not None}


def make_thunks(
    graph: Graph, resolution: KernelSelection, partition: Partition, folded: list[tuple[Value, Any]]
) -> list[Thunk]:
    """Make the steps of a graph.

    Args:
        graph: the optimised graph.
        resolution, partition: the kernel choices of its nodes, and its fusion groups.
        folded: constants that the passes computed, with their tensors.

    Returns:
        The steps in execution order.
    """
    uses = Uses(graph, resolution, partition)
    scalars = [value for value in graph.parameters if value.weak is not None]
    slots = {value: slot for slot, value in enumerate(scalars)}
    numbers = find_constant_numbers(graph, resolution, folded)
    kinds = {choice.kind for choice in resolution.choices.values()}
    merged = _updates.find_slice_updates(graph, resolution) if {"pieces", "update"} <= kinds else {}
    around = ScheduleContext(resolution, uses.escaping, slots, numbers, copies={}, slice_updates=merged)
    steps: list[Thunk] = []
    for group in partition.groups:
        steps += _thunks_of_group(f"k{len(steps)}", group, around)
    return steps


def _thunks_of_group(name: str, group: Group, around: ScheduleContext) -> list[Thunk]:
    if not group.fused:
        return _thunks_of_node(name, group.nodes[0], around)
    if not any(o in around.escaping for node in group.nodes for o in node.outputs):
        return []  # a constant that its readers inline
    result = schedule(name, group, around)
    return [KernelThunk(result.kernel, tuple(result.params), tuple(result.temporaries), tuple(group.nodes))]


def _thunks_of_node(name: str, node: Node, around: ScheduleContext) -> list[Thunk]:
    kind = around.resolution.choices[node].kind
    if node in around.slice_updates:
        return [_slice_update_thunk(name, node, around)]
    if kind == "pieces":
        return _piece_thunks(name, node, around)
    if kind == "update":
        return [] if node in around.slice_updates.values() else [_update_thunk(name, node, around)]
    counted = match_range(node) if kind == "range" else None
    if counted is not None:
        return [
            KernelThunk(make_range_kernel(name, node.outputs[0].spec, counted), node.outputs, (), (node,))
        ]
    operands = [around.resolution.root(value) for value in node.inputs]
    if kind not in IS_ACCEPTED:
        return [NodeThunk("callback", node, operands)]
    steps: list[Thunk] = []
    moved = _select_copies(kind, node, [layout for _, layout in operands], around)
    for index, (root, layout) in enumerate(operands):
        if root.weak is None and moved[index]:
            turns = kind == "blas" and _is_transposed(layout)
            source = transpose_layout(layout) if turns else layout
            known = around.copies.get((root, source))
            if known is None:
                emits = around.resolution.target.emits(root.spec.dtype)
                copy = copy_thunk(f"{name}_copy{index}", root, source, emits)
                steps.append(copy)
                known = around.copies[root, source] = copy.params[1]
            target = contiguous(source.shape)
            operands[index] = (known, transpose_layout(target) if turns else target)
    return [*steps, NodeThunk(kind, node, operands)]


def _is_transposed(layout: Layout) -> bool:
    """Whether matrices are stored column by column; their copies keep that order."""
    return len(layout.shape) > 1 and layout.strides[-2] == 1 and layout.strides[-1] != 1


def transpose_layout(layout: Layout) -> Layout:
    """The layout of the transposed matrices."""
    (*batch, m, n), (*steps, s, t) = layout.shape, layout.strides
    return Layout((*batch, n, m), (*steps, t, s), layout.offset)


def _select_copies(kind: str, node: Node, layouts: list[Layout], around: ScheduleContext) -> Sequence[bool]:
    """For each operand, whether it must be copied before the call."""
    if kind == "loop":
        first = _count_carries(node)  # a loop may write the memory of its carries, so they fill it
        return [
            not IS_ACCEPTED[kind](layout if index < first else layout._replace(offset=0))
            for index, layout in enumerate(layouts)
        ]
    chosen = around.resolution.target.copies(node, layouts)
    return [not IS_ACCEPTED[kind](layout) for layout in layouts] if chosen is None else chosen


def _count_carries(node: Node) -> int:
    """The number of operands of a loop that are carries; all operands of a branch."""
    name = node.op.schema.name
    return len(node.inputs) if name == "switch" else len(node.args[1 if name == "scan" else 2])


def _update_thunk(name: str, node: Node, around: ScheduleContext) -> KernelThunk:
    """Make the kernel that writes elements at integer positions."""
    out = node.outputs[0]
    made = _updates.make_update_kernel(name, node, around, out, contiguous(out.shape))
    updated = AliasCandidate(*around.resolution.root(node.args[0]), out)
    return KernelThunk(made.kernel, tuple(made.params), (), (node,), updated)


def _slice_update_thunk(name: str, node: Node, around: ScheduleContext) -> KernelThunk:
    """Make the kernel that writes elements of a slice at integer positions, where a node would write the slice back."""
    update, out = around.slice_updates[node], node.outputs[0]
    _, layout = around.resolution.root(update.args[0])
    made = _updates.make_update_kernel(name, update, around, out, layout)
    updated = AliasCandidate(*around.resolution.root(node.args[0]), out)
    return KernelThunk(made.kernel, tuple(made.params), (), (update, node), updated)


def _piece_thunks(name: str, node: Node, around: ScheduleContext) -> list[Thunk]:
    steps: list[Thunk] = []
    pieces = list(enumerate(find_pieces(node) or ()))
    updated = None
    if around.resolution.target.updates and len(pieces) == 2 and is_update(node) and pieces[1][1].size:
        pieces = pieces[1:]
        if pieces[0][1].adds or pieces[0][1].size < node.outputs[0].spec.size:
            updated = AliasCandidate(*around.resolution.root(node.args[0]), node.outputs[0])
    for index, piece in pieces:
        if piece.size:
            kernel, params = make_piece_kernel(
                f"{name}_piece{index}", node.outputs[0], piece, around.resolution.root, around.slots
            )
            steps.append(KernelThunk(kernel, params, (), (node,), updated))
    return steps


def is_matrix(layout: Layout) -> bool:
    """Whether BLAS accepts the last two axes as a matrix: one has stride 1, the other a leading dimension."""
    if len(layout.shape) == 1:
        return layout.shape[0] == 1 or layout.strides[0] > 0
    (m, n), (s, t) = layout.shape[-2:], layout.strides[-2:]
    rows = (t == 1 or n == 1) and (s >= n or m == 1)
    columns = (s == 1 or m == 1) and (t >= m or n == 1)
    return rows or columns


# By kind of step, whether an operand's layout is accepted; other operands are copied first.
IS_ACCEPTED: dict[str, Callable[[Layout], bool]] = {
    "blas": is_matrix,
    "native": lambda layout: layout.is_contiguous,
    "loop": lambda layout: layout.is_contiguous,
}


def copy_thunk(name: str, root: Value, layout: Layout, emits: bool = True) -> KernelThunk:
    """Make a kernel that copies a view into a contiguous buffer; ``emits``: whether code is emitted for its dtype."""
    target = Value(TensorSpec(layout.shape, root.spec.dtype, root.spec.device))
    return copy_into(name, root, layout, target, emits)


def copy_into(name: str, root: Value, layout: Layout, target: Value, emits: bool = True) -> KernelThunk:
    """Make a kernel that copies a view of ``root`` into the buffer of ``target``."""
    dtype = root.spec.dtype
    if not emits:
        dtype, layout = _as_integers(dtype, layout)
    source = Buffer("b0", dtype, layout.strides, 0, layout.offset)
    written = Buffer("b1", dtype, contiguous(layout.shape).strides, 1)
    value: Expr = load(source)
    stage = Stage(tuple(range(len(layout.shape))), (Store("b1", value),))
    kernel = FusedKernel(name, (), layout.shape, (source, written), (stage,))
    return KernelThunk(kernel, (root, target), (target,), ())


def _as_integers(dtype: DType, layout: Layout) -> tuple[DType, Layout]:
    """The bytes of the elements as integers of at most eight bytes, several of them along a last axis."""
    count = max(dtype.itemsize // uint64.itemsize, 1)
    integer = next(d for d in UNSIGNED if d.itemsize * count == dtype.itemsize)
    if count == 1:
        return integer, layout
    strides = (*(stride * count for stride in layout.strides), 1)
    return integer, Layout((*layout.shape, count), strides, layout.offset * count)


def is_empty(step: KernelThunk) -> bool:
    """Whether a kernel writes no elements."""
    return all(value.spec.size == 0 for value in written_values(step))


def written_values(step: KernelThunk) -> list[Value]:
    """The values whose buffers a kernel writes."""
    made = {o for node in step.nodes for o in node.outputs}.union(step.temporaries, step.rows)
    return [value for value in step.params if value in made]


def reads_and_writes(step: Thunk) -> tuple[list[Value], list[Value]]:
    """The values whose buffers a step reads and writes."""
    if isinstance(step, NodeThunk):
        return step.reads, [*step.node.outputs, *step.temporaries]
    written = set(written_values(step))
    reads = [value for value in step.params if value not in written]
    if step.updated is not None:
        reads.append(step.updated.source)
    return reads, [v for v in step.params if v in written]


def keep_buffers(step: KernelThunk, names: Collection[str]) -> KernelThunk:
    """Restrict a kernel to some of its buffers, and renumber the parameters."""
    kept = [b for b in step.kernel.buffers if b.name in names]
    indices = sorted({b.param for b in kept if b.param is not None})
    buffers = [b if b.param is None else b._replace(param=indices.index(b.param)) for b in kept]
    params = tuple(step.params[p] for p in indices)
    temporaries = tuple(v for v in step.temporaries if v in params)
    kernel = step.kernel._replace(buffers=tuple(buffers))
    return step._replace(kernel=kernel, params=params, temporaries=temporaries)
