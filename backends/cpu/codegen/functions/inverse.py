"""Inverse trigonometric functions: asin, acos, atan and atan2."""

from __future__ import annotations

import math

from .pairs import Arithmetic, Pair, choose
from .values import Value, fma, magnitude, polynomial, where, with_sign

_PI = (3.141592653589793, 1.2246467991473532e-16)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
_EIGHTH = 0.41421356237309503  # close to tan(pi / 8); its arctangent:
_EIGHTH_ANGLE = (0.39269908169872414, 3.060132146563891e-18)
# (atan(u) - u) / u**3 as a polynomial of u**2, for |u| <= tan(pi / 16)
_ATAN = (
    0.05114337294563858, -0.06618551041874271, 0.07690715344256673, -0.09090879725767818,
    0.11111110816144765, -0.1428571428425658, 0.19999999999997253, -0.3333333333333333,
)  # fmt: skip
_SHORT_ATAN = (
    -0.08369146759553654, 0.11086512998425349, -0.14285368757922037, 0.19999998293829369,
    -0.3333333333198143,
)  # fmt: skip
# (asin(u) - u) / u**3 as a polynomial of u**2, for |u| <= 1 / 2
_ASIN = (
    0.028757851367421566, -0.014851887071247204, 0.01740087944269402, 0.005457506718640358,
    0.01032281435018578, 0.011479177415184906, 0.013971212973552933, 0.017352392720869973,
    0.02237217294214989, 0.030381944138531247, 0.04464285714635543, 0.07499999999998433,
    0.16666666666666669,
)  # fmt: skip
_SHORT_ASIN = (
    0.02930523970533579, 0.0054431851027481075, 0.019306260869368045, 0.022132443623426794,
    0.030397634130580702, 0.044642358484883196, 0.07500000598829049, 0.16666666665495086,
)  # fmt: skip


def _with_cube(m: Arithmetic, u: Pair, precise: tuple[float, ...], short: tuple[float, ...]) -> Pair:
    """Return u + u**3 * P(u**2)."""
    z = u.hi * u.hi
    return u.plus(polynomial(z, precise if m.exact else short) * (z * u.hi))


def _angle(m: Arithmetic, small: Value, large: Value) -> Pair:
    """Return atan(small / large) for 0 <= small <= large."""
    middle, high = small > large * 0.1989, small > large * 0.6682
    step = where(high, 1.0, where(middle, _EIGHTH, 0.0))
    moved = m.product(step, large)
    above = m.sum(small, -moved.hi)
    if moved.lo is not None:
        above = above.plus(-moved.lo)
    added = m.product(step, small)
    below = m.sum(large, added.hi).plus(added.lo)
    u = m.quotient(m.normal(above), m.normal(below))
    u = _with_cube(m, u, _ATAN, _SHORT_ATAN)
    zero = m.constant(small, 0.0, 0.0)
    start = choose(
        high, m.constant(small, *_QUARTER_PI), choose(middle, m.constant(small, *_EIGHTH_ANGLE), zero)
    )
    return m.total(start, u)


def _first_quadrant(m: Arithmetic, y: Value, x: Value) -> Pair:
    """Return atan(y / x) for y >= 0 and x >= 0, neither infinite and not both 0."""
    steep = y > x
    small, large = where(steep, x, y), where(steep, y, x)
    if m.exact:  # residues must neither overflow nor be lost below the smallest float64
        scale = where(large > 2.0**500, 2.0**-600, where(large < 2.0**-400, 2.0**600, 1.0))
        angle = _angle(m, small * scale, large * scale)
        angle = choose(small < large * 2.0**-60, m.exactly(small / large), angle)
    else:
        angle = _angle(m, small, large)
    return choose(steep, m.total(m.constant(y, *_HALF_PI), -angle), angle)


def atan(m: Arithmetic, x: Value) -> Value:
    """Return the arctangent."""
    size = magnitude(x)
    size = where(size > 2.0**100, 2.0**100, size)
    value = with_sign(_first_quadrant(m, size, x.constant(1.0)).value, x)
    return where(magnitude(x) < 2.0**-28, x, value)


def atan2(m: Arithmetic, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y)."""
    a, b = magnitude(y), magnitude(x)
    both = a.equals(b)  # also infinities and zeros
    up, right = where(both, 1.0, a), where(both, 1.0, b)
    far = up.equals(math.inf) | right.equals(math.inf)
    up, right = (where(far, where(v.equals(math.inf), 1.0, 0.0), v) for v in (up, right))
    angle = _first_quadrant(m, up, right)
    angle = choose(a.equals(0.0), m.constant(y, 0.0, 0.0), angle)
    left = x.bits() < 0
    angle = choose(left, m.total(m.constant(y, *_PI), -angle), angle)
    return where(x.is_nan() | y.is_nan(), x + y, with_sign(angle.value, y))


def _half_angle(m: Arithmetic, size: Value, large: Value) -> Pair:
    """Return asin(|x|) for |x| <= 1/2; asin(sqrt((1 - |x|) / 2)) in the other lanes."""
    half = fma(size, -0.5, 0.5)
    root = choose(large, m.root(m.exactly(half)), m.exactly(size))
    return _with_cube(m, root, _ASIN, _SHORT_ASIN)


def asin(m: Arithmetic, x: Value) -> Value:
    """Return the arcsine; for x > 1/2 it is pi / 2 minus twice the arcsine of sqrt((1 - x) / 2)."""
    size = magnitude(x)
    large = size > 0.5
    angle = _half_angle(m, size, large)
    angle = choose(large, m.total(m.constant(x, *_HALF_PI), angle.times(-2.0)), angle)
    value = where(size < 2.0**-28, x, with_sign(angle.value, x))
    return where(size > 1.0, math.nan, value)


def acos(m: Arithmetic, x: Value) -> Value:
    """Return the arccosine: pi / 2 - asin(x), 2 * asin(sqrt((1 - |x|) / 2)), or pi minus that."""
    size = magnitude(x)
    large, left = size > 0.5, x < 0.0
    angle = _half_angle(m, size, large)
    signed = choose(left, angle, -angle)
    near = m.total(m.constant(x, *_HALF_PI), signed)
    far = choose(left, m.total(m.constant(x, *_PI), angle.times(-2.0)), angle.times(2.0))
    return where(size > 1.0, math.nan, choose(large, far, near).value)
