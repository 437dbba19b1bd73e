"""Assertions shared by the tests of all packages."""

import gc
import sys
from importlib import import_module

import numpy as np
import tandem as td


def assert_same(result, expected, *, rtol=0.0, atol=0.0, dtype=True):
    """Check that two trees have the same structure, and their leaves the same shape, dtype and values.

    Args:
        result: a tree of tensors, arrays and numbers.
        expected: the same; for a tensor anything that NumPy makes an array of.
        rtol, atol: the tolerances for floats and complex numbers; NaN is equal to NaN.
        dtype: whether dtypes must be equal.
    """
    if isinstance(result, td.Tensor) and not isinstance(expected, td.Tensor):
        expected = np.asarray(expected)
    leaves, structure = td.pytree.flatten(result)
    expected_leaves, expected_structure = td.pytree.flatten(expected)
    assert structure == expected_structure
    for leaf, expected_leaf in zip(leaves, expected_leaves, strict=True):
        one, two = to_array(leaf), to_array(expected_leaf)
        assert one.shape == two.shape, (one.shape, two.shape)
        assert not dtype or one.dtype == two.dtype, (one.dtype, two.dtype)
        if rtol == atol == 0 or one.dtype.kind in "biu":
            np.testing.assert_array_equal(one, two)
        else:
            np.testing.assert_allclose(one, two, rtol=rtol, atol=atol)


def to_array(leaf):
    """The values of a tensor on any device, or of an array or a number."""
    return leaf.detach().to("cpu").numpy() if isinstance(leaf, td.Tensor) else np.asarray(leaf)


def smallest_block_growth(work, rounds=4):
    """Return the smallest growth of Python's allocated blocks over several calls of ``work``.

    A leak grows in every round. Other threads allocate too, but not in every round: those that compile what earlier
    tests made hot, and that of pytest-xdist, which receives the numbers of thousands of tests to run at once.
    """
    growths = []
    for _ in range(rounds):
        gc.collect()
        before = sys.getallocatedblocks()
        work()
        gc.collect()
        growths.append(sys.getallocatedblocks() - before)
    return min(growths)


def stats():
    """``scipy.stats``, which takes longer to import than a sixth of the collection of all tests."""
    return import_module("scipy.stats")
