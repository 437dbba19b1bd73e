"""Scans that stack the next values of several carries keep these in registers."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem.jax import lax


def filters(x):
    def step(carry, v):
        a, b = carry
        a = 0.75 * a + v
        b = 0.5 * b + a
        return (a, b), (a, b)

    return lax.scan(step, (x[0] * 0, x[0] * 0), x)


def largest(x):
    def step(carry, item):
        best, at = carry
        value, i = item
        found = value > best
        carry = td.where(found, value, best), td.where(found, i, at)
        return carry, carry

    return lax.scan(step, (x[0], td.asarray(0)), (x, td.arange(x.shape[0])))


def swapped(x):
    def step(carry, v):
        a, b = carry
        return (b, a + v), (a + v, b, a + v)

    return lax.scan(step, (x[0], x[1]), x)


def ring(x):
    def step(carry, v):
        rows, total, i = carry
        total = total + v - rows[i % 4]
        return (rows.at[i % 4].set(v), total, i + 1), total

    return lax.scan(step, (x[:4] * 0, x[0] * 0, 0), x)


@pytest.mark.parametrize("function", [filters, largest, swapped, ring])
@pytest.mark.parametrize("dtype", [td.float32, td.float64, td.int32])
def test_stacked_carries_are_those_of_eager_calls(function, dtype):
    x = td.asarray(np.random.default_rng(1).integers(-9, 10, 57)).astype(dtype)
    function = function if dtype.is_floating or function is not filters else swapped
    for one, other in zip(td.tree.leaves(td.jit(function)(x)), td.tree.leaves(function(x)), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_gradients_through_stacked_carries():
    x = td.asarray(np.random.default_rng(2).standard_normal(20))
    loss = td.grad(lambda x: sum((leaf * leaf).sum() for leaf in td.tree.leaves(filters(x))))
    np.testing.assert_allclose(td.jit(loss)(x).numpy(), loss(x).numpy(), rtol=1e-12)


@needs_native
def test_next_carries_are_not_loaded_from_the_stacked_results():
    assert td.jit(filters).lower(td.zeros(50)).llvm_ir().count("_row1 = alloca") == 1
