"""``tandem.numpy``: NumPy's default dtypes, and functions that NumPy has under these names."""

import numpy
import pytest
import tandem as td
import tandem.numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

CALLS = {
    "zeros": lambda m: m.zeros(3),
    "ones": lambda m: m.ones((2, 3)),
    "empty": lambda m: m.empty(2),
    "full": lambda m: m.full(2, 1.5),
    "full int": lambda m: m.full(2, 1),
    "full complex": lambda m: m.full(2, 1j),
    "eye": lambda m: m.eye(2),
    "identity": lambda m: m.identity(2),
    "tri": lambda m: m.tri(2),
    "arange": lambda m: m.arange(3),
    "arange float": lambda m: m.arange(0.0, 1.0, 0.5),
    "linspace": lambda m: m.linspace(0, 1, 5),
    "logspace": lambda m: m.logspace(0, 1, 5),
    "geomspace": lambda m: m.geomspace(1, 8, 4),
    "hanning": lambda m: m.hanning(5),
    "kaiser": lambda m: m.kaiser(5, 2.0),
    "asarray": lambda m: m.asarray([[1.0], [2.0]]),
    "asarray int": lambda m: m.asarray([1, True]),
    "asarray bool": lambda m: m.asarray([True]),
    "asarray complex": lambda m: m.asarray([1.0, 2j]),
    "array": lambda m: m.array(1.5),
    "array of arrays": lambda m: m.array([numpy.float32(1.0)]),
    "dtype": lambda m: m.zeros(3, dtype=numpy.float32),
    "python type": lambda m: m.ones(3, float),
    "python type of array": lambda m: m.array([1], dtype=complex),
}


@pytest.mark.parametrize("name", CALLS)
def test_creation_has_the_dtypes_of_numpy(name):
    result, wanted = CALLS[name](np), CALLS[name](numpy)
    assert result.dtype.np == wanted.dtype and result.shape == wanted.shape
    assert "empty" in name or numpy.allclose(result.numpy(), wanted)


def test_tensors_and_arrays_keep_their_dtypes():
    assert np.asarray(td.ones(2)).dtype is np.asarray([td.ones(2)]).dtype is td.float32
    assert np.asarray(numpy.ones(2, numpy.float16)).dtype is td.float16


def test_array_copies():
    array = numpy.ones(2)
    copied, shared = np.array(array), np.asarray(array)
    array[0] = 5.0
    assert copied.tolist() == [1.0, 1.0] and shared.tolist() == [5.0, 1.0]
    assert (
        isinstance(copied, np.ndarray)
        and issubclass(td.Tensor, np.ndarray)
        and np.ndarray.sum is td.Tensor.sum
    )
    assert not isinstance(array, np.ndarray) and np.ndarray((2, 3), dtype=int).dtype is td.int64


def test_creation_is_jitted():
    assert td.jit(lambda x: x + np.ones(2))(td.ones(2)).dtype is td.float64


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.booleans(), st.booleans(), st.booleans())
def test_unique_returns_what_is_asked_for(values, index, inverse, counts):
    result, wanted = (
        np.unique(np.array(values), index, inverse, counts),
        numpy.unique(values, index, inverse, counts),
    )
    if not (index or inverse or counts):
        result, wanted = (result,), (wanted,)
    assert [part.tolist() for part in result] == [part.tolist() for part in wanted]


def test_positions_are_those_of_numpy():
    x = numpy.array([[1, 0], [0, 2]])
    assert np.argwhere(np.array(x)).tolist() == numpy.argwhere(x).tolist()
    assert np.flatnonzero(np.array(x)).tolist() == numpy.flatnonzero(x).tolist()
