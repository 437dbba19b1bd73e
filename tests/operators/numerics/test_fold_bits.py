"""Folds in all layouts: one order for sums and products of floats, at least as accurate as pairwise sums."""

import contextlib
import io
import itertools
import math
import os
import random

import ml_dtypes
import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer
from tandem.backends.cpu.fastpath.glue import folds

native_only = pytest.mark.skipif(
    bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on"
)
SEED = os.environ.get("TANDEM_TEST_SEED", "0")
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SIZES = [1, 2, 3, 7, 16, 17, 33, 64, 100, 500, 1024, 3000]
FOLDS = {
    "sum": lambda x, axes: td.sum(x, axes),
    "prod": lambda x, axes: td.prod(x, axes),
    "mean": lambda x, axes: td.mean(x, axes),
    "var": lambda x, axes: td.var(x, axes),
    "fused": lambda x, axes: ((x * 2 + 1) * x).sum(axes),
    "fused with a function": lambda x, axes: td.exp(x * 0.125).sum(axes),
    "with a broadcast operand": lambda x, axes: (x * x[..., :1]).sum(axes),
    "several at once": lambda x, axes: x.sum(axes) + td.max(x, axes) * td.prod(x, axes),
    "softmax": lambda x, axes: td.softmax(x, -1),
    "norm": lambda x, axes: td.sqrt((x * x).sum(axes, keepdims=True)),
}


def drawn(rng, dtype):
    """A tensor whose axes are stored in any order, with gaps, or backwards; and some of its axes."""
    rank = rng.choice([1, 1, 2, 2, 3])
    shape = [rng.choice(SIZES) for _ in range(rank)]
    while math.prod(shape) > 30_000:
        shape[shape.index(max(shape))] //= 4
    wide, order = [n + rng.choice([0, 0, 1]) for n in shape], rng.sample(range(rank), rank)
    raw = np.random.default_rng(rng.randrange(2**31)).standard_normal([wide[axis] for axis in order])
    array = raw.astype(dtype).transpose(np.argsort(order))[tuple(slice(0, n) for n in shape)]
    array = array[tuple(slice(None, None, rng.choice([1, 1, 1, -1])) for _ in shape)]
    axes = tuple(sorted(rng.sample(range(rank), rng.randint(1, rank))))
    return td.asarray(np.asarray(array), copy=False), axes


def jitted(fold, axes):
    return td.jit(lambda x: fold(x, axes))


@native_only
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLDS)
def test_every_call_has_the_same_bits(name, dtype):
    rng, fold = random.Random(f"{name} {np.dtype(dtype)} {SEED}"), FOLDS[name]
    with config.override(hot_calls=3):
        for _ in range(3):
            x, axes = drawn(rng, dtype)
            results = [fold(x, axes) for _ in range(5)]
            with contextlib.redirect_stderr(io.StringIO()), td.show_dispatch_trace():
                results.append(fold(x, axes))
            with td.profiler.profile():
                results.append(fold(x, axes))
            results.append(jitted(fold, axes)(x))
            results.append(fold(td.asarray(np.ascontiguousarray(x.numpy())), axes))
            assert len({result.numpy().tobytes() for result in results}) == 1, (x.shape, x.strides, axes)


