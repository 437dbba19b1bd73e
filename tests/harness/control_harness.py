"""Draw arguments of control flow and compare eager, compiled and interpreted results."""

import numpy as np
import tandem as td
from tandem import config

RNG = np.random.default_rng(7)


def draw(*shape, dtype=np.float64):
    return td.asarray(RNG.standard_normal(shape).astype(dtype))


def same(one, two, tolerance=1e-9):
    left, structure = td.pytree.flatten(one)
    right, other = td.pytree.flatten(two)
    assert structure == other
    for a, b in zip(left, right):
        a, b = td.asarray(a), td.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def check(function, *args, tolerance=1e-9):
    """Eager, compiled and interpreted agree; gives the eager result."""
    eager = function(*args)
    compiled = td.jit(function)
    same(eager, compiled(*args), tolerance)
    same(eager, compiled(*args), tolerance)
    with config.override(native=False):
        same(eager, td.jit(function)(*args), tolerance)
    return eager
