"""Hot eager calls on the GPU's test double."""

import numpy as np
import pytest
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cuda.fastpath import eager
from tandem.eager.tensor.dunders import by_name

OFF = native_layer.why_off()


needs_native = pytest.mark.skipif(bool(OFF), reason=OFF or "native code is on")


def doors(name):
    """The doors of the operator of a name."""
    return eager.entries_by_operator.get(by_name(name).operator)


def calls(name):
    """How many calls machine code has answered."""
    found = doors(name)
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
