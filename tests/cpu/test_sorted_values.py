"""Sorting without the order of equal elements: NumPy's functions in eager, hot and compiled calls."""

from functools import partial

import numpy as np
import pytest
import tandem as td
from tandem import config

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
rng = np.random.default_rng(5)
DTYPES = ["bool_", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_unstable_sort_of_any_layout(dtype, axis, descending):
    x = td.asarray(50 * rng.standard_normal((40, 70))).astype(getattr(td, dtype))
    f = lambda x: td.sort(x, axis=axis, descending=descending, stable=False)  # noqa: E731
    compiled = td.jit(f)
    for given in (x, x.T, x[::-1, ::2], x[:, :1], x[:0]):
        wanted = td.sort(given, axis=axis, descending=descending).tolist()
        with config.override(hot_calls=1, hot_composites=1):
            results = [f(given) for _ in range(5)]
        for result in (*results, compiled(given)):
            assert result.dtype is x.dtype and result.tolist() == wanted


def test_calls_have_the_same_bits():
    x = rng.choice(np.asarray([0.0, -0.0, 1.0, np.nan, -np.nan, -np.inf], np.float32), 5000)
    given, f = td.asarray(x), lambda x: td.sort(x, stable=False)
    results = [f(given).numpy().tobytes(), td.jit(f)(given).numpy().tobytes()]
    with config.override(hot_calls=1, hot_composites=1):
        results += [f(given).numpy().tobytes() for _ in range(5)]
    assert len(set(results)) == 1
    np.testing.assert_array_equal(f(given).numpy(), np.sort(x))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_unstable_argsort_of_any_layout(dtype, axis, descending):
    x = td.asarray(20 * rng.standard_normal((40, 70))).astype(getattr(td, dtype))
    f = lambda x: td.argsort(x, axis=axis, descending=descending, stable=False)  # noqa: E731
    compiled = td.jit(f)
    for given in (x, x.T, x[::-1, ::2], x[:, :1], x[:0]):
        wanted = td.sort(given, axis=axis, descending=descending)
        with config.override(hot_calls=1):
            results = [f(given) for _ in range(5)] + [compiled(given)]
        for result in results:
            assert result.tolist() == results[0].tolist()
            assert td.take_along_axis(given, result, axis).tolist() == wanted.tolist()


@native
@pytest.mark.parametrize("count", [16, 300, 20_000])
def test_unstable_argsort_is_that_of_numpy(count):
    for dtype in (np.float32, np.float64, np.int32, np.uint64):
        x = rng.integers(0, 90, count).astype(dtype)
        compiled = td.jit(lambda x: td.argsort(x, stable=False))
        assert {row.choice for row in compiled.lower(td.asarray(x)).kernels()} == {"native"}
        assert compiled(td.asarray(x)).tolist() == np.argsort(x).tolist()
        assert td.argsort(td.asarray(x)).tolist() == np.argsort(x, kind="stable").tolist()


@native
def test_missing_argsort_function_leaves_the_kernel(monkeypatch):
    from tandem.backends.cpu.native_kernels import emitted, providers

    monkeypatch.setattr(emitted, "find_argsort_function", lambda dtype: 0)
    monkeypatch.setattr(providers._find, "results", {})
    x = rng.integers(0, 9, 77).astype(np.float32)
    for f in (lambda x: td.argsort(x, stable=False), td.jit(lambda x: td.argsort(x, stable=False))):
        assert f(td.asarray(x)).tolist() == np.argsort(x).tolist()


def test_gradients_follow_the_elements():
    x = td.asarray(rng.standard_normal((3, 50)))
    slopes = td.asarray(rng.standard_normal((3, 50)))
    for descending in (False, True):

        def total(x, stable, descending=descending):
            return (td.sort(x, axis=1, stable=stable, descending=descending) * slopes).sum()

        wanted = td.grad(total)(x, True).tolist()
        assert td.grad(total)(x, False).tolist() == wanted
        assert td.jit(td.grad(total), static_argnames=("stable",))(x, False).tolist() == wanted
    moved = td.jvp(lambda x: td.sort(x, stable=False), (x,), (slopes,))[1]
    assert moved.tolist() == td.jvp(td.sort, (x,), (slopes,))[1].tolist()
    mapped = td.vmap(lambda x: td.sort(x, stable=False))(x)
    assert mapped.tolist() == td.sort(x, axis=1).tolist()


@native
def test_missing_numpy_function_leaves_the_kernel(monkeypatch):
    from tandem.backends.cpu.native_kernels import emitted, plans, providers

    monkeypatch.setattr(emitted, "find_sort_function", lambda dtype: 0)
    monkeypatch.setattr(providers._find, "results", {})
    monkeypatch.setattr(providers, "faults", {})
    monkeypatch.setattr(plans, "_plans", {})
    x = td.asarray(rng.standard_normal(77))
    f = lambda x: td.sort(x, stable=False)  # noqa: E731
    assert td.jit(f)(x).tolist() == f(x).tolist() == sorted(x.tolist())
    assert "not found" in providers.faults["tandem.sort_values"]


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8])
def test_index_of_the_extremum_of_long_rows(dtype, start):
    """Blocks of a row begin at aligned addresses: the extremum may be next to any of their borders."""
    base = np.zeros(70_000, dtype)
    x = base[start:]
    size = 64 // base.itemsize
    lead = -(x.ctypes.data // base.itemsize) % size
    for border in (0, lead, *range(lead, x.size, 32768 // base.itemsize), x.size - 1):
        for at in {max(border - 1, 0), min(border, x.size - 1), min(border + 1, x.size - 1)}:
            for value, f in ((1, td.argmax), (-1, td.argmin)):
                x[at] = value
                assert f(td.asarray(x)).item() == at
                x[at] = 0
    if np.issubdtype(dtype, np.floating):
        x[[100, 40_000]] = np.nan
        assert td.argmax(td.asarray(x)).item() == td.argmin(td.asarray(x)).item() == 100
    assert td.argmax(td.asarray(np.full(70_000, -1, dtype))).item() == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8"])
def test_values_are_found_among_equal_ones_and_nan(dtype):
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 300):
        numbers = rng.integers(0, 50, size).astype(dtype)
        if dtype.startswith("float"):
            numbers[size // 2 :: 7] = np.nan
            numbers[size // 3 :: 9] = -0.0
            numbers[size // 5 :: 11] = -np.inf
        numbers = np.sort(numbers)
        wanted = np.concatenate([numbers[::3], np.asarray([0, 60, 3], dtype)])
        for side in ("left", "right"):
            search = partial(td.searchsorted, side=side)
            for result in (f(td.asarray(numbers), td.asarray(wanted)) for f in (search, td.jit(search))):
                np.testing.assert_array_equal(result.numpy(), np.searchsorted(numbers, wanted, side))
