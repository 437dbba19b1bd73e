"""Emit nodes on complex numbers.

The arithmetic, the elementary functions, and nodes of which every implementation has the same bits are written out. For
general powers the inner loop of NumPy's ufunc is called on each vector.

The parts of a vector's numbers are in turn, as in memory, or split: all real parts, and then all imaginary ones. A node
that computes parts apart then moves no lanes, but each load and store does.

Source: the split complex format of signal processing libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from .... import lazy
from ....operators.scalar_ir.expr import NODES, Expr
from ....registry.dtypes import DType
from .text import PARTS, REGISTER, Function

_ufunc_calls = lazy.Module(".backends.cpu.codegen.ufunc_calls")
_FUNCTIONS = lazy.Functions(".backends.cpu.codegen.functions.complex_functions")
_ELEMENTARY = (
    "exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
)
_POWERS = lazy.Functions(".backends.cpu.codegen.complex_powers")
_PARTWISE = ("add", "sub", "neg", "rint")
_TESTS = {
    "eq": "and",
    "ne": "or",
    "isnan": "or",
    "isinf": "or",
    "isfinite": "and",
}  # how both parts' are joined


def calls_ufunc(expr: Expr) -> bool:
    """Return whether a node is computed by the inner loop of a ufunc."""
    if expr.op not in NODES or expr.args[0].dtype not in PARTS:
        return False
    return not any(expr.op in names for names in (_WRITTEN, _PARTWISE, _TESTS, ("real", "imag")))


def splits_pay(exprs: Iterable[Expr], stored: Iterable[Expr]) -> bool:
    """Return whether a kernel moves fewer lanes if its vectors of complex numbers are split.

    Args:
        exprs: the kernel's expressions.
        stored: those whose values it stores.
    """
    in_memory = [e for e in stored if e.dtype in PARTS]
    taken_apart, joined = set[Expr](), 0
    for e in exprs:
        operands = [a for a in e.args if a.dtype in PARTS]
        if e.op in ("load", "gather") and e.dtype in PARTS:
            in_memory.append(e)
        elif calls_ufunc(e):
            in_memory += [*operands, e]
        elif operands and e.op not in (*_PARTWISE, "select"):
            taken_apart.update(a for a in operands if a.op != "const")
        if e.dtype in PARTS and e.args and e.op not in _PARTWISE:
            joined += 1
    return len(in_memory) < len(taken_apart) + joined


def is_ufunc_alone(body: Expr) -> bool:
    """Return whether one inner loop computes an expression at least as fast as an emitted loop.

    Loops of sums do, which do not copy strided operands first.
    """
    is_served = calls_ufunc(body) or (body.op in ("add", "sub", "conj") and body.dtype in PARTS)
    return is_served and all(a.op in ("arg", "const") for a in body.args)


def emit_complex(f: Function, expr: Expr, values: list[str], emit: Callable[..., str] | None) -> str:
    """Emit one node of the table that has complex operands or a complex result.

    Args:
        f: the function being written.
        expr: the node.
        values: the registers of its operands.
        emit: emits the node on parts, if it is one of real numbers too.

    Raises:
        UnsupportedError: NumPy has no loop for the node.
    """
    dtype = expr.args[0].dtype
    if expr.op == "complex":
        return f.join_parts(REGISTER[dtype], *values)
    element = REGISTER[PARTS[dtype]]
    if expr.op in ("real", "imag"):
        return f.split_parts(element, values[0])[expr.op == "imag"]
    if expr.op in _WRITTEN:
        return _WRITTEN[expr.op](f, PARTS[dtype], *values)
    if emit is None or calls_ufunc(expr):
        return str(_ufunc_calls.call_ufunc(f, expr, values))
    with f.parts(dtype) as part:
        result = emit(f, part, *values)
    if expr.op in _PARTWISE:
        return result
    return f.op(f"{_TESTS[expr.op]} {f.vec('i1')} {', '.join(f.split_parts('i1', result))}")


def _product(f: Function, part: DType, x: str, y: str) -> str:
    """Return the product, each of whose four terms is rounded; NumPy's loop fuses some multiply-adds."""
    element, vec = REGISTER[part], f.vec(REGISTER[part])
    (a, b), (c, d) = f.split_parts(element, x), f.split_parts(element, y)
    real = f.op(f"fsub {vec} {f.op(f'fmul {vec} {a}, {c}')}, {f.op(f'fmul {vec} {b}, {d}')}")
    imag = f.op(f"fadd {vec} {f.op(f'fmul {vec} {a}, {d}')}, {f.op(f'fmul {vec} {b}, {c}')}")
    return f.join_parts(element, real, imag)


def _quotient(f: Function, part: DType, x: str, y: str) -> str:
    """Return the quotient by Smith's method, which NumPy's loop has too; dividing by 0 returns infinities or NaN."""
    element, vec, one = REGISTER[part], f.vec(REGISTER[part]), f.splat(1.0, part)
    (a, b), (c, d) = f.split_parts(element, x), f.split_parts(element, y)

    def compute(name: str, first: str, second: str) -> str:
        return f.op(f"f{name} {vec} {first}, {second}")

    def select(condition: str, yes: str, no: str) -> str:
        return f.op(f"select {f.vec('i1')} {condition}, {vec} {yes}, {vec} {no}")

    sizes = [f.intrinsic("fabs", element, part_of_y) for part_of_y in (c, d)]
    in_order = f.op(f"fcmp oge {vec} {sizes[0]}, {sizes[1]}")
    large, small = select(in_order, c, d), select(in_order, d, c)
    first, second = select(in_order, a, b), select(in_order, b, a)
    ratio = compute("div", small, large)
    scale = compute("div", one, compute("add", large, compute("mul", small, ratio)))
    product = compute("mul", first, ratio)
    difference = select(in_order, compute("sub", second, product), compute("sub", product, second))
    real = compute("mul", compute("add", first, compute("mul", second, ratio)), scale)
    imag = compute("mul", difference, scale)
    is_zero = f.op(f"and {f.vec('i1')} {in_order}, {f.op(f'fcmp oeq {vec} {large}, zeroinitializer')}")
    # LLVM would compute constant products, and a NaN then has the other sign
    infinity = f.intrinsic("arithmetic.fence", element, f.splat(float("inf"), part))
    infinite = [compute("mul", part_of_x, infinity) for part_of_x in (a, b)]
    return f.join_parts(element, select(is_zero, infinite[0], real), select(is_zero, infinite[1], imag))


def _conjugate(f: Function, part: DType, x: str) -> str:
    real, imag = f.split_parts(REGISTER[part], x)
    return f.join_parts(REGISTER[part], real, f.op(f"fneg {f.vec(REGISTER[part])} {imag}"))


_WRITTEN: dict[str, Callable[..., str]] = {
    "mul": _product,
    "truediv": _quotient,
    "conj": _conjugate,
    "abs": _FUNCTIONS.absolute,
    **{name: partial(_FUNCTIONS.emit, name) for name in _ELEMENTARY},
    "uniform_pow": _POWERS.uniform_power,
}
INEXACT = tuple(name for name in _WRITTEN if "c" not in NODES[name].exact and name != "uniform_pow")
"""The nodes that are written out, and whose last bits may differ from those of NumPy's loops.

A power with one exponent is a composition of others.
"""
