"""Move intermediate values of a CUDA graph from the host to the device: counters, positions, constants."""

from __future__ import annotations

from typing import Any

from ....lowering.passes.rewrite import copy_node, empty_like, has_effects
from ....tracer.graph import Graph, Node, Value, map_values


def move_to_device(graph: Graph, device: str) -> Graph:
    """Compute host tensors of a graph on a device, except results and arguments.

    Args:
        graph: an optimised graph.
        device: the device that it runs on.
    """
    if all(output.spec.device == device for node in graph.nodes for output in node.outputs):
        return graph
    stay = _find_host_results(graph)
    out = empty_like(graph)
    env: dict[Value, Value] = {}
    for node in graph.nodes:
        moves = node not in stay and any(o.spec.device == "cpu" for o in node.outputs) and _is_movable(node)
        current = copy_node(node, lambda value: env.get(value, value)) if moves or env else node
        if moves:
            set_device(current, device)
        out.nodes.append(current)
        env.update(zip(node.outputs, current.outputs))
    out.outputs = [map_values(lambda value: env.get(value, value), o) for o in graph.outputs]
    return out


def _find_host_results(graph: Graph) -> set[Node]:
    """The nodes that compute the graph's results on the host."""
    wanted = {o for o in graph.outputs if isinstance(o, Value) and o.spec.device == "cpu"}
    result: set[Node] = set()
    for node in reversed(graph.nodes):
        if any(output in wanted for output in node.outputs):
            result.add(node)
            wanted.update(value for value in node.inputs if value.spec.device == "cpu")
    return result


def _is_movable(node: Node) -> bool:
    return not has_effects(node) and getattr(node.op.decl, "kind", "") not in (
        "transfer",
        "custom",
        "control",
    )


def set_device(node: Node, device: str) -> None:
    """Set the device of the results of a new node."""
    name: Any = node.op.binder.device_argument
    if name:
        node.kwargs[name] = device
    for output in node.outputs:
        output.spec = output.spec._replace(device=device)
