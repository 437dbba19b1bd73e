"""Tables of constants, computed to 190 bits with integers: of exponentials, logarithms, arctangents, erf.

Source of the methods: Tang, Table-driven implementation of the exponential function (1989), of the logarithm (1990).
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
from fractions import Fraction

from .....named_tuple import NamedTuple

Table = tuple[float, ...]
_SCALE = 1 << 200  # of the integers that hold fractions
_FRACTIONS = 256  # of the continued fraction of erfc


@functools.cache
def powers_of_two(count: int) -> tuple[Table, Table]:
    """Return 2**(i / count), rounded, and the relative rounding errors, for i < count = 2, 4, 8 ..."""
    nearest, errors = [], []
    for i in range(count):
        exact = _SCALE << i
        for _ in range(count.bit_length() - 1):
            exact = math.isqrt(exact * _SCALE)
        nearest.append(exact / _SCALE)
        errors.append(float(Fraction(exact, _SCALE) / Fraction(nearest[-1]) - 1))
    return tuple(nearest), tuple(errors)


def log_of(x: Fraction) -> Fraction:
    """Return the natural logarithm of a number near 1, to about 2**-190: 2 * atanh((x - 1) / (x + 1))."""
    s = (x - 1) / (x + 1)
    power, square = int(s * _SCALE), int(s * s * _SCALE)
    total, n = 0, 1
    while abs(power) > 1:
        total += 2 * power // n
        power, n = power * square // _SCALE, n + 2
    return Fraction(total, _SCALE)


def arctangent(x: Fraction) -> Fraction:
    """Return the arctangent of a positive number, to about 2**-190, by Euler's series."""
    if x > 1:
        return 2 * arctangent(Fraction(1)) - arctangent(1 / x)
    square = x * x
    term, ratio = int(x / (1 + square) * _SCALE), int(2 * square / (1 + square) * _SCALE)
    total, n = 0, 1
    while term:
        total += term
        term, n = term * n * ratio // (_SCALE * (2 * n + 1)), n + 1
    return Fraction(total, _SCALE)


def exponential_of(x: Fraction) -> int:
    """Return e**-x as a multiple of 1 / _SCALE, for 0 <= x < 40: the inverse of a series of positive terms."""
    total, term, n, size = 0, _SCALE, 1, int(x * _SCALE)
    while term:
        total += term
        term, n = term * size // (_SCALE * n), n + 1
    return _SCALE * _SCALE // total


def error_function_series(c: Fraction, count: int) -> list[Fraction]:
    """Return the first coefficients of erf's Taylor series at c, to about 2**-190."""
    factor = Fraction(exponential_of(c * c), _SCALE) * 2 / square_root_of_pi()
    # erf' at c + h is factor * exp(-2 * c * h - h**2), whose coefficients are Hermite polynomials of c
    hermite = [Fraction(1), -2 * c]
    for n in range(1, count):
        hermite.append(Fraction(-2 * c * hermite[n] - 2 * hermite[n - 1], n + 1))
    return [_error_function(c, factor), *[factor * hermite[n] / (n + 1) for n in range(count)]]


def _error_function(c: Fraction, slope: Fraction) -> Fraction:
    """Return erf(c), of which the slope is given: a series of positive terms."""
    total, n, term, square = 0, 1, int(c * _SCALE), int(2 * c * c * _SCALE)
    while term:
        total += term
        term, n = term * square // (_SCALE * (2 * n + 1)), n + 1
    return slope * Fraction(total, _SCALE)


