"""Quotients and remainders of integers by constants: those of NumPy, without a division."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def numbers(dtype):
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.min // 2, info.max // 2, info.max - 1, info.max]
    return np.array([*ends, *range(max(info.min, -70), 70), 101, 127], dtype)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 10, 64, 100, -1, -2, -3, -64, 0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_are_those_of_numpy(dtype, divisor):
    if divisor < 0 and dtype.startswith("u"):
        pytest.skip("negative divisors of unsigned integers have another dtype")
    x = numbers(dtype)
    compiled = td.jit(lambda x: (x // divisor, x % divisor, td.fmod(x, divisor), (x // divisor).sum()))
    single = td.jit(lambda x: (x // divisor, x % divisor, td.fmod(x, divisor)))
    with np.errstate(all="ignore"):
        wanted = [f(x, np.array(divisor, dtype)) for f in (np.floor_divide, np.remainder, np.fmod)]
    for found, want in zip(compiled(td.asarray(x)), wanted):
        np.testing.assert_array_equal(found.numpy(), want)
    for at in range(0, len(x), 9):
        for found, want in zip(single(td.asarray(x[at])), wanted):
            assert found.numpy() == want[at]


@needs_native
@pytest.mark.parametrize("divisor", [64, 10])
def test_constants_are_not_divided_by_in_floats(divisor):
    text = td.jit(lambda x: (x // divisor, x % divisor)).lower(td.asarray(np.zeros(99, np.int32))).llvm_ir()
    assert "fdiv" not in text
