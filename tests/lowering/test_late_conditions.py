"""Selects by a condition that waits for a reduction: a branch, so that the next step of a loop begins before it."""

import re

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath

DTYPES = ["bool", "int8", "int64", "float16", "float32", "float64", "complex64", "complex128"]
needs_code = pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on")
VECTORS = r"select <\d+ x i1>"


def step(w, x):
    moved = td.where((x * w).real.sum() <= 0.5, w + x, w)
    return moved, moved.sum()


def sum_of_last_axis(w, x):
    return td.where((x * w).sum(-1, keepdim=True) > 0, w + x, w)


def perceptron(w, xs):
    return td.scan(step, w, xs)


@pytest.fixture
def arrays():
    rng = np.random.default_rng(5)

    def make(dtype, *shape):
        values = rng.normal(size=shape) * 3
        if dtype.startswith("complex"):
            values = values + 1j * rng.normal(size=shape)
        return td.asarray((values > 0 if dtype == "bool" else values).astype(dtype))

    return make


@pytest.mark.parametrize("width", [1, 4, 5, 64])
@pytest.mark.parametrize("dtype", DTYPES[2:])
def test_scan_equals_its_steps(arrays, dtype, width):
    w, xs = arrays(dtype, width), arrays(dtype, 50, width)
    last, sums = td.jit(perceptron)(w, xs)
    for i in range(50):
        w, total = step(w, xs[i])
        np.testing.assert_array_equal(sums[i].numpy(), total.numpy())
    np.testing.assert_array_equal(last.numpy(), w.numpy(), strict=True)


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("width", [1, 4, 19])
def test_selected_dtypes(arrays, first, width):
    compiled = td.jit(choose)
    for _ in range(6):
        given = arrays(first, width), arrays(first, width), arrays("float64", width)
        np.testing.assert_array_equal(compiled(*given).numpy(), choose(*given).numpy(), strict=True)


def choose(a, b, x):
    return td.where(x.sum() > 0, a, b)


@needs_code
def test_one_condition_is_a_branch(arrays):
    text = td.jit(choose).lower(*(arrays("float64", 4) for _ in range(3))).llvm_ir()
    assert "select i1" in text
    assert not re.search(VECTORS, text)


@needs_code
def test_condition_of_each_row_is_none(arrays):
    w, x = arrays("float64", 30, 8), arrays("float64", 30, 8)
    compiled = td.jit(sum_of_last_axis)
    np.testing.assert_array_equal(compiled(w, x).numpy(), sum_of_last_axis(w, x).numpy())
    assert re.search(VECTORS, compiled.lower(w, x).llvm_ir())


def test_vmap_and_gradient(arrays):
    w, xs = arrays("float64", 7, 4), arrays("float64", 7, 20, 4)
    last, _ = td.vmap(perceptron)(w, xs)
    for i in range(7):
        np.testing.assert_allclose(last[i].numpy(), perceptron(w[i], xs[i])[0].numpy())
    found = td.jit(td.grad(lambda w, xs: perceptron(w, xs)[0].sum()))(w[0], xs[0])
    expected = td.grad(lambda w, xs: perceptron(w, xs)[0].sum())(w[0], xs[0])
    np.testing.assert_allclose(found.numpy(), expected.numpy())
