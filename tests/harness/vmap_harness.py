"""Float64 arguments and exact comparison for tests of vmap."""

import functools

import numpy as np
import tandem as td
from helpers import assert_same


def f64(values):
    return td.asarray(values, dtype=td.float64)


def draw(*shape, seed=0):
    return f64(np.random.default_rng(seed).normal(size=shape))


assert_close = functools.partial(assert_same, rtol=1e-12, atol=1e-12)
