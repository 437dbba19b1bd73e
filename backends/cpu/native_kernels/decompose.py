"""Decompositions: operators without a native kernel become the operators that their declarations name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import lazy
from ....errors import TandemError
from ....lowering.layout import is_view
from ....lowering.passes.pipeline import merge_common_subexpressions, remove_dead_code
from ....lowering.passes.rewrite import copy_node, new_node, replace_each
from ....operators.declare.native_kernel import Decomposition
from ....registry.dispatch.keys import DispatchKey
from ....registry.dispatch.precedence import find_external_kernel
from ....registry.operator import find_operator
from ....tracer.graph import Graph, Node, Value, map_values
from ....tracer.infer import to_example
from ..foreign_calls import explain_native

subgraph = lazy.Module(".control.subgraph")


def decompose(graph: Graph) -> Graph:
    """Replace the nodes that declare a decomposition and have no native kernel; return a new graph."""
    result = replace_each(graph, _decompose)
    if all(one is two for one, two in zip(graph.nodes, result.nodes)):
        return graph
    result = remove_dead_code(merge_common_subexpressions(result))
    _own_outputs(graph, result)
    return result


def _own_outputs(before: Graph, after: Graph) -> None:
    """Copy outputs that decompositions have made views, or the same value twice: each has memory of its own."""
    seen: set[Value] = set(after.parameters)
    for index, (old, new) in enumerate(zip(before.outputs, after.outputs, strict=True)):
        if not isinstance(new, Value):
            continue
        if new is not old and (new in seen or (new.node is not None and is_view(new.node))):
            copy = new_node(find_operator("td::clone"), (new,), {}, new.spec, "")
            after.nodes.append(copy)
            after.outputs[index] = copy.outputs[0]
        seen.add(new)


def find_decomposition(node: Node) -> Callable[..., Any] | None:
    """Return the function that computes a node by other operators: a declared one, or the body of a composite."""
    decl = node.op.decl
    if decl is None or decl.kind == "composite":
        return decl.body if decl is not None and decl.explicit else None
    known: Decomposition | None = decl.decomposition
    if known is None:
        return None
    kwargs = {name: map_values(_to_example, value) for name, value in node.kwargs.items()}
    return known.body if known.when(*map_values(_to_example, node.args), **kwargs) else None


def _to_example(value: Value) -> Any:
    return value.spec if value.weak is None else to_example(value)


def _decompose(node: Node, out: Graph) -> tuple[Value, ...] | None:
    """Append the nodes of a decomposition; return their results, or None to leave the node as it is."""
    compose = find_decomposition(node)
    if compose is None or any(value.weak is complex for value in node.inputs):
        return None
    body = None if _has_kernel(node) else trace_decomposition(node, compose)
    if body is None or len(body.outputs) != len(node.outputs):
        return None
    body = replace_each(body, _decompose)
    env: dict[Value, Any] = dict(zip(body.inputs, node.inputs, strict=True))
    nodes: list[Node] = []
    for inner in body.nodes:
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


def trace_decomposition(node: Node, compose: Callable[..., Any]) -> Graph | None:
    """Return the graph of a node's decomposition, whose inputs are those of the node; None if there is none."""

    def run(*inputs: Any) -> list[Any]:
        values = dict(zip(node.inputs, inputs, strict=True))
        kwargs = {name: map_values(values.__getitem__, value) for name, value in node.kwargs.items()}
        result = compose(*map_values(values.__getitem__, node.args), **kwargs)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    try:
        closed = subgraph.retrace(node.op.schema.name, node.inputs, run)
    except TandemError:
        return None  # the call is wrong: its kernel raises the error
    graph: Graph = closed.graph
    return None if closed.captures else graph
