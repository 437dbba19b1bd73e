"""Loops on complex numbers: the bits of every path, calls of NumPy's loops, loops of the ufuncs of products."""

import platform

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.codegen.elementwise import write_loop
from tandem.backends.cpu.codegen.text import Module
from tandem.backends.cpu.fastpath.glue.layout import find_node_loop
from tandem.backends.cpu.kernels.node_functions import find_ufunc
from tandem.operators.scalar_ir import nodes as s
from tandem.registry import dtypes as dt

RNG = np.random.default_rng(0)
CHAINS = {
    "functions": lambda x, y: td.exp(x * y) + td.conj(x) / td.sqrt(y) - 2j,
    "a function of a number": lambda x, y: td.log(x) ** 2.5 + 1 / y,
    "real parts": lambda x, y: td.abs(x) * td.real(y) + td.imag(x),
    "a choice": lambda x, y: td.where(td.real(x) > 0, td.sin(x), y) * 0.5,
    "casts": lambda x, y: td.real(x).astype(x.dtype) * y + td.isfinite(x),
    "the same function twice": lambda x, y: td.tanh(td.tanh(x)) - y,
    "a loop": lambda x, y: td.fori_loop(0, 3, lambda i, z: td.cos(z) * y, x),
    "pieces": lambda x, y: td.concat([x * 2, td.exp(y)]),
}

pytestmark = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)


def drawn(shape, dtype):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype.np)


@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_every_call_has_the_same_bits(name, dtype):
    function, compiled = CHAINS[name], td.jit(CHAINS[name])
    with config.override(hot_calls=2):
        for shape in [(), (1,), (5,), (17,), (600,), (7, 70), (3, 1, 9)]:
            x, y = (td.asarray(drawn(shape, dtype)) for _ in range(2))
            if name == "pieces" and not shape:
                continue
            first = function(x, y).numpy()
            for _ in range(4):
                hot = function(x, y).numpy()
            assert hot.tobytes() == first.tobytes() == compiled(x, y).numpy().tobytes()
        x, y = (td.asarray(drawn((90, 80), dtype)[::-1, ::2].T, copy=False) for _ in range(2))
        first = function(x, y).numpy()
        for _ in range(4):
            hot = function(x, y).numpy()
        assert hot.tobytes() == first.tobytes() == compiled(x, y).numpy().tobytes()


@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
def test_long_rows_at_any_address(dtype):
    memory = drawn(1200, dtype)
    x = td.asarray(memory, copy=False)
    for start in range(5):
        for stop in (start + 511, start + 512, 1199):
            one, two = x[start:stop], x[start + 1 : stop + 1]
            expected = memory[start:stop] - 1j * memory[start + 1 : stop + 1]
            for _ in range(70):
                got = one - 1j * two
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
def test_loops_of_products_fold(dtype):
    """NumPy's `reduce` and `accumulate` pass each result as the next element's operand."""
    x, start = drawn(100, dtype) * 0.9, drawn(3, dtype)
    for name, reference in (("mul", np.multiply), ("truediv", np.true_divide)):
        ufunc = find_ufunc(s.apply(name, *[s.arg(k, dtype) for k in range(2)]))
        tolerance = {"rtol": 1e-3 if dtype is dt.complex64 else 1e-10}
        np.testing.assert_allclose(ufunc.reduce(x), reference.reduce(x), **tolerance)
        np.testing.assert_allclose(ufunc.accumulate(x), reference.accumulate(x), **tolerance)
        np.testing.assert_allclose(ufunc.accumulate(x[::-7]), reference.accumulate(x[::-7]), **tolerance)
        np.testing.assert_allclose(ufunc(start, start[:1]), reference(start, start[:1]), **tolerance)
        same = start.copy()
        np.testing.assert_allclose(ufunc(same, same, out=same), reference(start, start), **tolerance)


def test_products_and_quotients_have_the_bits_of_their_parts():
    x, y = drawn(1000, dt.complex64), drawn(1000, dt.complex64)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    product = (td.asarray(x) * td.asarray(y)).numpy()
    assert product.real.tobytes() == (a * c - b * d).tobytes()
    assert product.imag.tobytes() == (a * d + b * c).tobytes()
    quotient = (td.asarray(x) / td.asarray(y)).numpy()
    assert platform.machine() != "x86_64" or quotient.tobytes() == (x / y).tobytes()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", dt.COMPLEX, ids=str)
def test_division_by_zero(dtype):
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, np.nan]
    x = np.array([complex(a, b) for a in parts for b in parts], dtype.np)
    for zero in (
        complex(0.0, 0.0),
        complex(-0.0, 0.0),
        complex(0.0, -0.0),
        complex(np.inf, 1),
        complex(np.nan, 0),
    ):
        got = (td.asarray(x) / td.asarray(np.full(x.shape, zero, dtype.np))).numpy()
        np.testing.assert_array_equal(got, x / np.full(x.shape, zero, dtype.np))


def test_modules_name_the_loops_that_they_call():
    """Addresses are not in the text, whose object is stored on disk."""
    x = s.arg(0, dt.complex64)
    for body in (s.apply("pow", x, x + 1), s.apply("pow", x * x, x)):
        module = Module(find_node_loop)
        write_loop(module, "loop", body, [dt.complex64], dt.complex64)
        assert module.imports
        for name, address in module.imports.items():
            assert name in str(module) and str(address) not in str(module)


def test_compiled_kernels_of_complex_numbers_are_fused():
    x = td.asarray(drawn(9, dt.complex64))
    kernels = str(td.jit(lambda x: td.exp(x * 2) / (x + 1j)).lower(x).kernels())
    assert "callback" not in kernels
    kernels = str(td.jit(td.sum).lower(x).kernels())
    assert "callback" not in kernels and "native" in kernels
