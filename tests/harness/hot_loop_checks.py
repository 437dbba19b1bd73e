"""Checks of eager loops that are compiled when hot, against their Python loops."""

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.control import hot_loops, hot_transforms

rng = np.random.default_rng(7)
W = td.asarray(rng.normal(size=(3, 3)).astype(np.float32) * 0.4)
XS = td.asarray(rng.normal(size=(12, 3)).astype(np.float32))


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No loop is known before a test."""
    monkeypatch.setattr(hot_loops, "_loops", type(hot_loops._loops)())
    monkeypatch.setattr(hot_loops, "_rejected", type(hot_loops._rejected)())
    monkeypatch.setattr(hot_transforms, "_known", type(hot_transforms._known)())


def compiled():
    """The number of compiled loops."""
    return sum(loop.function is not None for loop in hot_loops._loops.values())


def bits(tree):
    return [(x.dtype, x.shape, x.numpy().tobytes()) for x in td.tree.leaves(tree)]


def check(run, is_compiled=True):
    """Compare the bits of the Python loop with those of the compiled one; twice, for the cached form."""
    with config.override(hot_loops=10**6):
        wanted = run()
    assert compiled() == 0
    with config.override(hot_loops=0):
        for _ in range(2):
            assert bits(run()) == bits(wanted)
    assert bool(compiled()) is is_compiled
