"""Division of integers by multiplication with the reciprocal of the divisor as a float.

Processors have no division of vectors of integers, and divide floats slowly. A divisor that is the same in all steps of
a loop has one reciprocal, which LLVM computes before the loop.

Source: Granlund and Montgomery, Division by invariant integers using multiplication, 1994, for the idea; here floats
are multiplied, and the remainder corrects the quotient.
"""

from __future__ import annotations

from ....registry import dtypes as dt
from ....registry.dtypes import DType
from ..target import vector_target
from .intervals import Interval, integers_of
from .text import REGISTER, Function

NEAR = Interval(-(2**48), 2**48)  # int64 whose quotients are exact products with a float64


def uses_reciprocal(f: Function, dtype: DType, b: str) -> bool:
    """Return whether a quotient of vectors is a product with a reciprocal.

    int64 is converted to and from float64 in vectors on processors with AVX-512 only, and then quicker than its scalar
    division, whatever the divisor is. Shorter integers are divided as floats; a reciprocal is quicker if it is computed
    once.
    """
    if dtype.bits == 64:
        return dtype.kind == "i" and f.lanes > 1 and vector_target().masks
    return b in f.invariants


def divide_by_reciprocal(
    f: Function, dtype: DType, a: str, b: str, interval: Interval | None = None
) -> tuple[str, str]:
    """Return the truncated quotient, and the remainder with the sign of ``a``; ``b`` is not 0.

    The quotient of the lowest integer by -1 is the lowest integer.

    Args:
        f: the function.
        dtype: the dtype.
        a, b: the registers of the operands.
        interval: what is known of ``a``.
    """
    interval = interval or integers_of(dtype)
    if dtype.bits == 64 and not NEAR.contains(interval):
        return _divide_long(f, a, b)
    vec, quotient = f.vec(REGISTER[dtype]), _divide_short(f, dtype, a, b, interval)
    return quotient, f.op(f"sub {vec} {a}, {f.op(f'mul {vec} {quotient}, {b}')}")


def _divide_short(f: Function, dtype: DType, a: str, b: str, interval: Interval) -> str:
    """Return the truncated quotient of integers of up to 32 bits, or of near int64 by any.

    The reciprocal is enlarged by more than its error and that of the product. So the product is not below an exact
    quotient, and it exceeds ``a / b`` by less than ``1 / b``: it reaches no integer that the quotient does not reach.
    """
    vec, sign = f.vec(REGISTER[dtype]), "s" if dtype.kind == "i" else "u"
    real, bits = (dt.float32, 22) if dtype.bits <= 16 else (dt.float64, 50)
    wide = f.vec(REGISTER[real])
    x, y = (f.op(f"{sign}itofp {vec} {v} to {wide}") for v in (a, b))
    reciprocal = f.op(f"fdiv {wide} {f.splat(1 + 2.0**-bits, real)}, {y}")
    quotient = f.op(f"fpto{sign}i {wide} {f.op(f'fmul {wide} {x}, {reciprocal}')} to {vec}")
    if interval.low > integers_of(dtype).low or dtype.kind == "u":
        return quotient
    lowest = f.op(f"icmp eq {vec} {a}, {f.splat(-(2 ** (dtype.bits - 1)), dtype)}")
    minus = f.op(f"icmp eq {vec} {b}, {f.splat(-1, dtype)}")
    overflows = f.op(f"and {f.vec('i1')} {lowest}, {minus}")  # the conversion of such a quotient is undefined
    return f.op(f"select {f.vec('i1')} {overflows}, {vec} {a}, {vec} {quotient}")


def _divide_long(f: Function, a: str, b: str) -> tuple[str, str]:
    """Return the truncated quotient and the remainder of int64.

    Magnitudes are divided: a first quotient has an error of up to ``2**-51`` of it, the quotient of what remains is
    exact or has an error of 1.
    """
    vec, wide, flags = f.vec("i64"), f.vec("double"), f.vec("i1")
    x, y = (f.op(f"call {vec} {_abs(f)}({vec} {v}, i1 false)") for v in (a, b))
    reciprocal = f.op(f"fdiv {wide} {f.splat(1.0, dt.float64)}, {f.op(f'uitofp {vec} {y} to {wide}')}")
    first = f.op(f"fmul {wide} {f.op(f'uitofp {vec} {x} to {wide}')}, {reciprocal}")
    quotient = f.op(f"fptoui {wide} {first} to {vec}")
    rest = f.op(f"sub {vec} {x}, {f.op(f'mul {vec} {quotient}, {y}')}")
    second = f.op(f"fmul {wide} {f.op(f'sitofp {vec} {rest} to {wide}')}, {reciprocal}")
    more = f.op(f"fptosi {wide} {second} to {vec}")
    quotient = f.op(f"add {vec} {quotient}, {more}")
    rest = f.op(f"sub {vec} {rest}, {f.op(f'mul {vec} {more}, {y}')}")
    up = f.op(f"add {vec} {quotient}, splat (i64 1)"), f.op(f"sub {vec} {rest}, {y}")
    down = f.op(f"add {vec} {quotient}, splat (i64 -1)"), f.op(f"add {vec} {rest}, {y}")
    is_less, is_more = f.op(f"icmp uge {vec} {rest}, {y}"), f.op(f"icmp slt {vec} {rest}, zeroinitializer")
    for flag, corrected in (
        (is_less, up),
        (is_more, down),
    ):  # a negative rest is not below y as unsigned, either
        pairs = zip(corrected, (quotient, rest), strict=True)
        quotient, rest = (f.op(f"select {flags} {flag}, {vec} {new}, {vec} {old}") for new, old in pairs)
    return _negate_where(f, f.op(f"xor {vec} {a}, {b}"), quotient), _negate_where(f, a, rest)


def _negate_where(f: Function, sign: str, x: str) -> str:
    """Return an int64 with the opposite sign in the lanes where ``sign`` is negative."""
    vec = f.vec("i64")
    negative = f.op(f"icmp slt {vec} {sign}, zeroinitializer")
    return f.op(
        f"select {f.vec('i1')} {negative}, {vec} {f.op(f'sub {vec} zeroinitializer, {x}')}, {vec} {x}"
    )


def _abs(f: Function) -> str:
    name = f"llvm.abs.v{f.lanes}i64"
    f.module.declare(name, f.vec("i64"), f.vec("i64"), "i1")
    return f"@{name}"
