"""Inverse trigonometric and hyperbolic functions of complex numbers.

Source: Kahan, Branch cuts for complex elementary functions, or much ado about nothing's sign bit (1987).
"""

from __future__ import annotations

import math

from . import inverse, logarithm
from .complex_logarithm import order, sqrt
from .pairs import Arithmetic
from .values import Parts, Value, fma, magnitude, where, with_sign

# beyond _FAR numbers are multiplied by _NEAR, and 1 does not count beside them
_FAR, _NEAR = 2.0**400, 2.0**-300


def _take_ends(x: Value, y: Value) -> tuple[Value, Value, Value]:
    """Return the parts in reach of the formulas, infinite ones as a direction, and which numbers are far from 0."""
    size, _ = order(x, y)
    is_far = (size > _FAR) | x.is_nan() | y.is_nan()
    ends = [magnitude(v).equals(math.inf) for v in (x, y)]
    is_infinite = ends[0] | ends[1]
    parts = [
        where(is_infinite, with_sign(where(end, 1.0, 0.0), v), where(is_far, v * _NEAR, v))
        for v, end in zip((x, y), ends)
    ]
    return parts[0], parts[1], is_far


def _roots(m: Arithmetic, x: Value, y: Value, is_far: Value) -> tuple[Parts, Parts]:
    """Return the square roots of 1 - z and 1 + z."""
    one = where(is_far, 0.0, 1.0)
    return sqrt(m, one - x, -y), sqrt(m, one + x, y)


def _grow(x: Value, y: Value, is_far: Value, value: Value) -> Value:
    """Return a logarithmic part, with what the multiplication of far numbers took from it; infinite if a part is."""
    moved = with_sign(magnitude(value) + math.log(1 / _NEAR), value)
    is_infinite = magnitude(x).equals(math.inf) | magnitude(y).equals(math.inf)
    return where(is_infinite, with_sign(value.constant(math.inf), value), where(is_far, moved, value))


def _angle_of(x: Value, y: Value, value: Value, upright: Value | float) -> Value:
    """Return an angle; NaN if a part is, but that of imaginary numbers is known."""
    return where(x.is_nan() | y.is_nan(), where(x.equals(0.0), upright, x + y), value)


def asin(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the arcsine: the angle of (Re(sqrt(1 - z) sqrt(1 + z)), x), and an inverse hyperbolic sine."""
    u, v, is_far = _take_ends(x, y)
    (a, b), (c, d) = _roots(m, u, v, is_far)
    real = inverse.atan2_anywhere(m, u, fma(a, c, -(b * d)))
    imag = with_sign(logarithm.asinh(m, fma(a, d, -(b * c))), y)
    return _angle_of(x, y, real, x), _grow(x, y, is_far, imag)


def acos(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the arccosine: twice the angle of (Re sqrt(1 + z), Re sqrt(1 - z)), and an inverse hyperbolic sine."""
    u, v, is_far = _take_ends(x, y)
    (a, b), (c, d) = _roots(m, u, v, is_far)
    real = inverse.atan2_anywhere(m, a, c) * 2.0
    imag = with_sign(logarithm.asinh(m, fma(c, b, -(d * a))), -y)
    return _angle_of(x, y, real, math.pi / 2), _grow(x, y, is_far, imag)


def asinh(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the inverse hyperbolic sine: -i times the arcsine of i z."""
    imag, real = asin(m, y, x)
    return real, imag


def acosh(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the inverse hyperbolic cosine: i or -i times the arccosine, with a real part that is not negative."""
    imag, real = acos(m, x, y)
    return magnitude(real), with_sign(imag, y)


def atanh(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return log1p(4 |x| / ((1 - |x|)**2 + y**2)) / 4, and half the angle of ((1 - |x|) (1 + |x|) - y**2, 2 |y|)."""
    a, b = magnitude(x), magnitude(y)
    size, small = order(x, y)
    is_far = size > 2.0**100
    u, v = where(is_far, 1.0, a), where(is_far, 1.0, b)
    rest = 1.0 - u
    tilt = small / size
    far = where(size.equals(math.inf), 0.0, (a / size) / size / fma(tilt, tilt, 1.0))
    real = where(is_far, far, _radial(m, u, rest, v))
    angle = inverse.atan2_anywhere(m, v + v, fma(rest, u + 1.0, -(v * v))) * 0.5
    return _end_inverse_tangent(x, y, real, where(is_far, math.pi / 2, angle))


def _radial(m: Arithmetic, u: Value, rest: Value, v: Value) -> Value:
    """Return log1p(4 u / (rest**2 + v**2)) / 4 for rest = 1 - u, also near the pole."""
    is_close = (magnitude(rest) < 2.0**-300) & (v < 2.0**-300)
    factor = where(is_close, 2.0**800, 1.0)
    a, b = rest * factor, v * factor
    ratio = 4.0 * u / fma(a, a, b * b)
    close = fma(logarithm.log_anywhere(m, where(is_close, ratio, 1.0)), 0.25, 400 * math.log(2))
    return where(is_close, close, logarithm.log1p(m, ratio) * 0.25)


def _end_inverse_tangent(x: Value, y: Value, real: Value, imag: Value) -> Parts:
    """Return the parts with the signs of those of z; of NaN what is known."""
    is_unknown = x.is_nan() | y.is_nan()
    is_high = magnitude(y).equals(math.inf)
    is_flat = x.equals(0.0) | magnitude(x).equals(math.inf) | is_high
    real = where(is_unknown, where(is_flat, 0.0, x + y), real)
    imag = where(is_unknown, where(is_high, math.pi / 2, x + y), imag)
    return with_sign(real, x), with_sign(imag, y)


def atan(m: Arithmetic, x: Value, y: Value) -> Parts:
    """Return the arctangent: -i times the inverse hyperbolic tangent of i z."""
    imag, real = atanh(m, y, x)
    return real, imag
