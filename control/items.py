"""What a counting loop reads at its counter becomes an item: ``xs[i]`` for ``i`` from 0 up is a scan of xs.

Items are handed to the body by moving a pointer, and their gradients are written one by one; an index would be looked
up in each step, and its gradient would be as large as all of ``xs``.
"""

from __future__ import annotations

from typing import Any

from ..lowering.loop_passes import needed_inputs, part_of, substituted
from ..tracer.graph import Graph, Node, Value
from .subgraph import Closed


def with_items(closed: Closed, place: int, lower: int, steps: int) -> tuple[Closed, list[Any]]:
    """Take what is read at the counter as items.

    Args:
        closed: the body of a loop.
        place: of the counter among its inputs, where it is the last of the items.
        lower: the counter's first value.
        steps: the number of steps.

    Returns:
        The body, with further items after the counter, and what these items are of.
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
    body = substituted(body, env)
    needed = needed_inputs(body, body.outputs)
    kept = [value for value in outer if value in needed]
    made = part_of(body, [*graph.inputs[:first], *items.values(), *kept], body.outputs)
    return Closed(made, tuple(outer[x] for x in kept)), [_part(outer[x], lower, steps) for x in items]


def _reads_at(node: Node, counter: Value, lower: int, steps: int) -> bool:
    """Whether a node is ``x[counter]``, and all of these exist."""
    if node.op.name != "td::index" or tuple(node.args[1]) != (counter,) or node.args[2] != 0:
        return False
    return lower >= 0 and lower + steps <= int(node.args[0].shape[0])


def _part(x: Any, lower: int, steps: int) -> Any:
    return x if steps == x.shape[0] else x[lower : lower + steps]
