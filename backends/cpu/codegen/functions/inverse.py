"""Inverse trigonometric functions: asin, acos, atan and atan2.

The angle of (x, y) is the angle of (1, c), which is in a table, plus that of the point turned back by it.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from .constants import Table, arctangent
from .lookup import look_up
from .pairs import Arithmetic, Pair, choose
from .values import Value, fma, magnitude, polynomial, split_polynomial, where, with_sign

_PI = (3.141592653589793, 1.2246467991473532e-16)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_SLOPES = [factor * 2.0**octave for octave in range(-3, 4) for factor in (1.25, 1.75)]
# (atan(u) - u) / u**3 as a polynomial of u**2, for |u| <= 0.15
_ATAN = (
    -0.06222591794463714, 0.07678759323821172, -0.09090702630224454, 0.11111109491218935, -0.142857142796524,
    0.19999999999991486, -0.3333333333333333,
)  # fmt: skip
_SHORT_ATAN = (-0.13918332833354607, 0.19996918328332555, -0.3333332948517564)
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


@functools.cache
def _directions() -> tuple[Table, Table, Table, Table]:
    """Return the components (x, y) of the table's directions, and their angles as high and low parts."""
    angles = [arctangent(Fraction(slope)) for slope in _SLOPES]
    high = [float(angle) for angle in angles]
    low = [float(angle - Fraction(near)) for angle, near in zip(angles, high)]
    return (
        (1.0, *[1.0] * len(_SLOPES), 0.0),
        (0.0, *_SLOPES, 1.0),
        (0.0, *high, _HALF_PI[0]),
        (0.0, *low, _HALF_PI[1]),
    )


def _find_direction(y: Value, x: Value) -> Value:
    """Return the number of the direction near (x, y): the difference of the bits is about log2(y / x)."""
    number = ((y.bits() - x.bits()) >> 51) + len(_SLOPES) // 2
    number = where(number < 0, 0, number)
    return where(number > len(_SLOPES) + 1, len(_SLOPES) + 1, number)


def _angle(m: Arithmetic, y: Value, x: Value) -> Pair:
    """Return atan(y / x) for y >= 0 and x >= 0, not both 0 and neither very large nor very small."""
    number = _find_direction(y, x)
    right, up, high, low = (look_up(table, number) for table in _directions())
    across, along = fma(-up, x, y * right), fma(up, y, x * right)
    if not m.exact:
        u = across / along
        z = u * u
        return Pair(high + fma(polynomial(z, _SHORT_ATAN), z * u, u))
    inverse = 1.0 / along
    u = across * inverse
    rest, z = fma(-u, along, across) * inverse, u * u
    total = m.ordered_sum(high, u)  # high is 0 or larger than u
    return Pair(total.hi, fma(split_polynomial(z, z * z, _ATAN), z * u, total.low + (low + rest)))


def atan(m: Arithmetic, x: Value) -> Value:
    """Return the arctangent."""
    size = magnitude(x)
    size = where(size > 2.0**100, 2.0**100, size)
    return with_sign(_angle(m, size, x.constant(1.0)).value, x)


def _turn(m: Arithmetic, angle: Pair, y: Value, x: Value) -> Value:
    """Return the angle of (x, y) from that of (|x|, |y|)."""
    turned = m.ordered_total(m.constant(y, *_PI), -angle)
    return with_sign(choose(x.bits() < 0, turned, angle).value, y)


def atan2(m: Arithmetic, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y) at a usual distance from 0."""
    return _turn(m, _angle(m, magnitude(y), magnitude(x)), y, x)


def is_beyond_atan2(m: Arithmetic, y: Value, x: Value) -> Value:
    """Return the lanes that ``atan2`` cannot compute."""
    a, b = magnitude(y), magnitude(x)
    low, high = where(a < b, a, b), where(a < b, b, a)
    usual = (high >= 2.0**-500) & (high <= 2.0**500) & ((low >= high * 2.0**-400) | low.equals(0.0))
    return usual ^ True


def atan2_anywhere(m: Arithmetic, y: Value, x: Value) -> Value:
    """Return the angle of any point, with the bits of ``atan2`` in its range."""
    a, b = magnitude(y), magnitude(x)
    both = a.equals(b)  # also infinities and zeros
    up, right = where(both, 1.0, a), where(both, 1.0, b)
    far = up.equals(math.inf) | right.equals(math.inf)
    up, right = (where(far, where(v.equals(math.inf), 1.0, 0.0), v) for v in (up, right))
    high = where(up < right, right, up)
    factor = where(high > 2.0**500, 2.0**-600, where(high < 2.0**-400, 2.0**600, 1.0))
    angle = _angle(m, up * factor, right * factor)
    angle = choose(up < right * 2.0**-400, m.exactly(up / right), angle)  # residues may be too small
    angle = choose(both & a.equals(0.0), m.constant(y, 0.0, 0.0), angle)
    return where(x.is_nan() | y.is_nan(), x + y, _turn(m, angle, y, x))


def _half_angle(m: Arithmetic, size: Value, large: Value) -> Pair:
    """Return asin(|x|) for |x| <= 1/2; asin(sqrt((1 - |x|) / 2)) in the other lanes."""
    half = fma(size, -0.5, 0.5)
    root = choose(large, m.root(m.exactly(half)), m.exactly(size))
    z = root.hi * root.hi
    return root.plus(split_polynomial(z, z * z, _ASIN if m.exact else _SHORT_ASIN) * (z * root.hi))


def asin(m: Arithmetic, x: Value) -> Value:
    """Return the arcsine; for x > 1/2 it is pi / 2 minus twice the arcsine of sqrt((1 - x) / 2)."""
    size = magnitude(x)
    large = size > 0.5
    angle = _half_angle(m, size, large)
    angle = choose(large, m.ordered_total(m.constant(x, *_HALF_PI), angle.times(-2.0)), angle)
    value = where(size < 2.0**-28, x, with_sign(angle.value, x))
    return where(size > 1.0, math.nan, value)


def acos(m: Arithmetic, x: Value) -> Value:
    """Return the arccosine: pi / 2 - asin(x), 2 * asin(sqrt((1 - |x|) / 2)), or pi minus that."""
    size = magnitude(x)
    large, left = size > 0.5, x < 0.0
    angle = _half_angle(m, size, large)
    signed = choose(left, angle, -angle)
    near = m.ordered_total(m.constant(x, *_HALF_PI), signed)
    far = choose(left, m.ordered_total(m.constant(x, *_PI), angle.times(-2.0)), angle.times(2.0))
    return where(size > 1.0, math.nan, choose(large, far, near).value)
