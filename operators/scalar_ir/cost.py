"""The cost of scalar expressions, in cheap instructions per element; fusion and rematerialization use it."""

from __future__ import annotations

from .expr import Expr, order

_COST = {"cast": 1, "load": 1, "gather": 6, "truediv": 4, "sqrt": 6, "floordiv": 8, "remainder": 8}
_FREE = frozenset("const row scalar index".split())
_LIGHT = frozenset(
    "add sub mul neg abs minimum maximum eq ne lt le gt ge and or xor invert select copysign "
    "floor ceil trunc rint isnan isinf isfinite".split()
)


def cost(root: Expr) -> int:
    """The approximate cost of an expression, in cheap instructions per element."""
    return sum(map(_cost_of_node, order(root)))


def cost_without_reads(root: Expr) -> int:
    """The cost of an expression but for its reads of memory."""
    return sum(_cost_of_node(e) for e in order(root) if e.op not in ("arg", "load", "gather"))


def is_light(root: Expr) -> bool:
    """Whether each operation of an expression takes about a cycle."""
    return all(_cost_of_node(e) <= 1 for e in order(root))


def _cost_of_node(e: Expr) -> int:
    return 0 if e.op in _FREE else _COST.get(e.op, 1 if e.op in _LIGHT else 16)
