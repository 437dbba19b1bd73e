"""Regressions: memory that jitted functions kept too long."""

import gc
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import config


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def jit_again(x, times):
    functions = [td.jit(lambda a: a * 2 + 1) for _ in range(times)]
    for function in functions:
        function(x)
    return [weakref.ref(function) for function in functions]


@pytest.mark.skipif(not config.flags.native, reason="nothing is linked")
def test_equal_graphs_are_linked_once():
    x = td.asarray(np.ones(16, np.float32))
    jit_again(x, 100)
    gc.collect()
    before = resident()
    for _ in range(5):
        references = jit_again(x, 100)
        gc.collect()
    assert not any(reference() for reference in references)
    assert resident() - before < 2**21
