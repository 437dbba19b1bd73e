"""Sink selects: a sum that is made on a condition adds a number that is chosen instead.

``where(c, s + x, s)`` becomes ``s + where(c, x, -0.0)``, and so for differences and products. A loop that updates a
scalar on a condition then waits for the sum only, and not for the choice between both values after it.

Source: ``foldSelectIntoOp`` in LLVM's InstCombine, which leaves out floats that may be NaN.
"""

from __future__ import annotations

from typing import Any

from ...tracer.graph import Graph, Node, Value
from .rewrite import Replacement, new_node, replace_each

UNITS = {"td::add.Tensor": -0.0, "td::sub.Tensor": 0.0, "td::mul.Tensor": 1.0}
"""By operator: the number that leaves the other operand as it is, with its sign; of ``sub``, on the right."""


def sink_selects(graph: Graph) -> Graph:
    """Sink the selects of scalars in floats; vectors gain nothing by it."""
    return replace_each(graph, _sink)


def _sink(node: Node, out: Graph) -> Replacement:
    result = node.outputs[0]
    if node.op.name != "td::where" or node.kwargs or result.spec.size != 1 or result.weak is not None:
        return None
    if result.spec.dtype.kind != "f":
        return None
    _, one, other = node.args
    for updated, kept in ((one, other), (other, one)):
        update = updated.node if isinstance(updated, Value) else None
        if update is None or update.op.name not in UNITS or update.kwargs or not _is_like(kept, result):
            continue
        position = next((at for at, arg in enumerate(update.args) if arg is kept), None)
        if position is None or (position == 1 and update.op.name == "td::sub.Tensor"):
            continue
        amount = update.args[1 - position]
        if _is_like(amount, result):
            return (_make(node, out, updated is one, amount, position),)
    return None


def _is_like(value: object, result: Value) -> bool:
    """Whether a value has the shape and dtype of the result of a select."""
    return isinstance(value, Value) and value.weak is None and value.spec == result.spec


def _make(node: Node, out: Graph, updates_if_true: bool, amount: Value, position: int) -> Value:
    """The value that replaces a select: the update by a chosen number."""
    condition, one, other = node.args
    updated, kept = (one, other) if updates_if_true else (other, one)
    unit = UNITS[updated.node.op.name]
    arms: tuple[Any, ...] = (amount, unit) if updates_if_true else (unit, amount)
    spec = node.outputs[0].spec
    chosen = new_node(node.op, (condition, *arms), {}, spec, node.source)
    operands = (kept, chosen.outputs[0]) if position == 0 else (chosen.outputs[0], kept)
    update = new_node(updated.node.op, operands, {}, spec, updated.node.source)
    out.nodes += [chosen, update]
    return update.outputs[0]
