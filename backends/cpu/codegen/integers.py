"""Integer nodes whose instructions are undefined for some operands or slow: division, shifts, powers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .... import lazy
from ....registry.dtypes import DType
from .text import REGISTER, Function, Module

if TYPE_CHECKING:
    from .intervals import Interval

_reciprocals = lazy.Functions(".backends.cpu.codegen.reciprocals")
_SPLAT = re.compile(r"splat \(i\d+ (-?\d+)\)$")


def _constant(b: str) -> int:
    """Return the constant in every lane of a vector; 0 for a register."""
    splat = _SPLAT.match(b)
    return int(splat[1]) if splat else 0


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _select(f: Function, condition: str, vec: str, a: str, b: str) -> str:
    return f.op(f"select {f.vec('i1')} {condition}, {vec} {a}, {vec} {b}")


def _safe_divisor(f: Function, dtype: DType, a: str, b: str) -> tuple[str, str]:
    """Return (whether b is 0, b with 1 in place of divisors that trap): 0, and -1 under the most negative value."""
    if _constant(b) not in (0, -1):
        return "splat (i1 false)", b
    vec = f.vec(REGISTER[dtype])
    zero = f.op(f"icmp eq {vec} {b}, zeroinitializer")
    unsafe = zero
    if dtype.kind == "i":
        lowest = f.op(f"icmp eq {vec} {a}, {f.splat(-(2 ** (dtype.bits - 1)), dtype)}")
        minus = f.op(f"icmp eq {vec} {b}, {f.splat(-1, dtype)}")
        overflow = f.op(f"and {f.vec('i1')} {lowest}, {minus}")
        unsafe = f.op(f"or {f.vec('i1')} {zero}, {overflow}")
    return zero, _select(f, unsafe, vec, f.splat(1, dtype), b)


def _divide_exactly(f: Function, dtype: DType, a: str, b: str) -> tuple[str, str]:
    """Return the truncated quotient, and the remainder with the sign of ``a``, of a divisor that does not trap.

    Up to 32 bits a float division is exact enough, and it vectorizes; of single numbers, one of integers takes half as
    long. LLVM divides by a constant with multiplications and shifts. Of a remainder of scalars it knows the sign where
    it knows that of ``a``.
    """
    vec, sign = f.vec(REGISTER[dtype]), "s" if dtype.kind == "i" else "u"
    if dtype.bits == 64 or f.lanes == 1 or _constant(b):
        quotient = f.op(f"{sign}div {vec} {a}, {b}")
        if f.lanes == 1:
            return quotient, f.op(f"{sign}rem {vec} {a}, {b}")
    else:
        wide = f.vec("float" if dtype.bits <= 16 else "double")
        x, y = (f.op(f"{sign}itofp {vec} {v} to {wide}") for v in (a, b))
        quotient = f.op(f"fpto{sign}i {wide} {f.op(f'fdiv {wide} {x}, {y}')} to {vec}")
    return quotient, f.op(f"sub {vec} {a}, {f.op(f'mul {vec} {quotient}, {b}')}")


def _divide(
    f: Function, dtype: DType, a: str, b: str, interval: Interval | None
) -> tuple[str, str, str, str]:
    """Return (whether b is 0, safe divisor, truncated quotient, remainder with the sign of a).

    ``interval`` is what is known of ``a``.
    """
    if not _constant(b) and _reciprocals.uses_reciprocal(f, dtype, b):
        vec = f.vec(REGISTER[dtype])
        zero = f.op(f"icmp eq {vec} {b}, zeroinitializer")
        safe = _select(f, zero, vec, f.splat(1, dtype), b)
        return zero, safe, *_reciprocals.divide_by_reciprocal(f, dtype, a, safe, interval)
    if f.lanes == 1 and dtype.kind == "i" and not _constant(b):
        return _divide_single(f, dtype, a, b)
    zero, safe = _safe_divisor(f, dtype, a, b)
    return zero, safe, *_divide_exactly(f, dtype, a, safe)


def _divide_single(f: Function, dtype: DType, a: str, b: str) -> tuple[str, str, str, str]:
    """Return what `_divide` does, of single numbers with a sign.

    The safe divisor is 1 under 0 and -1, so that a loop with one divisor computes it once.
    """
    vec = f.vec(REGISTER[dtype])
    zero, minus = (f.op(f"icmp eq {vec} {b}, {f.splat(number, dtype)}") for number in (0, -1))
    safe = _select(f, f.op(f"or {f.vec('i1')} {zero}, {minus}"), vec, f.splat(1, dtype), b)
    quotient, rest = _divide_exactly(f, dtype, a, safe)
    negative = f.op(f"sub {vec} zeroinitializer, {a}")
    return zero, safe, _select(f, minus, vec, negative, quotient), rest


def _crosses(f: Function, dtype: DType, rest: str, divisor: str) -> str:
    """Return whether the remainder is not 0 and its sign differs from the divisor's."""
    vec = f.vec(REGISTER[dtype])
    nonzero = f.op(f"icmp ne {vec} {rest}, zeroinitializer")
    opposite = f.op(f"icmp slt {vec} {f.op(f'xor {vec} {rest}, {divisor}')}, zeroinitializer")
    return f.op(f"and {f.vec('i1')} {nonzero}, {opposite}")


