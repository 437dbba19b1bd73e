"""``zeros``, ``ones`` and ``full`` by native code: sizes, dtypes and defaults are those of the Python functions."""

import itertools
import pickle

import pytest
import tandem as td
import tandem.numpy as np
from tandem import config

ARGUMENTS = [
    *[(), (3,), ((2, 3),), ([2, 3],), (2, 3), (2, 3, 4), (0, 5), ((),), (True,), (2, True)],
    *[(2, td.int8), ((2, 3), td.int8), (2, 3, td.int8), (2, float), (2, "int8"), (2, "x"), (2, int, 3)],
    *[(-1,), (2, -1), (2**70,), (2, 2**70), (10**6, 10**6), (1,) * 70, (2, None), (None,), (2.5,), (2, 2.5)],
    *[((2,), 3), (3, (2,)), (2, 3, 4, 5, float)],
]
OPTIONS = [
    {},
    {"dtype": td.float64},
    {"dtype": float},
    {"dtype": None},
    {"dtype": "int16"},
    {"device": "cpu"},
]


def outcome(function, args, options):
    try:
        result = function(*args, **options)
    except Exception as error:
        return type(error)
    return result.dtype, result.shape, result.numpy().tobytes()


@pytest.mark.parametrize("name", ["zeros", "ones", "full"])
@pytest.mark.parametrize("namespace", [td, np], ids=["td", "numpy"])
def test_hot_calls_create_what_cold_ones_do(namespace, name):
    function = getattr(namespace, name)
    calls = list(itertools.product(ARGUMENTS, OPTIONS))
    with config.override(hot_calls=10**9):
        cold = [outcome(function, *call) for call in calls]
    with config.override(hot_calls=1):
        for _ in range(3):
            assert [outcome(function, *call) for call in calls] == cold


def test_default_dtypes_are_numpys():
    for _ in range(40):
        assert np.zeros(2).dtype is np.ones((2, 1)).dtype is np.zeros(2, float).dtype is td.float64
        assert np.zeros(2, complex).dtype is np.ones(2, dtype=complex).dtype is td.complex128
        assert td.zeros(2).dtype is td.zeros(2, float).dtype is td.float32
        assert np.arange(0.0, 1.0, 0.5).dtype is np.arange(2, 3.5).dtype is td.float64
        assert np.arange(2, 5).dtype is td.int64
    assert pickle.loads(pickle.dumps(np.zeros)) is np.zeros


def test_arrays_of_counts_and_positions_reach_the_kernels():
    x, counts = td.asarray([[1, 2], [3, 4]]), td.asarray([2, 0])
    for _ in range(40):
        assert td.repeat(x, counts, 0).tolist() == [[1, 2], [1, 2]]
        assert np.insert(x, td.asarray([0, 2]), 9, 0).tolist() == [[9, 9], [1, 2], [3, 4], [9, 9]]
        assert np.delete(x, td.asarray([1]), 1).tolist() == [[1], [3]]
    with pytest.raises(td.errors.ShapeError):
        td.repeat(x, td.asarray([1, 2, 3]), 0)
    with pytest.raises(td.errors.UnsupportedError):
        td.jit(lambda x, n: td.repeat(x, n, 0))(x, counts)
