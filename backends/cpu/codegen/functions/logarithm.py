"""Logarithms and inverse hyperbolic functions, from log(2**k * m) = k * log(2) + log(c) + log1p(m / c - 1).

The table of :func:`~.constants.log_table` holds 1 / c and log(c) for intervals of m around 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .....named_tuple import NamedTuple
from .constants import LogTable, log_table
from .lookup import look_up
from .pairs import Arithmetic, Pair, choose
from .values import (
    Value,
    end_logarithm,
    fma,
    magnitude,
    power_of_two,
    split_polynomial,
    to_float,
    where,
    with_sign,
)

_COUNT = 16  # intervals
# (log1p(r) - r) / r**2 for the r of 16 intervals
_PRECISE = (
    -0.1004044466340341, 0.1113335184642177, -0.12499945268496064, 0.14285696161680156, -0.16666666693858237,
    0.20000000005469967, -0.24999999999995576, 0.3333333333333289, -0.5,
)  # fmt: skip
_SHORT = (
    -0.16701130417552812,
    0.20019414495484197,
    -0.24999981148753403,
    0.3333332805871082,
    -0.5000000000128859,
)
_COUNT_FULLY = 32
# (log1p(r) - r + r**2 / 2) / r**3 for the r of 32 intervals
_BEYOND = (
    -0.09628520247427784, 0.11116039744035665, -0.12500301414364526, 0.14285713876500675, -0.16666666595352675,
    0.19999999999952336, -0.25000000000004324, 0.33333333333333337,
)  # fmt: skip
TINY = 2.2250738585072014e-308


class _Parts(NamedTuple):
    """log(x) = high + low + unit * log1p(r), for m * inverse = 1 + r with a small r and x = m * 2**whole."""

    whole: Value
    high: Value
    low: Value
    r: Value
    inverse: Value


def _split(m: Arithmetic, x: Value, table: LogTable, shift: Value | None = None) -> _Parts:
    """Split the logarithm of 2**shift * x, where x is positive and normal."""
    bits = x.bits()
    offset = bits - table.start
    whole, interval = offset >> 52, offset >> table.shift
    mantissa, inverse = (bits - (whole << 52)).from_bits(), look_up(table.inverses, interval)
    power = to_float(whole) if shift is None else to_float(whole) + shift
    high = fma(power, table.two[0], look_up(table.high, interval))  # exact
    low = fma(power, table.two[1], look_up(table.low, interval)) if m.exact else high
    return _Parts(whole, high, low, fma(mantissa, inverse, -1.0), inverse)


def _sum(m: Arithmetic, parts: _Parts, unit: tuple[float, float] = (1.0, 0.0)) -> Pair:
    """Return high + low + unit * log1p(r)."""
    r, square = parts.r, parts.r * parts.r
    if not m.exact:
        return Pair(fma(fma(split_polynomial(r, square, _SHORT), square, r), unit[0], parts.high))
    slope = Pair(r) if unit == (1.0, 0.0) else m.product(r, unit[0]).plus(r * unit[1])
    total = m.ordered_sum(parts.high, slope.hi).plus(slope.lo)  # high is 0 or larger than r
    curve = split_polynomial(r, square, [c * unit[0] for c in _PRECISE])
    return Pair(total.hi, fma(curve, square, total.low + parts.low))


def log_pair(m: Arithmetic, x: Value, shift: Value | None = None) -> Pair:
    """Return the logarithm of a positive normal number, as precise as a power needs it.

    Args:
        m: the arithmetic.
        x: the number.
        shift: a whole number k for the logarithm of 2**k * x.
    """
    if not m.exact:
        return _sum(m, _split(m, x, log_table(_COUNT), shift))
    parts = _split(m, x, log_table(_COUNT_FULLY), shift)
    r, square = parts.r, m.product(parts.r, parts.r * -0.5)
    total = m.ordered_sum(parts.high, r)
    result = m.ordered_sum(total.hi, square.hi)
    cube = r * r * r
    low = total.low + parts.low + (square.low + result.low)
    return m.ordered_sum(result.hi, fma(split_polynomial(r, r * r, _BEYOND), cube, low))


def is_not_normal(m: Arithmetic, x: Value) -> Value:
    """Return the lanes of subnormal and negative numbers, 0, infinity and NaN."""
    return ((x >= TINY) & (x < math.inf)) ^ True


def normal_log(m: Arithmetic, x: Value) -> Pair:
    """Return the natural logarithm of a normal number, as a sum whose high part need not be the rounded one."""
    return _sum(m, _split(m, x, log_table(_COUNT)))


def _anywhere(
    formula: Callable[[Arithmetic, Value, Value | None], Value],
) -> Callable[[Arithmetic, Value], Value]:
    """Return a logarithm for any x, with the bits of a formula for normal numbers."""

    def evaluate(m: Arithmetic, x: Value) -> Value:
        small = x < TINY
        value = formula(m, where(small, x * 2.0**54, x), where(small, -54.0, 0.0))
        return end_logarithm(x, value)

    return evaluate


def _in_base(m: Arithmetic, x: Value, shift: Value | None, base: int) -> Value:
    table = log_table(_COUNT, base)
    return _sum(m, _split(m, x, table, shift), table.unit).value


def log(m: Arithmetic, x: Value, shift: Value | None = None) -> Value:
    """Return the natural logarithm of a normal number."""
    return _in_base(m, x, shift, 0)


def log2(m: Arithmetic, x: Value, shift: Value | None = None) -> Value:
    """Return the logarithm to base 2 of a normal number."""
    return _in_base(m, x, shift, 2)


def log10(m: Arithmetic, x: Value, shift: Value | None = None) -> Value:
    """Return the logarithm to base 10 of a normal number."""
    return _in_base(m, x, shift, 10)


log_anywhere, log2_anywhere, log10_anywhere = _anywhere(log), _anywhere(log2), _anywhere(log10)


def _one_plus(m: Arithmetic, x: Pair, doubled: Value | None = None) -> Pair:
    """Return log(1 + x) for x > -1, with small relative error also near 0; plus log(2) in the lanes of ``doubled``."""
    u = m.sum(x.hi.constant(1.0), x.hi).plus(x.lo)
    shift = None if doubled is None else where(doubled, 1.0, 0.0)
    near = magnitude(x.hi) < 1 / 64  # 1 + x is in the interval around 1
    parts = _split(m, u.hi, log_table(_COUNT), shift)
    parts = parts._replace(r=where(near, x.hi, parts.r))
    if u.lo is None:
        return _sum(m, parts)
    low = where(u.hi < 2.0**60, u.lo * power_of_two(-1 * parts.whole), 0.0)
    rest = low * fma(-parts.r, parts.inverse, parts.inverse)  # the quotient u.lo / u.hi, approximately
    rest = where(near, 0.0 if x.lo is None else x.lo, rest)
    return m.normal(_sum(m, parts._replace(low=parts.low + rest)))


def log1p(m: Arithmetic, x: Value) -> Value:
    """Return log(1 + x)."""
    value = end_logarithm(x, _one_plus(m, Pair(x)).value, -1.0)
    return where(magnitude(x) < 2.0**-54, x, value)


def asinh(m: Arithmetic, x: Value) -> Value:
    """Return log1p(a + a**2 / (1 + sqrt(1 + a**2))) for a = |x|."""
    a = magnitude(x)
    large = a > 2.0**30
    held = where(large, 1.0, a)
    square = m.product(held, held)
    root = m.root(m.total(square, m.constant(x, 1.0, 0.0)))
    ratio = m.quotient(square, m.total(root, m.constant(x, 1.0, 0.0)))
    argument = m.normal(m.sum(held, ratio.hi).plus(ratio.lo))
    argument = choose(large, m.sum(a, a.constant(-1.0)), argument)
    value = _one_plus(m, argument, large).value
    return where((a >= 2.0**-54) & (a < math.inf), with_sign(value, x), x)


def acosh(m: Arithmetic, x: Value) -> Value:
    """Return log1p(t + sqrt(2 * t + t**2)) for t = x - 1."""
    large = x > 2.0**30
    t = where(large, 1.0, x - 1.0)
    root = m.root(m.times(m.exactly(t), m.sum(t, t.constant(2.0))))
    argument = m.normal(m.sum(t, root.hi).plus(root.lo))
    argument = choose(large, m.sum(x, x.constant(-1.0)), argument)
    value = _one_plus(m, argument, large).value
    end = where(x < 1.0, math.nan, where(x.equals(1.0), 0.0, x))
    return where((x > 1.0) & (x < math.inf), value, end)


def atanh(m: Arithmetic, x: Value) -> Value:
    """Return log1p(2 * a / (1 - a)) / 2 for a = |x|."""
    a = magnitude(x)
    ratio = m.quotient(Pair(a + a), m.ordered_sum(a.constant(1.0), -a))
    value = with_sign(_one_plus(m, ratio).value * 0.5, x)
    end = where(a.equals(1.0), with_sign(a.constant(math.inf), x), where(a > 1.0, math.nan, x))
    return where((a < 1.0) & (a >= 2.0**-54), value, end)
