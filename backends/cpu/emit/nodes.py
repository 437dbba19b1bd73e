"""Each node of the scalar IR as LLVM instructions on vectors: the emission column of the node table."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....errors import UnsupportedError
from ....operators.expr import NODES, Expr, order
from ....registry import dtypes as dt
from ....registry.dtypes import DType
from . import integers, libm, polynomials, remainders
from .casts import emit_cast
from .text import REGISTER, Function
from .user import call_user

Emit = Callable[..., str]  # (function, dtype of the operands, *operands) -> result


def _arithmetic(name: str) -> Emit:
    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        return f.op(f"{'f' if dtype.kind == 'f' else ''}{name} {f.vec(REGISTER[dtype])} {a}, {b}")

    return emit


def _or_on_bool(name: str, on_bool: str) -> Emit:
    numeric = _arithmetic(name)

    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        if dtype is dt.bool_:
            return f.op(f"{on_bool} {f.vec('i1')} {a}, {b}")
        return numeric(f, dtype, a, b)

    return emit


def _bits(name: str) -> Emit:
    return lambda f, dtype, a, b: f.op(f"{name} {f.vec(REGISTER[dtype])} {a}, {b}")


def _compare(name: str) -> Emit:
    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        equality = name in ("eq", "ne")
        if dtype.kind == "f":
            predicate = "fcmp " + ("une" if name == "ne" else "o" + name)
        else:
            predicate = "icmp " + ("" if equality else "s" if dtype.kind == "i" else "u") + name
        return f.op(f"{predicate} {f.vec(REGISTER[dtype])} {a}, {b}")

    return emit


def _extremum(name: str, on_bool: str, compare: str) -> Emit:
    def emit(f: Function, dtype: DType, a: str, b: str) -> str:
        vec = f.vec(REGISTER[dtype])
        if dtype is dt.bool_:
            return f.op(f"{on_bool} {vec} {a}, {b}")
        if dtype.kind != "f":
            return f.intrinsic(("s" if dtype.kind == "i" else "u") + name, REGISTER[dtype], a, b)
        # as the instruction: the second operand if either is NaN; then a NaN in the first wins
        picked = f.op(f"select {f.vec('i1')} {f.op(f'fcmp {compare} {vec} {a}, {b}')}, {vec} {a}, {vec} {b}")
        isnan = f.op(f"fcmp uno {vec} {a}, {a}")
        return f.op(f"select {f.vec('i1')} {isnan}, {vec} {a}, {vec} {picked}")

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda f, dtype, *args: f.intrinsic(name, REGISTER[dtype], *args)


def _library(name: str) -> Emit:
    return lambda f, dtype, *args: libm.call(f, name, dtype, *args)


def _neg(f: Function, dtype: DType, x: str) -> str:
    vec = f.vec(REGISTER[dtype])
    return f.op(f"fneg {vec} {x}" if dtype.kind == "f" else f"sub {vec} zeroinitializer, {x}")


def _abs(f: Function, dtype: DType, x: str) -> str:
    vec, element = f.vec(REGISTER[dtype]), REGISTER[dtype]
    if dtype.kind == "f":
        return f.intrinsic("fabs", element, x)
    if dtype.kind == "u":
        return x
    symbol = f"llvm.abs.v{f.lanes}{element}"
    f.module.declare(symbol, vec, vec, "i1")
    return f.op(f"call {vec} @{symbol}({vec} {x}, i1 false)")


def _invert(f: Function, dtype: DType, x: str) -> str:
    ones = f.splat(dtype is dt.bool_ or (-1 if dtype.kind == "i" else 2**dtype.bits - 1), dtype)
    return f.op(f"xor {f.vec(REGISTER[dtype])} {x}, {ones}")


def _signbit(f: Function, dtype: DType, x: str) -> str:
    bits = f.vec(f"i{dtype.bits}")
    return f.op(f"icmp slt {bits} {f.op(f'bitcast {f.vec(REGISTER[dtype])} {x} to {bits}')}, zeroinitializer")


def _magnitude(predicate: str) -> Emit:
    def emit(f: Function, dtype: DType, x: str) -> str:
        size = f.intrinsic("fabs", REGISTER[dtype], x)
        return f.op(f"fcmp {predicate} {f.vec(REGISTER[dtype])} {size}, {f.splat(float('inf'), dtype)}")

    return emit


def _by_kind(name: str, on_float: Emit) -> Emit:
    on_integer = integers.TABLE[name]
    return lambda f, dtype, a, b: (on_float if dtype.kind == "f" else on_integer)(f, dtype, a, b)


EMIT: dict[str, Emit] = {
    **{
        name: _library(name)
        for name, row in NODES.items()
        if row.kinds in ("f", "fc") and row.result == "same"
    },
    "add": _or_on_bool("add", "or"),
    "sub": _arithmetic("sub"),
    "mul": _or_on_bool("mul", "and"),
    "truediv": _arithmetic("div"),
    "floordiv": _by_kind("floordiv", remainders.floordiv),
    "remainder": _by_kind("remainder", remainders.remainder),
    "fmod": _by_kind("fmod", remainders.fmod),
    "pow": _by_kind("pow", _library("pow")),
    "minimum": _extremum("min", "and", "olt"),
    "maximum": _extremum("max", "or", "ogt"),
    "copysign": _intrinsic("copysign"),
    "nextafter": lambda f, dtype, a, b: libm.call_lanes(f, "nextafter", dtype, a, b),
    "neg": _neg,
    "abs": _abs,
    **{name: _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _bits(name) for name in ("and", "or", "xor")},
    "invert": _invert,
    "lshift": integers.lshift,
    "rshift": integers.rshift,
    **{name: _intrinsic(name) for name in ("sqrt", "floor", "ceil", "trunc", "rint")},
    "isnan": lambda f, dtype, x: f.op(f"fcmp uno {f.vec(REGISTER[dtype])} {x}, {x}"),
    "isinf": _magnitude("oeq"),
    "isfinite": _magnitude("olt"),
    "signbit": _signbit,
}
EMIT |= polynomials.TABLE
"""How each node is emitted. The nodes of complex numbers are not."""


def _select(f: Function, expr: Expr, values: list[str]) -> str:
    vec = f.vec(REGISTER[expr.dtype])
    return f.op(f"select {f.vec('i1')} {values[0]}, {vec} {values[1]}, {vec} {values[2]}")


def emit_node(f: Function, expr: Expr, values: list[str]) -> str:
    """One node over the registers of its operands."""
    if expr.op == "const":
        return f.splat(expr.payload, expr.dtype)
    if expr.op == "cast":
        return emit_cast(f, values[0], expr.args[0].dtype, expr.dtype)
    if expr.op == "select":
        return _select(f, expr, values)
    if expr.op == "call":
        return call_user(f, expr.payload, values)
    operand = expr.args[0].dtype
    if operand in (dt.float16, dt.bfloat16):
        raise UnsupportedError(
            f"{expr.op} on {operand.name}: bodies compute in float32, see scalar.instantiate"
        )
    return EMIT[expr.op](f, operand, *values)


def emit_exprs(f: Function, roots: Iterable[Expr], known: dict[Expr, str]) -> None:
    """Write what ``roots`` need and ``known`` lacks; ``known`` gains every register."""
    for expr in order(*roots):
        if expr not in known:
            known[expr] = emit_node(f, expr, [known[a] for a in expr.args])
