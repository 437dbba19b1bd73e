"""Coefficients of erfinv(x) / x as a function of w = -log(1 - x**2), computed to about 100 bits with integers.

The function is smooth from w = 0, where x is 0, to w = 36.04, where x is the last float64 below 1.
Source of the variable w: Giles, Approximating the erfinv function (2010).
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from .constants import Table, error_function_series, exponential_of, square_root_of_pi
from .quarters import tabulate

OFFSET = 2.5
"""The octaves are those of w + OFFSET."""
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


@functools.cache
def pieces() -> tuple[Table, ...]:
    """Return the polynomials of :func:`.quarters.evaluate`."""
    before, known = Fraction(0), [square_root_of_pi() / 2]

    def expand(center: Fraction) -> list[Fraction]:
        nonlocal before, known
        guess = sum((a * (center - before) ** n for n, a in enumerate(known)), Fraction(0))
        before, known = center, _quotient_series(center, guess)
        return known

    return tabulate(OFFSET, _DEGREE, expand)
