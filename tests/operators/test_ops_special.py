"""Special points, weak scalars, rounding and cost of operators, beyond comparison with NumPy."""

import threading

import numpy as np
import pytest
import tandem as td
from tandem.cli.overhead import measure
from tandem.errors import ScalarOverflowError, ShapeError
from tandem.operators.declare.quiet import call_quietly


def slope(f, *values):
    return [g.tolist() for g in td.grad(lambda *xs: f(*xs).sum(), argnums=tuple(range(len(values))))(*values)]


def f64(*values):
    return td.asarray(np.array(values, np.float64))


# --- derivatives at special points ------------------------------------------------------------------------


def test_slopes_where_a_function_has_a_corner():
    assert slope(td.abs, f64(-2.0, 0.0, 2.0)) == [[-1.0, 0.0, 1.0]]
    assert slope(td.relu, f64(-1.0, 0.0, 1.0)) == [[0.0, 0.0, 1.0]]
    assert slope(lambda x: td.clip(x, 0.0, 1.0), f64(-1.0, 0.0, 0.5, 1.0, 2.0)) == [[0.0, 1.0, 1.0, 1.0, 0.0]]
    for choose in (td.maximum, td.minimum, td.fmax, td.fmin):
        assert slope(choose, f64(1.0), f64(1.0)) == [[0.5], [0.5]]


def test_slopes_of_ties_in_extrema_are_shared():
    x = td.asarray(np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]]))
    assert slope(lambda x: x.max(1), x) == [[[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]]
    assert slope(lambda x: x.min(), f64(1.0, 1.0, 1.0, 1.0)) == [[0.25, 0.25, 0.25, 0.25]]


def test_slopes_of_powers_at_zero():
    assert slope(lambda x: td.pow(x, 0), f64(0.0, 2.0)) == [[0.0, 0.0]]
    assert slope(lambda x: td.pow(x, 1), f64(0.0, 2.0)) == [[1.0, 1.0]]
    assert slope(td.pow, f64(0.0, 0.0), f64(0.0, 2.0)) == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("values", [(2.0, 3.0, 4.0), (2.0, 0.0, 4.0), (0.0, 0.0, 4.0), (5.0,)])
def test_slopes_of_products_with_zeros(values):
    others = [np.prod(np.delete(values, i)) for i in range(len(values))]
    assert slope(lambda x: x.prod(), f64(*values)) == [others]
    runs = [
        sum(np.prod(np.delete(values[: k + 1], i)) for k in range(i, len(values))) for i in range(len(values))
    ]
    assert slope(lambda x: td.cumprod(x, 0), f64(*values)) == [runs]


def test_masked_gradients_stay_finite():
    """`where` and `relu` choose the cotangent; a product with a mask would make NaN of an infinite one."""
    assert slope(lambda x: td.where(x > 1.0, x, 0.0) * np.inf, f64(2.0, 0.0)) == [[np.inf, 0.0]]
    assert slope(lambda x: td.relu(x) * np.inf, f64(2.0, -1.0)) == [[np.inf, 0.0]]


# --- scalars and dtypes -----------------------------------------------------------------------------------


def test_scalars_are_weak():
    x = td.asarray(np.array([1, 2], np.int8))
    assert (x + 1).dtype is td.int8
    assert (x + 1.0).dtype is td.float32
    assert (x / 2).dtype is td.float32
    assert (td.asarray(np.array([1.0], np.float16)) * 2).dtype is td.float16
    assert (x + td.asarray(np.array(1, np.int16))).dtype is td.int16


@pytest.mark.parametrize("name", ["add", "maximum", "eq", "lt", "bitwise_and", "floor_divide"])
@pytest.mark.parametrize(("dtype", "value"), [("uint8", -1), ("uint8", 256), ("int8", 128), ("int64", 2**63)])
def test_a_scalar_that_does_not_fit_raises(name, dtype, value):
    """Comparisons too, where NumPy answers: the scalar takes the tensor's dtype first."""
    x, function = td.asarray(np.array([1, 2], dtype)), getattr(td, name)
    assert function(x, 1).shape == (2,)
    for _ in range(50):  # planned, cached, native
        with pytest.raises(ScalarOverflowError, match=dtype):
            function(x, value)
        with pytest.raises(OverflowError, match=str(value)):
            function(value, x)


def test_integer_powers():
    x = td.asarray(np.array([-2, -1, 0, 1, 2], np.int32))
    for _ in range(100):  # past the call that makes native code
        assert td.pow(x, 2).tolist() == [4, 1, 0, 1, 4]
        with pytest.raises(ValueError, match="negative power"):
            td.pow(x, -1)
    assert td.pow(x, td.asarray(np.array(-1, np.int32))).tolist() == [0, -1, 0, 1, 0]
    assert td.pow(x, -1.0).dtype is td.float32


def test_halves_round_once():
    x = td.asarray(np.array([1.0, 2.0**-11 + 2.0**-20], np.float16))
    assert float(x.sum()) == float(np.float16(np.float32(x.numpy()).sum()))
    ones = td.asarray(np.ones(4096, np.float16))
    assert float(ones.sum()) == 4096.0  # in float16 it would stop at 2048
    assert float(td.cumsum(ones, 0)[-1]) == 4096.0
    assert float(ones.mean()) == 1.0


def test_shape_errors_name_shapes_on_every_call():
    x, y = td.asarray(np.ones(3, np.float32)), td.asarray(np.ones(4, np.float32))
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"add: shapes \(3,\) and \(4,\) do not broadcast"):
            td.add(x, y)


# --- floating-point errors --------------------------------------------------------------------------------


def test_numpy_error_settings_are_ignored():
    x = td.asarray(np.array([0.0, np.inf, 3e38], np.float32))
    with np.errstate(all="raise"):
        assert (x * 10).tolist() == [0.0, np.inf, np.inf]
        assert np.isnan((x / x).tolist()[:2]).all()
        assert td.log(x).tolist()[0] == -np.inf
        assert (td.asarray(np.array([3], np.int32)) // 0).tolist() == [0]
        assert np.geterr()["over"] == "raise"


def test_quietly_is_reentrant_and_thread_safe():
    """A finalizer may compute while the thread is inside; each thread has a context of its own."""
    with np.errstate(all="raise"):
        assert call_quietly(lambda: call_quietly(np.divide, 1.0, 0.0)) == np.inf
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(call_quietly(np.divide, 1.0, 0.0))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [np.inf] * 4


# --- the price of a call ----------------------------------------------------------------------------------


def test_the_dispatcher_in_python_is_not_slow():
    """A call costs a small multiple of NumPy's own, not a hundred times (it was forty)."""
    x = td.asarray(np.ones(4, np.float32))
    array, add = x.numpy(), td.add.operator
    cases = {
        "numpy": measure.Case("array + array", {"array": array}),
        "ours": measure.Case("add(x, x)", {"add": add, "x": x}),
    }
    times = measure.interleave(cases, rounds=41)
    assert times["ours"].median < 30 * times["numpy"].median
