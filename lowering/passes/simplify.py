"""Algebraic simplification with rules that are exact in IEEE arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...tracer.graph import Node, Value
from .rewrite import Replacement, has_effects

Rule = Callable[[Node], Value | None]


def _is_number(value: object, wanted: float) -> bool:
    """Whether ``value`` is the Python number ``wanted``, with its sign (0.0 is not -0.0)."""
    if not isinstance(value, (bool, int, float)) or value != wanted:
        return False
    return math.copysign(1.0, value) == math.copysign(1.0, wanted)


def _replace_by(node: Node, value: object) -> Value | None:
    """Return ``value`` if it can replace the node's result (same shape and dtype, neither weak), else None."""
    out = node.outputs[0]
    if isinstance(value, Value) and value.spec == out.spec and value.weak is None and out.weak is None:
        return value
    return None


def _drop_unit(node: Node, unit: float) -> Value | None:
    """Drop the unit operand of a commutative operator; not for complex ones: the unit's imaginary zero matters."""
    if node.outputs[0].spec.dtype.kind == "c":
        return None
    a, b = node.args[:2]
    return (
        _replace_by(node, a) if _is_number(b, unit) else _replace_by(node, b) if _is_number(a, unit) else None
    )


def _mul(node: Node) -> Value | None:
    return _drop_unit(node, 1)


def _add(node: Node) -> Value | None:
    """Drop ``x + 0`` for integers; for floats only ``x + -0.0``, since ``-0.0 + 0.0`` is ``0.0``."""
    return _drop_unit(node, 0 if node.outputs[0].spec.dtype.is_integer else -0.0)


def _drop_right_unit(unit: float) -> Rule:
    def rule(node: Node) -> Value | None:
        real = node.outputs[0].spec.dtype.kind != "c"
        return _replace_by(node, node.args[0]) if real and _is_number(node.args[1], unit) else None

    return rule


def _involution(node: Node) -> Value | None:
    """Cancel an operator that is its own inverse: ``neg(neg(x))``."""
    inner = node.args[0].node if isinstance(node.args[0], Value) else None
    return _replace_by(node, inner.args[0]) if inner is not None and inner.op is node.op else None


def _idempotent(node: Node) -> Value | None:
    """Drop a repeated idempotent operator: ``abs(abs(x))``."""
    inner = node.args[0].node if isinstance(node.args[0], Value) else None
    return _replace_by(node, node.args[0]) if inner is not None and inner.op is node.op else None


def _cast(node: Node) -> Value | None:
    return _replace_by(node, node.args[0])


RULES: dict[str, Rule] = {
    "mul": _mul,
    "multiply": _mul,
    "add": _add,
    "sub": _drop_right_unit(0),
    "subtract": _drop_right_unit(0),
    "div": _drop_right_unit(1),
    "divide": _drop_right_unit(1),
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
"""Rules by operator name; a rule returns the value that equals the node's result, or None."""


def simplify_node(node: Node) -> Replacement:
    """The values that replace a node's results; None keeps the node."""
    if has_effects(node) or len(node.outputs) != 1:
        return None
    rule = RULES.get(node.op.schema.name) if node.op.schema.namespace == "td" else None
    value = rule(node) if rule is not None else None
    return (value,) if value is not None else None
