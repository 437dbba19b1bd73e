"""`arange`, `linspace` and `eye` of ever new numbers run native code, with the values of NumPy."""

import itertools
import math

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from hypothesis import given
from hypothesis import strategies as st
from tandem.backends.cpu import fastpath as native_layer

NUMBERS = (0, 1, -1, 3, 7, -20, 2.5, -0.3, 0.1, 1e-3, 40.0, -0.0)
DTYPES = {
    None: None,
    td.float32: "f4",
    td.float64: "f8",
    td.int32: "i4",
    td.int64: "i8",
    td.int8: "i1",
    td.float16: "f2",
}


def arange_of(start, stop, step, dtype):
    """The values in int64 or float64, rounded once."""
    length = max(0, math.ceil((stop - start) / step))
    kind = np.int64 if isinstance(start, int) and isinstance(step, int) else np.float64
    return (np.arange(length, dtype=kind) * step + start).astype(dtype)


def test_aranges_of_all_bounds():
    for start, stop, step in itertools.product(NUMBERS, NUMBERS, NUMBERS):
        if step == 0 or abs((stop - start) / step) > 1e5:
            continue
        whole = all(isinstance(x, int) for x in (start, stop, step))
        for function, wide in ((td.arange, "f4"), (tnp.arange, "f8")):
            result = function(start, stop, step)
            np.testing.assert_array_equal(
                result.numpy(), arange_of(start, stop, step, "i8" if whole else wide), strict=True
            )


@given(
    st.integers(-50, 50), st.integers(-50, 50), st.integers(-9, 9).filter(bool), st.sampled_from([*DTYPES])
)
def test_aranges_of_integers(start, stop, step, dtype):
    expected = np.arange(start, stop, step).astype(DTYPES[dtype] or "i8")
    np.testing.assert_array_equal(td.arange(start, stop, step, dtype=dtype).numpy(), expected, strict=True)
    if (start, step) == (0, 1):
        np.testing.assert_array_equal(td.arange(stop, dtype=dtype).numpy(), expected, strict=True)


@given(
    st.floats(-1e6, 1e6) | st.integers(-9, 9),
    st.floats(-1e6, 1e6) | st.integers(-9, 9),
    st.integers(0, 40),
    st.sampled_from([None, td.float32, td.float64]),
)
def test_linspaces_round_as_numpy(start, stop, num, dtype):
    expected = np.linspace(start, stop, num)
    result = td.linspace(start, stop, num, dtype=dtype)
    np.testing.assert_array_equal(result.numpy(), expected.astype(DTYPES[dtype] or "f4"), strict=True)
    np.testing.assert_array_equal(tnp.linspace(start, stop, num).numpy(), expected, strict=True)


def test_eyes_of_all_sizes():
    for rows, columns, dtype in itertools.product(range(5), range(5), DTYPES):
        expected = np.eye(rows, columns, dtype=DTYPES[dtype] or "f4")
        np.testing.assert_array_equal(td.eye(rows, columns, dtype=dtype).numpy(), expected, strict=True)
        np.testing.assert_array_equal(tnp.eye(rows).numpy(), np.eye(rows), strict=True)
        np.testing.assert_array_equal(
            td.eye(rows, k=1, dtype=dtype).numpy(), np.eye(rows, k=1, dtype=DTYPES[dtype] or "f4")
        )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: td.arange(0, 5, 0), ValueError),
        (lambda: td.arange(0.0, 5.0, 0.0), ValueError),
        (lambda: td.arange(0.0, math.inf), ValueError),
        (lambda: td.arange(math.nan), ValueError),
        (lambda: td.arange(0, 2**62), (ValueError, MemoryError)),
        (lambda: td.arange(0, 1e300), (ValueError, MemoryError)),
        (lambda: td.arange(), TypeError),
        (lambda: td.arange("a"), TypeError),
        (lambda: td.arange(3, dtype=td.bool_), TypeError),
        (lambda: td.arange(1j), TypeError),
        (lambda: td.linspace(0, 1, -1), ValueError),
        (lambda: td.linspace(0, 1, 2.5), TypeError),
        (lambda: td.linspace(0, 1), TypeError),
        (lambda: td.eye(-1), ValueError),
        (lambda: td.eye(2, -1), ValueError),
        (lambda: td.eye(2.0), TypeError),
        (lambda: td.eye(2**40, 2**40), (ValueError, MemoryError)),
    ],
)
def test_bad_arguments_raise_each_time(call, error):
    for n in range(40):
        td.arange(n), td.linspace(0, n, 3), td.eye(n)
        with pytest.raises(error):
            call()


@pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on")
def test_new_numbers_do_not_reach_python(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("Python ran the call")

    for function in (td.arange, td.linspace, td.eye):
        for n in range(2, 40):
            function(n, n + 2, 5) if function is not td.eye else function(n)
        monkeypatch.setattr(td.registry.operator.Operator, "dispatch", refuse)
        for n in range(40, 80):
            function(n, n + 0.5, 3) if function is not td.eye else function(n)
        monkeypatch.undo()


def test_large_values_are_exact():
    np.testing.assert_array_equal(td.arange(2**62, 2**62 + 5).numpy(), np.arange(2**62, 2**62 + 5))
    np.testing.assert_array_equal(
        td.arange(-(2**53), 9 - 2**53, 3).numpy(), np.arange(-(2**53), 9 - 2**53, 3)
    )
    assert td.arange(3_000_000)[-1].item() == 2_999_999


FILLS = [
    lambda **options: td.zeros((2, 3), **options),
    lambda **options: td.ones(4, **options),
    lambda **options: td.full((3,), 2, **options),
    lambda **options: td.arange(7, **options),
    lambda **options: td.linspace(0, 2, 5, **options),
    lambda **options: td.eye(3, **options),
    lambda **options: tnp.zeros(3, **options),
]


@pytest.mark.parametrize("call", FILLS)
def test_names_of_the_cpu_are_taken(call):
    expected = call(dtype=td.float64).numpy()
    for n in range(300):
        for device in ("cpu", None, td.ones(2).device, "".join(("c", "pu"))):
            result = call(device=device, dtype=td.float64) if n % 2 else call(dtype=td.float64, device=device)
            assert result.dtype is td.float64 and np.array_equal(result.numpy(), expected)
        for device in ("gpu", 5, "cp", "cpu\0", b"cpu", "\udc80"):
            with pytest.raises((RuntimeError, TypeError, ValueError)):
                call(device=device)
        assert call(device="meta").device == "meta"
