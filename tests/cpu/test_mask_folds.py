"""any and all of every dtype, and sums whose last block is short, eager and jitted; NumPy is the reference."""

import numpy as np
import pytest
import tandem as td
from rotation import share_each_commit

DTYPES = [
    "bool",
    "uint8",
    "int16",
    "float16",
    "bfloat16",
    "int32",
    "float32",
    "int64",
    "float64",
    "complex64",
]
SHAPES = [(1,), (7,), (100,), (1025,), (5000,), (3, 70), (70, 3), (2, 40, 33)]


@pytest.mark.parametrize("shape", share_each_commit(SHAPES, 3))
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_and_all(shape, dtype):
    size, zero, one = np.prod(shape), np.zeros(shape), np.ones(shape)
    for place in {0, size // 2, size - 1}:
        for background, name in ((zero, "any"), (one, "all")):
            x = background.copy()
            x.flat[place] = 1 - x.flat[place]
            for given in (x, background):
                tensor = td.asarray(given).astype(dtype)
                for axis in (None, 0, -1, len(shape) // 2):
                    wanted = getattr(np, name)(given, axis)
                    call = lambda x, axis=axis, name=name: getattr(td, name)(x, axis)  # noqa: E731
                    for run in (call, td.jit(call)):
                        np.testing.assert_array_equal(run(tensor).numpy(), wanted)
            with_layout = td.asarray(np.repeat(x, 2, -1)).astype(dtype)[..., ::2]
            assert bool(getattr(td, name)(with_layout)) == getattr(np, name)(x)


def test_comparisons_are_folded_as_they_are_computed():
    x = np.linspace(-1, 1, 2000)
    for dtype in ("float32", "float64", "int32", "int8"):
        tensor = td.asarray((x * 100).astype(dtype))
        close = td.jit(
            lambda x: (td.any(x > 99), td.all(x > -101), td.any((x > 120) & (x < 50)), td.all(x == x))
        )
        assert [bool(one) for one in close(tensor)] == [bool((tensor.numpy() > 99).any()), True, False, True]
    values = td.jit(lambda x: (td.any(x > 0.5), td.sum(x), td.max(x)))(td.asarray(x))
    np.testing.assert_allclose([float(one) for one in values], [1, x.sum(), 1], atol=1e-12)


@pytest.mark.parametrize("size", [1023, 1024, 1025, 1040, 1056, 1060, 2047, 3001, 10000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_with_a_short_last_block(size, dtype):
    x = np.random.default_rng(size).normal(size=(3, size)).astype(dtype)
    x[1, 5] = -np.inf
    tensor = td.asarray(x)
    functions = [
        lambda x: td.sum(x, -1),
        lambda x: td.sum(x[0]),
        lambda x: td.sum(x * x, -1),
        lambda x: (td.sum(x[0]), td.argmax(x[0]), td.any(x[0] > 2)),
        lambda x: td.var(x, -1),
        lambda x: td.sum(td.exp(x), -1),
    ]
    for f in functions:
        for mine, wanted in zip(td.tree.leaves(td.jit(f)(tensor)), td.tree.leaves(f(tensor)), strict=True):
            np.testing.assert_allclose(
                mine.numpy(), wanted.numpy(), rtol=1e-5 if dtype == "float32" else 1e-12
            )
    assert td.jit(functions[0])(tensor).tolist() == functions[0](tensor).tolist()


@pytest.mark.parametrize(
    "shape", share_each_commit([(1,), (63,), (300,), (5000,), (70000,), (3, 70), (70, 3), (2, 1500)], 3)
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_counts(shape, dtype):
    x = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
    tensor, ones = td.asarray(x).astype(dtype), td.ones(shape, dtype=dtype)
    for axis in (None, 0, -1):
        count = lambda x, axis=axis: td.count_nonzero(x, axis)  # noqa: E731
        equal = lambda x, axis=axis: (x == x).sum(axis)  # noqa: E731
        for run in (lambda f: f, td.jit):
            np.testing.assert_array_equal(run(count)(tensor).numpy(), np.count_nonzero(x, axis))
            np.testing.assert_array_equal(run(count)(ones).numpy(), np.ones(shape).sum(axis))
            np.testing.assert_array_equal(run(equal)(tensor).numpy(), np.ones(shape).sum(axis))
    mixed = td.jit(lambda x: ((x != 0).sum(), (x != 0).sum(dtype="int32"), td.any(x != 0), (x == x).sum()))
    assert [int(one) for one in mixed(tensor)] == [x.sum(), x.sum(), x.any(), x.size]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint64", "int64"])
def test_products_of_integers(dtype):
    rng, info = np.random.default_rng(0), np.iinfo(dtype)
    for m, k, n in [
        (1, 1, 1),
        (1, 9, 1),
        (3, 70, 1),
        (2, 7, 9),
        (5, 33, 40),
        (4, 8, 8),
        (1, 0, 3),
        (7, 13, 100),
    ]:
        a, b = (rng.integers(info.min, info.max, s, dtype) for s in ((m, k), (k, n)))
        wanted = a @ b
        for x in (
            td.asarray(a),
            td.asarray(np.ascontiguousarray(a.T)).T,
            td.asarray(np.repeat(a, 2, 1))[:, ::2],
        ):
            for y in (
                td.asarray(b),
                td.asarray(np.ascontiguousarray(b.T)).T,
                td.asarray(np.repeat(b, 2, 1))[:, ::2],
            ):
                for run in (lambda x, y: x @ y, td.jit(lambda x, y: x @ y)):
                    np.testing.assert_array_equal(run(x, y).numpy(), wanted)
                np.testing.assert_array_equal((x[0] @ y).numpy(), a[0] @ b)
                np.testing.assert_array_equal((x @ y[:, 0]).numpy(), a @ b[:, 0])
