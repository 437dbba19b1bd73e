"""A dtype equals the types and names of NumPy that mean it."""

import gc
import weakref

import numpy as np
import pytest
import tandem as td

MEANT = {
    "float64": [float, np.float64, np.dtype("f8"), "float64", "d"],
    "float32": [np.float32, "f4", np.dtype(np.float32)],
    "int64": [int, np.int64, "int64"],
    "uint8": [np.uint8, "u1"],
    "bool": [bool, np.bool_, "?"],
    "complex128": [complex, np.complex128],
    "bfloat16": [],
}


@pytest.mark.parametrize("name", MEANT)
def test_equality(name):
    dtype = td.asarray([1]).astype(name).dtype
    others = [value for other, values in MEANT.items() if other != name for value in values]
    others = [value for value in others if value is not float and value is not complex]
    assert all(dtype == value and value == dtype for value in MEANT[name])
    assert not any(
        dtype == value or value == dtype for value in (*others, None, 3, object, "no dtype", [float])
    )
    assert {dtype: 1}[getattr(td, "bool_" if name == "bool" else name)] == 1


def test_types_of_python_mean_the_dtypes_that_functions_make_of_them():
    x = td.asarray([1])
    assert x.astype(float).dtype == float and x.astype(td.float64).dtype == float
    assert x.astype(complex).dtype == complex and x.astype(td.complex128).dtype == complex
    assert x.astype(td.float16).dtype != float and x.astype(float).dtype != "float64"


def test_dtypes_differ_from_each_other():
    assert td.float32 != td.float64
    assert td.float32 == td.float32


class Configured:
    dtype = td.float32


def test_objects_of_other_meanings_are_not_equal_and_not_kept():
    for other in (
        Configured,
        Configured(),
        ",",
        "2]",
        "\ud800",
        "a,b",
        ">f4",
        np.dtype(">f4"),
        [td.float32],
        object(),
    ):
        assert td.float32 != other
    x = td.ones(3)
    kept = weakref.ref(x)
    assert td.float32 != x
    del x
    gc.collect()
    assert kept() is None
    assert td.bfloat16 == "bfloat16" and td.bfloat16 != "float32"
