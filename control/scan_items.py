"""Convert reads at a loop counter to items: a loop over ``i`` that reads ``xs[i]`` becomes a scan over ``xs``.

Items are passed to the body by advancing a pointer, and their gradients are written one by one; the gradient of an
index operation in each step would be as large as all of ``xs``.
"""

from __future__ import annotations

from typing import Any

from ..lowering.passes.loop_passes import extract_subgraph, needed_inputs, substitute
from ..tracer.graph import Graph, Node, Value
from .subgraph import ClosedGraph


def convert_reads_to_items(
    closed: ClosedGraph, place: int, lower: int, steps: int
) -> tuple[ClosedGraph, list[Any]]:
    """Convert reads at the counter to items of the scan.

    Args:
        closed: the body of a loop.
        place: the index of the counter among its inputs, where it is the last item.
        lower: the counter's first value.
        steps: the number of steps.

    Returns:
        The body with further items after the counter, and the tensors of these items.
    """
    graph, first = closed.graph, place + 1
    counter, outer = graph.inputs[place], dict(zip(graph.inputs[first:], closed.reached))
    items: dict[Value, Value] = {}
    env: dict[Value, Value] = {}
    for node in graph.nodes:
        if _reads_at(node, counter, lower, steps) and node.args[0] in outer:
            env[node.outputs[0]] = items.setdefault(node.args[0], Value(node.outputs[0].spec))
    if not items:
        return closed, []
    body = Graph()
    body.inputs, body.nodes, body.outputs = graph.inputs, graph.nodes, graph.outputs
    body = substitute(body, env)
    needed = needed_inputs(body, body.outputs)
    kept = [value for value in outer if value in needed]
    made = extract_subgraph(body, [*graph.inputs[:first], *items.values(), *kept], body.outputs)
    return ClosedGraph(made, tuple(outer[x] for x in kept)), [
        _slice_steps(outer[x], lower, steps) for x in items
    ]


def _reads_at(node: Node, counter: Value, lower: int, steps: int) -> bool:
    """Whether a node is ``x[counter]`` and is in bounds for all steps."""
    if node.op.name != "td::index" or tuple(node.args[1]) != (counter,) or node.args[2] != 0:
        return False
    return lower >= 0 and lower + steps <= int(node.args[0].shape[0])


def _slice_steps(x: Any, lower: int, steps: int) -> Any:
    return x if steps == x.shape[0] else x[lower : lower + steps]
