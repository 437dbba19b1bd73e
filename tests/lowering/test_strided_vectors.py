"""Columns and other strided accesses, with and without a partial vector: the elements are those of eager calls."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem.backends.cpu import target

rng = np.random.default_rng(3)


def matrix(rows, dtype):
    values = rng.integers(-9, 10, (rows, rows)) * 0.5
    return td.asarray(values.astype(np.complex64) if dtype == "complex64" else values).astype(
        getattr(td, dtype)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bool", "float16", "complex64"])
@pytest.mark.parametrize("rows", [3, 8, 33, 48, 65, 70, 103])
def test_columns_in_loops_are_those_of_eager_calls(rows, dtype):
    x = matrix(rows, dtype)

    def write(x):
        return td.fori_loop(1, min(5, rows), lambda i, y: y.at[:, i].set(y[:, i - 1]), x)

    def read(x):
        return td.fori_loop(0, min(5, rows), lambda i, s: td.where(s == x[:, i], s, x[:, i]), x[:, 0])

    for function in (write, read, lambda x: x[1:, 2] == x[:-1, 1], lambda x: x.T[1:-1, ::-2]):
        np.testing.assert_array_equal(td.jit(function)(x).numpy(), function(x).numpy())


@needs_native
@pytest.mark.skipif(target.vector_target().masks, reason="vectors are gathered")
def test_columns_are_not_copied_to_scratch_memory():
    """A vector that is loaded from elements just stored waits for them: columns took four times as long."""
    text = (
        td.jit(lambda x: td.fori_loop(0, 9, lambda i, s: s + x[:, i], x[:, 0]))
        .lower(td.zeros((70, 70)))
        .llvm_ir()
    )
    assert "@pack" not in text and "insertelement" in text


@needs_native
@pytest.mark.skipif(target.vector_target().masks, reason="partial vectors have masks")
def test_partial_vectors_are_written_apart():
    text = td.jit(lambda x, y: x[1:] * 2 + y[:-1]).lower(td.zeros(1006), td.zeros(1006)).llvm_ir()
    assert "call void @llvm.memcpy" not in text
