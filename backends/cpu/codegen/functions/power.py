"""Powers and the hypotenuse: pow and hypot."""

from __future__ import annotations

import math

from .exponential import exp_of, exp_of_any, is_beyond_exp
from .logarithm import TINY, is_not_normal, log_pair
from .pairs import Arithmetic, Pair
from .values import Value, clamp, fma, magnitude, square_root, truncate, where


def _product(m: Arithmetic, log: Pair, y: Value) -> Pair:
    """Return y * log(x)."""
    product = m.product(y, log.hi)
    return product if log.lo is None else m.normal(product.plus(y * log.lo))


def pow_(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x**y for a positive normal x and a result that is one."""
    return exp_of(m, _product(m, log_pair(m, x), y))


def pow_anywhere(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return x**y, as C defines it, with the bits of ``pow_`` in its range."""
    size = magnitude(x)
    small = size < TINY
    log = log_pair(m, where(small, size * 2.0**54, size), where(small, -54.0, 0.0))
    ends = where(size.equals(0.0), -math.inf, size)
    ordinary = (size > 0.0) & (size < math.inf)
    product = _product(m, log, clamp(y, -(2.0**100), 2.0**100))  # the logarithm is 0 or above 2**-54
    high = where(ordinary, product.hi, y * ends)
    low = None if product.lo is None else where(magnitude(high) < 746.0, product.lo, 0.0)
    value = where(size.equals(1.0), 1.0, exp_of_any(m, Pair(clamp(high, -746.0, 710.0), low)))
    half = y * 0.5
    whole = truncate(y).equals(y)
    odd = whole & (truncate(half).equals(half) ^ True)
    negative = x.bits() < 0
    value = where(negative & odd, -value, value)
    undefined = (x < 0.0) & (x > -math.inf) & (whole ^ True)
    value = where(undefined, math.nan, value)
    value = where(x.is_nan() | y.is_nan(), x + y, value)
    return where(x.equals(1.0) | y.equals(0.0), 1.0, value)


def is_beyond_pow(m: Arithmetic, x: Value, y: Value) -> Value:
    """Return the lanes that ``pow_`` cannot compute."""
    product = _product(m, log_pair(m, x), y)
    return is_not_normal(m, x) | is_beyond_exp(m, product.hi)


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
