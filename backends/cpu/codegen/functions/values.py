"""Vector registers as Python values with operators, so that functions read like formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .....registry import dtypes as dt
from .....registry.dtypes import DType
from ..text import REGISTER, Function

Parts = tuple["Value", "Value"]  # the real and the imaginary part of complex numbers
Operand = Any  # Value | int | float: Any, because of the reflected operators


class Value:
    """A vector register of floats, integers or truth values in a function being written.

    Comparisons return truth values, so values hash and compare by identity only through ``is``.
    """

    __slots__ = ("dtype", "f", "register")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, f: Function, dtype: DType, register: str):
        self.f, self.dtype, self.register = f, dtype, register

    @property
    def vec(self) -> str:
        """The register's LLVM type."""
        return self.f.vec(REGISTER[self.dtype])

    def constant(self, value: Any) -> Value:
        """Return a constant of this value's type."""
        return Value(self.f, self.dtype, self.f.splat(value, self.dtype))

    def _binary(self, name: str, other: Operand) -> Value:
        other = other if isinstance(other, Value) else self.constant(other)
        text = f"{name} {self.vec} {self.register}, {other.register}"
        return Value(self.f, self.dtype, self.f.op(text))

    def _arithmetic(self, name: str, other: Operand) -> Value:
        return self._binary("f" + name if self.dtype.kind == "f" else name, other)

    def _compare(self, name: str, other: Operand) -> Value:
        text = f"fcmp {name}" if self.dtype.kind == "f" else f"icmp {name.replace('o', 's', 1)}"
        return Value(self.f, dt.bool_, self._binary(text, other).register)

    def __add__(self, other: Operand) -> Value:
        return self._arithmetic("add", other)

    def __sub__(self, other: Operand) -> Value:
        return self._arithmetic("sub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._arithmetic("mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._arithmetic("div", other)

    def __radd__(self, other: Operand) -> Value:
        return self.constant(other) + self

    def __rsub__(self, other: Operand) -> Value:
        return self.constant(other) - self

    def __rmul__(self, other: Operand) -> Value:
        return self.constant(other) * self

    def __rtruediv__(self, other: Operand) -> Value:
        return self.constant(other) / self

    def __neg__(self) -> Value:
        return Value(self.f, self.dtype, self.f.op(f"fneg {self.vec} {self.register}"))

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", other)

    def __lshift__(self, count: int) -> Value:
        return self._binary("shl", count)

    def __rshift__(self, count: int) -> Value:
        return self._binary("ashr", count)

    def __lt__(self, other: Operand) -> Value:
        return self._compare("olt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("ole", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("ogt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("oge", other)

    def equals(self, other: Operand) -> Value:
        """Return the mask of equal lanes."""
        if self.dtype.kind != "f":
            return Value(self.f, dt.bool_, self._binary("icmp eq", other).register)
        return self._compare("oeq", other)

    def is_nan(self) -> Value:
        """Return the mask of NaN lanes."""
        return self._compare("uno", self)

    def bits(self) -> Value:
        """Return the bits of a float as an integer."""
        return self._as(dt.int64 if self.dtype is dt.float64 else dt.int32)

    def from_bits(self) -> Value:
        """Return the float with these bits."""
        return self._as(dt.float64 if self.dtype is dt.int64 else dt.float32)

    def _as(self, dtype: DType) -> Value:
        text = f"bitcast {self.vec} {self.register} to {self.f.vec(REGISTER[dtype])}"
        return Value(self.f, dtype, self.f.op(text))


def _intrinsic(name: str, *operands: Value) -> Value:
    one = operands[0]
    registers = [x.register for x in operands]
    return Value(one.f, one.dtype, one.f.intrinsic(name, REGISTER[one.dtype], *registers))


def fma(a: Operand, b: Operand, c: Operand) -> Value:
    """Return a * b + c, rounded once."""
    like = next(x for x in (a, b, c) if isinstance(x, Value))
    return _intrinsic("fma", *[x if isinstance(x, Value) else like.constant(x) for x in (a, b, c)])


def magnitude(x: Value) -> Value:
    """Return |x|."""
    return _intrinsic("fabs", x)


def with_sign(x: Value, sign: Value) -> Value:
    """Return |x| with the sign of another value."""
    return _intrinsic("copysign", x, sign)


def square_root(x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return _intrinsic("sqrt", x)


def truncate(x: Value) -> Value:
    """Return x without its fraction."""
    return _intrinsic("trunc", x)


def where(condition: Value, yes: Operand, no: Operand) -> Value:
    """Return ``yes`` in the lanes where the condition holds, else ``no``; two numbers are float64."""
    float64 = Value(condition.f, dt.float64, "")
    like = next((x for x in (yes, no) if isinstance(x, Value)), float64)
    a, b = (x if isinstance(x, Value) else like.constant(x) for x in (yes, no))
    f = like.f
    text = f"select {f.vec('i1')} {condition.register}, {like.vec} {a.register}, {like.vec} {b.register}"
    return Value(f, like.dtype, f.op(text))


def clamp(x: Value, low: float, high: float) -> Value:
    """Return x limited to two bounds; NaN stays."""
    x = where(x > high, high, x)
    return where(x < low, low, x)


def polynomial(x: Value, coefficients: Sequence[Operand]) -> Value:
    """Evaluate a polynomial of x; coefficients start with the highest power."""
    first, *others = coefficients
    value = first if isinstance(first, Value) else x.constant(first)
    for c in others:
        value = fma(value, x, c)
    return value


def split_polynomial(x: Value, square: Value, coefficients: Sequence[Operand]) -> Value:
    """Evaluate a polynomial as two, of the even and of the odd powers, so that scalar code waits half as long.

    Args:
        x: the argument.
        square: x * x.
        coefficients: start with the highest power.
    """
    last, odd = polynomial(square, coefficients[::-2][::-1]), polynomial(square, coefficients[-2::-2][::-1])
    return fma(odd, x, last)


def pairwise_polynomial(x: Value, square: Value, coefficients: Sequence[Operand]) -> Value:
    """Evaluate a polynomial by Estrin's scheme: pairs of terms at a time, so that scalar code waits the least.

    Args:
        x: the argument.
        square: x * x.
        coefficients: start with the highest power.
    """
    values: list[Operand] = list(coefficients[::-1])
    power, following = x, square
    while len(values) > 1:
        last = values[len(values) & ~1 :]
        highs = [one if isinstance(one, Value) else x.constant(one) for one in values[1::2]]
        values = [fma(high, power, low) for low, high in zip(values[::2], highs)] + last
        power, following = following, following * following
    (result,) = values
    return result if isinstance(result, Value) else x.constant(result)


# float64 only: adding it leaves a small number's nearest integer in the low bits of the sum
_MAGIC, _MAGIC_BITS = 6755399441055744.0, 0x4338000000000000


def nearest(x: Value) -> tuple[Value, Value]:
    """Return the integer nearest to a float64 below 2**51, as float64 and as int64."""
    shifted = x + _MAGIC
    return shifted - _MAGIC, shifted.bits() - _MAGIC_BITS


def to_float(n: Value) -> Value:
    """Return a small int64 as float64."""
    return (n + _MAGIC_BITS).from_bits() - _MAGIC


def power_of_two(n: Value) -> Value:
    """Return 2**n for an int64 in the range of normal float64 exponents."""
    return ((n + 1023) << 52).from_bits()


def scale(x: Value, n: Value) -> Value:
    """Return x * 2**n, in two factors, so that overflow and subnormal results are right."""
    half = n >> 1
    return (x * power_of_two(half)) * power_of_two(n - half)


def end_logarithm(x: Value, value: Value, pole: float = 0.0) -> Value:
    """Return a logarithm's value, but -inf at its pole, NaN for x below, and inf and NaN unchanged."""
    end = where(x.equals(pole), x.constant(-math.inf), where(x < pole, math.nan, x))
    return where((x > pole) & (x < math.inf), value, end)


def negate_where(x: Value, quadrant: Value) -> Value:
    """Return x with the other sign in the lanes where the second bit of a quadrant's number is set."""
    return (x.bits() ^ ((quadrant & 2) << (x.dtype.bits - 2))).from_bits()
