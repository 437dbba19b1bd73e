"""``td.set_default_dtype``: the dtype that creation functions give to Python floats."""

import numpy as np
import pytest
import tandem as td

CREATED = {
    "zeros": lambda: td.zeros((2,)),
    "ones": lambda: td.ones(2, 3),
    "empty": lambda: td.empty(2),
    "full": lambda: td.full((2,), 1.5),
    "eye": lambda: td.eye(2),
    "identity": lambda: td.identity(2),
    "tri": lambda: td.tri(2),
    "linspace": lambda: td.linspace(0, 1, 3),
    "arange": lambda: td.arange(0.0, 1, 0.5),
    "asarray": lambda: td.asarray([1.0, 2.0]),
    "scalar": lambda: td.asarray(1.5),
    "logspace": lambda: td.logspace(0, 1, 3),
    "hanning": lambda: td.hanning(3),
    "fftfreq": lambda: td.fft.fftfreq(3),
    "normal": lambda: td.random.normal(td.random.key(0), (2,)),
    "uniform": lambda: td.random.uniform(td.random.key(0), (2,)),
}


@pytest.fixture
def default():
    """Set the default dtype; it is float32 again after the test."""
    yield td.set_default_dtype
    td.set_default_dtype(td.float32)


@pytest.mark.parametrize("name", CREATED)
@pytest.mark.parametrize("dtype", [td.float64, td.bfloat16])
def test_creation_follows_the_default(name, dtype, default):
    call = CREATED[name]
    for _ in range(30):  # hot
        assert call().dtype is td.float32
    default(dtype)
    assert td.get_default_dtype() is dtype
    for _ in range(30):
        assert call().dtype is dtype
    default("float32")
    for _ in range(30):
        assert call().dtype is td.float32


def test_other_values_keep_their_dtypes(default):
    default(td.float64)
    assert td.asarray(np.ones(2, np.float32)).dtype is td.float32 and td.asarray([1, 2]).dtype is td.int64
    assert td.full((2,), 1).dtype is td.int64 and td.arange(3).dtype is td.int64
    assert td.zeros_like(td.asarray(np.ones(2, np.float32))).dtype is td.float32
    assert (
        td.asarray([1j]).dtype is td.full(2, 1j).dtype is td.complex128
        and td.linspace(0, 1j, 3).dtype is td.complex128
    )
    assert td.zeros(2, dtype=td.float16).dtype is td.float16
    assert td.__array_namespace_info__().default_dtypes()["real floating"] is td.float64
    default(td.float16)
    assert td.asarray([1j]).dtype is td.complex64


def test_jitted_functions_are_traced_again(default):
    function = td.jit(lambda x: (td.zeros(3) + x, td.full((2,), 0.5), td.asarray([1.0])))
    x = td.asarray(np.ones(3, np.float16))
    for dtype in (td.float32, td.float64, td.float32, td.float64):
        default(dtype)
        for _ in range(30):
            assert [result.dtype for result in function(x)] == [dtype] * 3
    assert function.cache_info().misses == 2
    default(td.bfloat16)
    assert "the default dtype was" in function.explain(x) and "bfloat16" in function.explain(x)


def test_gradients_under_jit_follow_the_default(default):
    function = td.jit(lambda x: (td.full((), 0.5) * x).sum())
    for dtype in (td.float64, td.float32):
        default(dtype)
        leaf = td.ones(3, dtype=td.float32)
        assert function(leaf).dtype is dtype and td.grad(function)(leaf).dtype is td.float32


def test_wrong_dtypes_raise():
    for wrong in (td.int64, td.complex64, bool):
        with pytest.raises(TypeError, match="real floating"):
            td.set_default_dtype(wrong)
    assert td.get_default_dtype() is td.float32
