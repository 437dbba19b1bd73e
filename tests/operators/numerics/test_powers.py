"""Powers with a constant exponent: NumPy's products, quotients and roots, in every kind of call."""

import ml_dtypes
import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.operators.scalar_ir import nodes as s
from tandem.registry import dtypes as dt

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
VALUES = [-0.0, 0.0, -np.inf, np.inf, np.nan, -1.0, 2.0, -2.5, 1e-40, 3e38, 0.3, 1.7]
SIMPLE = {
    0: np.ones_like,
    1: np.positive,
    2: lambda x: x * x,
    -1: lambda x: np.ones_like(x) / x,
    0.5: np.sqrt,
}


def every_call(x, number):
    """The power as the first call, a hot one, and jitted with a constant and with a traced exponent give it."""
    with config.override(hot_calls=3):
        eager = [(x**number).numpy() for _ in range(6)]
    constant = td.jit(lambda x: x**number)(x).numpy()
    traced = td.jit(lambda x, n: x**n)(x, number).numpy()
    return eager[0], eager[-1], constant, traced


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", SIMPLE)
def test_simple_exponents_have_the_bits_of_their_form(number, dtype):
    with np.errstate(all="ignore"):
        raw = np.array(VALUES, dtype)
        wide = raw if raw.dtype.itemsize > 2 else raw.astype(np.float32)
        expected = SIMPLE[number](wide).astype(dtype)
    for found in every_call(td.asarray(raw), number):
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
        signs = np.signbit(expected.astype(np.float64))
        valid = ~np.isnan(expected.astype(np.float64))
        np.testing.assert_array_equal(np.signbit(found.astype(np.float64))[valid], signs[valid])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-10, 1e10])
@pytest.mark.parametrize("number", [3, 4, 5, 6, 7, 12, 16, -2, -3, -6, -12])
def test_products_are_close(dtype, scale, number):
    """float32: computed in float64 and rounded once; float64: each product adds at most half a unit."""
    raw = (np.random.default_rng(0).standard_normal(20_000) * scale).astype(dtype)
    with np.errstate(all="ignore"):
        exact = raw.astype(np.longdouble) ** number
        rounded = exact.astype(dtype)
        usual = np.isfinite(rounded) & (np.abs(rounded) > np.finfo(dtype).tiny)
        unit = np.spacing(np.abs(rounded))
    for found in every_call(td.asarray(raw), number):
        bound = 0.51 if dtype is np.float32 else abs(number)
        assert np.max((np.abs(found - exact) / unit)[usual], initial=0) <= bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [3, 4, 7, 16, -2, -5, 17, 2.5, -16.0, -17])
def test_every_call_has_the_same_bits(dtype, number):
    with np.errstate(all="ignore"):
        raw = np.concatenate([np.random.default_rng(1).standard_normal(500) * 3, VALUES, [1e200, 0.0]])
        raw = raw.astype(dtype)
    calls = every_call(td.asarray(raw), number)
    if native_layer.why_off():
        calls = calls[:1]
    for found in calls[1:]:
        np.testing.assert_array_equal(found, calls[0])

    @td.jit
    def one_by_one(x, n):
        return td.fori_loop(0, x.shape[0], lambda i, out: out.at[i].set(x[i] ** n), td.zeros_like(x))

    if not native_layer.why_off():
        np.testing.assert_array_equal(one_by_one(td.asarray(raw), number).numpy(), calls[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cubes_of_special_values(dtype):
    with np.errstate(all="ignore"):
        raw = np.array([*VALUES, 1e200, -1e200], dtype)
        expected = raw * raw * raw
    for found in every_call(td.asarray(raw), 3):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        valid = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[valid], np.signbit(expected)[valid])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("number", [0, 1, 2, 3, 5])
def test_integer_powers_wrap(number, dtype):
    raw = np.array([0, 1, 2, 3, 7, 100, 127], dtype)
    for found in every_call(td.asarray(raw), number):
        np.testing.assert_array_equal(found, raw**number)


def test_negative_powers_of_integers_raise():
    x = td.asarray(np.array([1, 2]))
    for function in (lambda x: x**-1, td.jit(lambda x: x**-1)):
        with pytest.raises(ValueError, match="negative power"):
            function(x)


@pytest.mark.parametrize("number", [0, 1, 2, 3, -1, 0.5, 2.5, -2])
def test_derivatives_in_every_mode(number):
    raw = np.array([0.3, 1.0, 2.5, 7.0])
    x = td.asarray(raw)
    slopes = number * raw ** (number - 1.0)
    curvature = number * (number - 1) * raw ** (number - 2.0)

    def f(x):
        return (x**number).sum()

    def slope(x):
        return td.grad(f)(x)

    for found in (
        slope(x),
        td.jit(slope)(x),
        td.jvp(lambda x: x**number, (x,), (td.ones(4, dtype=x.dtype),))[1],
    ):
        np.testing.assert_allclose(found.numpy(), slopes, rtol=1e-14, atol=1e-300)
    traced = td.jit(lambda x, n: td.grad(lambda x: (x**n).sum())(x))(x, number)
    np.testing.assert_allclose(traced.numpy(), slopes, rtol=1e-14, atol=1e-300)
    second = td.jit(td.grad(lambda x: slope(x).sum()))(x)
    np.testing.assert_allclose(second.numpy(), curvature, rtol=1e-13, atol=1e-300)
    batched = td.vmap(td.grad(lambda x: x**number))(x)
    np.testing.assert_allclose(batched.numpy(), slopes, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("number", [2, 3, -1, 0.5])
def test_constant_powers_need_no_power_function(number):
    body = s.instantiate(s.uniform_power, [dt.float32] * 2)
    folded = s.substitute(body, [s.arg(0, dt.float32), s.const(float(number), dt.float32)])
    assert not {"pow", "uniform_pow"} & {expr.op for expr in s.order(folded)}


@pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on")
def test_tensor_exponents_are_powers():
    x, y = td.asarray(np.array([-0.0, -np.inf])), td.asarray(np.array(0.5))
    assert td.jit(lambda x, y: x**y)(x, y).tolist() == (x**y).tolist()
