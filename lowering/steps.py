"""The steps of a lowered graph in the order in which they run: emitted kernels, library calls, callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..eager.tensor import Tensor
from ..operators.expr import Expr
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value
from .fusion import Group, Partition
from .layout import Layout, contiguous
from .loops import Buffer, FusedKernel, Stage, Store, load
from .pieces import piece_kernel, pieces_of
from .ranges import range_kernel, range_of
from .resolve import FUSED, Resolution, uniform_constant
from .schedule import Surroundings, schedule


@dataclass(frozen=True)
class KernelStep:
    """An emitted kernel: its loop IR, the values behind its parameters, and those that exist only within it."""

    kernel: FusedKernel
    params: tuple[Value, ...]
    temporaries: tuple[Value, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class NodeStep:
    """A node computed whole: by a library kernel, by a C function of the user's, or by a callback to its eager kernel.

    Attributes:
        kind: ``"blas"``, ``"native"`` or ``"callback"``.
        operands: for each Value among its arguments, in order, the value whose buffer holds it and its layout there.
    """

    kind: str
    node: Node
    operands: tuple[tuple[Value, Layout], ...]

    @property
    def temporaries(self) -> list[Value]:
        """Memory that it needs while it runs."""
        return []


Step = KernelStep | NodeStep


class Uses:
    """Which values need a buffer: read outside of the loop that computes them, or results."""

    def __init__(self, graph: Graph, resolution: Resolution, partition: Partition):
        self.resolution, self.partition = resolution, partition
        self.escaping: set[Value] = set()
        for node in graph.nodes:
            if resolution.choices[node].kind != "view":
                self._read(node)
        for output in graph.outputs:
            if isinstance(output, Value):
                self.escaping.add(resolution.root(output)[0])

    def _read(self, node: Node) -> None:
        fused = self.resolution.choices[node].kind in FUSED
        group = self.partition.of[node]
        for value in node.inputs:
            root = self.resolution.root(value)[0]
            maker = self.partition.maker.get(root)
            inlined = (
                fused and root.node is not None and self.resolution.choices[root.node].kind == "constant"
            )
            if maker is not None and not inlined and (maker is not group or not fused):
                self.escaping.add(root)


def uniform(tensor: Any) -> bool | int | float | None:
    """The Python number that every element of a folded constant is, or None."""
    array = tensor._array if isinstance(tensor, Tensor) else np.asarray(tensor)
    if array.size == 0 or array.dtype.kind == "c":
        return None
    first = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    if not (first == first[0]).all():
        return None
    number = array.reshape(-1)[0].item()
    return number if isinstance(number, (bool, int, float)) else None


def constant_numbers(
    graph: Graph, resolution: Resolution, folded: list[tuple[Value, Any]]
) -> dict[Value, bool | int | float]:
    """The values that are one number everywhere: filled ones, and folded ones that turned out so."""
    found = {value: uniform(tensor) for value, tensor in folded}
    for node in graph.nodes:
        if resolution.choices[node].kind == "constant":
            found[node.outputs[0]] = uniform_constant(node)
    return {value: number for value, number in found.items() if number is not None}


def make_steps(
    graph: Graph, resolution: Resolution, partition: Partition, folded: list[tuple[Value, Any]]
) -> list[Step]:
    """The steps of a graph.

    Args:
        graph: the optimised graph.
        resolution, partition: how its nodes are computed, and in which groups.
        folded: constants that the passes have computed, with their tensors.

    Returns:
        the steps, in an order in which they can run.
    """
    uses = Uses(graph, resolution, partition)
    scalars = [value for value in graph.parameters if value.weak is not None]
    slots = {value: slot for slot, value in enumerate(scalars)}
    around = Surroundings(resolution, uses.escaping, slots, constant_numbers(graph, resolution, folded))
    steps: list[Step] = []
    for group in partition.groups:
        steps += _steps_of(f"k{len(steps)}", group, around)
    return steps


def _steps_of(name: str, group: Group, around: Surroundings) -> list[Step]:
    if not group.fused:
        return _node_steps(name, group.nodes[0], around)
    if not any(o in around.escaping for node in group.nodes for o in node.outputs):
        return []  # a constant that its readers hold themselves
    found = schedule(name, group, around)
    return [KernelStep(found.kernel, tuple(found.params), tuple(found.temporaries), tuple(group.nodes))]


def _node_steps(name: str, node: Node, around: Surroundings) -> list[Step]:
    kind = around.resolution.choices[node].kind
    if kind == "pieces":
        return _piece_steps(name, node, around)
    counted = range_of(node) if kind == "range" else None
    if counted is not None:
        return [KernelStep(range_kernel(name, node.outputs[0].spec, counted), node.outputs, (), (node,))]
    operands = [around.resolution.root(value) for value in node.inputs]
    if kind not in LIES:
        return [NodeStep("callback", node, tuple(operands))]
    steps: list[Step] = []
    moved = _moved(kind, node, [layout for _, layout in operands], around)
    for place, (root, layout) in enumerate(operands):
        if root.weak is None and moved[place]:
            turns = kind == "blas" and _lies_turned(layout)
            source = turned(layout) if turns else layout
            known = around.copies.get((root, source))
            if known is None:
                copy = copy_step(f"{name}_copy{place}", root, source)
                steps.append(copy)
                known = around.copies[root, source] = copy.params[1]
            target = contiguous(source.shape)
            operands[place] = (known, turned(target) if turns else target)
    return [*steps, NodeStep(kind, node, tuple(operands))]


def _lies_turned(layout: Layout) -> bool:
    """Whether the columns of matrices lie in memory like rows; they are copied as they lie."""
    return len(layout.shape) > 1 and layout.strides[-2] == 1 and layout.strides[-1] != 1


def turned(layout: Layout) -> Layout:
    """The layout of the transposed matrices."""
    (*batch, m, n), (*steps, s, t) = layout.shape, layout.strides
    return Layout((*batch, n, m), (*steps, t, s), layout.offset)


def _moved(kind: str, node: Node, layouts: list[Layout], around: Surroundings) -> Sequence[bool]:
    """Which operands are copied first."""
    ask = around.resolution.target.copies
    if kind != "loop" and ask is not None:
        return ask(node, layouts)
    return [not LIES[kind](layout) for layout in layouts]


def _piece_steps(name: str, node: Node, around: Surroundings) -> list[Step]:
    steps: list[Step] = []
    for place, piece in enumerate(pieces_of(node) or ()):
        if piece.target.size:
            kernel, params = piece_kernel(
                f"{name}_piece{place}", node.outputs[0], piece, around.resolution.root, around.slots
            )
            steps.append(KernelStep(kernel, params, (), (node,)))
    return steps


def is_matrix(layout: Layout) -> bool:
    """Whether the last two axes lie as BLAS wants a matrix: one of them without gaps, the other in whole rows."""
    if len(layout.shape) == 1:
        return layout.shape[0] == 1 or layout.strides[0] > 0
    (m, n), (s, t) = layout.shape[-2:], layout.strides[-2:]
    rows = (t == 1 or n == 1) and (s >= n or m == 1)
    columns = (s == 1 or m == 1) and (t >= m or n == 1)
    return rows or columns


# How operands have to lie; others are copied.
LIES: dict[str, Callable[[Layout], bool]] = {
    "blas": is_matrix,
    "native": lambda layout: layout.is_contiguous,
    "loop": lambda layout: layout.is_contiguous,
}


def copy_step(name: str, root: Value, layout: Layout) -> KernelStep:
    """A kernel that copies a view into a buffer of its own."""
    target = Value(TensorSpec(layout.shape, root.spec.dtype, root.spec.device))
    source = Buffer("b0", root.spec.dtype, layout.strides, 0, layout.offset)
    written = Buffer("b1", root.spec.dtype, contiguous(layout.shape).strides, 1)
    value: Expr = load(source)
    stage = Stage(tuple(range(len(layout.shape))), (Store("b1", value),))
    kernel = FusedKernel(name, (), layout.shape, (source, written), (stage,))
    return KernelStep(kernel, (root, target), (target,), ())


def is_empty(step: KernelStep) -> bool:
    """Whether a kernel has no elements to write."""
    return all(value.spec.size == 0 for value in written_values(step))


def written_values(step: KernelStep) -> list[Value]:
    """The values whose buffers a kernel writes."""
    made = {o for node in step.nodes for o in node.outputs} | set(step.temporaries)
    return [value for value in step.params if value in made]


def reads_and_writes(step: Step) -> tuple[list[Value], list[Value]]:
    """The values whose buffers a step reads and writes."""
    if isinstance(step, NodeStep):
        return [root for root, _ in step.operands], [*step.node.outputs, *step.temporaries]
    written = set(written_values(step))
    return [value for value in step.params if value not in written], [v for v in step.params if v in written]
