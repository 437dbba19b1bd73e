"""Decompositions: operators without a native kernel become the operators that their declarations name."""

from __future__ import annotations

from typing import Any

from .... import lazy
from ....errors import TandemError
from ....lowering.passes.rewrite import copy_node, replace_each
from ....registry.dispatch.keys import DispatchKey
from ....registry.dispatch.precedence import find_external_kernel
from ....tracer.graph import Graph, Node, Value, map_values
from ..foreign_calls import explain_native

subgraph = lazy.Module(".control.subgraph")


def decompose(graph: Graph) -> Graph:
    """Replace the nodes that declare a decomposition and have no native kernel; return a new graph."""
    return replace_each(graph, _decompose)


def has_decomposition(node: Node) -> bool:
    """Return whether a node's operator declares a decomposition."""
    return getattr(node.op.decl, "decomposition", None) is not None


def _decompose(node: Node, out: Graph) -> tuple[Value, ...] | None:
    """Append the nodes of a decomposition; return their results, or None to leave the node as it is."""
    if not has_decomposition(node) or _has_kernel(node) or any(v.weak is complex for v in node.inputs):
        return None
    body = _trace(node)
    if body is None or len(body.outputs) != len(node.outputs):
        return None
    env: dict[Value, Any] = dict(zip(body.inputs, node.inputs, strict=True))
    nodes: list[Node] = []
    for inner in decompose(body).nodes:
        copy = copy_node(inner, lambda value: env.get(value, value))
        env.update(zip(inner.outputs, copy.outputs, strict=True))
        nodes.append(copy)
    results = [env.get(value, value) for value in body.outputs]
    if [value.spec for value in results] != [value.spec for value in node.outputs]:
        return None
    out.nodes += nodes
    return tuple(results)


def _has_kernel(node: Node) -> bool:
    if any(find_external_kernel(node.op, key) for key in (DispatchKey.CPU, DispatchKey.Meta)):
        return True
    return explain_native(node) is not None


def _trace(node: Node) -> Graph | None:
    """Return the graph of a node's decomposition, whose inputs are those of the node; None if there is none."""

    def run(*inputs: Any) -> list[Any]:
        values = dict(zip(node.inputs, inputs, strict=True))
        kwargs = {name: map_values(values.__getitem__, value) for name, value in node.kwargs.items()}
        result = node.op.decl.decomposition(*map_values(values.__getitem__, node.args), **kwargs)
        if result is None:
            return []
        return list(result) if isinstance(result, (tuple, list)) else [result]

    try:
        closed = subgraph.retrace(node.op.schema.name, node.inputs, run)
    except TandemError:
        return None  # the call is wrong: its kernel raises the error
    graph: Graph = closed.graph
    return None if closed.captures else graph
