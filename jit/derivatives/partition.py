"""Partition a joint graph into forward and backward passes: choose residuals by a minimum cut of their costs.

The joint graph computes a function's results and, from their gradients, those of its inputs. What depends on no
cotangent may run in either half. Storing a value costs memory traffic, recomputing it costs arithmetic; products,
reductions, random and opaque operators are never recomputed.

Source: the min-cut partitioner of PyTorch's AOTAutograd, which minimizes bytes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ... import lazy, locks
from ...lowering.cost_model import recompute_cost, store_cost
from ...lowering.layout import is_view
from ...lowering.passes.pipeline import (
    canonicalize_views,
    merge_common_subexpressions,
    remove_dead_code,
    simplify,
)
from ...lowering.passes.rewrite import copy_node, has_effects
from ...named_tuple import NamedTuple
from ...tracer.graph import Graph, Node, Value

networkx = lazy.Module("networkx")
# networkx caches properties, and on Python 3.11 ``functools.cached_property`` has a lock, which a fork must not copy.
_cut_lock = locks.make_lock("minimum cuts")

PASSES = (remove_dead_code, simplify, canonicalize_views, merge_common_subexpressions, remove_dead_code)


class Split(NamedTuple):
    """A joint graph split into a forward and a backward graph.

    Attributes:
        forward: returns the results, then the residuals; takes the joint graph's inputs without the cotangents.
        backward: returns the gradients of the inputs; takes :attr:`reads`.
        kept: the residuals, in the order of the forward graph's last outputs.
        reads: the backward graph's inputs, as values of the joint graph: residuals, results, arguments, cotangents.
        again: the nodes that are in both graphs.
    """

    forward: Graph
    backward: Graph
    kept: tuple[Value, ...]
    reads: tuple[Value, ...]
    again: tuple[Node, ...]

    def describe(self) -> list[str]:
        """Describe the residuals and the recomputed values."""
        total = sum(map(_nbytes, self.kept))
        kept = [
            f"  {value.spec}, {_nbytes(value)} bytes: {_describe_producer(value.node)}" for value in self.kept
        ]
        again = [
            f"  {node.outputs[0].spec}: {_describe_producer(node)}"
            for node in self.again
            if not is_view(node)
        ]
        lines = (
            [f"kept for the backward pass, {total} bytes beside arguments and results:", *kept]
            if kept
            else []
        )
        if not kept:
            lines = ["kept for the backward pass: nothing beside arguments and results"]
        return lines + (["computed again in the backward pass:", *again] if again else [])


def _nbytes(value: Value) -> int:
    return value.spec.size * value.spec.dtype.itemsize


def _describe_producer(node: Any) -> str:
    """Describe the operator that computes a value, and its source line."""
    return f"{node.op.schema.name} at {node.source}" if node.source else str(node.op.schema.name)


def partition(joint: Graph, results: int, cotangents: int, as_recorded: bool = False) -> Split:
    """Partition a joint graph.

    Args:
        joint: a graph whose first outputs are the function's results and whose others are gradients of its inputs.
        results: the number of results.
        cotangents: the number of cotangents, which are its last inputs.
        as_recorded: whether a parameter or a result is a residual only if the derivative reads it itself, so that a
            write into another one after the call is allowed, as it is after calls that autograd records one by one.
    """
    for run in PASSES:
        joint = run(joint)
    given = len(joint.inputs) - cotangents
    outputs, gradients = joint.outputs[:results], joint.outputs[results:]
    late = _find_dependents(joint, [*joint.inputs[given:], *_find_checkpoint_values(joint, outputs)])
    parameters = [value for value in joint.parameters if value not in late]
    computed_results = {o for o in outputs if isinstance(o, Value)}
    needed = _find_needed_values(joint, gradients, late)
    if needed <= set(parameters):
        saved, again = needed, set[Node]()
    else:
        excluded = ({*parameters} | computed_results) - _find_bases(needed) if as_recorded else set[Value]()
        saved, again = _find_minimum_cut(joint, late, needed, {*parameters}, computed_results, excluded)
    there = {*parameters, *computed_results}
    kept = [v for v in _node_outputs(joint) if v in saved and v not in there]
    reads = [v for v in (*parameters, *_node_outputs(joint)) if v in saved] + joint.inputs[given:]
    return Split(
        forward=_make_forward(joint, given, [*outputs, *kept], late),
        backward=_make_backward(joint, reads, gradients, late),
        kept=tuple(kept),
        reads=tuple(reads),
        again=tuple(node for node in joint.nodes if node in again),
    )


def _node_outputs(graph: Graph) -> Iterator[Value]:
    return (value for node in graph.nodes for value in node.outputs)


def _find_dependents(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """The values that depend on ``sources``, including these."""
    result = set(sources)
    for node in graph.nodes:
        if any(value in result for value in node.inputs):
            result.update(node.outputs)
    return result


def _find_checkpoint_values(joint: Graph, outputs: list[object]) -> list[Value]:
    """The values that ``checkpoint`` recomputes: only the backward pass computes them, and they are not residuals."""
    before: set[Value] = {o for o in outputs if isinstance(o, Value)}
    for node in reversed(joint.nodes):
        if before.intersection(node.outputs):
            before.update(node.inputs)
    again = [node for node in joint.nodes if node.op.schema.name == "recompute_barrier"]
    return [value for node in again for value in node.outputs if value not in before]


def _is_late(node: Node, late: set[Value]) -> bool:
    """Whether a node belongs to the backward pass, by its results or, if it only has effects, by its inputs."""
    return not late.isdisjoint(node.outputs) or not late.isdisjoint(node.inputs)


def _find_needed_values(joint: Graph, gradients: list[object], late: set[Value]) -> set[Value]:
    """The values that the backward pass reads and that depend on no cotangent."""
    read = [value for node in joint.nodes if _is_late(node, late) for value in node.inputs]
    return {value for value in (*read, *gradients) if isinstance(value, Value) and value not in late}


# -- the cut -----------------------------------------------------------------------------------------------------------
def _find_minimum_cut(
    joint: Graph,
    late: set[Value],
    needed: set[Value],
    parameters: set[Value],
    results: set[Value],
    excluded: set[Value],
) -> tuple[set[Value], set[Node]]:
    """Find the values that cross from the forward to the backward pass, and the nodes to recompute."""
    network = networkx.DiGraph()
    for value in parameters:
        _add_store(network, "forward", value, store_cost(value, True), excluded)
    early = [node for node in joint.nodes if not _is_late(node, late)]
    fixed: set[Value] = set()  # constants, which either half can compute
    for node in early:
        cost = recompute_cost(node)
        if _is_constant(node, fixed):
            cost = 0
        network.add_edge("forward", node, **({} if cost is None else {"capacity": cost}))
        for value in node.inputs:
            network.add_edge(value, node)
        for value in node.outputs:
            if is_view(node):
                network.add_edge(node, value)  # its base is stored instead
            else:
                _add_store(network, node, value, store_cost(value, value in results), excluded)
    for value in needed:
        network.add_edge(value, "backward")
    with _cut_lock:
        _, (near, far) = networkx.minimum_cut(network, "forward", "backward")
    again = {node for node in early if node in far}
    saved = {v for v in parameters if v in far}
    saved |= {v for node in early if node in near for v in node.outputs if v in far}
    return saved, again


def _add_store(network: Any, source: object, value: Value, cost: float, excluded: set[Value]) -> None:
    """Add the edge whose cut stores a value; an edge without a capacity is never cut."""
    network.add_edge(source, value, **({} if value in excluded else {"capacity": cost}))


def _find_bases(values: Iterable[Value]) -> set[Value]:
    """The values, and those that they are views of."""
    result, waiting = set[Value](), list(values)
    while waiting:
        value = waiting.pop()
        if value not in result:
            result.add(value)
            waiting.extend(value.node.inputs if value.node is not None and is_view(value.node) else ())
    return result


def _is_constant(node: Node, fixed: set[Value]) -> bool:
    """Whether a node computes a constant from constants; if so, its results are added to ``fixed``."""
    decl = node.op.decl
    if (
        decl is None
        or has_effects(node)
        or decl.kind in ("random", "custom")
        or not fixed.issuperset(node.inputs)
    ):
        return False
    fixed.update(node.outputs)
    return True


# -- the halves --------------------------------------------------------------------------------------------------------
def _make_forward(joint: Graph, given: int, outputs: list[object], late: set[Value]) -> Graph:
    made = Graph()
    made.inputs, made.derived = joint.inputs[:given], joint.derived
    made.captured, made.constants = joint.captured, joint.constants
    made.nodes = [node for node in joint.nodes if not _is_late(node, late)]
    made.outputs = outputs
    return remove_dead_code(made)


def _make_backward(joint: Graph, reads: list[Value], gradients: list[object], late: set[Value]) -> Graph:
    made, known = Graph(), set(reads)
    env = {value: made.add_input(value.spec, value.weak) for value in reads}
    wanted = {node for node in joint.nodes if late.intersection(node.inputs) and has_effects(node)}
    waiting = [g for g in gradients if isinstance(g, Value)] + [v for node in wanted for v in node.inputs]
    while waiting:
        value = waiting.pop()
        if value not in known and value.node is not None and value.node not in wanted:
            wanted.add(value.node)
            waiting.extend(value.node.inputs)
    for node in joint.nodes:
        if node in wanted:
            new = copy_node(node, env.__getitem__)
            made.nodes.append(new)
            env.update(zip(node.outputs, new.outputs))
    made.outputs = [env[g] if isinstance(g, Value) else g for g in gradients]
    return made
