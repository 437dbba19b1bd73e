"""Scalarize: build the scalar expression that a fused node evaluates for each element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import lazy
from ...operators.declare.shape_rules import operand_dtypes
from ...operators.scalar_ir.expr import Expr, cast, const, substitute
from ...operators.scalar_ir.fold import Fold
from ...operators.scalar_ir.nodes import instantiate
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...tracer.graph import Node, Value
from ..kernel_selection import body_dtype

if TYPE_CHECKING:
    from ...operators.foreign.functions import ScalarFunction

_foreign_kernels = lazy.Module(".lowering.foreign_kernels")


def number_expr(value: bool | int | float | complex, dtype: DType) -> Expr:
    """Make a constant of ``dtype`` from a Python number, with NumPy's conversion rules."""
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
    """The dtype of each operand of a node's body; ``full`` and ``cast`` convert after the body."""
    decl = node.op.decl
    if decl.kind == "custom":
        params: tuple[DType, ...] = _function(node).params
        return params
    if decl.is_elementwise:
        return operand_dtypes(decl, body_dtype(node), len(node.args))
    return tuple(_argument_dtype(a) for a in operands_of(node))


def _argument_dtype(argument: object) -> DType:
    if isinstance(argument, Value):
        return argument.spec.dtype
    if isinstance(argument, complex):
        return dt.complex128
    if isinstance(argument, bool):
        return dt.bool_
    if isinstance(argument, int):
        return dt.int64 if argument < 2**63 else dt.uint64
    return dt.float64


def _function(node: Node) -> ScalarFunction:
    """The foreign scalar function of a fused custom node."""
    function: ScalarFunction = _foreign_kernels.find_foreign_function(node)
    return function


def _has_scalar_second_operand(node: Node) -> bool:
    """Whether the second of a node's two arguments is a real Python number, constant or at run time."""
    last = node.args[-1]
    kind = last.weak if isinstance(last, Value) else type(last)
    return len(node.args) == 2 and kind in (bool, int, float)


def node_expr(node: Node, operands: list[Expr]) -> Expr:
    """The expression of a fused node: its body, or its operand cast to the result's dtype."""
    out = node.outputs[0].spec.dtype
    dtypes = operand_types(node)
    if node.op.decl.kind == "custom":
        function = _function(node)
        given = tuple(cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=True))
        return Expr("call", given, function.result, function)
    if not node.op.decl.is_elementwise:
        return cast(operands[0], out)
    body = instantiate(node.op.decl.body_with(_has_scalar_second_operand(node)), dtypes, out)
    return substitute(body, [cast(x, dtype) for x, dtype in zip(operands, dtypes, strict=True)])


def reduction_operand(node: Node, operand: Expr) -> Expr:
    """The value that an element of a reduction's argument contributes to the fold."""
    return _fold(node).operand(operand, node.outputs[0].spec.dtype)


def row_dtype(node: Node, operand: Expr) -> DType:
    """The dtype of a reduction's row value."""
    return _fold(node).result_dtype(operand.dtype)


def size_one_reduction_expr(node: Node, operand: Expr) -> Expr:
    """The expression of a reduction over axes of size one: the element itself, or its index."""
    fold, out = _fold(node), node.outputs[0].spec.dtype
    if fold.returns_index:
        return const(0, out)
    value = reduction_operand(node, operand)
    # A fold starts from its identity: that turns -0.0 into 0.0, and a complex one's zero times infinity into NaN.
    if fold.rounds(value.dtype):
        value = fold.combine(const(fold.identity(value.dtype), value.dtype), value)
    return cast(fold.finished(value), out)


def _fold(node: Node) -> Fold:
    fold: Fold = node.op.decl.fold
    return fold
