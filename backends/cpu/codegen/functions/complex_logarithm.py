"""Square roots and logarithms of complex numbers, from the squares of their magnitudes."""

from __future__ import annotations

import math

from . import inverse
from .logarithm import log_pair
from .pairs import Arithmetic, Pair
from .values import Parts, Value, fma, magnitude, square_root, where, with_sign

# numbers beyond these limits are multiplied by a power of two, so that squares are normal numbers
_LARGE, _SMALL = 2.0**500, 2.0**-480
_SHRINK, _GROW = 2.0**-600, 2.0**600
_SHIFT = 600.0
_PRECISE = Arithmetic(True)


def order(x: Value, y: Value) -> Parts:
    """Return the larger magnitude of two, and the other one; NaN is neither."""
    a, b = magnitude(x), magnitude(y)
    return where(b > a, b, a), where(b > a, a, b)


def _find_scale(size: Value) -> Value:
    """Return the power of two that brings a number into the limits."""
    return where(size > _LARGE, _SHRINK, where(size < _SMALL, _GROW, 1.0))


def sqrt(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the square roots with a real part that is not negative."""
    size, _ = order(x, y)
    factor = _find_scale(size)
    half = where(size > _LARGE, 2.0**300, where(size < _SMALL, 2.0**-300, 1.0))  # the root of 1 / factor
    a, b = magnitude(x) * factor, magnitude(y) * factor
    root = square_root((a + square_root(fma(a, a, b * b))) * 0.5) * half
    other = magnitude(y) / (root + root)
    is_left = x.bits() < 0
    real, imag = where(is_left, other, root), with_sign(where(is_left, root, other), y)
    return _end_root(x, y, real, imag)


def _end_root(x: Value, y: Value, real: Value, imag: Value) -> Parts:
    """Return the parts of square roots, with those of zeros and infinities."""
    is_zero = x.equals(0.0) & y.equals(0.0)
    real, imag = where(is_zero, 0.0, real), where(is_zero, y, imag)
    zero = where(y.is_nan(), y, 0.0)
    is_far, is_left = x.equals(math.inf), x.equals(-math.inf)
    real = where(is_far, math.inf, where(is_left, zero, real))
    imag = where(is_far, with_sign(zero, y), where(is_left, with_sign(x, y), imag))
    is_high = magnitude(y).equals(math.inf)
    return where(is_high, math.inf, real), where(is_high, y, imag)


def log(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the principal logarithm."""
    return _log_of_sum(m, Pair(x), y)


def _log_of_sum(m: Arithmetic, x: Pair, y: Value) -> Parts:
    """Return the principal logarithm for a real part that is a sum."""
    size, _ = order(x.hi, y)
    factor = _find_scale(size)
    a, b = x.times(factor), y * factor
    square = _PRECISE.total(_PRECISE.product(a.hi, a.hi), _PRECISE.product(b, b))
    if a.lo is not None:
        square = _PRECISE.total(square, _PRECISE.product(a.hi + a.hi, a.lo))
    real = _half_logarithm(m, square, _find_shift(size))
    return _end_logarithm(x.hi, y, real), inverse.atan2_anywhere(m, y, x.hi)


def _find_shift(size: Value) -> Value:
    """Return the exponent that the scale took from a square."""
    return where(size > _LARGE, 2 * _SHIFT, where(size < _SMALL, -2 * _SHIFT, 0.0))


def _half_logarithm(m: Arithmetic, square: Pair, shift: Value) -> Value:
    """Return half the logarithm of 2**shift times a sum, of which no digits cancel near 1."""
    is_usual = (square.hi >= 2.0**-1000) & (square.hi < math.inf)
    held = where(is_usual, square.hi, 1.0)
    whole = log_pair(m, held, shift)
    rest = where(is_usual, square.low / held, 0.0)
    return (whole.hi + (rest if whole.lo is None else whole.lo + rest)) * 0.5


def _end_logarithm(x: Value, y: Value, real: Value) -> Value:
    """Return the logarithm of a magnitude, also of zero, an infinity or NaN."""
    a, b = magnitude(x), magnitude(y)
    real = where(a.equals(0.0) & b.equals(0.0), -math.inf, where(x.is_nan() | y.is_nan(), x + y, real))
    return where(a.equals(math.inf) | b.equals(math.inf), math.inf, real)


def log2(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the logarithm to base 2."""
    real, imag = log(m, x, y)
    return real * (1 / math.log(2)), imag * (1 / math.log(2))


def log10(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the logarithm to base 10."""
    real, imag = log(m, x, y)
    return real * (1 / math.log(10)), imag * (1 / math.log(10))


def log1p(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return log(1 + z), whose digits do not cancel near 0."""
    moved = _PRECISE.sum(x.constant(1.0), x)
    return _log_of_sum(m, Pair(moved.hi, where(magnitude(x) < 2.0**60, moved.low, 0.0)), y)
