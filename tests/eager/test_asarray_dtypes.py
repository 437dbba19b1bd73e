"""``asarray`` with a dtype: the native entry has the results and the errors of the Python function."""

import itertools

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import TandemError

VALUES = {
    "bool": True,
    "int": 3,
    "negative": -3,
    "large": 2**53 + 1,
    "huge": 2**70,
    "float": 2.5,
    "tiny": 1e-300,
    "wide": 1e300,
    "nan": float("nan"),
    "complex": 1 - 2j,
    "ints": [1, 2, 3],
    "large ints": [2**53 + 1, 2**60 + 1, -(2**62) - 3],
    "bools": [True, False],
    "mixed": [1, 2.5, True],
    "nested": [[1, 2], (3, 4.5)],
    "complexes": [1j, 2, 3.5],
    "ragged": [[1, 2], [3]],
    "empty": [],
    "text": ["a"],
    "array": np.arange(6, dtype=np.int32).reshape(2, 3),
    "floats": np.linspace(-2, 300, 7),
    "scalar": np.float32(1.5),
    "strided": np.arange(10.0)[::3],
}
DTYPES = [
    None,
    bool,
    int,
    float,
    complex,
    td.bool,
    td.int8,
    td.uint8,
    td.int32,
    td.int64,
    td.uint64,
    td.float16,
]
DTYPES += [
    td.bfloat16,
    td.float32,
    td.float64,
    td.complex64,
    td.complex128,
    np.float64,
    np.dtype("f4"),
    "float64",
]
FUNCTIONS = {"td": td.asarray, "numpy": tnp.asarray}


def outcome(function, value, dtype, by_name):
    try:
        result = function(value, dtype=dtype) if by_name else function(value, dtype)
    except TandemError as error:
        return type(error)
    return result.dtype, result.shape, result.numpy().tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("value", VALUES)
def test_native_calls_equal_those_of_python(name, value):
    function = FUNCTIONS[name]
    written = getattr(function, "__wrapped__", function)
    for _ in range(td.config.flags.hot_calls + td.config.flags.hot_composites):
        function(1.0)
    for dtype, by_name in itertools.product(DTYPES, (False, True)):
        wanted = outcome(written, VALUES[value], dtype, by_name)
        assert outcome(function, VALUES[value], dtype, by_name) == wanted, dtype


def test_tensors_of_the_dtype_are_returned():
    x = td.asarray([1.0, 2.0])
    for _ in range(50):
        assert td.asarray(x, td.float32) is x
        assert td.asarray(x, dtype=td.float64).dtype is td.float64
    leaf = td.asarray([1.0], requires_grad=True)
    assert td.asarray(leaf, td.float32) is leaf
    assert td.asarray(leaf, td.float64).requires_grad


CALLS = [
    lambda n: n.zeros(3),
    lambda n: n.zeros((2, 3)),
    lambda n: n.ones((2,)),
    lambda n: n.eye(3),
    lambda n: n.identity(2),
    lambda n: n.arange(4),
    lambda n: n.arange(4.0),
    lambda n: n.full(3, 2.5),
    lambda n: n.full((2, 3), 7),
    lambda n: n.full((2,), True),
    lambda n: n.full((2, 2), [1, 2]),
    lambda n: n.full((2, 2), [1.5, 2], np.float32),
    lambda n: n.full(3, np.float32(2)),
    lambda n: n.full(3, 1j),
    lambda n: n.full(2, 3, float),
    lambda n: n.array([1.5, 2]),
    lambda n: n.array([[1, 2], [3, 4]]),
    lambda n: n.array([]),
    lambda n: n.array([1, 2], float),
    lambda n: n.array(np.float32(2)),
    lambda n: n.asarray([True, False]),
    lambda n: n.asarray(3),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_creation_is_that_of_numpy(number):
    wanted = CALLS[number](np)
    for _ in range(20):
        found = CALLS[number](tnp)
    assert found.dtype.np == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_arrays_are_copied():
    source = np.arange(3.0)
    x = td.asarray(source)
    for made in (tnp.array(source), tnp.array(x)):
        made[0] = 9.0
    assert source[0] == 0.0
    assert tnp.full((2, 2), x[:2]).is_contiguous()


def test_values_that_are_broadcast_take_the_options():
    assert tnp.full((2, 2), [1, 2], device="meta").device == "meta"
    assert tnp.full((2, 2), [1, 2], complex).dtype is td.complex128