def floordiv(f: Function, dtype: DType, a: str, b: str, interval: Interval | None = None) -> str:
    """Return the quotient rounded down, as NumPy; 0 where b is 0."""
    vec, number = f.vec(REGISTER[dtype]), _constant(b)
    if _is_power_of_two(number):
        shift = f.splat(number.bit_length() - 1, dtype)
        return f.op(f"{'a' if dtype.kind == 'i' else 'l'}shr {vec} {a}, {shift}")
    zero, safe, quotient, rest = _divide(f, dtype, a, b, interval)
    if dtype.kind == "i":
        less = f.op(f"sub {vec} {quotient}, {f.splat(1, dtype)}")
        quotient = _select(f, _crosses(f, dtype, rest, safe), vec, less, quotient)
    return _select(f, zero, vec, "zeroinitializer", quotient)


def remainder(f: Function, dtype: DType, a: str, b: str, interval: Interval | None = None) -> str:
    """Return the remainder with the sign of b; 0 where b is 0."""
    vec, number = f.vec(REGISTER[dtype]), _constant(b)
    if _is_power_of_two(number):
        return f.op(f"and {vec} {a}, {f.splat(number - 1, dtype)}")
    _, safe, _, rest = _divide(f, dtype, a, b, interval)
    if dtype.kind == "u":
        return rest
    moved = f.op(f"add {vec} {rest}, {safe}")
    result = _select(f, _crosses(f, dtype, rest, safe), vec, moved, rest)
    f.rests[result] = rest
    return result


def fmod(f: Function, dtype: DType, a: str, b: str, interval: Interval | None = None) -> str:
    """Return the remainder with the sign of a; 0 where b is 0."""
    return _divide(f, dtype, a, b, interval)[3]


def lshift(f: Function, dtype: DType, a: str, b: str) -> str:
    vec = f.vec(REGISTER[dtype])
    fits = f.op(f"icmp ult {vec} {b}, {f.splat(dtype.bits, dtype)}")
    shifted = f.op(f"shl {vec} {a}, {_select(f, fits, vec, b, 'zeroinitializer')}")
    return _select(f, fits, vec, shifted, "zeroinitializer")


def rshift(f: Function, dtype: DType, a: str, b: str) -> str:
    vec = f.vec(REGISTER[dtype])
    fits = f.op(f"icmp ult {vec} {b}, {f.splat(dtype.bits, dtype)}")
    if dtype.kind == "i":
        return f.op(f"ashr {vec} {a}, {_select(f, fits, vec, b, f.splat(dtype.bits - 1, dtype))}")
    shifted = f.op(f"lshr {vec} {a}, {_select(f, fits, vec, b, 'zeroinitializer')}")
    return _select(f, fits, vec, shifted, "zeroinitializer")


