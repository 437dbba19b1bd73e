"""Exponential, hyperbolic and trigonometric functions of complex numbers, from sine and cosine of one part."""

from __future__ import annotations

import math

from . import exponential
from .exponential import quarter_expm1
from .pairs import Arithmetic
from .values import Parts, Value, fma, magnitude, where, with_sign

_STEADY = 22.0  # beyond which tanh is 1 or -1, and its imaginary part is sin(y) cos(y) / sinh(x)**2
_LAST = 375.0  # beyond which that is 0


def _hyperbolic(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Return sinh(x), cosh(x) and e**|x|; for large x factors of them, as ``exponential.multiply_rest`` takes them."""
    size = magnitude(x)
    part = exponential.take_part(m, size)
    quarter = quarter_expm1(m, where(part > 710.0, 710.0, part))
    power = m.sum(quarter.hi, x.constant(0.25)).plus(quarter.lo)  # e**part / 4
    inverse = 1.0 / power.value
    sine = fma(quarter.value * 0.25, inverse, quarter.value) * 2.0
    cosine = fma(inverse, 0.0625, power.value) * 2.0
    return with_sign(where(size < 2.0**-28, size, sine), x), cosine, power.value * 4.0


def _is_unknown(x: Value) -> Value:
    """Return the lanes of infinities and NaN."""
    return (x - x).is_nan()


def exp(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return the exponential: e**x times cos(y) and times sin(y)."""
    power = exponential.exp_anywhere(m, exponential.take_part(m, x))
    real, imag = (exponential.multiply_rest(m, x, power, power * value) for value in (cosine, sine))
    real = where(x.equals(math.inf) & _is_unknown(y), math.inf, real)
    vanishes = x.equals(-math.inf) & _is_unknown(y)
    imag = where(y.equals(0.0), y, imag)
    return where(vanishes, 0.0, real), where(vanishes, 0.0, imag)


def sinh(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return the hyperbolic sine: its parts are those of x times cos(y) and times sin(y)."""
    s, c, power = _hyperbolic(m, x)
    real, imag = (exponential.multiply_rest(m, x, power, value) for value in (s * cosine, c * sine))
    real = where(_is_unknown(y), where(x.equals(0.0), x, where(magnitude(x).equals(math.inf), x, real)), real)
    return real, where(y.equals(0.0), y, imag)


def cosh(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return the hyperbolic cosine, from those of x times cos(y) and times sin(y)."""
    s, c, power = _hyperbolic(m, x)
    real, imag = (exponential.multiply_rest(m, x, power, value) for value in (c * cosine, s * sine))
    real = where(_is_unknown(y) & magnitude(x).equals(math.inf), math.inf, real)
    one = x.constant(1.0)
    zero = where(x.equals(0.0), x * with_sign(one, y), with_sign(one, x) * y)
    return real, where(imag.is_nan() & (x.equals(0.0) | y.equals(0.0)), zero, imag)


def tanh(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return (sinh(x) cosh(x) + i sin(y) cos(y)) / (sinh(x)**2 + cos(y)**2)."""
    size = magnitude(x)
    s, c, _ = _hyperbolic(m, with_sign(where(size > _LAST, _LAST, size), x))
    is_steady, is_infinite = size > _STEADY, size.equals(math.inf)
    inverse = 1.0 / where(is_steady, s, fma(s, s, cosine * cosine))
    real, imag = s * c * inverse, sine * cosine * inverse * where(is_steady, inverse, 1.0)
    one = with_sign(x.constant(1.0), x)
    real = where(x.equals(0.0), x, where(is_steady, where(is_infinite, one, one + (y - y)), real))
    imag = where(is_infinite & _is_unknown(y), with_sign(x.constant(0.0), y), imag)
    return real, where(y.equals(0.0), y, imag)


def sin(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return the sine: -i times the hyperbolic sine of i z."""
    imag, real = sinh(m, y, x, sine, cosine)
    return real, imag


def cos(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return the cosine: the hyperbolic cosine of i z."""
    real, imag = cosh(m, y, x, sine, cosine)
    return real, -imag


def tan(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return the tangent: -i times the hyperbolic tangent of i z."""
    imag, real = tanh(m, y, x, sine, cosine)
    return real, imag


def expm1(m: Arithmetic, x: Value, y: Value, sine: Value, cosine: Value) -> Parts:
    """Return e**z - 1: (e**x - 1) cos(y) + (cos(y) - 1) and e**x sin(y); no digits of cos(y) - 1 cancel."""
    drop = where(cosine > 0.0, -(sine * sine) / (cosine + 1.0), cosine - 1.0)
    real = fma(exponential.expm1(m, x), cosine, drop)
    imag = exponential.exp_anywhere(m, x) * sine
    return real, where(y.equals(0.0), y, imag)
