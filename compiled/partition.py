"""What a forward pass keeps for the backward pass, and what that computes again: the cheapest of both, a minimum cut.

The joint graph computes a function's results and, from their gradients, those of its inputs. What depends on no
gradient may run in either half. Keeping a value costs memory traffic, computing it again costs arithmetic; products,
reductions, and whatever is random or opaque are never computed again.

Source: the rematerialisation of PyTorch's AOTAutograd, which cuts by bytes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .. import lazy
from ..lowering.bodies import cost, node_expr, operand_types
from ..lowering.layout import is_view
from ..lowering.passes import (
    canonicalize_views,
    merge_common_subexpressions,
    remove_dead_code,
    simplify,
)
from ..lowering.resolve import body_dtype, uniform_constant
from ..lowering.rewrite import copy_node, has_effects
from ..operators.expr import Expr
from ..tracer.graph import Graph, Node, Value

# In picoseconds, for one core: rough, but what counts is their proportion.
KEPT = 100_000  # another result of the forward pass
BYTE = 100  # written there and read here
INSTRUCTION = 12  # on each byte of the result
HELD = 1  # what is in memory anyway: arguments and results

PASSES = (remove_dead_code, simplify, canonicalize_views, merge_common_subexpressions, remove_dead_code)


class Split(NamedTuple):
    """A joint graph in two.

    Attributes:
        forward: gives the results, then the values that are kept; takes what the joint graph takes but the gradients.
        backward: gives the gradients of the inputs; takes :attr:`reads`.
        kept: values of the forward graph, in the order of its last outputs.
        reads: what the backward graph takes: kept values, results, arguments and gradients, as in the joint graph.
        again: the nodes that are computed in both.
    """

    forward: Graph
    backward: Graph
    kept: tuple[Value, ...]
    reads: tuple[Value, ...]
    again: tuple[Node, ...]

    def lines(self) -> list[str]:
        """What is kept and what is computed again, in words."""
        total = sum(map(_nbytes, self.kept))
        kept = [f"  {value.spec}, {_nbytes(value)} bytes: {_made_by(value.node)}" for value in self.kept]
        again = [f"  {node.outputs[0].spec}: {_made_by(node)}" for node in self.again if not is_view(node)]
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


def _made_by(node: Any) -> str:
    """What makes a value, and where it was called."""
    return f"{node.op.schema.name} at {node.source}" if node.source else str(node.op.schema.name)


def partition(joint: Graph, results: int, cotangents: int) -> Split:
    """Split a joint graph.

    Args:
        joint: a graph whose first outputs are the function's results and whose others are gradients of its inputs.
        results: the number of results.
        cotangents: how many of its inputs, the last ones, are the results' gradients.
    """
    for run in PASSES:
        joint = run(joint)
    given = len(joint.inputs) - cotangents
    outputs, gradients = joint.outputs[:results], joint.outputs[results:]
    late = _depending(joint, [*joint.inputs[given:], *_postponed(joint, outputs)])
    parameters = [value for value in joint.parameters if value not in late]
    needed = _needed(joint, gradients, late)
    if needed <= set(parameters):
        saved, again = needed, set[Node]()
    else:
        saved, again = _cut(joint, late, needed, {*parameters}, {o for o in outputs if isinstance(o, Value)})
    there = {*parameters, *(o for o in outputs if isinstance(o, Value))}
    kept = [v for v in _values(joint) if v in saved and v not in there]
    reads = [v for v in (*parameters, *_values(joint)) if v in saved] + joint.inputs[given:]
    return Split(
        forward=_forward(joint, given, [*outputs, *kept], late),
        backward=_backward(joint, reads, gradients, late),
        kept=tuple(kept),
        reads=tuple(reads),
        again=tuple(node for node in joint.nodes if node in again),
    )


def _values(graph: Graph) -> Iterator[Value]:
    return (value for node in graph.nodes for value in node.outputs)


def _depending(graph: Graph, sources: Iterable[Value]) -> set[Value]:
    """The values that depend on one of these, and these."""
    found = set(sources)
    for node in graph.nodes:
        if any(value in found for value in node.inputs):
            found.update(node.outputs)
    return found


def _postponed(joint: Graph, outputs: list[Any]) -> list[Value]:
    """What ``checkpoint`` computes again: for the backward half alone, and not to be kept."""
    before: set[Value] = {o for o in outputs if isinstance(o, Value)}
    for node in reversed(joint.nodes):
        if before.intersection(node.outputs):
            before.update(node.inputs)
    again = [node for node in joint.nodes if node.op.schema.name == "recompute_barrier"]
    return [value for node in again for value in node.outputs if value not in before]


def _is_late(node: Node, late: set[Value]) -> bool:
    """Whether a node belongs to the backward half; what it does may be all that it is for, without a result."""
    return not late.isdisjoint(node.outputs) or not late.isdisjoint(node.inputs)


def _needed(joint: Graph, gradients: list[Any], late: set[Value]) -> set[Value]:
    """What the backward half reads that depends on no gradient."""
    read = [value for node in joint.nodes if _is_late(node, late) for value in node.inputs]
    return {value for value in (*read, *gradients) if isinstance(value, Value) and value not in late}


# -- the cut -----------------------------------------------------------------------------------------------------------
def _cut(
    joint: Graph, late: set[Value], needed: set[Value], parameters: set[Value], results: set[Value]
) -> tuple[set[Value], set[Node]]:
    """The values that cross from forward to backward, and the nodes on the far side."""
    network = lazy.networkx().DiGraph()
    for value in parameters:
        network.add_edge("forward", value, capacity=HELD)
    early = [node for node in joint.nodes if not _is_late(node, late)]
    fixed: set[Value] = set()  # what follows from nothing: folded into either half
    for node in early:
        price = price_of(node)
        if _is_constant(node, fixed):
            price = 0
        network.add_edge("forward", node, **({} if price is None else {"capacity": price}))
        for value in node.inputs:
            network.add_edge(value, node)
        for value in node.outputs:
            if is_view(node):
                network.add_edge(node, value)  # what it shows is kept instead
            else:
                keeping = (
                    HELD if value in results else KEPT + BYTE * value.spec.size * value.spec.dtype.itemsize
                )
                network.add_edge(node, value, capacity=keeping)
    for value in needed:
        network.add_edge(value, "backward")
    _, (near, far) = lazy.networkx().minimum_cut(network, "forward", "backward")
    again = {node for node in early if node in far}
    saved = {v for v in parameters if v in far}
    saved |= {v for node in early if node in near for v in node.outputs if v in far}
    return saved, again


def _is_constant(node: Node, fixed: set[Value]) -> bool:
    """Whether a node computes a constant of others, which it joins."""
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


def price_of(node: Node) -> int | None:
    """What it costs to compute a node once more; None for what is computed only once."""
    if has_effects(node) or not node.outputs:
        return None
    if is_view(node) or uniform_constant(node) is not None:
        return 0
    out = node.outputs[0].spec
    instructions = _instructions(node)
    return None if instructions is None else INSTRUCTION * instructions * out.size * out.dtype.itemsize


def _instructions(node: Node) -> int | None:
    """Instructions for each element of what is fused into a loop."""
    decl = node.op.decl
    if decl is None or decl.kind in ("random", "custom"):
        return None
    if decl.is_elementwise:
        if node.kwargs or body_dtype(node).kind == "c":
            return None
    elif decl.kind not in ("cast", "copy") and (decl.kind != "creation" or node.op.schema.name != "full"):
        return None
    given = [Expr("load", (), dtype, place) for place, dtype in enumerate(operand_types(node))]
    return cost(node_expr(node, given))


# -- the halves --------------------------------------------------------------------------------------------------------
def _forward(joint: Graph, given: int, outputs: list[Any], late: set[Value]) -> Graph:
    made = Graph()
    made.inputs, made.derived = joint.inputs[:given], joint.derived
    made.captured, made.constants = joint.captured, joint.constants
    made.nodes = [node for node in joint.nodes if not _is_late(node, late)]
    made.outputs = outputs
    return remove_dead_code(made)


def _backward(joint: Graph, reads: list[Value], gradients: list[Any], late: set[Value]) -> Graph:
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
