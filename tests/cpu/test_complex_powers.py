"""Powers of complex numbers with one exponent: the bits of every path, NumPy's values, few operations."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given
from hypothesis import strategies as st
from tandem import config
from tandem.backends.cpu import fastpath

PARTS = [0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 1e200, 1e-200, 1e-310]
EXPONENTS = [*range(6), 7, 16, 17, 99, -1, -2, -3, -16, -20, 0.5, 2.5, 0.5 + 1e-10, np.inf, True]
EXPONENTS += [1j, 2 + 0j, 2 + 1e-9j, 0.5 + 0j, complex(2.5, -0.0), complex(2.5, 0.0), 0.5 + 1e-300j]
HOT = 70


def numbers(dtype):
    drawn = np.random.default_rng(0).standard_normal((40, 2))
    special = np.array([[a, b] for a in PARTS for b in PARTS])
    with np.errstate(over="ignore"):
        return np.concatenate([special, drawn]).view(np.complex128)[:, 0].astype(dtype)


def is_same(one, two):
    if (
        fastpath.why_off()
    ):  # loops of NumPy for vectors, for single numbers and for one operand differ in the last bits
        one, two = one[-40:], two[-40:]
        return one.dtype == two.dtype and np.allclose(one, two, rtol=1e-5, equal_nan=True)
    parts = [np.where(np.isnan(x.view(x.real.dtype)), np.nan, x.view(x.real.dtype)) for x in (one, two)]
    return one.dtype == two.dtype and parts[0].tobytes() == parts[1].tobytes()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
def test_every_path_returns_the_same_powers(dtype, exponent):
    z = numbers(dtype)
    x = td.asarray(z)
    with config.override(hot_calls=10**9):
        first = (x**exponent).numpy()
    for _ in range(HOT):
        hot = (x**exponent).numpy()
    assert is_same(hot, first)
    assert is_same(td.jit(lambda x: x**exponent)(x).numpy(), first)
    assert is_same(td.jit(lambda x, e: x**e)(x, exponent).numpy(), first)
    assert is_same(np.array([(x[k] ** exponent).item() for k in range(len(z))], dtype), first)
    with np.errstate(invalid="ignore"):
        wanted = z[-40:] ** exponent
    np.testing.assert_allclose(first[-40:], wanted, rtol=1e-5 if dtype == "complex64" else 1e-13)


@given(
    st.integers(-16, 16),
    st.lists(st.complex_numbers(min_magnitude=0.1, max_magnitude=10, allow_nan=False), min_size=1),
)
def test_whole_powers_are_those_of_numpy(exponent, values):
    z = np.array(values)
    wanted = np.array([complex(value) ** exponent for value in values])
    np.testing.assert_allclose(td.jit(lambda x: x**exponent)(td.asarray(z)).numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose((td.asarray(z) ** exponent).numpy(), wanted, rtol=1e-12)


@pytest.mark.skipif(bool(fastpath.why_off()), reason="graphs are interpreted")
@pytest.mark.parametrize("exponent", [2, 3, -1, -4])
def test_whole_powers_call_no_function(exponent):
    x = td.asarray(numbers("complex128"))
    text = td.jit(lambda x: x**exponent).lower(x).llvm_ir()
    assert "ufunc_pow" not in text


def test_gradients_of_powers():
    z = td.asarray([0.5 + 1j, -2.0 + 0.25j])
    for exponent in (2, 3, -1):
        for function in (td.grad, lambda f: td.jit(td.grad(f))):
            got = function(lambda z, e=exponent: td.real(z**e).sum())(z)
            wanted = exponent * z.numpy() ** (exponent - 1)
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)
