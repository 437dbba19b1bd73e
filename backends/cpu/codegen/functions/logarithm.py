"""Logarithms and inverse hyperbolic functions, from log(m) = 2 * atanh((m - 1) / (m + 1)) for m near 1."""

from __future__ import annotations

import math

from .pairs import Arithmetic, Pair, choose
from .values import Value, magnitude, polynomial, power_of_two, to_float, where, with_sign

_LN2_SHORT = (0.693147180559663, 2.8235290563031577e-13)  # the first has 41 bits: its multiples are exact
_LOG2E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10E = (0.4342944819032518, 1.098319650216765e-17)
_LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
# (2 * atanh(s) - 2 * s) / s**3 as a polynomial of s**2, for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)
_PRECISE = (
    0.1461916477718642, 0.1533150172120742, 0.18182895746801428, 0.22222211043822487,
    0.28571428626533335, 0.3999999999989827, 0.666666666666667,
)  # fmt: skip
_SHORT = (
    0.19365116363462445,
    0.22191273957130947,
    0.28571756536232323,
    0.399999987875307,
    0.6666666666738229,
)
# the same without its constant 2 / 3, divided by s**2
_BEYOND = (
    0.11725603260192677, 0.11706004250300112, 0.13334813369111848, 0.15384594802856283,
    0.18181818336888536, 0.22222222221649282, 0.28571428571429375, 0.4,
)  # fmt: skip
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_TINY = 2.2250738585072014e-308


def _split(u: Value) -> tuple[Value, Value]:
    """Return (m, k) with u = m * 2**k and m from sqrt(1/2) to sqrt(2)."""
    bits = u.bits()
    k = (bits - _SQRT_HALF_BITS) >> 52
    return (bits - (k << 52)).from_bits(), k


def _near_one(m: Arithmetic, f: Pair) -> Pair:
    """Return log(1 + f)."""
    s = m.quotient(f, m.ordered_sum(f.hi.constant(2.0), f.hi).plus(f.lo))
    z = s.hi * s.hi
    tail = polynomial(z, _PRECISE if m.exact else _SHORT) * (z * s.hi)
    return m.normal(s.times(2.0).plus(tail))


def _near_one_fully(m: Arithmetic, f: Pair) -> Pair:
    """Return log(1 + f) to about 2**-65."""
    s = m.quotient(f, m.ordered_sum(f.hi.constant(2.0), f.hi).plus(f.lo))
    z = m.times(s, s)
    cubed = m.times(m.times(s, z), m.constant(f.hi, *_TWO_THIRDS))
    rest = polynomial(z.hi, _BEYOND) * (z.hi * z.hi * s.hi)
    return m.total(s.times(2.0), m.normal(cubed.plus(rest)))


def _with_exponent(m: Arithmetic, near: Pair, k: Value) -> Pair:
    """Return near + k * log(2)."""
    result = m.sum(k * _LN2_SHORT[0], near.hi)
    low = k * _LN2_SHORT[1]
    return m.normal(result.plus(low if near.lo is None else low + near.lo))


def _positive(m: Arithmetic, x: Value) -> tuple[Pair, Value]:
    """Return (f, k) with x = (1 + f) * 2**k, for a positive x."""
    small = x < _TINY
    mantissa, k = _split(where(small, x * 2.0**54, x) if m.exact else x)
    power = to_float(k)
    if m.exact:
        power = where(small, power - 54.0, power)
    return Pair(mantissa - 1.0), power


def log_pair(m: Arithmetic, x: Value) -> Pair:
    """Return log(x) of a positive finite x, as precise as a power needs it."""
    f, k = _positive(m, x)
    return _with_exponent(m, _near_one_fully(m, f) if m.exact else _near_one(m, f), k)


def _at_ends(x: Value, value: Value) -> Value:
    """Return ``value``, but -inf for 0, NaN for negative x, and inf and NaN unchanged."""
    end = where(x.equals(0.0), -math.inf, where(x < 0.0, math.nan, x))
    return where((x > 0.0) & (x < math.inf), value, end)


def log(m: Arithmetic, x: Value) -> Value:
    """Return the natural logarithm."""
    f, k = _positive(m, x)
    return _at_ends(x, _with_exponent(m, _near_one(m, f), k).value)


def log2(m: Arithmetic, x: Value) -> Value:
    """Return the logarithm to base 2."""
    f, k = _positive(m, x)
    scaled = m.times(_near_one(m, f), m.constant(x, *_LOG2E))
    return _at_ends(x, m.total(m.exactly(k), scaled).value)


def log10(m: Arithmetic, x: Value) -> Value:
    """Return the logarithm to base 10."""
    f, k = _positive(m, x)
    scaled = m.times(_near_one(m, f), m.constant(x, *_LOG10E))
    whole = m.product(k, k.constant(_LOG10_2[0]))
    if m.exact:
        whole = whole.plus(k * _LOG10_2[1])
    return _at_ends(x, m.total(whole, scaled).value)


def _one_plus(m: Arithmetic, x: Pair, doubled: Value | None = None) -> Pair:
    """Return log(1 + x) for x > -1, with small relative error also near 0; plus log(2) in the lanes of ``doubled``."""
    u = m.sum(x.hi.constant(1.0), x.hi).plus(x.lo)
    mantissa, k = _split(u.hi)
    if u.lo is None:
        f = Pair(where(k.equals(0), x.hi, mantissa - 1.0))
    else:
        f = m.sum(mantissa - 1.0, where(u.hi < 2.0**60, u.lo * power_of_two(-1 * k), 0.0))
    power = to_float(k)
    if doubled is not None:
        power = where(doubled, power + 1.0, power)
    return _with_exponent(m, _near_one(m, f), power)


def log1p(m: Arithmetic, x: Value) -> Value:
    """Return log(1 + x)."""
    value = _one_plus(m, Pair(x)).value
    end = where(x.equals(-1.0), -math.inf, where(x < -1.0, math.nan, x))
    return where((x > -1.0) & (x < math.inf) & (magnitude(x) >= 2.0**-54), value, end)


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
