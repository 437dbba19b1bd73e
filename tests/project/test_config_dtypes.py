"""Flags and data types."""

import pickle

import numpy as np
import pytest
from tandem import config
from tandem.errors import DTypeError, ScalarOverflowError, ValueArgumentError
from tandem.registry import dtypes as dt


def test_override_restores_after_an_exception():
    before = config.flags.hot_calls
    with pytest.raises(ZeroDivisionError), config.override(hot_calls=5):
        assert config.flags.hot_calls == 5
        raise ZeroDivisionError
    assert config.flags.hot_calls == before


@pytest.mark.parametrize("values", [{"nope": 1}, {"hot_calls": "3"}, {"native": 1}, {"hot_calls": 0}])
def test_wrong_flags(values):
    before = config.flags.hot_calls
    with pytest.raises(ValueArgumentError), config.override(**values):
        pass
    assert config.flags.hot_calls == before


def test_wrong_environment(monkeypatch):
    monkeypatch.setenv("TANDEM_NATIVE", "perhaps")
    with pytest.raises(ValueArgumentError, match="TANDEM_NATIVE"):
        config.Flags()


REAL = [d for d in dt.ALL if d is not dt.bfloat16 and d.kind != "c"]


@pytest.mark.parametrize("one", REAL, ids=str)
@pytest.mark.parametrize("two", REAL, ids=str)
def test_promotion_is_numpys_within_the_standard(one, two):
    kinds = {one.kind, two.kind}
    if kinds == {"i", "u"} and dt.uint64 in (one, two):
        with pytest.raises(DTypeError, match="uint64"):
            dt.promote(one, two)
    elif kinds & {"i", "u"} and "f" in kinds:
        assert dt.promote(one, two) is (one if one.kind == "f" else two)
    else:
        assert dt.promote(one, two).np == np.promote_types(one.np, two.np)
    if not (kinds == {"i", "u"} and dt.uint64 in (one, two)):
        assert dt.promote(one, two) is dt.promote(two, one)


def test_complex_and_half_promotion():
    assert dt.promote(dt.float64, dt.complex64) is dt.complex128
    assert dt.promote(dt.float16, dt.bfloat16) is dt.float32
    assert dt.promote(dt.bfloat16, dt.bfloat16) is dt.bfloat16


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (dt.int8, 3, dt.int8),
        (dt.bool_, 3, dt.int64),
        (dt.bool_, True, dt.bool_),
        (dt.int8, 0.5, dt.float32),
        (dt.float16, 0.5, dt.float16),
        (dt.float64, 1j, dt.complex128),
        (dt.int8, 1j, dt.complex64),
    ],
)
def test_python_scalars_are_weak(dtype, value, expected):
    assert dt.promote_scalar(dtype, value) is expected


def test_scalar_out_of_range():
    with pytest.raises(OverflowError, match="300"):
        dt.promote_scalar(dt.uint8, 300)
    with pytest.raises(ScalarOverflowError):
        dt.promote_scalar(dt.uint8, -1)


@pytest.mark.parametrize(
    "bad", [object, "float33", np.dtype("O"), np.dtype("U3"), np.dtype("M8[s]"), None, 3, "no"]
)
def test_unknown_dtypes(bad):
    with pytest.raises(DTypeError, match="dtypes are"):
        dt.as_dtype(bad)


def test_dtypes_are_single_objects():
    for dtype in dt.ALL:
        assert dt.as_dtype(dtype.name) is dtype is dt.as_dtype(dtype.np) is pickle.loads(pickle.dumps(dtype))
    assert (
        dt.as_dtype(">f4") is dt.float32 and dt.as_dtype(float) is dt.float32 and dt.as_dtype(int) is dt.int64
    )
