"""The native entry of `bincount` returns and raises what the dispatcher does."""

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath
from tandem.backends.cpu.fastpath.entries.rt_kernels import KernelEntry
from tandem.errors import TandemError

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
WEIGHTS = ["float32", "float64", "float16", "bool", "int8", "int64", "uint32", "uint64"]


def run(function, *args, **kwargs):
    try:
        result = function(*args, **kwargs)
    except TandemError as fault:
        return type(fault), str(fault)
    return result.dtype, result.shape, result.numpy().tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_counts_are_those_of_the_dispatcher(dtype):
    rng = np.random.default_rng(len(dtype))
    for trial in range(200):
        size, least = int(rng.integers(0, 20)), int(rng.integers(0, 40))
        values = rng.integers(-1 if dtype[0] == "i" and trial % 9 == 0 else 0, 30, size).astype(dtype)
        weights = (rng.normal(size=size) * 20).astype(WEIGHTS[trial % 8])
        if trial % 3 == 0:
            values, weights = np.repeat(values, 2)[::2], weights[::-1]
        x, w = td.asarray(values), None if trial % 4 == 0 else td.asarray(weights)
        for args, kwargs in (
            ((x, w, least), {}),
            ((x,), {"weights": w, "minlength": least}),
            ((x, w), {}),
            ((x,), {"minlength": least}),
        ):
            assert run(td.bincount, *args, **kwargs) == run(td.bincount.operator, *args, **kwargs)


@native
def test_entry_runs_plain_calls_and_sees_new_kernels():
    x = td.asarray([1, 1, 3])
    with config.override(hot_calls=1):
        for _ in range(3):
            td.bincount(x)
    record = fastpath.stubs().kernels[td.bincount.operator].sampled_record
    before = record.get(KernelEntry.calls)
    assert td.bincount(x, x * 0.5).tolist() == [0.0, 1.0, 0.0, 1.5]
    assert record.get(KernelEntry.calls) == before + 1
    with pytest.raises(TandemError, match="not negative"):
        td.bincount(td.asarray([-1]))
    assert td.bincount(x, length=2).tolist() == [0, 2]
    with td.Library("td", "IMPL") as library:
        library.impl("bincount", lambda self, *args, **kwargs: self + 1, "CPU")
        assert td.bincount(x).tolist() == [2, 2, 4]
    assert td.bincount(x).tolist() == [0, 2, 0, 1]


@native
def test_calls_with_too_many_bins_raise():
    for value in (2**40, 2**62):
        with pytest.raises((TandemError, MemoryError)):
            td.bincount(td.asarray([value]))
