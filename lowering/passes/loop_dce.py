"""Dead-code elimination for loop carries, scan outputs and branch results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tracer.graph import Graph, Node, Value
from .loop_passes import extract_subgraph, needed_inputs, scan_node, scan_of, substitute
from .rewrite import empty_like, has_effects

Pruned = tuple[Node, dict[Value, Value]]


def prune_control(graph: Graph) -> Graph:
    """Remove unused results, carries and inputs of loops and branches; an invariant carry becomes a constant."""
    if not any(node.op.name in _PRUNERS for node in graph.nodes):
        return graph
    out = empty_like(graph)
    env: dict[Value, Value] = {}
    live = {o for o in graph.outputs if isinstance(o, Value)}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        prune = _PRUNERS.get(node.op.name)
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
    return substitute(out, env)


def _extract_body(graph: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """Restrict a body to some of its inputs and results, and prune the loops inside it."""
    part = extract_subgraph(graph, [graph.inputs[i] for i in inputs], [graph.outputs[i] for i in outputs])
    return prune_control(part)


def _needed_inputs(graph: Graph, outputs: Sequence[int]) -> set[int]:
    """The indices of the inputs that some results, or nodes with effects, depend on."""
    wanted = needed_inputs(graph, [graph.outputs[i] for i in outputs])
    return {index for index, value in enumerate(graph.inputs) if value in wanted}


def _merge_inputs(graphs: Sequence[Graph], given: Sequence[Any], first: int) -> tuple[Graph, ...]:
    """Let bodies read values that are given several times, from ``first`` on, as one input.

    Otherwise an update of one of them in place would have to keep the others: it would copy the value.
    """
    number: dict[Value, int] = {}
    pairs = [
        (i, number.setdefault(value, i))
        for i, value in enumerate(given)
        if i >= first and type(value) is Value
    ]
    repeated = [(i, j) for i, j in pairs if i != j]
    return tuple(
        substitute(graph, {graph.inputs[i]: graph.inputs[j] for i, j in repeated}) if repeated else graph
        for graph in graphs
    )


def _invariant_carries(body: Graph, carry: Sequence[Any]) -> set[int]:
    """The indices of the carries that no step changes."""
    return {j for j, x in enumerate(carry) if body.outputs[j] is body.inputs[j] and isinstance(x, Value)}


def _prune_scan(node: Node, live: set[Value]) -> Pruned:
    """Prune a scan; returns the new node and the replacements of its results."""
    scan = scan_of(node)
    count = len(scan.carry)
    (body,) = _merge_inputs((scan.body,), scan.given, count + len(scan.xs))
    fixed = _invariant_carries(body, scan.carry)
    replaced = {node.outputs[j]: scan.carry[j] for j in fixed}
    stacked = [k for k in range(count, len(body.outputs)) if node.outputs[k] in live]
    first: dict[Any, int] = {}
    for k in stacked:
        first.setdefault(body.outputs[k], k)
    single = list(first.values())
    carried = [j for j in range(count) if j not in fixed and node.outputs[j] in live]
    while True:
        wanted = _needed_inputs(body, (*carried, *single))
        more = [j for j in range(count) if j not in fixed and (j in carried or j in wanted)]
        if more == carried:
            break
        carried = more
    given = scan.given
    first_const = count + len(scan.xs)
    items = [i for i in range(count, first_const) if i in wanted]
    rest = [i for i in range(len(given)) if (i in fixed or i >= first_const) and i in wanted]
    made = scan._replace(
        body=_extract_body(body, (*carried, *items, *rest), (*carried, *single)),
        carry=tuple(given[i] for i in carried),
        xs=tuple(given[i] for i in items),
        consts=tuple(given[i] for i in rest),
    )
    result = scan_node(made, node.source)
    indices = {old: new for new, old in enumerate((*carried, *single))}
    for i in carried:
        replaced[node.outputs[i]] = result.outputs[indices[i]]
    for k in stacked:
        replaced[node.outputs[k]] = result.outputs[indices[first[body.outputs[k]]]]
    return result, replaced


def _prune_while(node: Node, live: set[Value]) -> Pruned:
    """Prune a while_loop; returns the new node and the replacements of its results."""
    condition, body, carry, consts = node.args
    given, count = (*carry, *consts), len(carry)
    condition, body = _merge_inputs((condition, body), given, count)
    fixed = _invariant_carries(body, carry)
    asked = _needed_inputs(condition, [0])
    carried: list[int] = []
    while True:
        wanted = asked | _needed_inputs(body, carried)
        more = [j for j in range(count) if j not in fixed and (node.outputs[j] in live or j in wanted)]
        if more == carried:
            break
        carried = more
    rest = [i for i in range(len(given)) if (i in fixed or i >= count) and i in wanted]
    replaced = {node.outputs[j]: carry[j] for j in fixed}
    if not carried:
        return node, replaced  # without carries the loop runs never or forever
    inputs = [*carried, *rest]
    graphs = _extract_body(condition, inputs, [0]), _extract_body(body, inputs, carried)
    args = (*graphs, tuple(given[j] for j in carried), tuple(given[i] for i in rest))
    result = _keep_results(node, args, carried)
    replaced.update(zip([node.outputs[j] for j in carried], result.outputs))
    return result, replaced


def _prune_switch(node: Node, live: set[Value]) -> Pruned:
    """Prune a switch; returns the new node and the replacements of its results."""
    branches, index, operands = node.args
    branches = _merge_inputs(branches, operands, 0)
    asked = [k for k, output in enumerate(node.outputs) if output in live]
    unchanged = {k: x for k in asked if (x := _find_unchanged(branches, operands, k)) is not None}
    replaced = {node.outputs[k]: x for k, x in unchanged.items()}
    kept = [k for k in asked if k not in unchanged]
    if not kept:
        return node, replaced  # only its effects are needed
    wanted = sorted(set().union(*(_needed_inputs(branch, kept) for branch in branches)))
    graphs = tuple(_extract_body(branch, wanted, kept) for branch in branches)
    result = _keep_results(node, (graphs, index, tuple(operands[i] for i in wanted)), kept)
    return result, {**replaced, **dict(zip([node.outputs[k] for k in kept], result.outputs))}


def _find_unchanged(branches: Sequence[Graph], operands: Sequence[Any], result: int) -> Value | None:
    """The operand that all branches return as a result; None if there is none."""
    first = branches[0].outputs[result]
    number = branches[0].inputs.index(first) if first in branches[0].inputs else None
    if number is None or any(one.outputs[result] is not one.inputs[number] for one in branches):
        return None
    operand = operands[number]
    return operand if isinstance(operand, Value) else None


def _keep_results(node: Node, args: tuple[Any, ...], kept: Sequence[int]) -> Node:
    """Copy a node with other arguments and a subset of its results."""
    result = Node(node.op, args, node.kwargs, node.source)
    result.outputs = tuple(Value(node.outputs[k].spec, result, index) for index, k in enumerate(kept))
    return result


_PRUNERS = {
    "control::scan": _prune_scan,
    "control::while_loop": _prune_while,
    "control::switch": _prune_switch,
}
