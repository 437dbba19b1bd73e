"""Small parts of ``tandem.numpy``: emath, abs of bools, numbers of ufuncs, constants and the version."""

import warnings

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import ConcretizationError

CALLS = {
    "sqrt": lambda m: m.emath.sqrt([-4.0, 9.0]),
    "sqrt of positive": lambda m: m.emath.sqrt(m.asarray([4, 9])),
    "sqrt of float32": lambda m: m.emath.sqrt(m.asarray([-4, 9], dtype="float32")),
    "sqrt of complex": lambda m: m.emath.sqrt(m.asarray([-4 + 1j])),
    "sqrt of a number": lambda m: m.emath.sqrt(-1),
    "log": lambda m: m.emath.log([-1.0, 2.0]),
    "log2": lambda m: m.emath.log2([-8.0, 2.0]),
    "log2 of positive": lambda m: m.emath.log2([8.0, 2.0]),
    "log10": lambda m: m.emath.log10(m.asarray([-10.0, 100.0])),
    "logn": lambda m: m.emath.logn(2, [-4.0, 8.0]),
    "power": lambda m: m.emath.power([-2.0, 4.0], 0.5),
    "power of integers": lambda m: m.emath.power([2, 4], [2, 3]),
    "power of negative integers": lambda m: m.emath.power([-2, 4], 2),
    "negative powers": lambda m: m.emath.power([2, 4], -2),
    "arccos": lambda m: m.emath.arccos([2.0, -0.5]),
    "arccos inside": lambda m: m.emath.arccos([1.0, -0.5]),
    "arcsin": lambda m: m.emath.arcsin([2.0, -3.0]),
    "arctanh": lambda m: m.emath.arctanh([0.5, -3.0]),
    "abs of bools": lambda m: m.abs(m.asarray([True, False])),
    "absolute of bools": lambda m: m.absolute([[True], [False]]),
    "True_": lambda m: m.logical_and(m.asarray([True, False]), m.True_),
    "False_": lambda m: m.asarray([True, False]) | m.False_,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(CALLS[name](np))
    got = CALLS[name](tnp)
    assert type(got) is td.Tensor and got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6 if "32" in name else 1e-12, atol=1e-12)


def test_emath_needs_values():
    with pytest.raises(ConcretizationError):
        td.jit(tnp.emath.sqrt)(tnp.ones(2))
    assert td.jit(tnp.emath.sqrt)(tnp.ones(2) + 0j).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "name", ["add", "multiply", "logical_and", "bitwise_and", "hypot", "sin", "divmod", "abs", "reciprocal"]
)
def test_numbers_of_ufuncs(name):
    ours, theirs = getattr(tnp, name), getattr(np, name)
    for attribute in ("nin", "nout", "nargs", "identity"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert not hasattr(tnp.sum, "nin")


def test_bools_have_magnitudes_everywhere():
    x = td.asarray(np.arange(40) % 3 == 0)
    for call in (td.abs, abs, td.jit(td.abs), td.vmap(td.abs), td.Tensor.abs, np.abs):
        assert call(x).dtype is td.bool and call(x).tolist() == x.tolist()
    with pytest.raises(TypeError):
        tnp.positive(x)


def test_version_and_constants():
    assert tnp.__version__ == td.__version__
    assert tnp.True_ and not tnp.False_
