"""Algebraic rules that keep every bit: what an operator on given arguments is the same as."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..tracer.graph import Node, Value
from .rewrite import Replacement, has_effects

Rule = Callable[[Node], Value | None]


def _is_number(value: Any, wanted: float) -> bool:
    """Whether ``value`` is the Python number ``wanted``, with its sign (0.0 is not -0.0)."""
    if not isinstance(value, (bool, int, float)) or value != wanted:
        return False
    return math.copysign(1.0, value) == math.copysign(1.0, wanted)


def _same(node: Node, value: Any) -> Value | None:
    """``value`` if it can stand for the node's result: same shape and dtype, and neither is weak."""
    out = node.outputs[0]
    if isinstance(value, Value) and value.spec == out.spec and value.weak is None and out.weak is None:
        return value
    return None


def _either(node: Node, unit: float) -> Value | None:
    """The other operand of a commutative operator one of whose operands is its unit; not for complex numbers, whose
    products and sums meet an imaginary zero."""
    if node.outputs[0].spec.dtype.kind == "c":
        return None
    a, b = node.args[:2]
    return _same(node, a) if _is_number(b, unit) else _same(node, b) if _is_number(a, unit) else None


def _mul(node: Node) -> Value | None:
    return _either(node, 1)


def _add(node: Node) -> Value | None:
    """x + 0 for integers; for floats only x + -0.0, since -0.0 + 0.0 is 0.0."""
    return _either(node, 0 if node.outputs[0].spec.dtype.is_integer else -0.0)


def _right_unit(unit: float) -> Rule:
    def rule(node: Node) -> Value | None:
        real = node.outputs[0].spec.dtype.kind != "c"
        return _same(node, node.args[0]) if real and _is_number(node.args[1], unit) else None

    return rule


def _involution(node: Node) -> Value | None:
    """neg(neg(x)), and any other operator that undoes itself."""
    inner = node.args[0].node if isinstance(node.args[0], Value) else None
    return _same(node, inner.args[0]) if inner is not None and inner.op is node.op else None


def _idempotent(node: Node) -> Value | None:
    """abs(abs(x)): the inner result is the outer one."""
    inner = node.args[0].node if isinstance(node.args[0], Value) else None
    return _same(node, node.args[0]) if inner is not None and inner.op is node.op else None


def _cast(node: Node) -> Value | None:
    return _same(node, node.args[0])


RULES: dict[str, Rule] = {
    "mul": _mul,
    "multiply": _mul,
    "add": _add,
    "sub": _right_unit(0),
    "subtract": _right_unit(0),
    "div": _right_unit(1),
    "divide": _right_unit(1),
    "neg": _involution,
    "negative": _involution,
    "conj": _involution,
    "logical_not": _involution,
    "bitwise_invert": _involution,
    "abs": _idempotent,
    "floor": _idempotent,
    "ceil": _idempotent,
    "trunc": _idempotent,
    "round": _idempotent,
    "cast": _cast,
}
"""By the operator's name; a rule gives the value that the node is equal to, or None."""


def simplified(node: Node) -> Replacement:
    """The values that a node's results are equal to, or None."""
    if has_effects(node) or len(node.outputs) != 1:
        return None
    rule = RULES.get(node.op.schema.name) if node.op.schema.namespace == "td" else None
    found = rule(node) if rule is not None else None
    return (found,) if found is not None else None
