"""Scalar expressions of fused nodes: their bodies over loads, constants, run-time scalars and each other."""

from __future__ import annotations

from typing import Any

from ..operators.expr import Expr, cast, const, order, substitute
from ..operators.rules import operand_dtypes
from ..operators.scalar import instantiate
from ..registry import dtypes as dt
from ..registry.dtypes import DType
from ..tracer.graph import Node, Value
from .resolve import body_dtype
from .user_kernels import user_function

CHEAP = 12  # what a value may cost to be computed again instead of being kept
_COST = {"cast": 1, "load": 1, "truediv": 4, "sqrt": 6, "floordiv": 8, "remainder": 8}
_FREE = frozenset("const row scalar index".split())
_LIGHT = frozenset(
    "add sub mul neg abs minimum maximum eq ne lt le gt ge and or xor invert select copysign "
    "floor ceil trunc rint isnan isinf isfinite".split()
)


def cost(root: Expr) -> int:
    """Roughly how many cheap instructions an expression takes for each element."""
    return sum(0 if e.op in _FREE else _COST.get(e.op, 1 if e.op in _LIGHT else 16) for e in order(root))


def number(value: bool | int | float | complex, dtype: DType) -> Expr:
    """A Python number as a constant of ``dtype``, converted as NumPy does it."""
    if isinstance(value, bool):
        return cast(const(value, dt.bool_), dtype)
    if dtype.kind in "fc" or (dtype.is_integer and isinstance(value, int)):
        return const(value, dtype)
    return cast(const(value, dt.int64 if isinstance(value, int) else dt.float64), dtype)


def operands_of(node: Node) -> tuple[Any, ...]:
    """The arguments of a fused node that its expression reads: Values and Python numbers."""
    decl = node.op.decl
    if decl.is_elementwise or decl.kind == "custom":
        return node.args
    return node.args[1:2] if decl.kind == "creation" else node.args[:1]


def operand_types(node: Node) -> tuple[DType, ...]:
    """The dtype that each operand of a node's body has; a filled tensor's and a cast's are converted at the end."""
    decl = node.op.decl
    if decl.kind == "custom":
        params: tuple[DType, ...] = _function(node).params
        return params
    if decl.is_elementwise:
        return operand_dtypes(decl, body_dtype(node), len(node.args))
    return tuple(_own_type(a) for a in operands_of(node))


def _own_type(argument: Any) -> DType:
    if isinstance(argument, Value):
        return argument.spec.dtype
    if isinstance(argument, complex):
        return dt.complex128
    return dt.bool_ if isinstance(argument, bool) else dt.int64 if isinstance(argument, int) else dt.float64


def _function(node: Node) -> Any:
    """The scalar function of a node that has been fused for it."""
    return user_function(node)


def node_expr(node: Node, operands: list[Expr]) -> Expr:
    """What a fused node computes of its operands: its body, or the operand itself in the type of the result."""
    out = node.outputs[0].spec.dtype
    dtypes = operand_types(node)
    if node.op.decl.kind == "custom":
        function = _function(node)
        given = tuple(cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=True))
        return Expr("call", given, function.result, function)
    if not node.op.decl.is_elementwise:
        return cast(operands[0], out)
    body = instantiate(node.op.decl.body, dtypes, out)
    return substitute(body, [cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=True)])


def reduction_operand(node: Node, operand: Expr) -> Expr:
    """What a reduction folds: its argument in the type that the fold computes in."""
    fold, out = node.op.decl.reduce, node.outputs[0].spec.dtype
    if fold in ("any", "all"):
        return cast(operand, dt.bool_)
    typed = cast(operand, out) if fold in ("sum", "prod") else operand
    return cast(typed, dt.float32) if typed.dtype in dt.HALVES else typed


def folded_dtype(node: Node, operand: Expr) -> DType:
    """The type of a reduction's row value."""
    return dt.int64 if node.op.decl.reduce in ("argmax", "argmin") else operand.dtype


def unreduced_expr(node: Node, operand: Expr) -> Expr:
    """A reduction over axes of one element each: the element itself, or its position."""
    out = node.outputs[0].spec.dtype
    if node.op.decl.reduce in ("argmax", "argmin"):
        return const(0, out)
    typed = reduction_operand(node, operand)
    if node.op.decl.reduce == "prod" and typed.dtype.kind == "c":
        typed = const(1, typed.dtype) * typed  # the factor of NumPy, whose imaginary zero infinities meet
    return cast(typed, out)
