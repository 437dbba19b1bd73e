"""Which values of a body are saved for its derivative, and which are computed again from others.

What :func:`tandem.checkpoint` computes again begins with barriers; it belongs to the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..lowering.loop_passes import part_of
from ..tracer.graph import Graph, Node, Value

# Elementwise operators that cost next to nothing beside reading their operands.
_CHEAP = frozenset(
    "add sub mul neg abs maximum minimum eq ne lt le gt ge logical_and logical_or logical_not bitwise_and bitwise_or "
    "bitwise_xor bitwise_not where relu sign square div reciprocal".split()
)
_CHEAP_KINDS = frozenset(("view", "cast", "copy", "creation"))


def saved_values(joint: Graph, primals: Sequence[Value], carried: int, results: int) -> list[Value]:
    """The values of the body, and of the carry that it is given, that the derivative needs and that are to be saved.

    Args:
        joint: a body together with its derivative.
        primals: the body's inputs.
        carried: how many of them are the carry; the others are there in the backward loop as well.
        results: how many of the outputs are the body's; the others are the derivative's.
    """
    free = set(primals[carried:])
    later = set(joint.inputs[len(primals) :])
    crossing: dict[Value, None] = {}
    first = set(part_of(joint, (), joint.outputs[:results]).nodes)
    for node in joint.nodes:
        is_again = node.op.schema.name == "recompute_barrier" and node not in first
        if is_again or any(value in later for value in node.inputs):
            later.update(node.outputs)
            crossing.update(dict.fromkeys(value for value in node.inputs if value not in later))
    crossing.update(dict.fromkeys(out for out in joint.outputs[results:] if out not in later))
    kept: dict[Value, None] = {}
    seen: set[Value] = set()
    waiting = list(crossing)
    while waiting:
        value = waiting.pop()
        if value in free or value in seen:
            continue
        seen.add(value)
        maker = value.node
        if maker is not None and _is_recomputed(maker, free, seen | set(kept)):
            waiting += maker.inputs
        else:
            kept[value] = None
    return list(kept)


def _is_recomputed(node: Node, free: set[Value], known: set[Value]) -> bool:
    """Whether a value is computed again: it is cheap, and takes no more to be saved than it would itself."""
    decl = node.op.decl
    if node.op.schema.namespace != "td" or decl is None or decl.effects or len(node.outputs) != 1:
        return False
    if decl.kind not in _CHEAP_KINDS and node.op.schema.name not in _CHEAP:
        return False
    size = _nbytes(node.outputs[0])
    wanted = {value for value in node.inputs if value not in free and value not in known}
    return len(wanted) <= 1 and all(_nbytes(value) <= size for value in wanted)


def _nbytes(value: Value) -> int:
    return int(value.spec.size * value.spec.dtype.itemsize)
