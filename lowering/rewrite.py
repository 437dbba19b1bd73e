"""One walk for every pass: read each node through an environment, let the pass keep it or put values in its place.

Nodes that nothing has touched are shared between the graph before a pass and the graph after it; nobody changes a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value, bodies_of, map_values

Replacement = Sequence[Value] | None
Visit = Callable[[Node], Replacement]


def like(graph: Graph) -> Graph:
    """An empty graph with the same inputs, derived scalars and captured tensors."""
    found = Graph()
    found.inputs, found.captured = list(graph.inputs), list(graph.captured)
    found.constants, found.derived = list(graph.constants), list(graph.derived)
    return found


def with_arguments(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
    """The node with other arguments and results of the same specs."""
    found = Node(node.op, args, kwargs, node.source)
    found.outputs = tuple(Value(o.spec, found, o.index, o.weak) for o in node.outputs)
    return found


def copy_node(node: Node, read: Callable[[Value], Any]) -> Node:
    """The node with other values among its arguments.

    Args:
        node: what is copied.
        read: from a value to what takes its place.
    """
    kwargs = {name: map_values(read, arg) for name, arg in node.kwargs.items()}
    return with_arguments(node, map_values(read, node.args), kwargs)


def new_node(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: TensorSpec, source: str) -> Node:
    """A node with one result of the given spec."""
    node = Node(op, args, kwargs, source)
    node.outputs = (Value(spec, node, 0),)
    return node


def rewrite(graph: Graph, visit: Visit) -> Graph:
    """Walk the nodes in order; ``visit(node)`` gives None to keep a node, or the values to use instead of its results.

    Args:
        graph: what to rewrite; it stays as it is.
        visit: called with each node, whose arguments have been replaced already.

    Returns:
        The new graph.
    """
    out = like(graph)
    env: dict[Value, Value] = {}

    def read(value: Value) -> Value:
        return env.get(value, value)

    for node in graph.nodes:
        current = node
        if env and any(value in env for value in node.inputs):
            current = copy_node(node, read)
        results = visit(current)
        if results is None:
            out.nodes.append(current)
            results = current.outputs
        if results is not node.outputs:
            env.update(zip(node.outputs, results, strict=True))
    out.outputs = [read(o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


def replace_each(graph: Graph, visit: Callable[[Node, Graph], Value | None]) -> Graph:
    """Walk the nodes in order; ``visit(node, out)`` gives None to keep a node, or what stands for its one result, whose
    nodes it has appended to ``out``, the new graph.

    Args:
        graph: what to rewrite; it stays as it is.
        visit: called with each node, whose arguments have been replaced already.

    Returns:
        The new graph.
    """
    out = like(graph)
    env: dict[Value, Value] = {}

    def read(value: Value) -> Value:
        return env.get(value, value)

    for node in graph.nodes:
        now = copy_node(node, read) if any(value in env for value in node.inputs) else node
        result = visit(now, out)
        if result is not None:
            env[node.outputs[0]] = result
            continue
        out.nodes.append(now)
        env.update(zip(node.outputs, now.outputs) if now is not node else ())
    out.outputs = [read(o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


def has_effects(node: Node) -> bool:
    """Whether a node may not be merged, dropped or moved."""
    decl = node.op.decl
    if getattr(decl, "kind", "") == "control":
        return any(has_effects(inner) for body in bodies_of(node) for inner in body.nodes)
    return bool(getattr(decl, "effects", None)) or node.op.schema.is_mutable
