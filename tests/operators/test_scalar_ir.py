"""The scalar IR: tracing, typing, and its evaluation by NumPy at edge cases."""

import math
import platform
import warnings

import numpy as np
import pytest
from scipy import special
from tandem.errors import DTypeError, ScalarOverflowError
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.numpy_evaluation import UFUNCS, numpy_kernel
from tandem.registry import dtypes as dt


def run(body, *arrays, out=None):
    dtypes = [dt.as_dtype(a.dtype) for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return numpy_kernel(s.instantiate(body, dtypes, out), len(arrays))(*arrays)


def test_a_body_is_traced_with_weak_constants():
    expr = s.instantiate(lambda x: 0.5 * x * (1 + s.erf(x)), [dt.float64])
    assert expr.dtype is dt.float64
    assert {e.dtype for e in s.order(expr)} == {dt.float64}


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16], ids=str)
def test_half_types_compute_in_float32_and_round_once(dtype):
    expr = s.instantiate(lambda x: (x + 1) - 1, [dtype])
    assert (expr.op, expr.dtype, expr.args[0].dtype) == ("cast", dtype, dt.float32)
    x = np.asarray([1e-3], dtype.np)
    assert numpy_kernel(expr)(x)[0] == (x.astype("f4") + np.float32(1) - np.float32(1)).astype(dtype.np)[0]
    assert s.instantiate(lambda x: x > 0, [dtype]).dtype is dt.bool_