def scaled_complement_series(c: Fraction, count: int) -> list[Fraction]:
    """Return the first coefficients of the Taylor series of f(x) = exp(x**2) * erfc(x) at c > 0, to about 100 bits.

    f' = 2 * x * f - 2 / sqrt(pi). Source of the continued fraction: Abramowitz and Stegun, 7.1.14.
    """
    factor = 2 / square_root_of_pi()
    if c < 3:
        first = (1 - error_function_series(c, 1)[0]) * _SCALE / exponential_of(c * c)
    else:
        denominator, linear = int(c * _SCALE), int(c * _SCALE)
        for n in range(_FRACTIONS, 0, -1):
            denominator = linear + n * _SCALE * _SCALE // (2 * denominator)
        first = factor / 2 * Fraction(_SCALE, denominator)
    series = [Fraction(int(first * _SCALE), _SCALE)]
    for n in range(count):
        slope = 2 * (c * series[n] + (series[n - 1] if n else 0)) - (0 if n else factor)
        series.append(Fraction(int(slope * _SCALE / (n + 1)), _SCALE))
    return series


def square_root_of_pi() -> Fraction:
    pi = 4 * arctangent(Fraction(1))
    return Fraction(math.isqrt(int(pi * _SCALE) * _SCALE), _SCALE)


def economize(series: list[Fraction], reach: Fraction, degree: int) -> list[Fraction]:
    """Return the coefficients of a polynomial that is nearly the best of its degree for |h| <= reach.

    The highest powers are replaced, one after the other, by multiples of Chebyshev polynomials.
    Source: Lanczos, Applied analysis (1956), telescoping of power series.
    """
    scaled = [int(c * reach**n * _SCALE) for n, c in enumerate(series)]
    chebyshev = [[1], [0, 1]]
    for _ in range(2, len(series)):
        doubled = [0, *[2 * c for c in chebyshev[-1]]]
        chebyshev.append([a - b for a, b in zip(doubled, [*chebyshev[-2], 0, 0])])
    for n in range(len(series) - 1, degree, -1):
        last = scaled[n]
        scaled = [a - (last * b >> (n - 1)) for a, b in zip(scaled, chebyshev[n])]
    return [Fraction(c, _SCALE) / reach**n for n, c in enumerate(scaled[: degree + 1])]


class LogTable(NamedTuple):
    """The constants that split a logarithm: x = 2**k * m, with m in one of the table's intervals around 1.

    Attributes:
        start: bits of the least m, as a float64.
        shift: the lowest bit of those that number the intervals, in the bits of m less ``start``.
        inverses: for each interval a number 1 / c of a few bits, with m / c - 1 exact and small; 1 around 1.
        high, low: the logarithms of c as multiples of 2**-41, and the rest.
        two: the logarithm of 2 in the same two parts.
        unit: the logarithm of e as a double-double number.
    """

    start: int
    shift: int
    inverses: Table
    high: Table
    low: Table
    two: tuple[float, float]
    unit: tuple[float, float]


@functools.cache
def log_table(count: int, base: int = 0) -> LogTable:
    """Return the table of 16 or 32 intervals of the logarithm to a base, or of the natural one for the base 0."""
    start = 0x3FE6800000000000  # 0.703125: 1 is then well inside an interval
    shift = 52 - (count.bit_length() - 1)
    edges = [_from_bits(start + (i << shift)) for i in range(count + 1)]
    unit = 1 / log_of(Fraction(base)) if base else Fraction(1)
    inverses, logs = [], []
    for a, b in itertools.pairwise(edges):
        middle = (a + b) / 2
        steps = 32 if middle < 1 else 64  # few bits, so that m / c - 1 is exact below 1 / 32
        inverses.append(1.0 if a <= 1 <= b else round(steps / middle) / steps)
        logs.append(_in_steps(-log_of(Fraction(inverses[-1])) * unit))
    high, low = zip(*logs)
    nearest = float(unit)
    return LogTable(
        start, shift, tuple(inverses), high, low,
        _in_steps(log_of(Fraction(2)) * unit), (nearest, float(unit - Fraction(nearest))),
    )  # fmt: skip


def _in_steps(x: Fraction) -> tuple[float, float]:
    """Return a multiple of 2**-41, and the rest."""
    high = round(x * 2**41) / 2**41
    return high, float(x - Fraction(high))


def _from_bits(bits: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value
