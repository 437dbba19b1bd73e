"""Random numbers: Philox's test vectors, one stream for all paths, statistical tests."""

import numpy as np
import pytest
import tandem as td
from helpers import stats
from tandem.operators.random import philox

SEEDS = range(4)


def host(x: object) -> np.ndarray:
    return np.asarray(getattr(x, "words", x)._array)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_known_answers(counter, key, words):
    """The vectors of Random123's kat_vectors for philox4x32-10."""
    found = philox.philox4x32(np, np.array(counter, np.uint64), np.array(key, np.uint64))
    assert " ".join(f"{int(word):08x}" for word in found) == words


def test_stream_is_independent_of_draw_size(monkeypatch):
    key = td.random.key(3)
    whole = host(td.random.bits(key, 1000))
    monkeypatch.setattr(philox, "CHUNK", 7)
    for size in (1, 3, 4, 28, 29, 999):
        np.testing.assert_array_equal(host(td.random.bits(key, size)), whole[:size])
    np.testing.assert_array_equal(host(td.random.bits(key, (10, 100))).ravel(), whole)


def test_several_keys_are_each_their_own():
    keys = td.random.split(td.random.key(1), 3)
    together = host(td.random.normal(keys, (2, 5)))
    for row, key in zip(together, keys):
        np.testing.assert_array_equal(row, host(td.random.normal(key, (2, 5))))


def test_keys_differ():
    root = td.random.key(0)
    found = [host(root), *host(td.random.split(root, 50))]
    found += [host(td.random.fold_in(root, number)) for number in range(50)]
    found += [*host(td.random.split(td.random.key(1), 50)), *host(td.random.bits(root, (50, 4)))]
    assert len({tuple(key) for key in found}) == len(found)


def test_first_keys_are_independent_of_count():
    root = td.random.key(5)
    np.testing.assert_array_equal(host(td.random.split(root, 2)), host(td.random.split(root, 9))[:2])


def test_arguments_are_left_alone_and_numbers_repeat():
    key = td.random.key(11)
    before = host(key).copy()
    first, second = (host(td.random.uniform(key, 50)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(host(key), before)


# -- distributions -----------------------------------------------------------------------------------------------------
def likely(p_value: float) -> None:
    """The seeds are fixed, so that this passes always or never; a sound generator fails for one seed in a thousand."""
    assert p_value > 1e-3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform(seed, dtype):
    x = host(td.random.uniform(td.random.key(seed), 20000, dtype)).astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    if dtype in ("float32", "float64"):
        likely(stats().kstest(x, "uniform").pvalue)
    likely(stats().chisquare(np.bincount((x * 128).astype(int), minlength=128)).pvalue)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(seed, dtype):
    x = host(td.random.normal(td.random.key(seed), 50000, dtype)).astype(np.float64)
    likely(stats().kstest(x, "norm").pvalue)
    likely(stats().binomtest(int((x[:-1] * x[1:] > 0).sum()), x.size - 1).pvalue)
    assert abs(x.mean()) < 4 / np.sqrt(x.size)
    assert abs(x.var() - 1) < 4 * np.sqrt(2 / x.size)
    assert abs(stats().skew(x)) < 4 * np.sqrt(6 / x.size)
    assert abs(stats().kurtosis(x)) < 4 * np.sqrt(24 / x.size)


def test_normal_has_a_tail():
    x = np.abs(host(td.random.normal(td.random.key(0), 3_000_000)))
    for bound in (3.0, 4.0, 4.8):
        want = x.size * 2 * stats().norm.sf(bound)
        assert abs((x > bound).sum() - want) < 5 * np.sqrt(want)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 4), (0, 1000), (10, 11)])
def test_integers(seed, low, high):
    x = host(td.random.integers(td.random.key(seed), 30000, low, high))
    assert x.min() == low
    assert x.max() == high - 1
    likely(stats().chisquare(np.bincount(x - low, minlength=high - low)).pvalue if high - low > 1 else 1.0)


def test_integers_over_the_whole_range():
    x = host(td.random.integers(td.random.key(0), 20000, -(2**63), 2**63))
    likely(stats().kstest(x / 2.0**64 + 0.5, "uniform").pvalue)


@pytest.mark.parametrize("seed", SEEDS)
def test_permutations_are_equally_likely(seed):
    keys = td.random.split(td.random.key(seed), 6000)
    orders = host(td.ops.td.random_order(keys, 4))
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    likely(stats().chisquare(counts).pvalue)


def test_permutation_keeps_the_slices():
    x = np.arange(40).reshape(8, 5)
    rows = host(td.random.permutation(td.random.key(2), td.asarray(x)))
    assert not (rows == x).all()
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], x)
    columns = host(td.random.permutation(td.random.key(2), td.asarray(x), axis=1))
    np.testing.assert_array_equal(np.sort(columns, 1), x)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_bernoulli(p):
    x = host(td.random.bernoulli(td.random.key(7), p, 20000))
    likely(stats().binomtest(int(x.sum()), x.size, p).pvalue)


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8])
def test_words_are_independent(lag):
    words = host(td.random.bits(td.random.key(9), 40000))
    high = (words >> np.uint32(28)).astype(int)
    likely(stats().chi2_contingency(np.histogram2d(high[:-lag], high[lag:], 16)[0]).pvalue)


def test_streams_of_split_keys_are_independent():
    one, two = td.random.split(td.random.key(4))
    x, y = (host(td.random.normal(key, 20000)) for key in (one, two))
    likely(stats().pearsonr(x, y).pvalue)
    for number in range(3):
        z = host(td.random.normal(td.random.fold_in(td.random.key(4), number), 20000))
        likely(stats().pearsonr(x, z).pvalue)
