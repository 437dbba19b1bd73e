"""Kernels with short rows: a vector holds one element of each of several rows, and the bits are those of any row."""

import shutil
import subprocess
import sys
from pathlib import Path

import fence
import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from lowering_harness import run
from tandem import config
from tandem.backends.cpu.codegen import row_vectors

pytestmark = needs_native  # whose eager folds have the order of compiled ones
rng = np.random.default_rng(11)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3.0, -3.0])
FOLDS = {
    "sum": lambda x: td.sum(x * x, axis=-1),
    "sum of itself": lambda x: td.sum(x, axis=-1) + 1,
    "mean": lambda x: td.mean(x + 1, axis=-1),
    "prod": lambda x: td.prod(x * 2, axis=-1),
    "max": lambda x: td.max(x * 2, axis=-1, keepdims=True) - x,
    "min": lambda x: td.min(x * 2, axis=-1),
    "argmax": lambda x: td.argmax(x * 2, axis=-1),
    "argmin": lambda x: td.argmin(-x, axis=-1) + 1,
    "any": lambda x: td.any(x > 0, axis=-1),
    "all": lambda x: td.all(x < 1, axis=-1),
    "count": lambda x: td.sum(x > 0, axis=-1),
    "two": lambda x: (td.sum(x, axis=-1), td.max(x, axis=-1), x * 2),
}
FLOATS = {
    "softmax": lambda x: td.softmax(x, axis=-1),
    "logsumexp": lambda x: td.logsumexp(x, axis=-1),
    "variance": lambda x: td.var(x, axis=-1),
    "layer norm": lambda x: td.nn.functional.layer_norm(x, (x.shape[-1],)),
    "norm": lambda x: x / td.linalg.norm(x, axis=-1, keepdims=True),
}


def check(function, *arrays, signs=True):
    """Compare the compiled function with the eager one: equal bits but those of a NaN.

    Args:
        signs: whether the signs of zeros are compared; the maximum of 0.0 and -0.0 may be either.
    """
    with np.errstate(all="ignore"):
        wanted = td.tree.leaves(function(*map(td.asarray, arrays)))
        results = run(function, *arrays)
    for one, two in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(one, two.numpy(), strict=True)
        if signs and one.dtype.kind == "f":
            np.testing.assert_array_equal(
                np.signbit(one) | np.isnan(one), np.signbit(two.numpy()) | np.isnan(one)
            )


