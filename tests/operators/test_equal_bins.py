"""Histograms of equal bins find the bin of an element from its distance; NumPy's are the reference."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 70),
    dtype=st.sampled_from(["float32", "float64", "int64", "uint8", "bool"]),
    scale=st.floats(-3, 3),
    has_range=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_counts_are_numpys(seed, count, dtype, scale, has_range):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=rng.integers(0, 200)) * 10**scale, rng.integers(0, 3))
    x = np.abs(x % 200).astype(dtype) if dtype in ("uint8", "bool") else x.astype(dtype)
    limits = tuple(sorted(np.round(rng.normal(size=2) * 3, 2).tolist())) if has_range else None
    wanted, edges = np.histogram(x.astype(np.uint8) if dtype == "bool" else x, count, limits)
    result = td.histogram(td.asarray(x), count, range=limits)
    np.testing.assert_array_equal(result[0].numpy(), wanted)
    np.testing.assert_array_equal(result[1].numpy(), edges.astype(result[1].numpy().dtype))
    jitted = td.jit(lambda x: td.histogram(x, count, range=limits)[0])
    np.testing.assert_array_equal(jitted(td.asarray(x)).numpy(), wanted)


def test_elements_that_are_in_no_bin():
    x = td.asarray([np.nan, np.inf, -np.inf, 0.0, 1.0, 0.5, -0.1, 1.1])
    for histogram in (td.histogram, td.jit(td.histogram, static_argnames=("bins", "range"))):
        assert histogram(x, bins=2, range=(0.0, 1.0))[0].tolist() == [1, 2]


def test_two_and_more_coordinates():
    rng = np.random.default_rng(0)
    points = rng.random((300, 3))
    wanted = np.histogramdd(points, (3, [0.0, 0.2, 0.9], 4))[0]
    got = td.histogramdd(td.asarray(points), (3, [0.0, 0.2, 0.9], 4))[0]
    np.testing.assert_array_equal(got.numpy(), wanted)
    x, y = points[:, 0], points[:, 1]
    wanted = np.histogram2d(x, y, (5, [0.1, 0.5, 0.8]))[0]
    got = td.jit(lambda x, y: td.histogram2d(x, y, (5, [0.1, 0.5, 0.8]))[0])(td.asarray(x), td.asarray(y))
    np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("edges", [[0.0, 0.25, 1.0], [0.0, 0.5, 1.0]])
def test_given_edges_are_searched(edges):
    x = np.linspace(-0.5, 1.5, 41)
    np.testing.assert_array_equal(
        td.histogram(td.asarray(x), td.asarray(edges))[0].numpy(), np.histogram(x, edges)[0]
    )
