"""What a scan's body computes anew in each step from what never changes is computed once, before the loop."""

from __future__ import annotations

from typing import Any

from ..tracer.graph import Graph, Node, Value
from .loop_passes import Changed, part_of, replace_scans, scan_node, substituted, taken_apart
from .resolve import uniform_constant
from .rewrite import copy_node, has_effects


def hoist_invariants(graph: Graph) -> Graph:
    """Move nodes that depend only on what the body reaches by itself out of scans.

    A transposed weight lies then as the matrix product wants it, once and for all. What would be larger than what it is
    made of stays inside.
    """
    return replace_scans(graph, _without_invariants)


def _without_invariants(node: Node) -> Changed | None:
    """The nodes that go before a scan, the scan without them, and what stands for its results."""
    scan = taken_apart(node)
    first = len(scan.carry) + len(scan.xs)
    outside: dict[Value, Any] = dict(zip(scan.body.inputs[first:], scan.consts))
    before: list[Node] = []
    moved: dict[Value, Value] = {}
    rest: list[Node] = []
    for inner in scan.body.nodes:
        if not _is_invariant(inner, outside):
            rest.append(inner)
            continue
        copy = copy_node(inner, outside.__getitem__)
        before.append(copy)
        outside.update(zip(inner.outputs, copy.outputs))
        moved.update(zip(inner.outputs, (Value(o.spec) for o in inner.outputs)))
    if not before:
        return None
    body = Graph()
    body.inputs = [*scan.body.inputs, *moved.values()]
    body.nodes, body.outputs = rest, list(scan.body.outputs)
    body = substituted(body, dict(moved))
    needed = set(part_of(body, (), body.outputs).nodes)
    used = {value for kept in needed for value in kept.inputs} | set(body.outputs)
    given = [*scan.consts, *(outside[value] for value in moved)]
    kept_places = [place for place, value in enumerate(body.inputs[first:]) if value in used]
    inputs = [*body.inputs[:first], *(body.inputs[first + place] for place in kept_places)]
    made = scan._replace(
        body=part_of(body, inputs, body.outputs), consts=tuple(given[place] for place in kept_places)
    )
    found = scan_node(made, node.source)
    return [*before, found], dict(zip(node.outputs, found.outputs))


def _is_invariant(node: Node, outside: dict[Value, Any]) -> bool:
    """Whether a node can be computed before the loop, and is no larger than what it is made of."""
    if has_effects(node) or not node.inputs or uniform_constant(node) is not None:
        return False
    if not all(value in outside for value in node.inputs):
        return False
    return sum(o.spec.size for o in node.outputs) <= sum(value.spec.size for value in node.inputs)
