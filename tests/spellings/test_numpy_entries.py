"""Functions of ``tandem.numpy`` have the native entries of the operators' functions, and take lists."""

import copy
import pickle

import pytest
import tandem as td
import tandem.numpy as np
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.registry import native_type

needs_native = pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")
X = td.asarray([1.0, 4.0, 9.0])


@needs_native
@pytest.mark.parametrize("name", ["sqrt", "add", "cumsum", "matmul", "maximum", "exp"])
def test_hot_functions_have_the_native_entry(name):
    function = getattr(np, name)
    args = (X,) * len([a for a in function.schema.positional if a.type.core == "Tensor"])
    with config.override(hot_calls=1):
        for _ in range(4):
            function(*args)
    assert native_type.entry_of(function)


@pytest.mark.parametrize("hot", [False, True])
def test_lists_and_numbers_are_taken_hot_and_cold(hot):
    with config.override(hot_calls=1 if hot else 10**6):
        for _ in range(5):
            assert np.sqrt(X).tolist() == [1, 2, 3]
            assert np.sqrt([1.0, 4.0]).tolist() == [1, 2]
            assert np.sqrt(2).dtype is td.float64
            assert np.add(X, [1, 2, 3]).tolist() == [2, 6, 12]
            assert np.add(X, 1, dtype=float).dtype is td.float64
            assert np.add([1], 2).dtype is td.int64
            with pytest.raises(td.errors.ArgumentError):
                np.sqrt("text")
            with pytest.raises(td.errors.ShapeError):
                np.add(X, [1, 2])


@needs_native
def test_functions_follow_a_change_of_the_kernel():
    with config.override(hot_calls=1):
        for _ in range(4):
            np.exp2(X)
        with td.Library("td", "IMPL") as library:
            library.impl("exp2", lambda x: x * 0, "CPU", allow_override=True)
            assert np.exp2(X).tolist() == [0, 0, 0]
        assert np.exp2(X).tolist() == [2, 16, 512]


def test_options_that_are_none_are_as_if_not_given():
    assert np.mean(X, out=None).item() == td.mean(X, out=None).item() == pytest.approx(14 / 3)
    assert td.reshape(X, (3, 1), copy=None).shape == np.reshape(X, (3, 1), copy=None).shape == (3, 1)
    out = td.zeros(3)
    assert td.sqrt(X, out=out) is out and out.tolist() == [1, 2, 3]


def test_functions_are_copied_and_pickled():
    for other in (copy.copy(np.add), pickle.loads(pickle.dumps(np.add))):
        assert other([1, 2], [3, 4]).tolist() == [4, 6]
    assert np.add.__name__ == "add" and "add" in repr(np.add)
    assert np.add.outer(X, X).shape == (3, 3)
