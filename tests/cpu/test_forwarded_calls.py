"""Functions of ``tandem.numpy`` whose native entry passes calls to an operator, which may refuse the arguments."""

import gc
import sys

import numpy
import pytest
import tandem as td
import tandem.numpy as np
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.registry import native_type

x = td.asarray(numpy.random.default_rng(0).standard_normal((3, 4)))
FUNCTIONS = {  # a function, and a call of it with a list of numbers
    "cumulative_sum": (lambda f: f(x, axis=0), lambda f: f([1.0, 2.0])),
    "nan_to_num": (lambda f: f(x), lambda f: f([1.0, float("nan")])),
    "searchsorted": (lambda f: f(x[0], x), lambda f: f([1.0, 2.0], [1.5])),
    "vecdot": (lambda f: f(x, x), lambda f: f([1.0, 2.0], [3.0, 4.0])),
    "amin": (lambda f: f(x, 1), lambda f: f([1.0, 2.0])),
    "mean": (lambda f: f(x, 0), lambda f: f([1.0, 2.0])),
    "var": (lambda f: f(x, axis=1, keepdims=True), lambda f: f([1.0, 2.0])),
    "std": (lambda f: f(x), lambda f: f([1.0, 2.0])),
    "sort": (lambda f: f(x, 0), lambda f: f([2.0, 1.0])),
    "argsort": (lambda f: f(x, descending=True), lambda f: f([2.0, 1.0])),
    "concatenate": (lambda f: f([x, x], axis=1), lambda f: f([[1.0], [2.0, 3.0]])),
    "where": (lambda f: f(x > 0, x, 1), lambda f: f([True, False], [1, 2], 3.0)),
    "repeat": (lambda f: f(x, 2, 0), lambda f: f([1, 2], 2)),
}


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1, hot_composites=1):
        yield


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hot_calls_return_the_results_of_the_first(name):
    on_tensor, on_list = FUNCTIONS[name]
    function = getattr(np, name)
    with config.override(hot_calls=10**9, hot_composites=10**9):
        wanted, listed = on_tensor(function), on_list(function)
    for _ in range(5):
        result = on_tensor(function)
        assert result.dtype is wanted.dtype and result.numpy().tobytes() == wanted.numpy().tobytes()
        again = on_list(function)
        assert again.dtype is listed.dtype and again.tolist() == listed.tolist()
    if not native_layer.why_off():
        assert native_type.entry_of(function)


def test_options_are_those_of_the_function():
    array = x.numpy()
    for _ in range(4):
        assert numpy.allclose(np.var(x, ddof=1), array.var(ddof=1))
        assert numpy.allclose(np.std(x, 0, None, None, 1), array.std(0, ddof=1))
        assert numpy.allclose(np.mean(x, where=x > 0), array.mean(where=array > 0))
        assert numpy.allclose(np.sum(x, initial=2.0), array.sum(initial=2.0))
        assert np.mean(x, dtype=numpy.float32).dtype is td.float32
        assert np.cumulative_sum(np.array([1, 2]), dtype=numpy.float32).dtype is td.float32
        out = td.zeros(4, dtype=td.float64)
        assert np.mean(x, 0, out=out) is out and numpy.allclose(out, array.mean(0))


def test_orders_of_sort_are_those_of_numpy():
    array = x.numpy()
    for _ in range(4):
        for function, expected in ((np.sort, numpy.sort), (np.argsort, numpy.argsort)):
            assert numpy.array_equal(function(x), expected(array))
            assert numpy.array_equal(function(x, None), expected(array, None))
            assert numpy.array_equal(function(x, axis=None), expected(array, axis=None))
            assert numpy.array_equal(function(x, 0, "stable"), expected(array, 0, "stable"))
            assert numpy.array_equal(function(x, 0, None, None), expected(array, 0))
            assert numpy.array_equal(function(x, kind="heapsort", axis=0), expected(array, 0))
            assert numpy.array_equal(function(x, stable=True), expected(array, stable=True))
            assert numpy.array_equal(
                function(x, 0, descending=True), expected(-array, 0) * (-1) ** (function is np.sort)
            )
            with pytest.raises(IndexError):
                function(x, 2)


def test_joins_have_the_dtype_that_is_asked_for():
    for _ in range(4):
        assert np.concatenate([x, x], dtype=td.float32).dtype is td.float32
        assert np.concatenate((x, x.numpy()), 1, casting="safe").shape == (3, 8)
        assert np.stack([x, x], axis=2, dtype="f4", casting="same_kind").dtype is td.float32
        out = td.zeros((6, 4), dtype=td.float64)
        assert np.concatenate([x, x], out=out) is out and numpy.array_equal(out[3:], x)
        with pytest.raises(td.errors.DTypeError):
            np.concatenate([x, x], dtype=td.int64)
        with pytest.raises(td.errors.DTypeError):
            np.concatenate([x, x], dtype=td.float32, casting="safe")
        with pytest.raises(ValueError):
            np.concatenate([x, x[0]])


NUMBERS = [True, False, 2, -(2**40), 2**70, 0.5, float("inf"), 1j]
OTHERS = [
    *NUMBERS,
    td.asarray([1, 2]),
    td.asarray([1.0, 2.0]),
    td.asarray([True, False]),
    td.asarray([1j, 2]),
]


def test_numbers_that_where_selects_have_dtypes_of_numpy():
    mask = td.asarray([True, False])

    def call(one, other):
        try:
            result = np.where(mask, one, other)
        except Exception as error:
            return type(error)
        return result.dtype, result.tolist()

    pairs = [pair for one in NUMBERS for other in OTHERS for pair in ((one, other), (other, one))]
    with config.override(hot_calls=10**9, hot_composites=10**9):
        expected = [call(*pair) for pair in pairs]
    for _ in range(3):
        assert [call(*pair) for pair in pairs] == expected
    for one, other in ((1.0, 0.0), (1, 0), (True, False), (1, 0.5), (True, 2), (1j, 1)):
        assert np.where(mask, one, other).dtype.np == numpy.where(mask.numpy(), one, other).dtype
    if not native_layer.why_off():
        before = np.where.native_record.calls
        np.where(mask, 1.0, 0.0)
        assert np.where.native_record.calls == before + 1


def test_errors_are_those_of_the_function():
    for _ in range(4):
        with pytest.raises(td.errors.ArgumentError, match="vecdot"):
            np.vecdot(x, "ab")
        with pytest.raises(IndexError, match="out of bounds"):
            np.cumulative_sum(x, axis=7)
        with pytest.raises(td.errors.ArgumentError):
            np.searchsorted(x[0], x, nothing=1)


def test_references_do_not_drift():
    mask = x > 0
    calls = [lambda: np.vecdot(x, x), lambda: np.vecdot([1.0], [2.0]), lambda: np.mean(x, axis=0)]
    calls += [lambda: np.where(mask, 1.0, 0.0), lambda: np.sort(x), lambda: np.concatenate([x, x])]
    for call in calls:
        for _ in range(300):
            call()
    gc.collect()
    before = [sys.getrefcount(value) for value in (x, np.vecdot, np.mean, td.errors.ArgumentError)]
    for call in calls:
        for _ in range(500):
            call()
    gc.collect()
    assert [sys.getrefcount(value) for value in (x, np.vecdot, np.mean, td.errors.ArgumentError)] == before


def test_modes_see_forwarded_calls():
    names = []

    class Log(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            names.append(op.schema.name)
            return op(*args, **kwargs)

    for _ in range(4):
        np.cumulative_sum(x, axis=0)
    with Log():
        np.cumulative_sum(x, axis=0)
    assert names
