"""exp, exp2, expm1 and the hyperbolic functions, from exp(n * log(2) / 16 + r) = 2**(n / 16) * (1 + p).

The fractional powers of two are in a table: T, rounded, and its relative error.
"""

from __future__ import annotations

from .constants import powers_of_two
from .lookup import look_up
from .pairs import Arithmetic, Pair
from .values import (
    Value,
    clamp,
    fma,
    magnitude,
    nearest,
    power_of_two,
    scale,
    split_polynomial,
    where,
    with_sign,
)

LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_COUNT = 16  # powers from 1 to 2 in the table
_STEP = (LN2[0] / _COUNT, LN2[1] / _COUNT)
# (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 32
_PRECISE = (
    0.00019841302836141439, 0.0013889063649341865, 0.00833333333374844, 0.04166666666358812, 0.1666666666666666,
    0.5000000000000001,
)  # fmt: skip
_SHORT = (0.041666885208038525, 0.1666696026505313, 0.5000000000318011)
_WHOLE = 700.0  # up to which e**x is one factor of a product
_LARGEST = 708.0  # the exponentials of this and less are normal numbers


def _reduce_argument(m: Arithmetic, x: Pair) -> tuple[Pair, Value]:
    """Return (r, n) with x = n * log(2) / 16 + r."""
    n, whole = nearest(x.hi * (_COUNT / LN2[0]))
    high = fma(n, -_STEP[0], x.hi)
    if not m.exact:
        return Pair(high), whole
    low = n * -_STEP[1]
    return m.ordered_sum(high, low if x.lo is None else low + x.lo), whole


def _beyond(m: Arithmetic, r: Pair, n: Value) -> Value:
    """Return what remains of 2**(n / 16) * exp(r) / T - 1 when the high part of r is subtracted."""
    square = r.hi * r.hi
    if r.lo is None:
        return split_polynomial(r.hi, square, _SHORT) * square
    return fma(split_polynomial(r.hi, square, _PRECISE), square, _table_error(n) + r.lo)


def _table_power(n: Value) -> Value:
    """Return T, which is 2**(n / 16) without its exponent."""
    return look_up(powers_of_two(_COUNT)[0], n)


def _table_error(n: Value) -> Value:
    """Return the relative error of T."""
    return look_up(powers_of_two(_COUNT)[1], n)


def exp_pair(m: Arithmetic, x: Pair) -> tuple[Pair, Value]:
    """Return (y, n) with e**x = y * 2**n."""
    r, n = _reduce_argument(m, x)
    power = _table_power(n)
    return m.ordered_sum(power, power * (r.hi + _beyond(m, r, n))), n >> 4


def _scaled(m: Arithmetic, r: Pair, n: Value) -> Value:
    """Return 2**(n / 16) * exp(r) if it is a normal number."""
    power = (_table_power(n).bits() + ((n & -_COUNT) << 48)).from_bits()
    return fma(power, r.hi + _beyond(m, r, n), power)


def _scaled_anywhere(m: Arithmetic, r: Pair, n: Value) -> Value:
    """Return 2**(n / 16) * exp(r), also where it is subnormal, 0 or infinite."""
    power = _table_power(n)
    return scale(fma(power, r.hi + _beyond(m, r, n), power), n >> 4)


def exp_of(m: Arithmetic, x: Pair) -> Value:
    """Return e**x for |x| < 708."""
    return _scaled(m, *_reduce_argument(m, x))


def exp_of_any(m: Arithmetic, x: Pair) -> Value:
    """Return e**x for x from -746 to 710, with the bits of ``exp_of`` in its range."""
    return _scaled_anywhere(m, *_reduce_argument(m, x))


def take_part(m: Arithmetic, x: Value) -> Value:
    """Return x, or the half or quarter of it of which e**x in float64 is the square or the fourth power.

    It has to be multiplied by each power alone where another factor is so small that the product does not overflow.
    """
    if not m.exact:
        return x
    size = magnitude(x)
    return where(size > 2 * _WHOLE, x * 0.25, where(size > _WHOLE, x * 0.5, x))


def multiply_rest(m: Arithmetic, x: Value, power: Value, value: Value) -> Value:
    """Multiply a value, which has one factor e**take_part(x), by the others of e**x."""
    if not m.exact:
        return value
    size = magnitude(x)
    again, more = where(size > _WHOLE, power, 1.0), where(size > 2 * _WHOLE, power, 1.0)
    return value * again * more * more


