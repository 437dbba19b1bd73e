"""sin, cos and tan: subtract a multiple of pi/2, then a polynomial; libm, lane by lane, for huge arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .pairs import Arithmetic, Pair, choose
from .values import Value, fma, magnitude, nearest, negate_where, split_polynomial, where

Reduction = Callable[[Arithmetic, Value], tuple[Pair, Value]]

LARGEST = 2.0**30
"""Reduced arguments below this are as precise as those of small ones."""
SMALL, TINY = 0.78, 2.0**-28
"""Arguments below SMALL are not reduced, and those below TINY are their own sine."""
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2 / 2) / r**4 as polynomials of r**2, for |r| <= pi / 4
_SIN = (
    1.591784866512194e-10, -2.505112794596564e-08, 2.755731608382574e-06, -0.00019841269836722437,
    0.008333333333330925, -0.16666666666666666,
)  # fmt: skip
_COS = (
    -1.1382456865840483e-11, 2.0876143829213935e-09, -2.755731726001471e-07, 2.480158729874308e-05,
    -0.0013888888888887382, 0.041666666666666664,
)  # fmt: skip
_SHORT_SIN = (2.72493143604168e-06, -0.00019840082015127998, 0.008333331865963797, -0.16666666663832777)
_SHORT_COS = (-2.73004488746506e-07, 2.4800596437593728e-05, -0.0013888887664717277, 0.04166666666430242)


def _take_argument(m: Arithmetic, x: Value) -> tuple[Pair, Value]:
    """Return (r, n) of ``_reduce_argument`` for an argument below SMALL: the argument and 0."""
    return Pair(x, x.constant(0.0) if m.exact else None), x.bits().constant(0)


def _reduce_argument(m: Arithmetic, x: Value) -> tuple[Pair, Value]:
    """Return (r, n) with x = n * pi / 2 + r and |r| <= pi / 4."""
    n, whole = nearest(x * _TWO_OVER_PI)
    if not m.exact:
        return Pair(fma(n, -_HALF_PI[1], fma(n, -_HALF_PI[0], x))), whole
    first, second = m.product(n, _HALF_PI[0]), m.product(n, _HALF_PI[1])
    one = m.sum(x - first.hi, -first.low)
    two = m.sum(one.hi, -second.hi).plus(one.lo)
    return m.normal(two.plus(-second.low).plus(n * -_HALF_PI[2])), whole


def _sine(m: Arithmetic, r: Pair) -> Pair:
    z = m.product(r.hi, r.hi)
    cube = m.product(z.hi, r.hi)
    *upper, sixth = _SIN if m.exact else _SHORT_SIN
    beyond = split_polynomial(z.hi, z.hi * z.hi, upper) * (z.hi * cube.hi)
    if r.lo is None or z.lo is None or cube.lo is None:
        return Pair(r.hi + fma(cube.hi, sixth, beyond))
    beyond = fma(fma(z.lo, r.hi, cube.lo), sixth, beyond)
    return Pair(r.hi, fma(cube.hi, sixth, fma(r.lo, fma(z.hi, -0.5, 1.0), beyond)))


def _cosine(m: Arithmetic, r: Pair) -> Pair:
    z = m.product(r.hi, r.hi)
    square = z.hi * z.hi
    tail = split_polynomial(z.hi, square, _COS if m.exact else _SHORT_COS) * square
    result = m.ordered_sum(z.hi.constant(1.0), z.hi * -0.5)
    if z.lo is None or r.lo is None:
        return result.plus(tail)
    return result.plus(fma(r.hi, -r.lo, fma(z.lo, -0.5, tail)))


def sin(m: Arithmetic, x: Value, reduce: Reduction = _reduce_argument) -> Value:
    """Return the sine for |x| up to LARGEST."""
    r, n = reduce(m, x)
    picked = choose((n & 1).equals(1), _cosine(m, r), _sine(m, r))
    return where(magnitude(x) < TINY, x, negate_where(picked.value, n))


def cos(m: Arithmetic, x: Value, reduce: Reduction = _reduce_argument) -> Value:
    """Return the cosine for |x| up to LARGEST."""
    r, n = reduce(m, x)
    picked = choose((n & 1).equals(1), _sine(m, r), _cosine(m, r))
    return negate_where(picked.value, n + 1)


def sin_and_cos(m: Arithmetic, x: Value) -> tuple[Value, Value]:
    """Return the sine and the cosine for |x| up to LARGEST."""
    r, n = _reduce_argument(m, x)
    odd = (n & 1).equals(1)
    sine, cosine = _sine(m, r), _cosine(m, r)
    first = where(magnitude(x) < TINY, x, negate_where(choose(odd, cosine, sine).value, n))
    return first, negate_where(choose(odd, sine, cosine).value, n + 1)


def tan(m: Arithmetic, x: Value, reduce: Reduction = _reduce_argument) -> Value:
    """Return the tangent for |x| up to LARGEST."""
    r, n = reduce(m, x)
    odd = (n & 1).equals(1)
    sine, cosine = m.normal(_sine(m, r)), m.normal(_cosine(m, r))
    value = m.divide(choose(odd, cosine, sine), choose(odd, sine, cosine))
    return where(magnitude(x) < TINY, x, negate_where(value, n << 1))


NEAR_ZERO: dict[str, Callable[[Arithmetic, Value], Value]] = {
    function.__name__: partial(function, reduce=_take_argument) for function in (sin, cos, tan)
}
"""The functions of arguments below SMALL, with the same bits."""
