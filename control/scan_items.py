"""Convert reads at a loop counter to items: a loop over ``i`` that reads ``xs[i]`` becomes a scan over ``xs``.

Items are passed to the body by advancing a pointer, and their gradients are written one by one; the gradient of an
index operation in each step would be as large as all of ``xs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..lowering.passes.loop_passes import extract_subgraph, needed_inputs, substitute
from ..tracer.graph import Graph, Node, Value
from .subgraph import ClosedGraph

if TYPE_CHECKING:
    from ..registry.types import Tensor


def convert_reads_to_items(
    closed: ClosedGraph, counter_index: int, lower: int, steps: int
) -> tuple[ClosedGraph, list[Tensor]]:
    """Convert reads at the counter to items of the scan.

    Args:
        closed: the body of a loop.
        counter_index: the index of the counter among its inputs, where it is the last item.
        lower: the counter's first value.
        steps: the number of steps.

    Returns:
        The body with further items after the counter, and the tensors of these items.
    """
    graph, first = closed.graph, counter_index + 1
    counter, captures = graph.inputs[counter_index], dict(zip(graph.inputs[first:], closed.captures))
    items: dict[Value, Value] = {}
    env: dict[Value, Value] = {}
    for node in graph.nodes:
        if _reads_at(node, counter, lower, steps) and node.args[0] in captures:
            env[node.outputs[0]] = items.setdefault(node.args[0], Value(node.outputs[0].spec))
    if not items:
        return closed, []
    body = Graph()
    body.inputs, body.nodes, body.outputs = graph.inputs, graph.nodes, graph.outputs
    body = substitute(body, env)
    needed = needed_inputs(body, body.outputs)
    kept = [value for value in captures if value in needed]
    body = extract_subgraph(body, [*graph.inputs[:first], *items.values(), *kept], body.outputs)
    tensors = [_slice_steps(cast("Tensor", captures[value]), lower, steps) for value in items]
    return ClosedGraph(body, tuple(captures[value] for value in kept)), tensors


def _reads_at(node: Node, counter: Value, lower: int, steps: int) -> bool:
    """Whether a node is ``x[counter]`` and is in bounds for all steps."""
    if node.op.name != "td::index" or tuple(node.args[1]) != (counter,) or node.args[2] != 0:
        return False
    return lower >= 0 and lower + steps <= node.args[0].shape[0]


def _slice_steps(x: Tensor, lower: int, steps: int) -> Tensor:
    return x if steps == x.shape[0] else x[lower : lower + steps]
