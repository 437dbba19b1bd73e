"""erf: polynomials around 16 centers. erfc: exp(-x**2) times polynomials around 16 centers."""

from __future__ import annotations

import functools
from fractions import Fraction

from .constants import Table, economize, error_function_series, scaled_complement_series
from .exponential import exp_pair
from .lookup import look_up
from .pairs import Arithmetic, Pair
from .quarters import evaluate, tabulate
from .values import (
    Value,
    fma,
    magnitude,
    nearest,
    power_of_two,
    scale,
    split_polynomial,
    where,
    with_sign,
)

_STEP, _TERMS, _DEGREE = Fraction(3, 8), 30, 13  # of the polynomials of erf
_OFFSET, _SCALED_DEGREE = 2.0, 14  # of the polynomials of erfc


@functools.cache
def _pieces() -> tuple[Table, ...]:
    """Return polynomials of x - c that are erf around c = 0, 3/8, 3/4 ...: tables of coefficients, lowest first.

    The first table is the low part of the second, which holds erf(c).
    """
    polynomials = [
        economize(error_function_series(Fraction(k) * _STEP, _TERMS), _STEP / 2, _DEGREE) for k in range(16)
    ]
    constants = [coefficients[0] for coefficients in polynomials]
    low = tuple(float(c - Fraction(float(c))) for c in constants)
    return low, *[tuple(float(c[n]) for c in polynomials) for n in range(_DEGREE + 1)]


def erf(m: Arithmetic, x: Value) -> Value:
    """The error function."""
    size = magnitude(x)
    near, number = nearest(where(size > 5.8, 5.8, size) * float(1 / _STEP))
    h = where(size > 6.0, 6.0, size) - near * float(_STEP)
    low, high, slope, *others = (look_up(table, number) for table in _pieces())
    square = h * h
    rest = fma(split_polynomial(h, square, others[::-1]), square, low)
    return with_sign(high + fma(slope, h, rest), x)


@functools.cache
def _scaled_pieces() -> tuple[Table, ...]:
    """Return polynomials that are exp(x**2) * erfc(x), for 0 <= x <= 30."""
    return tabulate(_OFFSET, _SCALED_DEGREE, lambda c: scaled_complement_series(c, _TERMS))


def erfc(m: Arithmetic, x: Value) -> Value:
    """Return the complement of erf to 1, which is 2 less that of -x for x < 0."""
    size = magnitude(x)
    size = where(size > 28.0, 28.0, size)
    high, rest = evaluate(_scaled_pieces(), _OFFSET, Pair(size))
    power, n = exp_pair(m, -m.product(size, size))
    tail = power.hi * rest if power.lo is None else fma(power.hi, rest, power.lo * high)
    value = fma(power.hi, high, tail)
    below = 2.0 - value * power_of_two(where(n < -100, -100, n))
    return where(x < 0.0, below, scale(value, n))
