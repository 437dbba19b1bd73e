"""Eager copies and elementwise calls of strided tensors: transposed ones by cache lines, short rows by long axes."""

import itertools

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from rotation import share_each_commit
from tandem import config
from tandem.backends.cpu import fastpath

pytestmark = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
DTYPES = ["bool", "int8", "float16", "int32", "float64", "complex64", "complex128"]


@pytest.fixture(autouse=True)
def hot():
    fastpath.install()
    with config.override(hot_calls=1):
        yield


def draw(shape, dtype):
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 20).astype(dtype)


def check_copies(array):
    x = td.asarray(array)
    for copy in (x.contiguous(), td.concat([x, x])[: len(array)], td.zeros_like(x).copy_(x)):
        np.testing.assert_array_equal(copy.numpy(), array)
    target = td.zeros(array.shape, dtype=x.dtype)
    target[...] = x
    np.testing.assert_array_equal(target.numpy(), array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", share_each_commit([(70000, 5), (3000, 129), (1031, 512), (7, 400, 70), (64, 4, 2100)], 2)
)
def test_large_transposed_tensors_are_copied(shape, dtype):
    array = draw(shape, dtype)
    for axes in itertools.permutations(range(len(shape))):
        check_copies(array.transpose(axes))
        check_copies(array.transpose(axes)[1:, ::2])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.randoms(use_true_random=False), st.data())
def test_short_rows_are_computed_along_other_axes(sizes, random, data):
    dtype = data.draw(st.sampled_from(["float64", "float32", "int32", "int8"]))
    last = data.draw(st.integers(1, 5))
    axes = random.sample(range(len(sizes) + 1), len(sizes) + 1)
    array = draw((*sizes, last), dtype).transpose(axes)
    row = draw((array.shape[-1],), dtype)
    for given_, other in ((array, row), (array[..., ::-1], array), (array[1:, :1], array[1:, :1] * 2)):
        x, y = td.asarray(given_), td.asarray(other)
        for _ in range(2):
            np.testing.assert_array_equal((x + y).numpy(), given_ + other)
            np.testing.assert_array_equal((x > y).numpy(), given_ > other)
            np.testing.assert_array_equal(x.contiguous().numpy(), given_)
            np.testing.assert_array_equal((-x).numpy(), -given_)


def test_in_place_calls_write_each_element_once():
    array = draw((500, 3), "float64")
    x, expected = td.asarray(array.copy()), array.copy()
    for _ in range(4):
        x += td.asarray(array[:1])
        expected += array[:1]
        x[:, :2] *= x[:, 1:]
        expected[:, :2] *= expected[:, 1:].copy()
        x[:, ::-1] -= x
        expected[:, ::-1] -= expected.copy()
    np.testing.assert_array_equal(x.numpy(), expected)
