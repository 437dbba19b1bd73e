"""any and all of every dtype, and sums whose last block is short, eager and jitted; NumPy is the reference."""

import numpy as np
import pytest
import tandem as td

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


@pytest.mark.parametrize("shape", SHAPES)
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
