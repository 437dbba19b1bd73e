"""Positions of elements by rank, and what is computed with them."""

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu.native_kernels import rt_selection as rt

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
def test_argpartition_divides_long_lines(kind):
    for n, kth in ((100, 0), (1000, 617), (1000, -1), (9001, 4500)):
        x = draw(kind, "float64", n)
        at, ordered = kth % n, np.sort(x)
        for f in (td.argpartition, td.jit(td.argpartition, static_argnums=1)):
            order = f(td.asarray(x), kth).numpy()
            assert np.array_equal(np.sort(order), np.arange(n))
            np.testing.assert_array_equal(x[order][at], ordered[at])
            np.testing.assert_array_equal(np.sort(x[order][:at]), ordered[:at])
        np.testing.assert_array_equal(td.partition(td.asarray(x), kth).numpy(), ordered)


def make_misleading(n):
    """Numbers whose smallest are where `find_key` draws its samples, so that each round leaves most of them."""
    values, labels, rank, seed, by_pivot = np.full(n, np.inf), np.arange(n), n // 2, n, False
    for _ in range(rt.MOST_POOR + 2):
        count, at = len(labels), []
        for i in range(rt.LARGE):
            seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
            start = i * count // rt.LARGE
            at.append(start + (seed >> 33) % ((i + 1) * count // rt.LARGE - start))
        new = [label for label in labels[at] if np.isinf(values[label])]
        values[new] = np.arange(len(new)) + np.isfinite(values).sum()
        sample = np.sort(values[labels[at]])
        high = sample[rank * rt.LARGE // count + (0 if by_pivot else rt.MARGIN)]
        labels, by_pivot = labels[values[labels] > high], True
        rank -= count - len(labels)
    return np.where(np.isinf(values), n + np.arange(n), values)


def test_lines_are_sorted_where_samples_mislead():
    n = 50_000
    x, ranks = make_misleading(n), np.asarray([n // 2, 5, n - 1])
    order = np.argsort(x, kind="stable")
    assert np.array_equal(argselect(td.asarray(x), td.asarray(ranks)).numpy(), order[ranks])


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind != "signed zeros"]
)  # NumPy: inf - inf is NaN
def test_quantiles_of_long_lines_are_numpys(kind):
    x = draw(kind, "float64", 15_000).reshape(5000, 3)
    for q in (0.5, 0.37, [1.0], [0.0, 0.1, 0.9, 1.0], []):
        for name in ("quantile", "nanquantile"):
            for axis in (0, None):
                result = getattr(td, name)(td.asarray(x), np.asarray(q), axis).numpy()
                np.testing.assert_allclose(result, getattr(np, name)(x, q, axis), rtol=1e-13)


def test_median_has_the_derivative_of_its_elements():
    x = np.random.default_rng(0).permutation(5000).astype(np.float64)
    wanted = np.where((x == 2499) | (x == 2500), 0.5, 0.0)
    for f in (td.grad(td.median), td.jit(td.grad(td.median))):
        assert np.array_equal(f(td.asarray(x)).numpy(), wanted)
