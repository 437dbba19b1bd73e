"""Formulas of operators: what a declaration computes, as one expression for an element or as code.

A scalar body is traced into the scalar IR and printed with Python's operators and precedences. Subexpressions that
occur several times are named first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from tandem.operators.declare.declaration import Declaration
from tandem.operators.scalar_ir.expr import Expr, arg, order
from tandem.operators.scalar_ir.nodes import instantiate
from tandem.registry import dtypes as dt
from tandem.registry.dtypes import DType
from tandem.registry.operator import Operator
from tandem.registry.values import TensorSpec

from .sources import location, source_with_helpers

# node -> (symbol, precedence); a higher one binds tighter
INFIX = {
    "or": ("|", 3),
    "xor": ("^", 4),
    "and": ("&", 5),
    "eq": ("==", 2),
    "ne": ("!=", 2),
    "lt": ("<", 2),
    "le": ("<=", 2),
    "gt": (">", 2),
    "ge": (">=", 2),
    "lshift": ("<<", 6),
    "rshift": (">>", 6),
    "add": ("+", 7),
    "sub": ("-", 7),
    "mul": ("*", 8),
    "truediv": ("/", 8),
    "floordiv": ("//", 8),
    "remainder": ("%", 8),
    "pow": ("**", 10),
    "uniform_pow": ("**", 10),
}
SELECT, UNARY, ATOM = 1, 9, 11
KNOWN_NUMBERS = {
    math.pi: "pi",
    math.log(2): "log(2)",
    math.log(10): "log(10)",
    math.sqrt(0.5): "sqrt(1/2)",
    2 / math.sqrt(math.pi): "2 / sqrt(pi)",
    math.sqrt(2 / math.pi): "sqrt(2 / pi)",
    math.pi / 180: "pi / 180",
    180 / math.pi: "180 / pi",
}
"""Constants that are easier to read by name; an expression of several symbols is put in parentheses."""


def print_expression(root: Expr, names: Sequence[str]) -> list[str]:
    """Lines ``t0 = ...`` for the shared subexpressions of ``root``, and last the expression itself."""
    uses = Counter(operand for expr in order(root) for operand in expr.args)
    shared = {expr for expr in order(root) if uses[expr] > 1 and expr.args}
    shown: dict[Expr, tuple[str, int]] = {}
    lines: list[str] = []
    for expr in order(root):
        shown[expr] = _print_node(expr, names, shown)
        if expr in shared and len(shown[expr][0]) > 8:
            lines.append(f"t{len(lines)} = {shown[expr][0]}")
            shown[expr] = (f"t{len(lines) - 1}", ATOM)
    return [*lines, shown[root][0]]


def _print_node(expr: Expr, names: Sequence[str], shown: dict[Expr, tuple[str, int]]) -> tuple[str, int]:
    """The text of a node whose operands have been printed, and its precedence."""
    operands = [shown[operand] for operand in expr.args]
    if expr.op == "arg":
        return names[expr.payload], ATOM
    if expr.op == "const":
        return _print_constant(expr)
    if expr.op == "cast":
        return f"{expr.dtype.name}({operands[0][0]})", ATOM
    if expr.op == "select":
        condition, a, b = (_wrap(operand, SELECT + 1) for operand in operands)
        return f"{a} if {condition} else {b}", SELECT
    if expr.op == "neg":
        return f"-{_wrap(operands[0], UNARY)}", UNARY
    if expr.op == "invert":
        return f"{'not ' if expr.dtype is dt.bool_ else '~'}{_wrap(operands[0], UNARY)}", UNARY
    if expr.op in INFIX:
        symbol, level = INFIX[expr.op]
        right_first = symbol == "**"
        left = _wrap(operands[0], level + right_first)
        return f"{left} {symbol} {_wrap(operands[1], level + (not right_first))}", level
    return f"{expr.op}({', '.join(text for text, _ in operands)})", ATOM


def _print_constant(expr: Expr) -> tuple[str, int]:
    value = expr.payload
    if isinstance(value, float):
        for known, name in KNOWN_NUMBERS.items():
            if math.isclose(value, known, rel_tol=1e-12):
                return name, INFIX["truediv"][1] if " / " in name and name[:4] != "sqrt" else ATOM
        text = repr(int(value)) if value.is_integer() and abs(value) < 1e6 else repr(value)
        return text, UNARY if text.startswith("-") else ATOM
    text = repr(value)
    return text, UNARY if text.startswith("-") else ATOM


def _wrap(operand: tuple[str, int], level: int) -> str:
    text, own = operand
    return text if own >= level else f"({text})"


def _body_dtype(decl: Declaration) -> DType:
    """The dtype for which a body is printed: float32 where it is accepted."""
    for dtype in (dt.float32, dt.int64, dt.bool_, dt.complex64):
        if dtype in decl.dtypes:
            return dtype
    return decl.dtypes[0]


def scalar_formula(op: Operator) -> str:
    """The formula of one element of an elementwise operator."""
    decl = op.decl
    names = [argument.name for argument in op.schema.arguments]
    dtype = _body_dtype(decl)
    kinds = [dt.bool_ if name in decl.conditions else dtype for name in names]
    if decl.result == "float" and not dtype.is_inexact:
        kinds = [dt.float32 for _ in names]
    *lines, last = print_expression(instantiate(decl.body, kinds), names)
    return "\n".join([*lines, f"{op.schema.name}({', '.join(names)}) = {last}"])


def fold_formula(decl: Declaration) -> str:
    """Describe line by line how a fold combines elements."""
    fold, dtype = decl.fold, _body_dtype(decl)
    assert fold is not None and decl.shape_rule is not None
    out = decl.shape_rule(TensorSpec((2,), dtype), 0).dtype
    operand = fold.operand(arg(0, dtype), out)
    steps = []
    if fold.prepare is not None:
        steps.append(("each element x becomes", print_expression(operand, ["x"])))
    identity = fold.identity(operand.dtype)
    steps.append(("start with", [repr(identity)]))
    steps.append(("combine a and b as", print_expression(fold.combined(operand.dtype), ["a", "b"])))
    if fold.finish is not None:
        steps.append(
            ("return, of the total a", print_expression(fold.finished(arg(0, operand.dtype)), ["a"]))
        )
    if fold.returns_index:
        steps.append(("return", ["the first index of an element that equals the total"]))
    if fold.compensated:
        steps.append(("with", ["compensated summation of floats (Neumaier)"]))
    return "\n".join(f"{head}: {'; '.join(lines)}" for head, lines in steps)


def definition(op: Operator) -> list[tuple[str, str, str]]:
    """Describe what an operator computes: (sentence, code, language) for each part of its declaration that says so."""
    decl = op.decl
    parts: list[tuple[str, str, str]] = []
    if decl.is_elementwise and decl.body is not None:
        dtype = _body_dtype(decl)
        parts.append((f"Each element of the result, here for {dtype.name}:", scalar_formula(op), "python"))
    elif decl.kind == "composite" and decl.body is not None:
        parts.append(
            (_place("It is composed of other operators", decl.body), source_with_helpers(decl.body), "python")
        )
    if decl.fold is not None:
        what = (
            "A scan keeps each partial total" if decl.kind == "scan" else "The elements of a row are folded"
        )
        parts.append((f"{what}, here for {_body_dtype(decl).name}:", fold_formula(decl), "text"))
    if decl.view is not None:
        sentence = _place(
            "A view: the sizes, strides and offset of the result follow from those of `self`", decl.view
        )
        parts.append((sentence, source_with_helpers(decl.view), "python"))
    if decl.kernel is not None:
        sentence = _place("The kernel, with `xp` NumPy on the CPU and CuPy on a GPU", decl.kernel)
        parts.append((sentence, source_with_helpers(decl.kernel), "python"))
    return [(sentence, code or "# computed by native code", language) for sentence, code, language in parts]


def _place(sentence: str, function: Callable[..., object]) -> str:
    where = location(function)
    return f"{sentence} (`{where}`):" if where else f"{sentence}:"