def power(f: Function, dtype: DType, a: str, b: str) -> str:
    """Return a**b by squaring, in a helper function; a negative exponent gives the truncated quotient."""
    vec = f.vec(REGISTER[dtype])
    name = f"ipow_{REGISTER[dtype]}_{f.lanes}"
    f.module.helper(name, _power_helper(f.module, name, dtype, f.lanes))
    if dtype.kind == "u":
        return f.op(f"call {vec} @{name}({vec} {a}, {vec} {b})")
    negative = f.op(f"icmp slt {vec} {b}, zeroinitializer")
    exponent = _select(f, negative, vec, "zeroinitializer", b)
    positive = f.op(f"call {vec} @{name}({vec} {a}, {vec} {exponent})")
    return _select(f, negative, vec, _inverse(f, dtype, a, b), positive)


def _inverse(f: Function, dtype: DType, a: str, b: str) -> str:
    """Return 1 / a**-b truncated: nonzero only if a is 1 or -1."""
    vec = f.vec(REGISTER[dtype])
    odd = f.op(f"icmp ne {vec} {f.op(f'and {vec} {b}, {f.splat(1, dtype)}')}, zeroinitializer")
    sign = _select(f, odd, vec, f.splat(-1, dtype), f.splat(1, dtype))
    minus = f.op(f"icmp eq {vec} {a}, {f.splat(-1, dtype)}")
    one = f.op(f"icmp eq {vec} {a}, {f.splat(1, dtype)}")
    return _select(f, minus, vec, sign, _select(f, one, vec, f.splat(1, dtype), "zeroinitializer"))


def _power_helper(module: Module, name: str, dtype: DType, lanes: int) -> str:
    f = Function(module, lanes)
    vec, one = f.vec(REGISTER[dtype]), f.splat(1, dtype)
    carried = [(vec, one), (vec, "%a"), (vec, "%b")]
    with f.loop("0", _bits_used(f, dtype, "%b"), "1", carried) as loop:
        result, base, exponent = loop.carried
        odd = f.op(f"icmp ne {vec} {f.op(f'and {vec} {exponent}, {one}')}, zeroinitializer")
        result = _select(f, odd, vec, f.op(f"mul {vec} {result}, {base}"), result)
        square = f.op(f"mul {vec} {base}, {base}")
        loop.next = [result, square, f.op(f"lshr {vec} {exponent}, {one}")]
    f.do(f"ret {vec} {loop.carried[0]}")
    return f.text(f"internal {vec} @{name}({vec} %a, {vec} %b) #1")


def _bits_used(f: Function, dtype: DType, x: str) -> str:
    """Return the number of low bits that any lane of an unsigned ``x`` uses, as i64."""
    vec, element = f.vec(REGISTER[dtype]), REGISTER[dtype]
    reduce, count = f"llvm.vector.reduce.or.v{f.lanes}{element}", f"llvm.ctlz.{element}"
    f.module.declare(reduce, element, vec)
    f.module.declare(count, element, element, "i1")
    zeros = f.op(
        f"call {element} @{count}({element} {f.op(f'call {element} @{reduce}({vec} {x})')}, i1 false)"
    )
    wide = zeros if element == "i64" else f.op(f"zext {element} {zeros} to i64")
    return f.op(f"sub i64 {dtype.bits}, {wide}")


DIVISIONS = frozenset({"floordiv", "remainder", "fmod"})
TABLE: dict[str, Callable[..., str]] = {"floordiv": floordiv, "remainder": remainder, "fmod": fmod}
TABLE |= {"lshift": lshift, "rshift": rshift, "pow": power}
