"""Functions of w >= 0 as polynomials, one for each of 16 quarters of octaves of w + offset, for an offset of 2 or 5/2.

The bits of the sum number the quarters and hold their centers, and their widths grow with w, as those may on which a
polynomial of one degree is close to a smooth function.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .constants import Table, economize
from .lookup import look_up
from .pairs import Pair
from .values import Value, fma, split_polynomial

_SHIFT = 50  # the lowest bit of a float64 of those that number the quarters of octaves
_COUNT = 16
Series = list[Fraction]


def interval(offset: float, number: int) -> tuple[Fraction, Fraction]:
    """Return the center of a quarter of an octave, as a value of w, and half its width."""
    octave, part = divmod(number + round(offset * 2) - 4, 4)
    half = Fraction(2) ** octave / 4
    return half * (9 + 2 * part) - Fraction(offset), half


def tabulate(offset: float, degree: int, series: Callable[[Fraction], Series]) -> tuple[Table, ...]:
    """Return polynomials of w - center: tables of coefficients, lowest first, indexed by bits of w + offset.

    The first table is the low part of the second, which holds the values at the centers.

    Args:
        offset: of the octaves.
        degree: of the polynomials.
        series: returns the coefficients of the function's series at a center; called for increasing centers.
    """
    polynomials: list[Series] = [[]] * _COUNT
    for k in range(_COUNT):
        center, half = interval(offset, k)
        polynomials[(k + round(offset * 2) - 4) % _COUNT] = economize(series(center), half, degree)
    constants = [coefficients[0] for coefficients in polynomials]
    low = tuple(float(c - Fraction(float(c))) for c in constants)
    return low, *[tuple(float(c[n]) for c in polynomials) for n in range(degree + 1)]


def evaluate(tables: tuple[Table, ...], offset: float, w: Pair) -> tuple[Value, Value]:
    """Return the function of w as a number of the table and a smaller rest."""
    shifted = (w.value + offset).bits()
    number = shifted >> _SHIFT
    center = ((shifted & -(1 << _SHIFT)) | 1 << (_SHIFT - 1)).from_bits() - offset
    h = w.hi - center
    if w.lo is not None:
        h = h + w.lo
    low, high, slope, *others = (look_up(table, number) for table in tables)
    square = h * h
    return high, fma(slope, h, fma(split_polynomial(h, square, others[::-1]), square, low))
