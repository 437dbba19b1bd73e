"""Float64 arguments and exact comparison for tests of vmap."""

import numpy as np
import tandem as td


def f64(values):
    return td.asarray(values, dtype=td.float64)


def draw(*shape, seed=0):
    return f64(np.random.default_rng(seed).normal(size=shape))


def same(got, want):
    np.testing.assert_allclose(got.numpy(), np.asarray(want), rtol=1e-12, atol=1e-12)
