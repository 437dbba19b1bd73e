"""What nobody reads of a loop or a branch is not computed: results, carries, and what is passed in for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tracer.graph import Graph, Node, Value
from .loop_passes import needed_inputs, part_of, scan_node, substituted, taken_apart
from .rewrite import has_effects, like

Found = tuple[Node, dict[Value, Value]]


def prune_control(graph: Graph) -> Graph:
    """Drop results, carries and inputs of loops and branches that nothing needs; a carry that never changes is none."""
    if not any(node.op.name in _PRUNED for node in graph.nodes):
        return graph
    out = like(graph)
    env: dict[Value, Value] = {}
    live = {o for o in graph.outputs if isinstance(o, Value)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        prune = _PRUNED.get(node.op.name)
        if prune is not None:
            if not has_effects(node) and not any(output in live for output in node.outputs):
                continue
            node, replaced = prune(node, live)
            env.update(replaced)
            live.update(by for value, by in replaced.items() if value in live)
        kept.append(node)
        live.update(node.inputs)
    out.nodes = kept[::-1]
    out.outputs = list(graph.outputs)
    return substituted(out, env)


def _part(graph: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """A body with some of its inputs and results, in which the same has been done."""
    part = part_of(graph, [graph.inputs[i] for i in inputs], [graph.outputs[i] for i in outputs])
    return prune_control(part)


def _needed(graph: Graph, outputs: Sequence[int]) -> set[int]:
    """The places of the inputs that some results, and what has effects, depend on."""
    wanted = needed_inputs(graph, [graph.outputs[i] for i in outputs])
    return {place for place, value in enumerate(graph.inputs) if value in wanted}


def _fixed(body: Graph, carry: Sequence[Any]) -> set[int]:
    """The carries that each step hands on as they are."""
    return {j for j, x in enumerate(carry) if body.outputs[j] is body.inputs[j] and isinstance(x, Value)}


def _pruned_scan(node: Node, live: set[Value]) -> Found:
    """A scan without what nobody needs, and what stands for its results."""
    scan = taken_apart(node)
    body, count = scan.body, len(scan.carry)
    fixed = _fixed(body, scan.carry)
    replaced = {node.outputs[j]: scan.carry[j] for j in fixed}
    stacked = [k for k in range(count, len(body.outputs)) if node.outputs[k] in live]
    first: dict[Any, int] = {}
    for k in stacked:
        first.setdefault(body.outputs[k], k)
    single = list(first.values())
    carried = [j for j in range(count) if j not in fixed and node.outputs[j] in live]
    while True:
        wanted = _needed(body, (*carried, *single))
        more = [j for j in range(count) if j not in fixed and (j in carried or j in wanted)]
        if more == carried:
            break
        carried = more
    given = scan.given
    first_const = count + len(scan.xs)
    items = [i for i in range(count, first_const) if i in wanted]
    rest = [i for i in range(len(given)) if (i in fixed or i >= first_const) and i in wanted]
    made = scan._replace(
        body=_part(body, (*carried, *items, *rest), (*carried, *single)),
        carry=tuple(given[i] for i in carried),
        xs=tuple(given[i] for i in items),
        consts=tuple(given[i] for i in rest),
    )
    found = scan_node(made, node.source)
    places = {old: new for new, old in enumerate((*carried, *single))}
    for i in carried:
        replaced[node.outputs[i]] = found.outputs[places[i]]
    for k in stacked:
        replaced[node.outputs[k]] = found.outputs[places[first[body.outputs[k]]]]
    return found, replaced


def _pruned_while(node: Node, live: set[Value]) -> Found:
    """A while_loop without what nobody needs."""
    condition, body, carry, consts = node.args
    given, count = (*carry, *consts), len(carry)
    fixed = _fixed(body, carry)
    asked = _needed(condition, [0])
    carried: list[int] = []
    while True:
        wanted = asked | _needed(body, carried)
        more = [j for j in range(count) if j not in fixed and (node.outputs[j] in live or j in wanted)]
        if more == carried:
            break
        carried = more
    rest = [i for i in range(len(given)) if (i in fixed or i >= count) and i in wanted]
    replaced = {node.outputs[j]: carry[j] for j in fixed}
    if not carried:
        return node, replaced  # it runs never, or without end
    inputs = [*carried, *rest]
    graphs = _part(condition, inputs, [0]), _part(body, inputs, carried)
    args = (*graphs, tuple(given[j] for j in carried), tuple(given[i] for i in rest))
    found = _with_results(node, args, carried)
    replaced.update(zip([node.outputs[j] for j in carried], found.outputs))
    return found, replaced


def _pruned_switch(node: Node, live: set[Value]) -> Found:
    """A switch without results that nobody needs."""
    branches, index, operands = node.args
    kept = [k for k, output in enumerate(node.outputs) if output in live]
    if not kept:
        return node, {}  # it is there for its effects
    wanted = sorted(set().union(*(_needed(branch, kept) for branch in branches)))
    graphs = tuple(_part(branch, wanted, kept) for branch in branches)
    found = _with_results(node, (graphs, index, tuple(operands[i] for i in wanted)), kept)
    return found, dict(zip([node.outputs[k] for k in kept], found.outputs))


def _with_results(node: Node, args: tuple[Any, ...], kept: Sequence[int]) -> Node:
    """The node with other arguments and some of its results."""
    found = Node(node.op, args, node.kwargs, node.source)
    found.outputs = tuple(Value(node.outputs[k].spec, found, place) for place, k in enumerate(kept))
    return found


_PRUNED = {
    "control::scan": _pruned_scan,
    "control::while_loop": _pruned_while,
    "control::switch": _pruned_switch,
}
