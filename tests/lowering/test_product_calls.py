"""Calls of the micro-kernel of small products from graphs: the bits of eager products, for every shape and layout."""

from itertools import product

import numpy as np
import pytest
import tandem as td
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu.codegen.small_product import Coverage, find_coverage, full_coverage, tile_heights
from tandem.registry import dtypes as dt

rng = np.random.default_rng(0)


def check(function, *arrays):
    tensors = [td.asarray(array) for array in arrays]
    found, wanted = td.jit(function)(*tensors), function(*tensors)
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    np.testing.assert_allclose(found.numpy(), function(*arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "columns", share_each_commit([2, 5, 8, 9, 16, 17, 24, 33, 48, 63, 64, 65, 100, 130], 4)
)
def test_all_widths_and_layouts(columns, dtype):
    a, b = rng.standard_normal((19, 23)).astype(dtype), rng.standard_normal((23, columns)).astype(dtype)
    check(lambda a, b: a @ b, a, b)
    check(lambda a, b: a @ b.T, a, np.ascontiguousarray(b.T))
    check(lambda a, b: a.T @ b, np.ascontiguousarray(a.T), b)
    check(lambda a, b: a[::2] @ b[:, ::-1], a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "one, two",
    [
        ((4, 20, 6), (4, 6, 20)),
        ((4, 20, 6), (6, 20)),
        ((3, 1, 20, 6), (1, 5, 6, 20)),
        ((2, 3, 1, 30), (30, 20)),
        ((20, 6), (4, 6, 20)),
        ((1, 1, 20, 30), (30, 2)),
        ((3, 200, 40), (40, 40)),  # too large as rows of one product
        ((0, 20, 6), (0, 6, 20)),
        ((7, 6, 5), (7, 5, 20)),
    ],
)
def test_leading_axes(one, two, dtype):
    a, b = rng.standard_normal(one).astype(dtype), rng.standard_normal(two).astype(dtype)
    check(lambda a, b: a @ b, a, b)
    check(lambda a, b: (a + 1) @ (b * 2), a, b)
    if len(one) > 2:
        check(
            lambda a, b: a.swapaxes(0, 1)[..., ::2] @ b[..., ::2, :] if a.ndim == b.ndim + 1 else a @ b, a, b
        )


def test_products_in_loops():
    a = rng.standard_normal((20, 20)).astype(np.float32) / 10

    def run(a):
        return td.fori_loop(0, 7, lambda i, x: td.tanh(x @ a + x.T @ a), a)

    x = td.asarray(a)
    got, wanted = td.jit(run)(x).numpy(), run(x).numpy()
    if config.flags.native:
        np.testing.assert_array_equal(got, wanted)
    else:  # BLAS has other sums for transposed operands on some processors
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_coverage(dtype):
    size, most = dtype.itemsize, max(tile_heights())
    full = full_coverage()
    for rows, columns in product(range(1, 50), range(1, 300)):
        needed = find_coverage(rows, columns, size, dtype)
        assert full.includes(needed)
        assert not needed.packs
        assert not Coverage(needed.tiles - {max(needed.tiles)}).includes(needed)
    highest = max(tile_heights()[most])
    assert find_coverage(10 * highest, 10**6, 4 * size, dtype) == Coverage(frozenset({(most, highest)}), True)
    assert not Coverage(full.tiles, packs=False).includes(full)
