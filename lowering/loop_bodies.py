"""Thunks of loops and branches: their lowered bodies, the sources of body results, and the memory that they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..named_tuple import NamedTuple
from ..registry.dtypes import uint8
from ..registry.operator import find_operator
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Value, bodies_of
from .passes.rewrite import has_effects, new_node
from .thunks import NodeThunk

if TYPE_CHECKING:
    from .lower import Lowered, Output

Lower = Callable[[Graph], Any]


class Source(NamedTuple):
    """The source of a result of a body: ``"computed"``, ``"input"`` or ``"constant"``, and the index among those."""

    kind: str
    number: int


class Body(NamedTuple):
    """A lowered body.

    Attributes:
        graph: the graph of the body.
        lowered: the lowered graph; None if all results are inputs.
        sources: the source of each result.
    """

    graph: Graph
    lowered: Any
    sources: tuple[Source, ...]


class LoopThunk(NodeThunk):
    """A loop or a branch with compiled bodies.

    Attributes:
        bodies: in the order of the node's arguments.
        workspace: memory for one call of a body.
        doubles: two buffers for each carry of a loop: one is read while the other is written.
        flag: memory for the condition of a while loop.
    """

    def __init__(
        self,
        step: NodeThunk,
        bodies: tuple[Body, ...],
        workspace: Value | None,
        doubles: tuple[tuple[Value, Value], ...] = (),
        flag: Value | None = None,
    ) -> None:
        super().__init__(step.kind, step.node, step.operands)
        self.bodies, self.workspace, self.doubles, self.flag = bodies, workspace, doubles, flag

    @property
    def temporaries(self) -> list[Value]:
        """Values whose buffers the loop needs only while it runs."""
        single = [value for value in (self.workspace, self.flag) if value is not None]
        return [*single, *(value for pair in self.doubles for value in pair)]


def make_loop_thunk(step: NodeThunk, lower: Lower) -> LoopThunk:
    """Make the thunk of a control node: lower its bodies and size its temporaries."""
    bodies = tuple(lower_body(graph, lower) for graph in bodies_of(step.node))
    nbytes = max((body.lowered.memory.workspace for body in bodies if body.lowered is not None), default=0)
    workspace = Value(TensorSpec((nbytes,), uint8)) if nbytes else None
    name = step.node.op.schema.name
    if name == "switch":
        return LoopThunk(step, bodies, workspace)
    carry = step.node.args[1 if name == "scan" else 2]
    outputs = step.node.outputs[: len(carry)]
    doubles = tuple((Value(out.spec), Value(out.spec)) for out in outputs)
    flag = Value(TensorSpec((1,), uint8)) if name == "while_loop" else None
    return LoopThunk(step, bodies, workspace, doubles, flag)


def lower_body(graph: Graph, lower: Lower) -> Body:
    """Lower a body so that each result that it computes has its own buffer."""
    inputs = {value: index for index, value in enumerate(graph.inputs)}
    computed = list(dict.fromkeys(o for o in graph.outputs if o not in inputs))
    if not computed and not any(map(has_effects, graph.nodes)):
        return Body(graph, None, tuple(Source("input", inputs[o]) for o in graph.outputs))
    part = Graph()
    part.inputs, part.nodes, part.outputs = graph.inputs, list(graph.nodes), list(computed)
    lowered = lower(part)
    shared = [index for index in range(len(computed)) if not _is_own(lowered, index)]
    if shared:
        for index in shared:
            copy = new_node(find_operator("td::clone"), (computed[index],), {}, computed[index].spec, "")
            part.nodes.append(copy)
            part.outputs[index] = copy.outputs[0]
        lowered = lower(part)
    mapping = {value: _source(lowered.outputs[index]) for index, value in enumerate(computed)}
    return Body(
        graph,
        lowered,
        tuple(mapping[o] if o in mapping else Source("input", inputs[o]) for o in graph.outputs),
    )


def _source(output: Output) -> Source:
    return Source("computed" if output.kind == "storage" else output.kind, output.index)


def _is_own(lowered: Lowered, index: int) -> bool:
    """Whether a result fills a storage that no other result shares, or is an unchanged constant."""
    output = lowered.outputs[index]
    if output.kind == "constant":
        return bool(output.same)
    alone = sum(o.kind == output.kind and o.index == output.index for o in lowered.outputs) == 1
    layout = output.layout
    if output.kind != "storage" or layout is None or not alone:
        return False
    size = lowered.storages[output.index].spec.size
    return bool(output.same or (layout.is_contiguous and layout.size == size))
