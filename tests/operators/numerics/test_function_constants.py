"""The tables of the elementary functions beside decimal arithmetic and long doubles."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from tandem.backends.cpu.codegen.functions import constants, error_function

DIGITS = 60


@pytest.fixture(autouse=True)
def precise():
    with decimal.localcontext() as context:
        context.prec = DIGITS
        yield


def in_decimal(x):
    x = Fraction(x)
    return decimal.Decimal(x.numerator) / x.denominator


def pi():
    """Machin's formula."""

    def inverse(n):
        return sum(
            decimal.Decimal((-1) ** k) / ((2 * k + 1) * decimal.Decimal(n) ** (2 * k + 1)) for k in range(60)
        )

    return 16 * inverse(5) - 4 * inverse(239)


@pytest.mark.parametrize("count", [2, 16, 32])
def test_powers_of_two(count):
    nearest, errors = constants.powers_of_two(count)
    for i, (power, error) in enumerate(zip(nearest, errors, strict=True)):
        exact = decimal.Decimal(2) ** (decimal.Decimal(i) / count)
        assert power == float(exact)
        assert abs(in_decimal(power) * (1 + in_decimal(error)) / exact - 1) < decimal.Decimal(2) ** -100


@pytest.mark.parametrize("base", [0, 2, 10])
@pytest.mark.parametrize("count", [16, 32])
def test_logarithms(count, base):
    table = constants.log_table(count, base)
    unit = 1 / decimal.Decimal(base).ln() if base else decimal.Decimal(1)
    two = decimal.Decimal(2).ln() * unit
    assert abs(in_decimal(table.unit[0]) + in_decimal(table.unit[1]) - unit) < decimal.Decimal(2) ** -104
    rows = [*zip(table.inverses, table.high, table.low, strict=True), (0.5, *table.two)]
    for inverse, high, low in rows:
        exact = -in_decimal(inverse).ln() * unit
        assert high * 2**41 == int(high * 2**41)
        assert abs(in_decimal(high) + in_decimal(low) - exact) < decimal.Decimal(2) ** -93
    assert abs(two - in_decimal(table.two[0])) < decimal.Decimal(2) ** -41


@pytest.mark.parametrize("count", [16, 32])
def test_intervals_of_logarithms_divide_exactly(count):
    table = constants.log_table(count)
    rng = np.random.default_rng(0)
    bits = table.start + rng.integers(0, count << table.shift, 2_000)
    for number, mantissa in zip((bits - table.start) >> table.shift, bits.view(np.float64), strict=True):
        rest = Fraction(float(mantissa)) * Fraction(table.inverses[number]) - 1
        assert abs(rest) < Fraction(1, 30)
        assert Fraction(float(rest)) == rest or abs(rest) > Fraction(1, 32)


@pytest.mark.parametrize("x", ["1/8", "1", "7/4", "14", "1/1000"])
def test_arctangents(x):
    found = in_decimal(constants.arctangent(Fraction(x)))
    assert float(found) == pytest.approx(math.atan(Fraction(x)), rel=2e-16)
    if x == "1":
        assert abs(found * 4 - pi()) < decimal.Decimal(10) ** -50


def test_error_function_series():
    for c in (Fraction(0), Fraction(3, 8), Fraction(2), Fraction(45, 8)):
        series = constants.error_function_series(c, 30)
        assert float(series[0]) == pytest.approx(math.erf(c), rel=1e-15)
        slope = 2 / pi().sqrt() * (-in_decimal(c * c)).exp()
        assert abs(in_decimal(series[1]) / slope - 1) < decimal.Decimal(10) ** -40
        there = sum(term * Fraction(1, 8) ** n for n, term in enumerate(series))
        again = constants.error_function_series(c + Fraction(1, 8), 2)[0]
        assert abs(there - again) < Fraction(1, 10**20)


def test_economized_polynomials_are_close():
    series = constants.error_function_series(Fraction(3, 8), 30)
    shorter = constants.economize(series, Fraction(3, 16), 13)
    assert len(shorter) == 14
    for k in range(-16, 17):
        h = Fraction(3, 16) * k / 16
        exact, found = (sum(c * h**n for n, c in enumerate(row)) for row in (series, shorter))
        assert abs(found - exact) < Fraction(1, 2**58)


def test_pieces_of_erf_meet():
    low, high, *slopes = error_function._pieces()
    for k in range(15):
        ends = [
            sum((c[k + i] * (h**n) for n, c in enumerate([high, *slopes])), low[k + i])
            for i, h in ((0, 0.1875), (1, -0.1875))
        ]
        assert ends[0] == pytest.approx(ends[1], rel=1e-15)
