"""erfinv: special values, exact points, equal bits of vectors and single numbers, and its coefficients."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
import scipy.special as scipy_special
import tandem as td
from tandem.backends.cpu.codegen.functions import inverse_error_series, quarters

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
FLOATS = [td.float32, td.float64]
# x and erfinv(x) to 20 digits
POINTS = [
    (2.0**-1, 0.47693627620446987338),
    (2.0**-20, 8.4517185731217291722e-7),
    (1 - 2.0**-4, 1.3171503349861307489),
    (1 - 2.0**-10, 2.3314677736219476723),
    (1 - 2.0**-24, 3.8325068569007109095),
    (1 - 2.0**-53, 5.8635847487551679272),
]


def evaluate(values, dtype):
    return td.special.erfinv(td.asarray(values, dtype=dtype)).numpy()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values(dtype):
    x = [0.0, -0.0, 1.0, -1.0, 1.5, -2.0, math.inf, -math.inf, math.nan]
    found = evaluate(x, dtype)
    expected = np.array([0.0, -0.0, math.inf, -math.inf, *[math.nan] * 5])
    np.testing.assert_array_equal(found, expected.astype(found.dtype))
    assert np.signbit(found[:4]).tolist() == [False, True, False, True]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_points(dtype):
    kept = [(x, y) for x, y in POINTS if np.float32(x) < 1 or dtype is td.float64]
    for sign in (1, -1):
        found = evaluate([sign * x for x, _ in kept], dtype)
        exact = np.array([sign * y for _, y in kept])
        assert (abs(found - exact) <= 2 * np.spacing(abs(exact).astype(found.dtype))).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_subnormal_numbers(dtype):
    kind = np.float32 if dtype is td.float32 else np.float64
    least = np.finfo(kind).smallest_subnormal
    x = least * np.array([1, 2, 3, 1000, 2.0**20], kind)
    found = evaluate(np.concatenate([x, -x]), dtype)
    exact = np.round(np.array([1, 2, 3, 1000, 2.0**20]) * math.sqrt(math.pi) / 2)
    assert (abs(found[:5] / least - exact) <= 1).all()
    np.testing.assert_array_equal(found[5:], -found[:5])


def test_error_of_float32_near_its_largest():
    bits = np.arange(0x3F7D0000, 0x3F800000, 7, dtype=np.int32)  # from 0.988 to 1: both polynomials
    x = bits.view(np.float32)
    exact = scipy_special.erfinv(x.astype(np.float64))
    found = evaluate(x, td.float32)
    assert (abs(found - exact) / np.spacing(exact.astype(np.float32))).max() <= 2
    assert (np.diff(found) >= -np.spacing(found[1:])).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_vectors_and_single_numbers_have_the_same_bits(dtype):
    rng = np.random.default_rng(SEED)
    near_one = 1 - 10.0 ** rng.uniform(-16, 0, 150)
    x = td.asarray(np.concatenate([rng.uniform(-1.1, 1.1, 150), near_one]), dtype=dtype)

    @td.jit
    def one_by_one(x):
        return td.fori_loop(
            0, 300, lambda i, out: out.at[i].set(td.special.erfinv(x[i])), td.zeros(300, dtype=dtype)
        )

    eager = td.special.erfinv(x).numpy()
    np.testing.assert_array_equal(one_by_one(x).numpy(), eager)
    np.testing.assert_array_equal(td.jit(td.special.erfinv)(x[1:]).numpy(), eager[1:])


def test_pieces_meet():
    low, high, *slopes = inverse_error_series.pieces()
    for k in range(15):
        (left, half), (right, wide) = (quarters.interval(inverse_error_series.OFFSET, k + i) for i in (0, 1))
        assert left + half == right - wide
        ends = [
            sum((c[number % 16] * float(h) ** n for n, c in enumerate([high, *slopes])), low[number % 16])
            for number, h in ((k + 1, half), (k + 2, -wide))
        ]
        assert ends[0] == pytest.approx(ends[1], rel=1e-15)


def test_series_are_those_of_the_inverse():
    series = inverse_error_series._quotient_series(Fraction(5, 4), Fraction(1))
    for h in (Fraction(-1, 4), Fraction(1, 8)):
        x = math.sqrt(-math.expm1(-float(Fraction(5, 4) + h)))
        quotient = float(sum(a * h**n for n, a in enumerate(series)))
        assert math.erf(quotient * x) == pytest.approx(x, rel=1e-15)
