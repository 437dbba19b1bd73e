"""Loop-invariant code motion: compute the invariant nodes of a scan's body once, before the loop."""

from __future__ import annotations

from ...tracer.graph import Graph, Node, Value
from ..kernel_selection import uniform_constant
from .loop_passes import Rewritten, extract_subgraph, replace_scans, scan_node, scan_of, substitute
from .rewrite import copy_node, has_effects


def hoist_invariants(graph: Graph) -> Graph:
    """Move nodes that depend only on a scan's constants out of the scan.

    A transposed weight is then copied once, not in each step. Nodes whose results are larger than their arguments stay
    inside. The pass preserves exceptions: nothing leaves a scan of length zero, and no node that may raise moves past
    another node that may raise or has effects.
    """
    return replace_scans(graph, _hoist_from_scan)


def _hoist_from_scan(node: Node) -> Rewritten | None:
    """Return the hoisted nodes and the new scan, and the replacements of the scan's results; None if there are none."""
    scan = scan_of(node)
    if scan.length == 0:
        return None
    first = len(scan.carry) + len(scan.xs)
    outside: dict[Value, object] = dict(zip(scan.body.inputs[first:], scan.consts))
    before: list[Node] = []
    moved: dict[Value, Value] = {}
    rest: list[Node] = []
    may_end = False  # whether a node that stays inside may raise in the first step before the current node
    for inner in scan.body.nodes:
        if not _is_invariant(inner, outside) or (may_end and may_raise(inner)):
            rest.append(inner)
            may_end = may_end or may_raise(inner)
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
    body = substitute(body, dict(moved))
    needed = set(extract_subgraph(body, (), body.outputs).nodes)
    used = {value for kept in needed for value in kept.inputs} | set(body.outputs)
    given = [*scan.consts, *(outside[value] for value in moved)]
    kept_indices = [index for index, value in enumerate(body.inputs[first:]) if value in used]
    inputs = [*body.inputs[:first], *(body.inputs[first + index] for index in kept_indices)]
    made = scan._replace(
        body=extract_subgraph(body, inputs, body.outputs),
        consts=tuple(given[index] for index in kept_indices),
    )
    result = scan_node(made, node.source)
    return [*before, result], dict(zip(node.outputs, result.outputs))


# Kinds of operators whose kernels raise independently of values: while tracing or never.
_NEVER_RAISES = frozenset(
    (
        "unary",
        "binary",
        "comparison",
        "ternary",
        "reduction",
        "scan",
        "view",
        "cast",
        "copy",
        "join",
        "creation",
    )
) | {"contraction", "convolution"}


def may_raise(node: Node) -> bool:
    """Whether a node may raise at run time or has effects, so that other such nodes must not move past it."""
    return has_effects(node) or getattr(node.op.decl, "kind", "") not in _NEVER_RAISES


def _is_invariant(node: Node, outside: dict[Value, object]) -> bool:
    """Whether a node can be computed before the loop and its results are not larger than its inputs."""
    if has_effects(node) or not node.inputs or uniform_constant(node) is not None:
        return False
    if not all(value in outside for value in node.inputs):
        return False
    return sum(o.spec.size for o in node.outputs) <= sum(value.spec.size for value in node.inputs)
