"""Dtypes as NumPy's dtypes and scalar types, Python's types and names: native calls convert them as Python does."""

import numpy as np
import pytest
import tandem as td
from python_calls import python_calls
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.glue.structs import CODES, DTypeObjects
from tandem.registry.dtypes import as_dtype

native = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)
SPELLINGS = [
    td.float64,
    np.float64,
    np.dtype("float64"),
    "float64",
    "f8",
    float,
    complex,
    int,
    bool,
    "bool",
    np.bool_,
    np.longlong,
    np.dtype("c8"),
    "i2",
    ">f8",
    td.bfloat16,
    "bfloat16",
]
CALLS = {
    "astype": lambda x, dtype: td.astype(x, dtype),
    "to": lambda x, dtype: x.to(dtype),
    "to by name": lambda x, dtype: x.to(dtype=dtype),
    "zeros": lambda x, dtype: td.zeros(3, dtype=dtype),
    "full": lambda x, dtype: td.full((2, 2), 1, dtype=dtype),
    "arange": lambda x, dtype: td.arange(4, dtype=dtype),
    "zeros_like": lambda x, dtype: td.zeros_like(x, dtype=dtype),
}


@pytest.fixture(autouse=True)
def hot():
    with config.override(hot_composites=1, hot_calls=1):
        yield


@pytest.mark.parametrize("dtype", SPELLINGS, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_dtype_spellings_give_one_result(name, dtype):
    if as_dtype(dtype).kind in "bc" and name == "arange":
        pytest.skip("arange has real results")
    x = td.asarray([0.0, 1.5, 2.5])
    wanted = CALLS[name](x, as_dtype(dtype))
    for _ in range(4):
        result = CALLS[name](x, dtype)
        assert result.dtype is as_dtype(dtype)
        assert result.tolist() == wanted.tolist()


@native
@pytest.mark.parametrize("dtype", [d for d in SPELLINGS if d != ">f8" and d not in (td.bfloat16, "bfloat16")])
@pytest.mark.parametrize("name", CALLS)
def test_dtype_spellings_run_natively(name, dtype):
    if as_dtype(dtype).kind in "bc" and name == "arange":
        pytest.skip("arange has real results")
    if as_dtype(dtype) is td.bool and name == "full":
        pytest.skip("Python converts other numbers to bool")
    x = td.ones(3)
    for _ in range(400):
        CALLS[name](x, dtype)
    assert python_calls(CALLS[name], x, dtype)[1:] == []


@native
def test_python_types_follow_the_default_dtype():
    x = td.ones(3)
    for default in (td.float64, td.float32):
        td.set_default_dtype(default)
        assert td.astype(x, float).dtype is default
        assert td.zeros(3, dtype=float).dtype is default
        assert td.zeros_like(x, dtype=float).dtype is default
        assert td.astype(x, complex).dtype is td.result_type(default, td.complex64)


@native
def test_derivatives_of_casts_by_numpy_dtypes():
    x = td.ones(3).requires_grad_()
    for dtype in (np.float64, "float64", float):
        for _ in range(3):
            x.grad = None
            td.sum(td.astype(x, dtype) * 2).backward()
            assert x.grad.dtype is td.float32 and x.grad.tolist() == [2.0] * 3


def test_table_of_dtype_objects_agrees_with_python():
    table = DTypeObjects()
    table.fill()
    assert len(table.kept) > 4 * len(CODES)
    cells = {table.cells[2 * i]: table.cells[2 * i + 1] for i in range(len(table.cells) // 2)}
    for value in table.kept:
        assert CODES[cells[id(value)]] is as_dtype(value), value


def test_to_returns_the_tensor_itself_and_is_recorded():
    x, p = td.asarray([1.0, 2.0]), td.asarray([1.0, 2.0]).requires_grad_()
    for _ in range(4):
        assert x.to(td.float32) is x and x.to("cpu") is x and x.float() is x
        assert x.to(td.float32, copy=True) is not x
        y = p.to(td.float64)
        assert y.requires_grad and td.autograd.grad(y.sum(), [p])[0].dtype is td.float32
        assert p.to(td.float32) is p
