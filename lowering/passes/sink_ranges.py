"""Compute counted numbers inside loops: ``x[i - ks]`` with ``ks = arange(7)`` of outside reads a window.

A captured array is known to the kernels of a loop's body as memory only. If it has few elements, and is a range or a
few elementwise steps from ranges and constants, it is computed again in the body, where kernels count its numbers
instead of reading them. So is a long range that is divided in each step by another number, because quotients of numbers
that are known to be small take less time. What the body computes from a long range alone is computed once, outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tracer.graph import Graph, Node, Value
from ..fusion.ranges import match_range
from ..kernel_selection import uniform_constant
from .loop_passes import Rewritten, Scan, replace_scans, scan_node, scan_of, substitute
from .rewrite import copy_node, empty_like, has_effects

MAX_SIZE, MAX_NODES = 1024, 8  # elements and nodes of what is computed again in several steps
_DIVISIONS = frozenset(("remainder", "floor_divide", "fmod"))
_ELEMENTWISE = ("unary", "binary", "comparison", "ternary", "cast", "view")


def sink_ranges(graph: Graph) -> Graph:
    """Move ranges that scans capture into their bodies."""
    return replace_scans(graph, _sink_into_scan)


def _sink_into_scan(node: Node) -> Rewritten | None:
    scan = scan_of(node)
    first = len(scan.carry) + len(scan.xs)
    sunk = {k: nodes for k, value in enumerate(scan.consts) if (nodes := _find_counted(value))}
    for k, value in enumerate(scan.consts):
        if k not in sunk and _is_range(value) and _is_divided(scan, scan.body.inputs[first + k]):
            sunk[k] = [value.node]
    readers = {value for inner in scan.body.nodes if not _is_elementwise(inner) for value in inner.inputs}
    sunk = {k: nodes for k, nodes in sunk.items() if scan.body.inputs[first + k] not in readers}
    if not sunk:
        return None
    body, copies = empty_like(scan.body), dict[Value, Value]()
    for inner in dict.fromkeys(inner for nodes in sunk.values() for inner in nodes):
        copy = copy_node(inner, copies.__getitem__)
        copies.update(zip(inner.outputs, copy.outputs))
        body.nodes.append(copy)
    env = {scan.body.inputs[first + k]: copies[scan.consts[k]] for k in sunk}
    kept = [k for k in range(len(scan.consts)) if k not in sunk]
    body.inputs = [value for value in scan.body.inputs if value not in env]
    body.nodes += scan.body.nodes
    body.outputs = list(scan.body.outputs)
    made = scan._replace(body=substitute(body, env), consts=tuple(scan.consts[k] for k in kept))
    result = scan_node(made, node.source)
    return [result], dict(zip(node.outputs, result.outputs))


def _is_range(value: object) -> bool:
    return isinstance(value, Value) and value.node is not None and match_range(value.node) is not None


def _is_divided(scan: Scan, value: Value) -> bool:
    """Return whether a body divides a value, and computes nothing from it that is the same in all steps."""
    varying = set(scan.body.inputs[: len(scan.carry) + len(scan.xs)])
    readers = []
    for node in scan.body.nodes:
        if value in node.inputs:
            readers.append(node)
        if not varying.isdisjoint(node.inputs) or has_effects(node):
            varying.update(node.outputs)
    is_divided = any(node.op.schema.name in _DIVISIONS and node.inputs[0] is value for node in readers)
    return is_divided and all(not varying.isdisjoint(node.inputs) for node in readers)


def _find_counted(value: object) -> Sequence[Node]:
    """Return the nodes that compute a value from ranges and constants, in order; none for any other value."""
    nodes: list[Node] = []
    has_range = isinstance(value, Value) and _collect(value, nodes)
    return nodes if has_range and any(match_range(node) is not None for node in nodes) else ()


def _collect(value: Value, nodes: list[Node]) -> bool:
    """Append the nodes that compute a value; return whether all of them may be computed again."""
    node = value.node
    if node in nodes:
        return True
    if node is None or value.weak is not None or len(nodes) == MAX_NODES or has_effects(node):
        return False
    if not isinstance(value.spec.size, int) or value.spec.size > MAX_SIZE:
        return False
    is_leaf = match_range(node) is not None or uniform_constant(node) is not None
    if not is_leaf and not (node.inputs and _is_elementwise(node)):
        return False
    if not all(_collect(source, nodes) for source in node.inputs):
        return False
    nodes.append(node)
    return True


def _is_elementwise(node: Node) -> bool:
    return getattr(node.op.decl, "kind", "") in _ELEMENTWISE
