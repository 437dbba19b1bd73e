"""Sink selects: a sum that is made on a condition adds a number that is chosen instead.

``where(c, s + x, s)`` becomes ``s + where(c, x, -0.0)``, and so for differences and products. A loop that updates a
scalar on a condition then waits for the sum only, and not for the choice between both values after it.

Source: ``foldSelectIntoOp`` in LLVM's InstCombine, which leaves out floats that may be NaN.
"""

from __future__ import annotations

from typing import Any

from ...tracer.graph import Graph, Node, Value
from .rewrite import Replacement, is_replaced, new_node, replace_each

UNITS = {"td::add.Tensor": -0.0, "td::sub.Tensor": 0.0, "td::mul.Tensor": 1.0}
"""By operator: the number that leaves the other operand as it is, with its sign."""
SIDES = {"td::add.Tensor": (0, 1), "td::sub.Tensor": (0,), "td::mul.Tensor": (0, 1)}
"""By operator: where that other operand may be."""


def sink_selects(graph: Graph) -> Graph:
    """Sink the selects of scalars in floats; vectors gain nothing by it."""
    return replace_each(graph, _sink)


def _sink(node: Node, out: Graph) -> Replacement:
    result = node.outputs[0]
    if node.op.name != "td::where" or node.kwargs or result.spec.size != 1 or result.weak is not None:
        return None
    if result.spec.dtype.kind != "f" or is_replaced(node.op):
        return None
    condition, *arms = node.args
    for at, updated in enumerate(arms):
        kept, update = arms[1 - at], updated.node if isinstance(updated, Value) else None
        if update is None or update.op.name not in UNITS or update.kwargs or not _is_like(kept, result):
            continue
        if is_replaced(update.op):
            continue
        sides = [side for side in SIDES[update.op.name] if update.args[side] is kept]
        amount = update.args[1 - sides[0]] if sides else None
        if _is_like(amount, result):
            unit = UNITS[update.op.name]
            chosen = _call(out, node, (condition, *((amount, unit) if at == 0 else (unit, amount))), result)
            operands = (kept, chosen) if sides[0] == 0 else (chosen, kept)
            return (_call(out, update, operands, result),)
    return None


def _is_like(value: object, result: Value) -> bool:
    """Whether a value has the shape and dtype of the result of a select."""
    return isinstance(value, Value) and value.weak is None and value.spec == result.spec


def _call(out: Graph, like: Node, args: tuple[Any, ...], result: Value) -> Value:
    """Call the operator of a node on other arguments."""
    made = new_node(like.op, args, {}, result.spec, like.source)
    out.nodes.append(made)
    return made.outputs[0]
