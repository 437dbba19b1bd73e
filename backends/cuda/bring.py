"""What a graph for CUDA computes on the host, computed on the device: counters, positions, constants."""

from __future__ import annotations

from typing import Any

from ...lowering.rewrite import copy_node, has_effects, like
from ...tracer.graph import Graph, Node, Value, map_values


def bring(graph: Graph, device: str) -> Graph:
    """The graph with its tensors on the host made on a device, as far as they are no results and no arguments.

    Args:
        graph: an optimised graph.
        device: the device that it runs on.
    """
    if all(output.spec.device == device for node in graph.nodes for output in node.outputs):
        return graph
    stay = _shown(graph)
    out = like(graph)
    env: dict[Value, Value] = {}
    for node in graph.nodes:
        moves = node not in stay and any(o.spec.device == "cpu" for o in node.outputs) and _movable(node)
        current = copy_node(node, lambda value: env.get(value, value)) if moves or env else node
        if moves:
            move(current, device)
        out.nodes.append(current)
        env.update(zip(node.outputs, current.outputs))
    out.outputs = [map_values(lambda value: env.get(value, value), o) for o in graph.outputs]
    return out


def _shown(graph: Graph) -> set[Node]:
    """The nodes whose results on the host are results of the graph, or lead to such on the host."""
    wanted = {o for o in graph.outputs if isinstance(o, Value) and o.spec.device == "cpu"}
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if any(output in wanted for output in node.outputs):
            found.add(node)
            wanted.update(value for value in node.inputs if value.spec.device == "cpu")
    return found


def _movable(node: Node) -> bool:
    return not has_effects(node) and getattr(node.op.decl, "kind", "") not in (
        "transfer",
        "custom",
        "control",
    )


def move(node: Node, device: str) -> None:
    """Let the results of a node, which nobody else has yet, lie on a device."""
    name: Any = node.op.binder.device_argument
    if name:
        node.kwargs[name] = device
    for output in node.outputs:
        output.spec = output.spec._replace(device=device)
