"""Inverse trigonometric functions of float32 in float32 arithmetic, and the inverse of tanh.

Worst errors in units in the last place: 1.25.
"""

from __future__ import annotations

import math

from .single import log_pair
from .values import Value, fma, magnitude, polynomial, split_polynomial, square_root, where, with_sign

_PI = (3.1415927410125732, -8.742277657347586e-08)  # high and low parts
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08)
# (atan(u) - u) / u**3 as a polynomial of u**2, for |u| <= 1
_ATAN = (
    -0.0017704167403280735, 0.01080822478979826, -0.030974017456173897, 0.05774618685245514, -0.08390610665082932,
    0.10947579145431519, -0.1426330804824829, 0.19998453557491302, -0.33333295583724976,
)  # fmt: skip
# (asin(u) - u) / u**3 as a polynomial of u**2, for |u| <= 1 / 2
_ASIN = (
    0.04216250032186508, 0.024178795516490936, 0.04547145217657089, 0.07495276629924774, 0.16666753590106964,
)  # fmt: skip


def atan(x: Value) -> Value:
    """Return the arctangent; for |x| > 1 it is pi / 2 minus that of 1 / |x|."""
    size = magnitude(x)
    size = where(size > 2.0**60, 2.0**60, size)
    large = size > 1.0
    u = where(large, -1.0, size) / where(large, size, 1.0)
    z = u * u
    *upper, second, first = _ATAN
    slope = polynomial(z, (split_polynomial(z, z * z, upper), second, first))  # its first terms cancel
    tail = slope * (z * u)
    rest = fma(u, size, 1.0) * u  # of the quotient; the derivative at u is nearly 1 - u**2 / 2
    low = where(large, fma(rest, fma(z, -0.5, 1.0), _HALF_PI[1]), 0.0)
    return with_sign((where(large, x.constant(_HALF_PI[0]), 0.0) + u) + (tail + low), x)


def _half_angle(size: Value, large: Value) -> tuple[Value, Value]:
    """Return asin(|x|) for |x| <= 1/2, asin(sqrt((1 - |x|) / 2)) in the other lanes, as a number and its correction."""
    u = where(large, square_root(fma(size, -0.5, 0.5)), size)
    z = u * u
    return u, polynomial(z, _ASIN) * (z * u)


def _add(high: float | Value, low: float | Value, u: Value, tail: Value, factor: Value) -> Value:
    """Return high + low + factor * (u + tail), where high is 0 or larger than the product; factors are powers of 2."""
    product = u * factor
    total = product + high
    return total + ((product - (total - high)) + fma(tail, factor, low))


def asin(x: Value) -> Value:
    """Return the arcsine; for |x| > 1/2 it is pi / 2 minus twice the arcsine of sqrt((1 - |x|) / 2)."""
    size = magnitude(x)
    large = size > 0.5
    u, tail = _half_angle(size, large)
    far = _add(*_HALF_PI, u, tail, x.constant(-2.0))
    return where(size > 1.0, math.nan, with_sign(where(large, far, u + tail), x))


def acos(x: Value) -> Value:
    """Return the arccosine: pi / 2 - asin(x), 2 * asin(sqrt((1 - |x|) / 2)), or pi minus that."""
    size = magnitude(x)
    large, left = size > 0.5, x < 0.0
    u, tail = _half_angle(size, large)
    factor = where(large, x.constant(2.0), -1.0)
    high, low = (
        where(large, where(left, whole, x.constant(0.0)), half) for whole, half in zip(_PI, _HALF_PI)
    )
    return where(size > 1.0, math.nan, _add(high, low, u, tail, where(left, -factor, factor)))


# (atanh(u) - u) / u**3 as a polynomial of u**2, for |u| <= 1 / 2
_ATANH = (
    0.17605170607566833, 0.051826924085617065, 0.11810967326164246, 0.1422433704137802, 0.2000243365764618,
    0.33333301544189453,
)  # fmt: skip


def atanh(x: Value) -> Value:
    """Return the inverse hyperbolic tangent; for |x| > 1/2 it is half the logarithm of (1 + |x|) / (1 - |x|)."""
    size, square = magnitude(x), x * x
    near = fma(polynomial(square, _ATANH) * square, x, x)
    above, below = size + 1.0, 1.0 - size
    ratio = above / below
    lost = fma(-ratio, below, above) + (size - (above - 1.0))  # of (1 + |x|)
    log = log_pair(ratio)
    far = (log.hi + fma(lost, 0.57, log.low)) * 0.5  # 1 / (1 + |x|) is 0.5 to 0.67
    value = where(size > 0.5, far, near)
    end = where(size.equals(1.0), x.constant(math.inf), math.nan)
    return with_sign(where(size < 1.0, value, end), x)
