"""Reductions and scans with `dtype` in native entries: the dtypes and bits of the Python path, and NumPy's values."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.errors import TandemError

pytestmark = needs_native

SOURCES = ["bool_", "int8", "int64", "float16", "float32", "float64", "complex64"]
TARGETS = ["int64", "float32", "float64", "bfloat16", "complex64"]
FUNCTIONS = [td.sum, td.cumsum]


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_calls=1):
        yield


def outcome(call):
    with np.errstate(all="ignore"):
        try:
            result = call()
        except TandemError as error:
            return type(error)
    return result.dtype, result.shape, result.numpy().tobytes()


@pytest.mark.parametrize("function", share_each_commit(FUNCTIONS, 6), ids=lambda f: f.operator.schema.name)
@pytest.mark.parametrize("source", SOURCES)
def test_dtype_equals_python_path(function, source):
    values = np.random.default_rng(0).integers(0, 4, (5, 6)) * 0.75
    x = td.asarray(values).astype(getattr(td, source))
    for to in TARGETS if source != "complex64" else ["complex64"]:  # no warnings of NumPy's
        for options in ({"axis": 0}, {"axis": 1}, {"axis": -1}):
            kwargs = {"dtype": getattr(td, to), **options}
            expected = outcome(lambda: function.operator(x, **kwargs))  # noqa: B023
            for _ in range(3):
                assert outcome(lambda: function(x, **kwargs)) == expected, (to, options)  # noqa: B023
    assert function(x, 0, dtype=None).dtype is function(x, 0).dtype


def test_entries_take_dtype_however_it_is_spelled():
    x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    for function in (td.sum, td.cumsum):
        for _ in range(4):
            function(x, axis=0, dtype=td.float64)
        stub = fastpath.stubs().by_operator[function.operator]
        before = stub.calls
        for dtype in (td.float64, np.float64, "float64", np.dtype(np.float64)):
            assert function(x, 0, dtype=dtype).dtype is td.float64
        assert function(x, dtype=td.float64, axis=1).dtype is td.float64
        assert stub.calls == before + 5


def test_dtype_with_gradients_and_wrong_arguments():
    x = td.asarray([1.0, 2.0]).requires_grad_()
    for _ in range(4):
        total = td.sum(x, dtype=td.float64)
        assert total.dtype is td.float64 and td.autograd.grad(total, [x])[0].dtype is td.float32
        for call in (
            lambda: td.sum(x, dtype="no dtype"),
            lambda: td.sum(x, dtype=3),
            lambda: td.max(x, dtype=td.float64),
            lambda: td.argmax(x, dtype=td.int32),
            lambda: td.cumsum(x, 0, keepdims=True),
            lambda: td.sum(x, 0, axis=0),
        ):
            with pytest.raises((TandemError, TypeError)):
                call()
