"""Updates of many single elements: their indices are checked in blocks."""

import re

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import errors
from tandem.backends.cpu.codegen.checked_blocks import BLOCK, MIN_POINTS

RANDOM = np.random.default_rng(0)
COUNTS = [1, MIN_POINTS - 1, MIN_POINTS, MIN_POINTS + 1, MIN_POINTS + BLOCK - 1, 10 * BLOCK + 5]
PROGRAMS = {
    "count": lambda x, k: x.at[k].add(1.0),
    "last": lambda x, k: x.at[k].set(td.arange(k.shape[0], dtype=td.float32)),
    "largest": lambda x, k: x.at[k].max(td.arange(k.shape[0], dtype=td.float32)),
    "shifted": lambda x, k: x.at[k * 2 - 3].add(1.0),
    "two axes": lambda x, k: x.reshape(20, 5).at[k % 20, k % 5].add(0.5),
    "rows of a matrix": lambda x, k: x.reshape(20, 5).at[k // 5, 2].add(0.5),
    "read too": lambda x, k: (x * 2).at[k].add((x * 2)[k]),
}
SIZES = {"shifted": (2, 50)}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_return_what_eager_calls_return(name, count):
    low, high = SIZES.get(name, (0, 100))
    x = td.asarray(RANDOM.normal(size=100).astype(np.float32))
    for first in (low, low - 50 if name != "shifted" else low):  # negative indices count from the end
        k = td.asarray(RANDOM.integers(first, high - (first < low), count))
        np.testing.assert_array_equal(td.jit(PROGRAMS[name])(x, k).numpy(), PROGRAMS[name](x, k).numpy())


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("size", [100, 300])
def test_dtypes_of_indices(dtype, size):
    x, k = td.zeros(size), td.asarray(RANDOM.integers(0, 100, 1000).astype(dtype))
    np.testing.assert_array_equal(
        td.jit(PROGRAMS["count"])(x, k).numpy(), np.bincount(k.numpy(), minlength=size)
    )


@pytest.mark.parametrize("bad", [100, -101, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("at", [0, 5, BLOCK - 1, BLOCK, 2 * BLOCK + 3, 10 * BLOCK + 4])
def test_first_index_out_of_bounds_is_reported(bad, at):
    k = np.zeros(10 * BLOCK + 7, np.int64)
    k[at], k[-1] = bad, 777
    x, k = td.zeros(100), td.asarray(k)
    messages = []
    for call in (PROGRAMS["count"], td.jit(PROGRAMS["count"])):
        with pytest.raises(errors.OutOfBoundsError) as fault:
            call(x, k)
        messages.append(str(fault.value))
    assert messages[0] == messages[1]
    assert not x.numpy().any()


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
def test_extreme_indices_are_out_of_bounds(dtype):
    for bad in {np.iinfo(dtype).min, np.iinfo(dtype).max} - {0}:
        k = np.zeros(10 * BLOCK, dtype)
        k[3] = bad
        with pytest.raises(errors.OutOfBoundsError):
            td.jit(PROGRAMS["count"])(td.zeros(100), td.asarray(k))


@needs_native
def test_blocks_are_checked_in_vectors():
    def text(count):
        k = td.asarray(np.zeros(count, np.int32))
        return td.jit(PROGRAMS["count"]).lower(td.zeros(100), k).llvm_ir()

    assert re.search(r"or <\d+ x i32>", text(10_000))
    assert not re.search(r"or <\d+ x i32>", text(MIN_POINTS - 1))