@native_only
@pytest.mark.parametrize("fold", [td.sum, td.prod])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [3, 1024, 2500])
def test_strided_rows_have_bits_of_contiguous_rows(count, dtype, fold):
    """Axes in every order of memory, against rows that are contiguous and have one folded axis."""
    rng = np.random.default_rng(count)
    with config.override(hot_calls=1):
        for kept, outer in ((1, 1), (70, 1), (2, 5), (37, 3), (1, 41), (1300, 1)):
            values = (1 + rng.standard_normal((kept, outer, count)) / 8)[
                :, :, : max(1, 100_000 // kept // outer)
            ]
            rows = td.asarray(np.ascontiguousarray(values.astype(dtype)))
            flat = rows.reshape(kept, -1)
            expected = [fold(flat, -1) for _ in range(3)][-1].numpy().tobytes()
            for order in itertools.permutations(range(3)):
                stored = np.ascontiguousarray(rows.numpy().transpose(order)).transpose(np.argsort(order))
                x = td.asarray(stored, copy=False)
                found = [fold(x, (1, 2)) for _ in range(3)][-1]
                assert found.numpy().tobytes() == expected, (order, kept, outer)


def errors_of(array, exact, axis):
    """The mean errors of sums by tandem, eager and jitted, and by NumPy pairwise, relative to sums of magnitudes."""
    x, scale = td.asarray(array), np.abs(array.astype(np.float64)).sum(axis)
    rows = np.ascontiguousarray(np.moveaxis(array, axis, -1))
    results = {
        "eager": td.sum(x, axis).numpy(),
        "jitted": td.jit(lambda x: (x * 1.0 + 0.0).sum(axis))(x).numpy(),
        "numpy": rows.sum(-1),
    }
    return {name: np.mean(np.abs(found - exact) / scale) for name, found in results.items()}


@native_only
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [5, 16, 64, 100, 1000, 20_000])
@pytest.mark.parametrize("kind", ["uniform", "normal", "ill-conditioned"])
def test_sums_are_as_accurate_as_pairwise_sums(kind, count, dtype, axis):
    numbers, rows = np.random.default_rng(count), 400 if count <= 1000 else 20
    raw = numbers.random((rows, count)) if kind == "uniform" else numbers.standard_normal((rows, count))
    if kind == "ill-conditioned":
        raw *= 10.0 ** numbers.integers(-6, 6, raw.shape)
        raw[:, : count // 2] = -raw[:, count - count // 2 :][:, ::-1] * (1 + 1e-3 * raw[:, : count // 2] ** 0)
    raw = raw.astype(dtype)
    exact = np.array([math.fsum(row.tolist()) for row in raw])
    errors = errors_of(raw if axis else np.ascontiguousarray(raw.T), exact, axis)
    assert max(errors["eager"], errors["jitted"]) <= 1.25 * errors["numpy"] + 1e-18, errors


@native_only
def test_a_large_sum_keeps_small_terms():
    array = np.ones(1_000_000, np.float32)
    array[0] = 2.0**24
    for shape, axis in (((1_000_000,), 0), ((1_000_000, 1), 0), ((10, 100_000), None)):
        found = td.sum(td.asarray(array.reshape(shape)), axis).numpy()
        assert abs(float(np.ravel(found)[0]) - math.fsum(array.tolist())) <= 32


@native_only
def test_fold_without_a_loop_is_left_to_numpy(monkeypatch):
    monkeypatch.setattr(folds, "compile_fold", lambda *_: None)
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for axis in (None, 0, 1):
        found = td.sum.operator(td.asarray(array), axis)
        np.testing.assert_array_equal(found.numpy(), array.sum(axis))


@native_only
def test_sums_of_special_values():
    for values, expected in (
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([-0.0, -0.0], 0.0),
        ([], 0.0),
    ):
        for repeats in (1, 700):
            array = np.array(values * repeats, np.float32)
            x = td.asarray(array)
            for found in (td.sum(x), td.jit(td.sum)(x), td.jit(lambda x: (x * 1.0).sum(0))(x)):
                np.testing.assert_array_equal(found.numpy(), np.float32(expected))


@native_only
@pytest.mark.parametrize("fold", [td.sum, td.prod, td.mean])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_folds_of_complex_numbers_have_one_order(fold, dtype):
    rng = random.Random(f"{np.dtype(dtype)} {SEED}")
    column = td.asarray(np.random.default_rng(0).standard_normal((3000, 1)).astype(dtype))
    row = td.asarray(column.numpy().T, copy=False)
    fixed = [(column, (0,)), (row, (1,)), (column, (0, 1)), (row.reshape(1, 3000, 1), (1,))]
    with config.override(hot_calls=3):
        for x, axes in fixed + [drawn(rng, dtype) for _ in range(12)]:
            array = np.exp(1j * x.numpy()).astype(dtype)  # of magnitude 1, in the same layout
            x = td.asarray(array, copy=False)
            results = [fold(x, axes) for _ in range(5)]
            with td.show_dispatch_trace(lambda *_: None):
                results.append(fold(x, axes))
            with td.profiler.profile():
                results.append(fold(x, axes))
            results += [jitted(fold, axes)(x), fold(td.asarray(np.ascontiguousarray(x.numpy())), axes)]
            assert len({result.numpy().tobytes() for result in results}) == 1, (x.shape, x.strides, axes)


def drawn_values(rng, dtype):
    """A tensor with many equal elements, and NaN in some tensors of floats, in any layout; and some of its axes."""
    x, axes = drawn(rng, dtype)
    array, values = x.numpy(), np.random.default_rng(rng.randrange(2**31)).integers(0, 3, x.shape)
    array[...] = (values > 1) if rng.random() < 0.5 else values
    if np.dtype(dtype).kind in "fV" and rng.random() < 0.5:
        array[values == 2] = np.nan
    return array, axes


@native_only
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", [*DTYPES, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("name", ["max", "min", "any", "all", "argmax", "argmin"])
def test_folds_in_any_order_match_numpy(name, dtype):
    rng, fold = random.Random(f"{name} {np.dtype(dtype)} {SEED}"), getattr(td, name)
    with config.override(hot_calls=1):
        for _ in range(12):
            array, axes = drawn_values(rng, dtype)
            axes = axes[0] if name.startswith("arg") else axes
            exact = array.astype(np.float64) if dtype is ml_dtypes.bfloat16 else array
            expected = getattr(np, name)(exact, axis=axes)
            x = td.asarray(array, copy=False)
            for _ in range(3):
                found = fold(x, axes)
            np.testing.assert_array_equal(found.numpy().astype(expected.dtype), expected)


@native_only
@pytest.mark.parametrize("fold", [td.max, td.sum, td.prod])
def test_three_separate_axes_are_folded_natively(fold):
    array = np.arange(1000, dtype=np.float32).reshape(10, 10, 10)[::2, ::3, ::2] / 500
    x = td.asarray(array, copy=False)
    with config.override(hot_calls=1):
        for _ in range(3):
            found = fold(x)
        dense = fold(td.asarray(np.ascontiguousarray(array)))
    assert found.numpy().tobytes() == dense.numpy().tobytes()


PERMUTED_FOLDS = {
    "sum": lambda x, y, axis: (x + y).sum(axis),
    "prod": lambda x, y, axis: (x * y).prod(axis),
    "softmax": lambda x, y, axis: td.softmax(x - y, axis=axis if type(axis) is int else axis[0]),
    "both": lambda x, y, axis: (x + y).sum(axis) + (x + y).max(axis),
    "normalized": lambda x, y, axis: (y - y.mean(axis, keepdims=True)) * x,
}


@pytest.mark.parametrize("name", PERMUTED_FOLDS)
@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
def test_fused_folds_of_transposed_values_have_the_eager_bits(name, axes):
    rng = np.random.default_rng(0)
    y = td.asarray(rng.standard_normal((5, 7, 19)).astype(np.float32))
    x = td.asarray(rng.standard_normal(tuple(y.shape[axis] for axis in axes)).astype(np.float32))

    def f(x, y, axis):
        return PERMUTED_FOLDS[name](x, td.permute(-y, axes), axis)

    for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2)):
        found = td.jit(f, static_argnames="axis")(x, y, axis=axis)
        np.testing.assert_array_equal(found.numpy(), f(x, y, axis).numpy())


@native_only
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_sums_have_the_bits_of_sums_of_parts(dtype):
    rng = np.random.default_rng(7)
    for shape in ((1,), (63,), (64,), (1023,), (1025,), (5000,), (3, 70), (70, 3), (300, 4), (4, 300, 2)):
        x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        for given in (x, x[::-1], x[..., ::2], np.asfortranarray(x)):
            for axis in (None, *range(len(shape))):
                found = td.sum(td.asarray(given), axis=axis)
                parts = [np.ascontiguousarray(part) for part in (given.real, given.imag)]
                real, imag = (td.sum(td.asarray(part), axis=axis).numpy() for part in parts)
                assert found.numpy().real.tobytes() == real.tobytes(), (shape, axis)
                assert found.numpy().imag.tobytes() == imag.tobytes(), (shape, axis)
                compiled = td.jit(lambda x, axis=axis: td.sum(x, axis=axis))(td.asarray(given))
                assert compiled.numpy().tobytes() == found.numpy().tobytes(), (shape, axis)
