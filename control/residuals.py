"""Residuals of loop bodies: choose the values that are stored for the derivative; recompute the others.

Values that :func:`tandem.checkpoint` recomputes begin with barriers and belong to the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..lowering.passes.loop_passes import extract_subgraph
from ..tracer.graph import Graph, Node, Value

# Elementwise operators that cost no more than reading their operands.
_CHEAP = frozenset(
    "add sub mul neg abs maximum minimum eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or "
    "bitwise_xor bitwise_not where relu sign square div reciprocal".split()
)
_CHEAP_KINDS = frozenset(("view", "cast", "copy", "creation"))


def select_residuals(joint: Graph, primals: Sequence[Value], carried: int, results: int) -> list[Value]:
    """Select the residuals: values of the body, or its input carry, that the derivative needs and that must be stored.

    Args:
        joint: a body together with its derivative.
        primals: the body's inputs.
        carried: the number of carries among them; the other inputs are available in the backward loop too.
        results: the number of outputs of the body; the others are outputs of the derivative.
    """
    available = set(primals[carried:])
    derivative = set(joint.inputs[len(primals) :])  # the values that only the derivative computes
    body_nodes = set(extract_subgraph(joint, (), joint.outputs[:results]).nodes)
    needed: dict[Value, None] = {}  # values of the body that the derivative reads, in order
    for node in joint.nodes:
        is_repeated = node.op.schema.name == "recompute_barrier" and node not in body_nodes
        if is_repeated or any(value in derivative for value in node.inputs):
            derivative.update(node.outputs)
            needed.update(dict.fromkeys(value for value in node.inputs if value not in derivative))
    needed.update(dict.fromkeys(out for out in joint.outputs[results:] if out not in derivative))
    residuals: dict[Value, None] = {}
    seen: set[Value] = set()
    pending = list(needed)
    while pending:
        value = pending.pop()
        if value in available or value in seen:
            continue
        seen.add(value)
        producer = value.node
        if producer is not None and _is_recomputed(producer, available, seen | set(residuals)):
            pending += producer.inputs
        else:
            residuals[value] = None
    return list(residuals)


def _is_recomputed(node: Node, available: set[Value], known: set[Value]) -> bool:
    """Whether to recompute a value: it is cheap, and storing its operands takes no more memory than storing it."""
    decl = node.op.decl
    if node.op.schema.namespace != "td" or decl is None or decl.effects or len(node.outputs) != 1:
        return False
    if decl.kind not in _CHEAP_KINDS and node.op.schema.name not in _CHEAP:
        return False
    size = _nbytes(node.outputs[0])
    operands = {value for value in node.inputs if value not in available and value not in known}
    return len(operands) <= 1 and all(_nbytes(value) <= size for value in operands)


def _nbytes(value: Value) -> int:
    return int(value.spec.size * value.spec.dtype.itemsize)
