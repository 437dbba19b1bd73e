"""Positions of elements by rank, and what is computed with them."""

import numpy as np
import pytest
import tandem as td

KINDS = {
    "normal": lambda rng, n: rng.normal(size=n) * 100,
    "two values": lambda rng, n: rng.integers(0, 2, n),
    "sorted": lambda rng, n: np.arange(n),
    "reversed": lambda rng, n: np.arange(n)[::-1],
    "few values": lambda rng, n: rng.integers(0, 50, n),
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.99, 1.0, rng.normal(size=n) * 50),
    "NaN": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.0, -np.inf, np.inf], n),
}
DTYPES = ("float64", "float32", "float16", "int64", "int16", "uint64", "uint8", "bool")
argselect = td.ops.td.argselect


def draw(kind, dtype, n, seed=0):
    with np.errstate(invalid="ignore"):
        return KINDS[kind](np.random.default_rng(seed), n).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_argselect_takes_from_argsort(kind, dtype):
    for n in (1, 32, 33, 100, 1000, 8191, 20000):
        x = draw(kind, dtype, n)
        order = np.argsort(x, kind="stable")
        for ranks in (
            [0, n - 1],
            [n // 2],
            [n // 3, n // 2, n - 1, -5, n + 5],
            list(range(0, n, n // 20 + 1)),
        ):
            wanted = order[np.clip(ranks, 0, n - 1)]
            for given in (x, np.repeat(x, 2)[::2]):
                assert np.array_equal(argselect(td.asarray(given), td.asarray(ranks)).numpy(), wanted)


def test_argselect_takes_ranks_of_each_row():
    x, ranks = draw("few values", "float64", 600).reshape(3, 2, 100), np.arange(12).reshape(3, 2, 2) * 9
    wanted = np.take_along_axis(np.argsort(x, kind="stable"), ranks, -1)
    for f in (argselect, td.jit(argselect), td.vmap(argselect), td.jit(td.vmap(td.vmap(argselect)))):
        assert np.array_equal(f(td.asarray(x), td.asarray(ranks)).numpy(), wanted)
    shared = td.vmap(argselect, in_dims=(0, None))(td.asarray(x), td.asarray([5]))
    assert np.array_equal(shared.numpy(), np.argsort(x, kind="stable")[..., 5:6])
    row = td.vmap(argselect, in_dims=(None, 0))(td.asarray(x[0]), td.asarray(ranks[0]))
    assert np.array_equal(row.numpy(), np.argsort(x[0], kind="stable")[:, ranks[0]].swapaxes(0, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_partition_divides_long_lines(kind):
    for n, kth in ((100, 0), (1000, 617), (1000, -1), (9001, 4500)):
        x = draw(kind, "float64", n)
        for f in (td.partition, td.jit(lambda x, kth=kth: td.partition(x, kth))):
            result = (f(td.asarray(x), kth) if f is td.partition else f(td.asarray(x))).numpy()
            np.testing.assert_array_equal(np.sort(result), np.sort(x))
            at, ordered = kth % n, np.sort(x)
            np.testing.assert_array_equal(result[at], ordered[at])
            np.testing.assert_array_equal(np.sort(result[:at]), ordered[:at])
        order = td.argpartition(td.asarray(x), kth).numpy()
        np.testing.assert_array_equal(x[order], result)
        assert np.array_equal(np.sort(order), np.arange(n))


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind != "signed zeros"]
)  # NumPy: inf - inf is NaN
def test_quantiles_of_long_lines_are_numpys(kind):
    x = draw(kind, "float64", 2000).reshape(200, 10)
    for q in (0.5, [0.0, 0.1, 0.9, 1.0]):
        for name in ("quantile", "nanquantile"):
            for axis in (0, None):
                result = getattr(td, name)(td.asarray(x), np.asarray(q), axis).numpy()
                np.testing.assert_allclose(result, getattr(np, name)(x, q, axis), rtol=1e-13)


def test_median_has_the_derivative_of_its_elements():
    x = np.random.default_rng(0).permutation(1000).astype(np.float64)
    wanted = np.where((x == 499) | (x == 500), 0.5, 0.0)
    for f in (td.grad(td.median), td.jit(td.grad(td.median))):
        assert np.array_equal(f(td.asarray(x)).numpy(), wanted)
