"""erfc: special values, exact points far out, equal bits of vectors and single numbers, and its coefficients."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.codegen.functions import constants, error_function, quarters

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
FLOATS = [td.float32, td.float64]
# x and erfc(x) to 20 digits
POINTS = [
    (-2.5, 1.9995930479825550411),
    (-0.25, 1.276326390168236933),
    (0.125, 0.85968379519866618261),
    (0.5, 0.47950012218695346232),
    (1.5, 0.033894853524689272933),
    (3.0, 0.000022090496998585441373),
    (6.5, 3.8421483271206474699e-20),
    (8.75, 3.5971157286470720157e-35),
    (10.0, 2.088487583762544757e-45),
    (20.0, 5.3958656116079009289e-176),
    (26.5, 2.2109076642637342759e-307),
]
SAMPLES = {
    td.float32: ["0x1.562c600000000p-1", "0x1.cc6db00000000p+0", "0x1.aa81d60000000p-1"],
    td.float64: ["0x1.cc6daade5b283p+0", "0x1.70132fccb7069p-1", "0x1.e831005fb783fp-1"],
}
"""Truncated normal numbers of a seed, by dtype; they stay when erfc changes."""


def evaluate(values, dtype):
    return td.erfc(td.asarray(values, dtype=dtype)).numpy()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values(dtype):
    found = evaluate([0.0, -0.0, 1e-30, math.inf, -math.inf, math.nan, 1e30, -1e30, 30.0], dtype)
    expected = np.array([1.0, 1.0, 1.0, 0.0, 2.0, math.nan, 0.0, 2.0, 0.0])
    np.testing.assert_array_equal(found, expected.astype(found.dtype))
    assert not np.signbit(found).any()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_points(dtype):
    kept = [(x, y) for x, y in POINTS if x < 9 or dtype is td.float64]
    found = evaluate([x for x, _ in kept], dtype)
    exact = np.array([y for _, y in kept])
    units = np.spacing(exact.astype(found.dtype)).astype(np.float64)
    assert (abs(found - exact) <= 2.7 * units).all()


def test_results_underflow_gradually():
    found = evaluate([9.2, 9.5, 9.8, 10.0, 10.1], td.float32)
    exact = [math.erfc(x) for x in np.float32([9.2, 9.5, 9.8, 10.0, 10.1]).tolist()]
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=3e-7, atol=2.0**-149)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_vectors_and_single_numbers_have_the_same_bits(dtype):
    rng = np.random.default_rng(SEED)
    x = td.asarray(rng.uniform(-7, 12, 300), dtype=dtype)

    @td.jit
    def one_by_one(x):
        return td.fori_loop(0, 300, lambda i, out: out.at[i].set(td.erfc(x[i])), td.zeros(300, dtype=dtype))

    eager = td.erfc(x).numpy()
    np.testing.assert_array_equal(one_by_one(x).numpy(), eager)
    np.testing.assert_array_equal(td.jit(td.erfc)(x[1:]).numpy(), eager[1:])


def test_pieces_meet():
    low, high, *slopes = error_function._scaled_pieces()
    for k in range(15):
        (left, half), (right, wide) = (quarters.interval(2.0, k + i) for i in (0, 1))
        assert left + half == right - wide
        ends = [
            sum((c[k + i] * float(h) ** n for n, c in enumerate([high, *slopes])), low[k + i])
            for i, h in ((0, half), (1, -wide))
        ]
        assert ends[0] == pytest.approx(ends[1], rel=1e-15)


@pytest.mark.parametrize("c", ["1/4", "2", "5/2", "7/2", "28"])
def test_series_obey_the_differential_equation(c):
    """Values by a continued fraction, and by 1 - erf below 3, continue each other."""
    c, h = Fraction(c), Fraction(1, 16)
    series = constants.scaled_complement_series(c, 30)
    there = sum(a * h**n for n, a in enumerate(series))
    again = constants.scaled_complement_series(c + h, 1)[0]
    assert abs(there / again - 1) < Fraction(1, 10**20)


@pytest.mark.skipif(bool(native_layer.why_off()), reason="SciPy's erfc has other last bits")
def test_samples_of_a_seed_keep_their_numbers():
    for dtype, expected in SAMPLES.items():
        found = td.random.truncated_normal(td.random.key(3), 0.5, 9.0, (3,), dtype=dtype)
        assert [x.hex() for x in found.tolist()] == expected


def test_float32_does_not_increase_near_zero():
    x = np.arange(np.float32(1e-5).view(np.int32), np.float32(0.6).view(np.int32), 997, np.int32).view(
        np.float32
    )
    for sign in (1, -1):
        for function in (td.erfc, td.jit(td.erfc)):
            values = function(td.asarray(x * np.float32(sign))).numpy()
            assert (np.diff(values) * sign <= 0).all()
