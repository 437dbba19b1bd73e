"""sin, cos and tan of float32 in float32 arithmetic. Worst errors in units in the last place: 1.0, 1.0, 1.2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .values import Value, fma, magnitude, negate_where, polynomial, where

Reduction = Callable[[Value], tuple[Value, Value, Value]]

LARGEST = 8192.0
"""For smaller arguments the first subtraction of a multiple of pi/2 is exact."""
SMALL, TINY = 0.78, 2.0**-13
"""Arguments below SMALL are not reduced, and those below TINY are their own sine and tangent."""
_MAGIC = 12582912.0  # 1.5 * 2**23: adding it leaves a small number's nearest integer in the low bits
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
# (sin(r) - r) / r**3, (cos(r) - 1 + r**2 / 2) / r**4 and (tan(r) - r) / r**3 as polynomials of r**2, for |r| <= pi / 4
_SIN = (-0.00019587387068211465, 0.008332745936378467, -0.1666666465029205)
_COS = (2.4547436956786594e-05, -0.0013888300694945607, 0.041666664647427104)
_TAN = (
    0.0038514785130039954, 0.0011712547046749066, 0.009970961205734057, 0.02161861147328275, 0.05399478461687597,
    0.1333322948492639, 0.3333333398998226,
)  # fmt: skip


def _reduce_argument(x: Value) -> tuple[Value, Value, Value]:
    """Return (r, rest, n) with x = n * pi / 2 + r + rest and |r| <= pi / 4; only the low bits of n are right."""
    shifted = fma(x, _TWO_OVER_PI, _MAGIC)
    n = shifted - _MAGIC
    first = fma(n, -_HALF_PI[0], x)
    second = n * _HALF_PI[1]
    r = first - second
    rest = ((first - r) - second) - fma(n, _HALF_PI[1], -second)
    return r, fma(n, -_HALF_PI[2], rest), shifted.bits()


def _take_argument(x: Value) -> tuple[Value, Value, Value]:
    """Return what ``_reduce_argument`` returns for an argument below SMALL."""
    return x, x.constant(0.0), x.bits().constant(0)


def _sine(r: Value, rest: Value) -> Value:
    z = r * r
    return r + fma(polynomial(z, _SIN), z * r, rest)


def _cosine(r: Value, rest: Value) -> Value:
    z = r * r
    return 1.0 + fma(z, -0.5, fma(polynomial(z, _COS), z * z, -(r * rest)))


def is_large(x: Value) -> Value:
    """Return the lanes that sin, cos and tan cannot compute."""
    return (magnitude(x) < LARGEST) ^ True


def sin(x: Value, reduce: Reduction = _reduce_argument) -> Value:
    """Return the sine for |x| below LARGEST."""
    r, rest, n = reduce(x)
    picked = where((n & 1).equals(1), _cosine(r, rest), _sine(r, rest))
    return where(magnitude(x) < TINY, x, negate_where(picked, n))


def cos(x: Value, reduce: Reduction = _reduce_argument) -> Value:
    """Return the cosine for |x| below LARGEST."""
    r, rest, n = reduce(x)
    picked = where((n & 1).equals(1), _sine(r, rest), _cosine(r, rest))
    return negate_where(picked, n + 1)


def tan(x: Value, reduce: Reduction = _reduce_argument) -> Value:
    """Return the tangent for |x| below LARGEST: that of the reduced argument, or minus its inverse."""
    r, rest, n = reduce(x)
    z = r * r
    beyond = fma(polynomial(z, _TAN), z * r, fma(z, rest, rest))
    tangent = r + beyond
    inverse = -1.0 / tangent
    inverse = fma((r - tangent) + beyond, inverse * inverse, inverse)
    value = where((n & 1).equals(1), inverse, tangent)
    return where(magnitude(x) < TINY, x, value)


NEAR_ZERO: dict[str, Callable[[Value], Value]] = {
    function.__name__: partial(function, reduce=_take_argument) for function in (sin, cos, tan)
}
"""The functions of arguments below SMALL, with the same bits."""
