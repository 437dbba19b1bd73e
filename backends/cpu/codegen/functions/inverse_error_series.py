"""Coefficients of erfinv(x) / x as a function of w = -log(1 - x**2), computed to about 100 bits with integers.

The function is smooth from w = 0, where x is 0, to w = 36.04, where x is the last float64 below 1. The polynomials hold
in quarters of the octaves of w + 5/2, from 5/2 to 40.
Source of the variable w: Giles, Approximating the erfinv function (2010).
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from .constants import Table, economize, error_function_series, exponential_of, square_root_of_pi

SHIFT = 50
"""The lowest bit of a float64 of those that number the quarters of octaves."""
OFFSET = 2.5
_FIRST, _COUNT = 0x4004000000000000, 16  # the bits of OFFSET
_TERMS, _DEGREE = 30, 12
_SCALE = 1 << 200  # of the integers that hold fractions


def _coefficient(a: list[int], b: list[int], n: int) -> int:
    """Return a coefficient of the product of two series."""
    return sum(a[j] * b[n - j] for j in range(n + 1)) // _SCALE


def _invert(x: Fraction, guess: Fraction) -> tuple[Fraction, Fraction]:
    """Return y = erfinv(x) and its derivative by Newton's method, from a guess."""
    y, change = guess, Fraction(1)
    while abs(change) > Fraction(1, 1 << 80):
        value, slope = error_function_series(y, 1)
        change = (x - value) / slope
        y = Fraction(int((y + change) * _SCALE), _SCALE)
    return y, 1 / error_function_series(y, 1)[1]


def _quotient_series(c: Fraction, guess: Fraction) -> list[Fraction]:
    """Return the coefficients of q = erfinv(x) / x around w = c, given q there approximately.

    With r = 1 - x**2 = exp(-w) and e = sqrt(pi) / 2 * exp(q**2 * (1 - r)), the derivative of erfinv, the function
    obeys 2 * (1 - r) * dq / dw = r * (e - q).
    """
    r = [exponential_of(c)]
    for n in range(_TERMS):
        r.append(-r[n] // (n + 1))
    z = [_SCALE - r[0], *[-a for a in r[1:]]]
    x = Fraction(math.isqrt(z[0] * _SCALE), _SCALE)
    y, slope = _invert(x, guess * x)
    q, e = [int(y / x * _SCALE)], [int(slope * _SCALE)]
    difference, square, exponent = [e[0] - q[0]], [_coefficient(q, q, 0)], [0]
    for n in range(_TERMS):
        known = 2 * sum(z[j] * (n + 1 - j) * q[n + 1 - j] for j in range(1, n + 1))
        total = sum(r[j] * difference[n - j] for j in range(n + 1)) - known
        q.append(total // (2 * z[0] * (n + 1)))
        square.append(_coefficient(q, q, n + 1))
        exponent.append((n + 1) * _coefficient(z, square, n + 1))
        e.append(sum(exponent[j] * e[n + 1 - j] for j in range(1, n + 2)) // (_SCALE * (n + 1)))
        difference.append(e[-1] - q[-1])
    return [Fraction(a, _SCALE) for a in q]


def _quarter(number: int) -> tuple[Fraction, Fraction]:
    """Return the center of a quarter of an octave, as a value of w, and half its width."""
    octave, part = divmod((_FIRST >> SHIFT) + number, 4)
    half = Fraction(2) ** (octave - 1023) / 8
    return half * (9 + 2 * part) - Fraction(OFFSET), half


@functools.cache
def pieces() -> tuple[Table, ...]:
    """Return polynomials of w - center: tables of coefficients, lowest first, indexed by the bits of w + OFFSET.

    The first table is the low part of the second, which holds the values at the centers.
    """
    polynomials: list[list[Fraction]] = [[]] * _COUNT
    quotient, before = square_root_of_pi() / 2, Fraction(0)
    series = [quotient]
    for k in range(_COUNT):
        center, half = _quarter(k)
        quotient = sum((a * (center - before) ** n for n, a in enumerate(series)), Fraction(0))
        series, before = _quotient_series(center, quotient), center
        polynomials[((_FIRST >> SHIFT) + k) % _COUNT] = economize(series, half, _DEGREE)
    constants = [coefficients[0] for coefficients in polynomials]
    low = tuple(float(c - Fraction(float(c))) for c in constants)
    return low, *[tuple(float(c[n]) for c in polynomials) for n in range(_DEGREE + 1)]
