"""Powers and the hypotenuse: pow and hypot."""

from __future__ import annotations

import math

from .exponential import exp_pair
from .logarithm import log_pair
from .pairs import Arithmetic, Pair
from .values import Value, clamp, fma, magnitude, scale, square_root, truncate, where


def _exponential(m: Arithmetic, x: Pair) -> Value:
    """Return e**x for any x; 0 and infinity outside the range of float64."""
    high = clamp(x.hi, -746.0, 710.0)
    low = None if x.lo is None else where(magnitude(x.hi) < 746.0, x.lo, 0.0)
    y, n = exp_pair(m, Pair(high, low))
    return scale(y.value, n)


def pow_(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x**y, as C defines it."""
    size = magnitude(x)
    log = log_pair(m, size)
    ends = where(size.equals(0.0), -math.inf, size)
    ordinary = (size > 0.0) & (size < math.inf)
    product = m.product(y, where(ordinary, log.hi, ends))
    if product.lo is not None and log.lo is not None:
        product = product.plus(y * log.lo)
    value = where(size.equals(1.0), 1.0, _exponential(m, product))
    half = y * 0.5
    whole = truncate(y).equals(y)
    odd = whole & (truncate(half).equals(half) ^ True)
    negative = x.bits() < 0
    value = where(negative & odd, -value, value)
    undefined = (x < 0.0) & (x > -math.inf) & (whole ^ True)
    value = where(undefined, math.nan, value)
    value = where(x.is_nan() | y.is_nan(), x + y, value)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, value)


def hypot(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return sqrt(x**2 + y**2) without overflow; infinite if either is."""
    a, b = magnitude(x), magnitude(y)
    infinite = a.equals(math.inf) | b.equals(math.inf)
    if not m.exact:
        return where(infinite, math.inf, square_root(fma(x, x, y * y)))
    above = b > a
    high, low = where(above, b, a), where(above, a, b)
    factor = where(high > 2.0**500, 2.0**-600, where(high < 2.0**-400, 2.0**600, 1.0))
    one, two = (m.product(v, v) for v in (high * factor, low * factor))
    root = m.root(m.total(one, two)).value
    inverse = where(high > 2.0**500, 2.0**600, where(high < 2.0**-400, 2.0**-600, 1.0))
    value = root * inverse
    value = where(x.is_nan() | y.is_nan(), x + y, value)
    return where(infinite, math.inf, value)