def values(shape, dtype):
    x = rng.normal(size=shape) * 3
    if np.dtype(dtype).kind == "f":
        x = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL, shape), x)
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def covers(function, *arrays):
    """Whether a kernel of the function computes rows side by side."""
    seen = []

    def note(kernel):
        seen.append(row_vectors_of(kernel))
        return seen[-1]

    row_vectors_of = row_vectors.has_short_rows
    row_vectors.has_short_rows = note
    try:
        with config.override(cache=False):
            run(function, *arrays)
    finally:
        row_vectors.has_short_rows = row_vectors_of
    return any(seen)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_of_short_rows(name, dtype):
    for rows, width in ((33, 3), (64, 4), (47, 7), (50, 12)):
        check(FOLDS[name], values((rows, width), dtype), signs=name not in ("max", "min", "two"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8"])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_of_rows_whose_neighbours_are_adjacent(name, dtype):
    for rows, width in ((33, 3), (47, 13), (66, 20), (50, 32), (40, 33)):
        x = values((rows + width - 1,), dtype)
        check(
            lambda x, n=rows, k=width: FOLDS[name](x[td.arange(n)[:, None] + td.arange(k)]),
            x,
            signs=name not in ("max", "min", "two"),
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOATS)
def test_rows_of_several_stages(name, dtype):
    for rows, width in ((40, 2), (33, 3), (64, 4), (70, 11)):
        check(FLOATS[name], rng.normal(size=(rows, width)).astype(dtype))


SHAPES = {
    "pairs of points": lambda x: td.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(axis=-1)),
    "a bias": lambda x: td.softmax(x * 2 + td.asarray([1.0, 2.0, 3.0]), axis=-1),
    "two axes": lambda x: td.sum(x.reshape(-1, 2, 3) * 2, axis=(1, 2)),
    "rows of a view": lambda x: td.max(x[::2] * 2, axis=-1),
    "reversed rows": lambda x: td.sum(x[::-1] * x, axis=-1),
    "reversed columns": lambda x: td.argmax(x[:, ::-1] * 2, axis=-1),
    "some columns": lambda x: td.sum(x[:, :2] * 2, axis=-1),
    "columns next to each other": lambda x: td.sum(x.T.reshape(3, -1).T * 3, axis=-1),
    "a transposed copy": lambda x: td.sum(td.exp(x.T).T * 3, axis=-1),
    "rows of rows": lambda x: td.sum(x.reshape(2, -1, 3) * x.reshape(2, -1, 3)[:, ::-1], axis=-1),
    "a scalar": lambda x: td.sum(x * x[0, 0], axis=-1) * x[1, 2],
    "normalized twice": lambda x: td.softmax(td.softmax(x, axis=-1) * 3, axis=-1) @ td.ones((3, 2)),
    "mixed dtypes": lambda x: td.sum(x.astype(td.float64) * 2, axis=-1).astype(td.float32),
    "empty": lambda x: td.sum(x[:0] * 2, axis=-1),
}


@pytest.mark.parametrize("name", SHAPES)
def test_layouts_of_short_rows(name):
    check(SHAPES[name], rng.normal(size=(66, 3)).astype(np.float32))


def test_python_scalars_and_loops():
    x = rng.normal(size=(70, 3)).astype(np.float32)

    def normalize(x):
        return td.fori_loop(0, 5, lambda i, y: y - 0.5 * y / td.linalg.norm(y, axis=-1, keepdims=True), x * 2)

    check(normalize, x)
    for one, two in zip(run(lambda x, s: td.max(x * s, axis=-1), x, 2.5), [(x * np.float32(2.5)).max(-1)]):
        np.testing.assert_array_equal(one, two)


def test_gradients_through_short_rows():
    x = td.asarray(rng.normal(size=(40, 3)))

    def loss(x):
        return (td.softmax(x, axis=-1) ** 2).sum() + td.linalg.norm(x, axis=-1).sum()

    np.testing.assert_allclose(
        td.jit(td.grad(loss))(x).numpy(), td.grad(loss)(x).numpy(), rtol=1e-13, atol=1e-15
    )


def test_which_kernels_compute_rows_side_by_side():
    x = rng.normal(size=(64, 3)).astype(np.float32)
    assert covers(FLOATS["softmax"], x)
    assert covers(SHAPES["pairs of points"], x)
    assert not covers(FLOATS["softmax"], x[:7])  # less than a vector of rows
    assert not covers(FLOATS["softmax"], rng.normal(size=(64, 40)).astype(np.float32))
    assert not covers(lambda x: td.exp(x), x)
    y = rng.normal(size=(32, 64)).astype(np.float32)
    assert covers(lambda y: FLOATS["logsumexp"](y.T), y)
    assert not covers(lambda y: FLOATS["logsumexp"](td.concat([y, y]).T), y)


FENCED = """
import numpy as np
import fence
import tandem as td

fence.raise_fence()
for dtype in ("uint8", "int16"):
    for rows in (18, 25, 33, 50, 63):
        x = td.asarray(np.ones((rows, 12), dtype))
        td.jit(lambda x: (td.sum(x, axis=-1), td.max(x, axis=-1), x * 2, x[::-1, 0] + x[:, 1]))(x)
print("alive")
"""


@pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="the fence needs Linux and cc"
)
def test_narrow_vectors_end_at_the_last_row():
    """The mask of 8 lanes of one byte, which LLVM stores as 16 bytes."""
    run = subprocess.run(
        [sys.executable, "-c", FENCED],
        cwd=Path(fence.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == "alive\n", run.stderr
