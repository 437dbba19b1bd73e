"""Draw arguments of control flow and compare eager, compiled and interpreted results."""

import functools

import numpy as np
import tandem as td
from helpers import assert_same
from tandem import config

RNG = np.random.default_rng(7)


def draw(*shape, dtype=np.float64):
    return td.asarray(RNG.standard_normal(shape).astype(dtype))


assert_close = functools.partial(assert_same, rtol=1e-9, atol=1e-9)


def check(function, *args, tolerance=1e-9):
    """Eager, compiled and interpreted agree; gives the eager result."""
    eager = function(*args)
    compiled = td.jit(function)
    assert_close(eager, compiled(*args), rtol=tolerance, atol=tolerance)
    assert_close(eager, compiled(*args), rtol=tolerance, atol=tolerance)
    with config.override(native=False):
        assert_close(eager, td.jit(function)(*args), rtol=tolerance, atol=tolerance)
    return eager
