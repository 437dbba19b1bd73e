"""Sink selects: a sum or an extremum that is made on a condition takes a number that is chosen instead.

``where(c, s + x, s)`` becomes ``s + where(c, x, -0.0)``, and so for differences and products of floats. For integers
``where(c & (x > s), x, s)`` becomes ``maximum(s, where(c, x, lowest))``, and so for minima. A loop that updates a
scalar on a condition then waits for the update only, and not for the choice between both values after it; and LLVM
computes extrema in vectors.

Source: ``foldSelectIntoOp`` in LLVM's InstCombine, which leaves out floats that may be NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...operators.scalar_ir.fold import EXTREMUM_IDENTITIES
from ...registry.dtypes import bool_
from ...registry.operator import find_operator
from ...tracer.graph import Graph, Node, Value
from .rewrite import Replacement, is_replaced, new_node, replace_each

UNITS = {"td::add.Tensor": -0.0, "td::sub.Tensor": 0.0, "td::mul.Tensor": 1.0}
"""By operator: the number that leaves the other operand as it is, with its sign."""
SIDES = {"td::add.Tensor": (0, 1), "td::sub.Tensor": (0,), "td::mul.Tensor": (0, 1)}
"""By operator: where that other operand may be."""
EXTREMA = tuple(f"td::{name}.Tensor" for name in EXTREMUM_IDENTITIES)
ORDERS = {
    f"td::{name}.Tensor": extrema
    for extrema, names in (
        (("td::maximum.Tensor", "td::minimum.Tensor"), ("gt", "ge")),
        (("td::minimum.Tensor", "td::maximum.Tensor"), ("lt", "le")),
    )
    for name in names
}
"""By comparison: the extremum that selects its first operand where it holds, and its second operand."""
CONJUNCTIONS = ("td::bitwise_and.Tensor", "td::logical_and.Tensor")


def sink_selects(graph: Graph) -> Graph:
    """Sink the selects of scalars; vectors gain nothing by it."""
    return replace_each(graph, _sink)


def _sink(node: Node, out: Graph) -> Replacement:
    result = node.outputs[0]
    if node.op.name != "td::where" or node.kwargs or result.spec.size != 1 or result.weak is not None:
        return None
    if is_replaced(node.op):
        return None
    if result.spec.dtype.is_integer:
        return _sink_into_extremum(node, out)
    return _sink_into_sum(node, out) if result.spec.dtype.kind == "f" else None


def _sink_into_sum(node: Node, out: Graph) -> Replacement:
    """Choose what is added, subtracted or multiplied with."""
    result = node.outputs[0]
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


def _sink_into_extremum(node: Node, out: Graph) -> Replacement:
    """Choose an operand of a maximum or minimum of integers."""
    result = node.outputs[0]
    condition, chosen, kept = node.args
    if not _is_like(chosen, result) or not _is_like(kept, result):
        return None
    for name, amount, rest in (*_match_comparisons(condition, chosen, kept), *_match_updates(node)):
        op = find_operator(name)
        if is_replaced(op) or not _is_like(amount, result):
            continue
        if rest is not None:
            unit = EXTREMUM_IDENTITIES[op.schema.name](result.spec.dtype)
            amount = _call(out, node, (rest, amount, unit), result)
        made = new_node(op, (kept, amount), {}, result.spec, node.source)
        out.nodes.append(made)
        return made.outputs
    return None


Match = tuple[str, Any, Any]
"""An extremum, its operand beside the one that is kept, and the condition on which that operand counts, or None."""


def _match_comparisons(condition: object, chosen: Value, kept: Value) -> Iterator[Match]:
    """Match ``where(chosen > kept, chosen, kept)``, with the comparison alone or in a conjunction."""
    test = condition.node if isinstance(condition, Value) else None
    if test is None or is_replaced(test.op):
        return
    pairs: list[tuple[Node | None, Value | None]] = [(test, None)]
    if test.op.name in CONJUNCTIONS and all(map(_is_condition, test.args)):
        a, b = test.args
        pairs = [(one.node, rest) for one, rest in ((a, b), (b, a))]
    for comparison, rest in pairs:
        if comparison is not None and comparison.op.name in ORDERS and not is_replaced(comparison.op):
            first, second = ORDERS[comparison.op.name]
            if comparison.args[0] is chosen and comparison.args[1] is kept:
                yield first, chosen, rest
            elif comparison.args[0] is kept and comparison.args[1] is chosen:
                yield second, chosen, rest


def _is_condition(value: object) -> bool:
    """Whether a value is a tensor of bools: `logical_and` takes others, and Python's bools too."""
    return isinstance(value, Value) and value.spec.dtype is bool_


def _match_updates(node: Node) -> Iterator[Match]:
    """Match ``where(condition, maximum(x, kept), kept)``."""
    condition, chosen, kept = node.args
    update = chosen.node
    if update is not None and update.op.name in EXTREMA and kept in update.args:
        yield update.op.name, update.args[1 - update.args.index(kept)], condition


def _is_like(value: object, result: Value) -> bool:
    """Whether a value has the shape and dtype of the result of a select."""
    return isinstance(value, Value) and value.weak is None and value.spec == result.spec


def _call(out: Graph, like: Node, args: tuple[Any, ...], result: Value) -> Value:
    """Call the operator of a node on other arguments."""
    made = new_node(like.op, args, {}, result.spec, like.source)
    out.nodes.append(made)
    return made.outputs[0]
