"""Matrix products: the first, a hot, a traced, a profiled and a jitted call return the same bits for every layout."""

import contextlib
import io
import os
import random

import ml_dtypes
import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.backends.cpu import fastpath as native_layer

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.complex128, np.int32]
SEED = os.environ.get("TANDEM_TEST_SEED", "0")
SIZES = [1, 2, 3, 5, 16, 17, 33, 64, 100]
# name: the function, and the shapes of its operands for sizes a, b, c
PRODUCTS = {
    "matmul": (td.matmul, lambda a, b, c: ((a, b), (b, c))),
    "16 by 16": (td.matmul, lambda a, b, c: ((16, 16), (16, 16))),
    "33 by 64 by 128": (td.matmul, lambda a, b, c: ((33, 64), (64, 128))),
    "large": (td.matmul, lambda a, b, c: ((130, 120), (120, 90))),
    "for BLAS": (td.matmul, lambda a, b, c: ((300, 128), (128, 40))),
    "matrix and vector": (td.matmul, lambda a, b, c: ((a, b), (b,))),
    "vector and matrix": (td.matmul, lambda a, b, c: ((a,), (a, b))),
    "dot": (td.matmul, lambda a, b, c: ((17 * a,), (17 * a,))),
    "one matrix for a batch": (td.matmul, lambda a, b, c: ((3, a, b), (b, c))),
    "one vector for a batch": (td.matmul, lambda a, b, c: ((2, 3, a, b), (b,))),
    "one row for a batch": (td.matmul, lambda a, b, c: ((a,), (3, a, b))),
    "batches that broadcast": (td.matmul, lambda a, b, c: ((2, 1, a, b), (3, b, c))),
    "vecdot": (td.vecdot, lambda a, b, c: ((b, a), (b, a))),
    "tensordot": (td.tensordot, lambda a, b, c: ((a, 4, b), (4, b, c))),
    "einsum": (lambda x, y: td.einsum("bij,bkj->bik", x, y), lambda a, b, c: ((2, a, b), (2, c, b))),
    "einsum of vectors": (lambda x, y: td.einsum("i,i->", x, y), lambda a, b, c: ((a,), (a,))),
    "transposed weight": (lambda x, w: x @ w.T, lambda a, b, c: ((a, b), (c, b))),
    "transposed matrix": (lambda x, r: x.T @ r, lambda a, b, c: ((a, b), (a,))),
}


def drawn(rng, shape, dtype):
    """A tensor of a shape whose axes are stored in any order, with gaps, or backwards."""
    numbers = np.random.default_rng(rng.randrange(2**31))
    wide = [n + rng.choice([0, 0, 1]) for n in shape]
    order = rng.sample(range(len(shape)), len(shape))
    raw = 10 * numbers.standard_normal([wide[axis] for axis in order])
    if np.dtype(dtype).kind == "c":
        raw = raw + 1j * numbers.standard_normal(raw.shape)
    array = raw.astype(dtype).transpose(np.argsort(order))[tuple(slice(0, n) for n in shape)]
    array = array[tuple(slice(None, None, rng.choice([1, 1, 1, -1])) for _ in shape)]
    return td.asarray(np.asarray(array), copy=False)


def all_calls(function, *args):
    """The results of the first, a hot, a traced, a profiled and a jitted call."""
    results = {"first": function(*args)}
    for _ in range(4):
        results["hot"] = function(*args)
    with contextlib.redirect_stderr(io.StringIO()), td.show_dispatch_trace():
        results["traced"] = function(*args)
    with td.profiler.profile():
        results["profiled"] = function(*args)
    results["jitted"] = td.jit(function)(*args)
    return {name: result.numpy() for name, result in results.items()}


def assert_same_bits(results):
    for name, result in results.items():
        assert result.tobytes() == results["first"].tobytes(), name


@pytest.mark.skipif(bool(native_layer.why_off()), reason=native_layer.why_off() or "native code is on")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_every_call_has_the_same_bits(name, dtype):
    function, shapes = PRODUCTS[name]
    rng = random.Random(f"{name} {np.dtype(dtype)} {SEED}")
    if name == "vecdot" and np.dtype(dtype).kind == "c":
        pytest.skip("vecdot takes no complex numbers")
    with config.override(hot_calls=3):
        for _ in range(3):
            one, two = shapes(*(rng.choice(SIZES) for _ in range(3)))
            assert_same_bits(all_calls(function, drawn(rng, one, dtype), drawn(rng, two, dtype)))


@pytest.mark.parametrize("large", [2**63 - 1, 2**62, 10**6])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_mixed_operands_are_converted_as_for_mul(dtype, large):
    for integers in (np.array([large, 3, -large], np.int64), np.array([large, 3, 7], np.uint64)):
        x, y = td.asarray(np.array([0.5, 1e-4, 2.0], dtype)), td.asarray(integers)
        for one, two in ((x, y), (y, x)):
            wide = dtype if np.dtype(dtype).itemsize > 2 else np.float32
            with np.errstate(all="ignore"):
                converted = [z.numpy().astype(dtype).astype(wide) for z in (one, two)]
                expected = np.matmul(*converted).astype(dtype)
            assert np.isfinite(expected) == np.isfinite((one * two).sum().numpy())
            for product in (td.matmul, lambda a, b: td.tensordot(a, b, 1)):
                for found in (product(one, two), td.jit(product)(one, two)):
                    np.testing.assert_allclose(found.numpy().astype(float), expected.astype(float), rtol=1e-6)