def test_every_operator_of_python_builds_its_node():
    ints = s.instantiate(lambda x, y: ((x + y) - (x * y)) // (x % y) ** (-x) & y | x ^ ~y, [dt.int32] * 2)
    built = {e.op for e in s.order(ints)}
    assert built >= set("add sub mul floordiv remainder pow neg and or xor invert".split())
    shifts = s.instantiate(
        lambda x, y: (1 << x) + (x >> y) + (7 // x) + (7 % y) + (2**x) + abs(x), [dt.int8] * 2
    )
    assert {"lshift", "rshift", "abs"} <= {e.op for e in s.order(shifts)}
    compared = s.instantiate(
        lambda x, y: (x < y) & (x <= y) | (x > 1) ^ (x >= y) & (x == y) | (x != y), [dt.float32] * 2
    )
    assert {"lt", "le", "gt", "ge", "eq", "ne"} <= {e.op for e in s.order(compared)}


@pytest.mark.parametrize(
    ("body", "dtypes", "error"),
    [
        (lambda x: x + 0.5, [dt.int32], DTypeError),
        (lambda x: x + 1j, [dt.float32], DTypeError),
        (lambda x: x + 300, [dt.int8], ScalarOverflowError),
        (lambda x, y: x + y, [dt.int32, dt.float32], DTypeError),
        (lambda x: s.select(x, x, x), [dt.float32], DTypeError),
        (lambda x: s.exp(x), [dt.int32], DTypeError),
        (lambda x: s.add(1, 2), [dt.int32], DTypeError),
        (lambda x: x if x > 0 else -x, [dt.float32], TypeError),
    ],
)
def test_a_body_that_makes_no_sense_says_so(body, dtypes, error):
    with pytest.raises(error):
        s.instantiate(body, dtypes)


def test_the_table_is_whole():
    assert set(UFUNCS) == set(s.NODES) | {"select"}
    assert all(callable(f) for f in UFUNCS.values())


def test_a_long_chain_needs_no_recursion():
    def body(x):
        for _ in range(5000):
            x = x + 1
        return x

    assert run(body, np.zeros(2, np.int64)).tolist() == [5000, 5000]


def test_substitute_joins_bodies():
    inner = s.instantiate(lambda x: x * 2, [dt.float32])
    outer = s.instantiate(lambda x, y: x + y, [dt.float32] * 2)
    joined = s.substitute(outer, [inner, s.arg(0, dt.float32)])
    assert numpy_kernel(joined)(np.float32([3])).tolist() == [9]


@pytest.mark.parametrize("dtype", dt.SIGNED, ids=str)
def test_integer_division_is_total(dtype):
    low = np.iinfo(dtype.np).min
    a, b = np.array([low, 7, -7, low, 0], dtype.np), np.array([-1, 0, 2, 0, 5], dtype.np)
    assert run(lambda x, y: x // y, a, b).tolist() == [low, 0, -4, 0, 0]
    assert run(lambda x, y: x % y, a, b).tolist() == [0, 0, 1, 0, 0]
    assert run(s.fmod, a, b).tolist() == [0, 0, -1, 0, 0]


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
def test_shifts_beyond_the_type_shift_everything_out(dtype):
    info = np.iinfo(dtype.np)
    a, b = (
        np.array([info.min, info.max, 1], dtype.np)[:, None],
        np.array([0, dtype.bits - 1, dtype.bits, 100], dtype.np),
    )
    left, right = run(s.lshift, a, b), run(s.rshift, a, b)
    assert left[:, 2:].tolist() == [[0, 0]] * 3
    assert right[:, 2:].tolist() == [[-1 if info.min < 0 else 0] * 2, [0, 0], [0, 0]]
    if dtype.kind == "i":
        minus = np.array([-1], dtype.np)
        assert run(s.lshift, a, minus).tolist() == [[0], [0], [0]]
        assert run(s.rshift, a, minus).tolist() == [[-1], [0], [0]]


def test_integer_powers_with_negative_exponents_are_truncated_quotients():
    a, b = np.int32([2, 1, -1, -1, 0, 3]), np.int32([-1, -2, -3, -4, -1, 3])
    assert run(lambda x, y: x**y, a, b).tolist() == [0, 1, -1, 1, 0, 27]


def test_minimum_and_maximum_propagate_nan():
    a, b = np.float32([np.nan, 1, np.nan, 2]), np.float32([1, np.nan, np.nan, 3])
    for f, last in ((s.minimum, 2), (s.maximum, 3)):
        got = run(f, a, b)
        assert np.isnan(got[:3]).all() and got[3] == last


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="such casts follow the processor"
)
def test_casts_of_what_does_not_fit():
    x = np.array([np.nan, np.inf, -np.inf, 3e10, -3e10, -1.5, 255.9])
    expected = {
        dt.int64: [-(2**63)] * 3 + [30000000000, -30000000000, -1, 255],
        dt.int32: [-(2**31)] * 5 + [-1, 255],
        dt.int8: [0, 0, 0, 0, 0, -1, -1],
        dt.uint8: [0, 0, 0, 0, 0, 255, 255],
        dt.uint32: [0, 0, 0, 30000000000 % 2**32, -30000000000 % 2**32, 2**32 - 1, 255],
        dt.uint64: [2**63, 0, 2**63, 30000000000, 2**64 - 30000000000, 2**64 - 1, 255],
        dt.bool_: [True] * 7,
    }
    for dtype, values in expected.items():
        assert run(lambda v, d=dtype: s.cast(v, d), x).tolist() == values, dtype
        assert [int(run(lambda v, d=dtype: s.cast(v, d), np.array(v))) for v in x] == values, dtype


def test_results_are_new_arrays_of_the_broadcast_shape():
    x, y = np.zeros((2, 1), np.float32), np.zeros(3, np.float32)
    same = run(lambda a: a, x)
    assert same is not x and not np.shares_memory(same, x)
    assert run(lambda a, b: a, x, y).shape == (2, 3)
    assert run(lambda a, b: a + b, x, y).shape == (2, 3)
    zero_d = run(lambda a: a + 1, np.array(1.0))
    assert isinstance(zero_d, np.ndarray) and zero_d.shape == ()


def test_compositions():
    x = np.array([-2.0, -0.0, 0.0, 3.0, np.nan, np.inf, -np.inf, 800.0, -800.0])
    y = x[::-1].copy()
    np.testing.assert_allclose(run(s.sigmoid, x), special.expit(x), rtol=1e-15)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(run(s.logaddexp, x, y), np.logaddexp(x, y), rtol=1e-15)
    np.testing.assert_array_equal(run(s.sign, x), np.sign(x))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(run(s.reciprocal, x), np.reciprocal(x))
    np.testing.assert_array_equal(run(s.logical_xor, x, y), np.logical_xor(x, y))
    ints = np.int8([-128, -1, 0, 1, 5])
    np.testing.assert_array_equal(run(s.sign, ints), np.sign(ints))
    np.testing.assert_array_equal(run(s.signbit, ints), ints < 0)
    np.testing.assert_array_equal(run(s.isfinite, ints), [True] * 5)
    np.testing.assert_array_equal(run(s.reciprocal, ints), [0, -1, 0, 1, 0])
    assert run(lambda v: v**2, np.float64([3.0])) == 9.0 and math.isnan(run(lambda v: v**1, np.array(np.nan)))


def test_complex_numbers_run_on_numpy():
    z = np.array([1 + 2j, complex(np.inf, 1)], np.complex64)
    np.testing.assert_array_equal(run(lambda v: s.complex_(s.real(v), s.imag(v)), z), z)
    assert run(s.abs, z).dtype == np.float32
    np.testing.assert_allclose(run(s.exp, z[:1]), np.exp(z[:1]))
