"""Remainders of floats: exact, like C's fmod, in a few vector instructions except for huge quotients."""

from __future__ import annotations

import math

from ....operators.scalar_ir.expr import Expr
from ....registry.dtypes import DType
from . import libm
from .text import REGISTER, Function, Module

MOST_DIVISOR = 2**30


def find_divisor(e: Expr) -> float | None:
    """Return a constant divisor by which a quotient is exact and never overflows: a power of two, 1 or more."""
    if e.op != "const" or not 1 <= e.payload <= MOST_DIVISOR:
        return None
    return float(e.payload) if math.frexp(e.payload)[0] == 0.5 else None


def fmod(f: Function, dtype: DType, a: str, b: str, divisor: float | None = None) -> str:
    """Return C's fmod: the remainder with the sign of a.

    Args:
        f: the function.
        dtype: the dtype of the operands.
        a, b: their registers.
        divisor: the value of b, if :func:`find_divisor` returns one; then there is no branch for huge quotients.
    """
    vec, element = f.vec(REGISTER[dtype]), REGISTER[dtype]
    if divisor is not None:
        quotient = f.intrinsic("trunc", element, f.op(f"fmul {vec} {a}, {f.splat(1 / divisor, dtype)}"))
        rest = f.op(f"fsub {vec} {a}, {f.op(f'fmul {vec} {quotient}, {b}')}")
        return f.intrinsic("copysign", element, rest, a)
    name = f"fmod_{REGISTER[dtype]}_{f.lanes}"
    if name not in f.module.parts:
        f.module.helper(name, _write_fmod(f.module, name, dtype, f.lanes))
    return f.op(f"call {vec} @{name}({vec} {a}, {vec} {b})")


def _write_fmod(module: Module, name: str, dtype: DType, lanes: int) -> str:
    f = Function(module, lanes)
    vec, i1, element = f.vec(REGISTER[dtype]), f.vec("i1"), REGISTER[dtype]
    quotient = f.intrinsic("trunc", element, f.op(f"fdiv {vec} %a, %b"))
    rest = _exact_rest(f, dtype, quotient)
    # larger quotients are not exact: call libm (NaN does not count as huge)
    limit = 2.0 ** (22 if dtype.bits == 32 else 51)
    huge = f.op(f"fcmp ogt {vec} {f.intrinsic('fabs', element, quotient)}, {f.splat(limit, dtype)}")
    reduce = f"llvm.vector.reduce.or.v{lanes}i1"
    module.declare(reduce, "i1", i1)
    f.branch(f.op(f"call i1 @{reduce}({i1} {huge})"), "slow", "fast")
    f.label("fast")
    f.do(f"ret {vec} {rest}")
    f.label("slow")
    f.do(f"ret {vec} {libm.call_lanes(f, 'fmod', dtype, '%a', '%b')}")
    return f.text(f"internal {vec} @{name}({vec} %a, {vec} %b) #1")


def _exact_rest(f: Function, dtype: DType, quotient: str) -> str:
    """Return a - quotient * b, which is representable, with one b added if the division had rounded up."""
    vec, i1, element = f.vec(REGISTER[dtype]), f.vec("i1"), REGISTER[dtype]
    rest = f.intrinsic("fma", element, f.op(f"fneg {vec} {quotient}"), "%b", "%a")
    size = f.intrinsic("fabs", element, "%b")
    signed = f.intrinsic("copysign", element, rest, "%a")
    over = f.op(f"fcmp one {vec} {signed}, {rest}")
    fixed = f.op(f"fadd {vec} {rest}, {f.intrinsic('copysign', element, size, '%a')}")
    rest = f.op(f"select {i1} {over}, {vec} {fixed}, {vec} {signed}")
    # 0 * inf if b is infinite
    below = f.op(f"fcmp olt {vec} {f.intrinsic('fabs', element, '%a')}, {size}")
    return f.op(f"select {i1} {below}, {vec} %a, {vec} {rest}")


def remainder(f: Function, dtype: DType, a: str, b: str, divisor: float | None = None) -> str:
    """Return NumPy's remainder: fmod shifted to the sign of b; a zero has that sign too."""
    vec, i1 = f.vec(REGISTER[dtype]), f.vec("i1")
    mod = fmod(f, dtype, a, b, divisor)
    zero = f.op(f"fcmp oeq {vec} {mod}, zeroinitializer")
    below = [f.op(f"fcmp olt {vec} {v}, zeroinitializer") for v in (mod, b)]
    moved = f.op(f"fadd {vec} {mod}, {b}")
    signed = f.op(f"select {i1} {f.op(f'xor {i1} {below[0]}, {below[1]}')}, {vec} {moved}, {vec} {mod}")
    signed_zero = f.intrinsic("copysign", REGISTER[dtype], "zeroinitializer", b)
    return f.op(f"select {i1} {zero}, {vec} {signed_zero}, {vec} {signed}")


def floordiv(f: Function, dtype: DType, a: str, b: str, divisor: float | None = None) -> str:
    """Return NumPy's floor division: (a - a % b) / b rounded to the nearest integer; a / b where b is 0."""
    vec, i1, element = f.vec(REGISTER[dtype]), f.vec("i1"), REGISTER[dtype]
    one = f.splat(1, dtype)
    mod = fmod(f, dtype, a, b, divisor)
    div = f.op(f"fdiv {vec} {f.op(f'fsub {vec} {a}, {mod}')}, {b}")
    below = [f.op(f"fcmp olt {vec} {v}, zeroinitializer") for v in (mod, b)]
    inexact = f.op(f"fcmp one {vec} {mod}, zeroinitializer")
    crosses = f.op(f"and {i1} {inexact}, {f.op(f'xor {i1} {below[0]}, {below[1]}')}")
    div = f.op(f"select {i1} {crosses}, {vec} {f.op(f'fsub {vec} {div}, {one}')}, {vec} {div}")
    whole = f.intrinsic("floor", element, div)
    far = f.op(f"fcmp ogt {vec} {f.op(f'fsub {vec} {div}, {whole}')}, {f.splat(0.5, dtype)}")
    whole = f.op(f"select {i1} {far}, {vec} {f.op(f'fadd {vec} {whole}, {one}')}, {vec} {whole}")
    ratio = f.op(f"fdiv {vec} {a}, {b}")
    zero = f.op(f"fcmp oeq {vec} {div}, zeroinitializer")
    signed_zero = f.intrinsic("copysign", element, "zeroinitializer", ratio)
    whole = f.op(f"select {i1} {zero}, {vec} {signed_zero}, {vec} {whole}")
    by_zero = f.op(f"fcmp oeq {vec} {b}, zeroinitializer")
    return f.op(f"select {i1} {by_zero}, {vec} {ratio}, {vec} {whole}")
