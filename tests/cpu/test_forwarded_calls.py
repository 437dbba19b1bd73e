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


def test_errors_are_those_of_the_function():
    for _ in range(4):
        with pytest.raises(td.errors.ArgumentError, match="vecdot"):
            np.vecdot(x, "ab")
        with pytest.raises(IndexError, match="out of bounds"):
            np.cumulative_sum(x, axis=7)
        with pytest.raises(td.errors.ArgumentError):
            np.searchsorted(x[0], x, nothing=1)


def test_references_do_not_drift():
    calls = [lambda: np.vecdot(x, x), lambda: np.vecdot([1.0], [2.0]), lambda: np.mean(x, axis=0)]
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
