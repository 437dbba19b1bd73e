"""Loops and branches as steps: their bodies lowered, where each result of a body comes from, the memory they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..registry.dtypes import uint8
from ..registry.operator import find
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Value, bodies_of
from .rewrite import has_effects, new_node
from .steps import NodeStep

Lower = Callable[[Graph], Any]


class Source(NamedTuple):
    """Where a result of a body comes from: ``"computed"`` (which storage), ``"input"`` or ``"constant"`` (which)."""

    kind: str
    place: int


class Body(NamedTuple):
    """A lowered body.

    Attributes:
        graph: what it was.
        lowered: how it is computed; None if all of its results are inputs.
        sources: where its results come from.
    """

    graph: Graph
    lowered: Any
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class LoopStep(NodeStep):
    """A loop or a branch.

    Attributes:
        bodies: in the order in which the node holds them.
        workspace: memory for one call of a body.
        doubles: for each carry of a loop two buffers, of which one is read while the other is written.
        flag: memory for the condition of a while loop.
    """

    bodies: tuple[Body, ...] = ()
    workspace: Value | None = None
    doubles: tuple[tuple[Value, Value], ...] = ()
    flag: Value | None = None

    @property
    def temporaries(self) -> list[Value]:
        """The memory that it needs while it runs."""
        single = [value for value in (self.workspace, self.flag) if value is not None]
        return [*single, *(value for pair in self.doubles for value in pair)]


def loop_step(step: NodeStep, lower: Lower) -> LoopStep:
    """The step of a control node, with its bodies lowered."""
    bodies = tuple(lower_body(graph, lower) for graph in bodies_of(step.node))
    nbytes = max((body.lowered.memory.workspace for body in bodies if body.lowered is not None), default=0)
    workspace = Value(TensorSpec((nbytes,), uint8)) if nbytes else None
    name = step.node.op.schema.name
    if name == "switch":
        return LoopStep(step.kind, step.node, step.operands, bodies, workspace)
    carry = step.node.args[1 if name == "scan" else 2]
    outputs = step.node.outputs[: len(carry)]
    doubles = tuple((Value(out.spec), Value(out.spec)) for out in outputs)
    flag = Value(TensorSpec((1,), uint8)) if name == "while_loop" else None
    return LoopStep(step.kind, step.node, step.operands, bodies, workspace, doubles, flag)


def lower_body(graph: Graph, lower: Lower) -> Body:
    """Lower a body so that each result that it computes has a buffer of its own."""
    inputs = {value: place for place, value in enumerate(graph.inputs)}
    computed = list(dict.fromkeys(o for o in graph.outputs if o not in inputs))
    if not computed and not any(map(has_effects, graph.nodes)):
        return Body(graph, None, tuple(Source("input", inputs[o]) for o in graph.outputs))
    part = Graph()
    part.inputs, part.nodes, part.outputs = graph.inputs, list(graph.nodes), list(computed)
    lowered = lower(part)
    shared = [place for place in range(len(computed)) if not _is_own(lowered, place)]
    if shared:
        for place in shared:
            copy = new_node(find("td::clone"), (computed[place],), {}, computed[place].spec, "")
            part.nodes.append(copy)
            part.outputs[place] = copy.outputs[0]
        lowered = lower(part)
    found = {value: _source(lowered.outputs[place]) for place, value in enumerate(computed)}
    return Body(
        graph, lowered, tuple(found[o] if o in found else Source("input", inputs[o]) for o in graph.outputs)
    )


def _source(output: Any) -> Source:
    return Source("computed" if output.kind == "storage" else output.kind, output.index)


def _is_own(lowered: Any, place: int) -> bool:
    """Whether a result lies in a storage of its own, as it is; a constant need not."""
    output = lowered.outputs[place]
    if output.kind == "constant":
        return bool(output.same)
    alone = sum(o.kind == output.kind and o.index == output.index for o in lowered.outputs) == 1
    if output.kind != "storage" or not alone:
        return False
    size = lowered.storages[output.index].spec.size
    return bool(output.same or (output.layout.is_contiguous and output.layout.size == size))
