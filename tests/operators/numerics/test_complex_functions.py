"""The magnitude and the exponential of complex numbers: accuracy, special values, and the same bits in each mode."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native

DTYPES = ["complex64", "complex128"]
EXACT = np.longdouble


def parts_of(z):
    return z.real.astype(EXACT), z.imag.astype(EXACT)


def worst_error(result, exact):
    """The largest error in units in the last place."""
    unit = np.spacing(np.abs(exact).astype(result.dtype)).astype(EXACT)
    return float((np.abs(result.astype(EXACT) - exact) / unit).max())


def draw(dtype, scale, count=20_000):
    rng = np.random.default_rng(0)
    return ((rng.normal(size=count) + 1j * rng.normal(size=count)) * scale).astype(dtype)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 15.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_is_as_accurate_as_numpys(dtype, scale):
    z = draw(dtype, scale)
    x, y = parts_of(z)
    result = td.exp(td.asarray(z)).numpy()
    assert worst_error(result.real, np.exp(x) * np.cos(y)) < 2.1
    assert worst_error(result.imag, np.exp(x) * np.sin(y)) < 2.1


@pytest.mark.parametrize("exponent", [-100, 0, 100])
@pytest.mark.parametrize("dtype", DTYPES)
def test_abs_neither_overflows_nor_loses_digits(dtype, exponent):
    z = draw(dtype, 2.0**exponent)
    z[::3] *= z.real.dtype.type(2.0**15)
    z.imag[::5] *= z.real.dtype.type(2.0**-15)
    x, y = parts_of(z)
    assert worst_error(td.abs(td.asarray(z)).numpy(), np.sqrt(x * x + y * y)) < 2.1


def special_values(dtype):
    limits = np.finfo(dtype)
    values = [
        0.0,
        -0.0,
        1.0,
        np.inf,
        -np.inf,
        np.nan,
        limits.max,
        -limits.max,
        limits.tiny,
        limits.smallest_subnormal,
    ]
    values += [80.0, 100.0, 150.0, -95.0, -110.0, 709.5, 715.0, -740.0, 1e10, -(2.0**31)]
    grid = np.empty((len(values), len(values)), dtype)
    grid.real, grid.imag = np.asarray(values)[:, None], np.asarray(values)
    return grid.reshape(-1)


@pytest.mark.parametrize("name", ["abs", "exp"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype, name):
    z = special_values(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
    result = getattr(td, name)(td.asarray(z)).numpy()
    for part in ("real", "imag"):
        one, two = getattr(result, part), getattr(expected, part)
        with np.errstate(all="ignore"):
            np.testing.assert_array_max_ulp(one, two, 4)
        known = ~np.isnan(two) & ((two != 0) | (z.imag == 0))
        assert (np.signbit(one)[known] == np.signbit(two)[known]).all()


def bits(values):
    """The bytes of an array, without the signs of NaNs, which follow from the order of operands."""
    parts = np.array(values)
    parts = parts.view(parts.real.dtype)
    return np.where(np.isnan(parts), np.nan, parts).astype(parts.dtype).tobytes()


@needs_native
@pytest.mark.parametrize("name", ["abs", "exp"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_modes_and_positions_have_the_same_bits(dtype, name):
    function = getattr(td, name)
    z = np.concatenate([draw(dtype, 3.0, 61), special_values(dtype)])
    cold = function(td.asarray(z)).numpy()
    whole = bits(cold)
    hot = [bits(function(td.asarray(z)).numpy()) for _ in range(200)]
    assert {*hot} == {whole}
    assert bits(td.jit(function)(td.asarray(z)).numpy()) == whole
    strided = td.asarray(np.repeat(z, 2))[::2]
    assert bits(function(strided).numpy()) == whole
    for index in range(0, len(z), 7):  # alone, in the last lanes of a vector, and beside huge arguments
        assert bits(function(td.asarray(z[index : index + 1])).numpy()) == bits(cold[index : index + 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives(dtype):
    z = td.asarray(draw(dtype, 1.0, 5))
    td.check_grads(lambda z: td.real(td.exp(z) * z) + td.abs(z), (z.astype(td.complex128),), order=2)
