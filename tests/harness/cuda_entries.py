"""Hot eager calls on the GPU's test double."""

import contextlib
import gc

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cuda.fastpath import eager
from tandem.backends.cuda.runtime import memory
from tandem.eager.tensor.dunders import by_name

OFF = native_layer.why_off()


needs_native = pytest.mark.skipif(bool(OFF), reason=OFF or "native code is on")


one_and_two = pytest.mark.parametrize("hot", [1, 2], ids=["one device", "two devices"], indirect=True)


@contextlib.contextmanager
def in_use(cuda, request):
    """As in use: freed memory is kept, and operators are hot after a few calls; on one device, if not on several."""
    cuda.host_devices(getattr(request, "param", 1))
    with td.config.override(cuda_caching=True, hot_calls=3):
        yield cuda
        cuda.host_noop(0)
        gc.collect()
        memory.empty_cache()
    cuda.host_devices(2)


def entries_of(name):
    """The native entries of the operator of a name."""
    return eager.entries_by_operator.get(by_name(name).operator)


def calls(name):
    """How many calls machine code has answered."""
    found = entries_of(name)
    return 0 if found is None else found.calls


def heat(function, *args, times=8):
    for _ in range(times):
        found = function(*args)
    return found


def answered(name, function, *args):
    """The result of a call that machine code answers, where it is on."""
    heat(function, *args)
    before = calls(name)
    found = function(*args)
    assert OFF or calls(name) == before + 1, f"{name} was not answered by machine code"
    return found


def array_of(dtype, seed=0):
    values = np.random.default_rng(seed).integers(1, 5, (6, 8))
    return values.astype(dtype.np)
