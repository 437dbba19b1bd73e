"""Elementary functions of complex numbers: accuracy, special values, and the same bits in each mode."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native

DTYPES = ["complex64", "complex128"]
FUNCTIONS = {  # the worst error of a part in units in the last place that is accepted for complex128
    **dict.fromkeys(("sqrt", "log", "log2", "log10", "sin", "cos", "sinh", "cosh", "atan", "atanh"), 4),
    **dict.fromkeys(("asin", "acos", "asinh", "acosh", "tan", "tanh"), 8),
}
NUMPY_NAMES = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
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


def extended(name, z):
    """NumPy's function of numbers in extended precision."""
    with np.errstate(all="ignore"):
        return getattr(np, NUMPY_NAMES.get(name, name))(z.astype(np.clongdouble))


def draw_widely(dtype):
    """Numbers of all sizes, near the unit circle, and near the branch points."""
    rng, count = np.random.default_rng(1), 2000
    low = -8 if dtype == "complex64" else -30
    parts = rng.normal(size=(2, count)) * 10.0 ** rng.uniform(low, 1, (2, count))
    wide = parts[0] + 1j * parts[1]
    circle = (1 + 10.0 ** rng.uniform(-15, 0, count)) * np.exp(1j * rng.uniform(0, 2 * np.pi, count))
    return np.concatenate([wide, circle, 1 + wide * 1e-3, wide * 1e-3 - 1, wide * 1e-3 + 1j]).astype(dtype)


@needs_native
@pytest.mark.skipif(np.finfo(EXACT).nmant < 63, reason="there is no extended precision")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_are_accurate(dtype, name):
    z = draw_widely(dtype)
    result, exact = getattr(td, name)(td.asarray(z)).numpy(), extended(name, z)
    bound = 1 if dtype == "complex64" else FUNCTIONS[name]
    assert worst_error(result.real, exact.real) < bound
    assert worst_error(result.imag, exact.imag) < bound


@needs_native
@pytest.mark.parametrize("dtype", DTYPES)
def test_digits_do_not_cancel_near_zero(dtype):
    z = draw(dtype, 1.0, 500) * 1e-12
    square = z.astype(np.clongdouble) ** 2 / 2
    for function, exact in ((td.log1p, z - square), (td.expm1, z + square)):
        result = function(td.asarray(z)).numpy()
        assert max(worst_error(result.real, exact.real), worst_error(result.imag, exact.imag)) < 2


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
    values += [
        80.0,
        100.0,
        150.0,
        -95.0,
        -110.0,
        709.5,
        715.0,
        -740.0,
        1e10,
        -(2.0**31),
        30.0,
        351.0,
        360.0,
        -1421.0,
    ]
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
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_are_those_of_c(dtype, name):
    z = special_values(dtype)
    with np.errstate(all="ignore"):
        expected = extended(name, z).astype(dtype)
    result = getattr(td, name)(td.asarray(z)).numpy()
    for part in ("real", "imag"):
        one, two = getattr(result, part), getattr(expected, part)
        is_free = np.isinf(two) & np.isnan(expected.imag if part == "real" else expected.real)  # its sign
        np.testing.assert_allclose(
            np.where(is_free, abs(one), one),
            np.where(is_free, abs(two), two),
            rtol=1e-5 if dtype == "complex64" else 1e-13,
            atol=10 * np.finfo(dtype).smallest_subnormal,
        )
        known = (two == 0) & (one == 0) & np.isfinite(z) & ~np.isnan(result) & np.isfinite(result)
        assert (np.signbit(one)[known] == np.signbit(two)[known]).all()


@needs_native
@pytest.mark.parametrize("name", ["abs", "exp", "expm1", "log1p", *FUNCTIONS])
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


@needs_native
@pytest.mark.parametrize("name", ["expm1", "log1p", *FUNCTIONS])
def test_functions_call_no_other_library(name):
    z = td.asarray(draw("complex128", 1.0, 9))
    assert "ufunc_" not in td.jit(getattr(td, name)).lower(z).llvm_ir()