def exp(m: Arithmetic, x: Value) -> Value:
    """Return e**x for |x| < 708."""
    return exp_of(m, Pair(x))


def exp_anywhere(m: Arithmetic, x: Value) -> Value:
    """Return e**x for any x, with the bits of ``exp`` in its range."""
    return exp_of_any(m, Pair(clamp(x, -746.0, 710.0)))


def is_beyond_exp(m: Arithmetic, x: Value) -> Value:
    """Return the lanes that ``exp`` cannot compute."""
    return (magnitude(x) < _LARGEST) ^ True


def _reduce_exponent(m: Arithmetic, x: Value) -> tuple[Pair, Value]:
    """Return (r, n) with 2**x = 2**(n / 16) * exp(r)."""
    n, whole = nearest(x * float(_COUNT))
    r = fma(n, -1 / _COUNT, x) * LN2[0]
    return m.exactly(r), whole


def exp2(m: Arithmetic, x: Value) -> Value:
    """Return 2**x for |x| < 1022."""
    return _scaled(m, *_reduce_exponent(m, x))


def exp2_anywhere(m: Arithmetic, x: Value) -> Value:
    """Return 2**x for any x, with the bits of ``exp2`` in its range."""
    return _scaled_anywhere(m, *_reduce_exponent(m, clamp(x, -1076.0, 1025.0)))


def is_beyond_exp2(m: Arithmetic, x: Value) -> Value:
    """Return the lanes that ``exp2`` cannot compute."""
    return (magnitude(x) < 1022.0) ^ True


def quarter_expm1(m: Arithmetic, x: Value, is_positive: bool = True) -> Pair:
    """Return (e**x - 1) / 4 for x from 0, or -50, to 710.8, with a small relative error also near 0."""
    r, n = _reduce_argument(m, Pair(x))
    quarter = _table_power(n) * power_of_two((n >> 4) - 2)
    offset = (m.ordered_sum if is_positive else m.sum)(quarter, quarter.constant(-0.25))
    beyond, moved = _beyond(m, r, n), m.product(quarter, r.hi)
    low = quarter * (fma(_table_error(n), r.hi, beyond) if m.exact else beyond)
    moved = m.ordered_sum(offset.hi, moved.hi).plus(moved.lo)  # offset is 0 or larger than moved
    return m.normal(moved.plus(offset.lo).plus(low))


def _unless_tiny(x: Value, value: Value) -> Value:
    """Return ``value``, or x itself where the function equals x to the last bit; -0.0 stays."""
    return where(magnitude(x) < 2.0**-54, x, value)


def _limited(x: Value, most: float) -> Value:
    """Return |x|, but at most a bound; NaN stays."""
    size = magnitude(x)
    return where(size > most, most, size)


def expm1(m: Arithmetic, x: Value) -> Value:
    """Return e**x - 1."""
    return _unless_tiny(x, quarter_expm1(m, clamp(x, -50.0, 710.0), is_positive=False).value * 4.0)


def sinh(m: Arithmetic, x: Value) -> Value:
    """Return (E + E / (E + 1)) / 2 for E = exp(|x|) - 1."""
    quarter = quarter_expm1(m, _limited(x, 710.8))
    ratio = m.quotient(quarter, m.sum(quarter.hi, x.constant(0.25)).plus(quarter.lo))
    value = m.ordered_total(quarter, ratio.times(0.25)).value * 2.0
    return _unless_tiny(x, with_sign(value, x))


def cosh(m: Arithmetic, x: Value) -> Value:
    """Return 2 * (e + 1 / (16 * e)) for e = exp(|x|) / 4."""
    y, n = exp_pair(m, Pair(_limited(x, 710.8)))
    quarter = y.times(power_of_two(n - 2))
    return (
        quarter.hi + (0.0625 / quarter.hi if quarter.lo is None else quarter.lo + 0.0625 / quarter.hi)
    ) * 2.0


def tanh(m: Arithmetic, x: Value) -> Value:
    """Return E / (E + 2) for E = exp(2 * |x|) - 1."""
    size = _limited(x, 22.0)
    quarter = quarter_expm1(m, size + size)
    ratio = m.divide(quarter, m.sum(quarter.hi, x.constant(0.5)).plus(quarter.lo))
    return _unless_tiny(x, with_sign(ratio, x))
