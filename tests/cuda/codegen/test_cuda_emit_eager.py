"""Kernels of eager CUDA operators: compiled by NVRTC for an architecture, and run on the CPU against NumPy."""

import ctypes
import math

import numpy as np
import pytest
import tandem as td
from cuda_host.build import missing_compiler
from cuda_host.programs import check_batch
from fold_table import FOLDS as DECLARED
from tandem.backends.cuda.codegen.eager import write_elementwise
from tandem.backends.cuda.codegen.eager_folds import write_reduction
from tandem.backends.cuda.codegen.kernel import pack_layout
from tandem.errors import UnsupportedError
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.expr import Expr
from tandem.registry import dtypes as dt

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

FOLDS = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "any": np.any,
    "prod": np.prod,
}
FOLDED = {dt.float32: tuple(FOLDS), dt.int16: ("sum", "argmax", "any")}
VARIANTS = ("rows", "short_rows", "columns", "split_rows", "split_columns")
BODY = s.instantiate(lambda x, y: s.exp(x) * y + 1, [dt.float32, dt.float32])
MIXED = [dt.float32, dt.bfloat16]


def folded(op, dtype):
    if op in ("any", "all"):
        return dt.bool_
    if op in ("argmax", "argmin"):
        return dt.int64
    return dt.int64 if op in ("sum", "prod") and not dtype.is_inexact else dtype


def write_all():
    found = [
        write_elementwise("whole", BODY, [dt.float32, dt.int32], dt.float32, "contiguous"),
        write_elementwise("loose", BODY, [dt.float32, dt.int32], dt.float32, "unaligned"),
        write_elementwise("spread", BODY, MIXED, dt.float16, "strided"),
        write_elementwise("with_scalar", BODY, MIXED, dt.float32, "contiguous", [1]),
        write_elementwise("with_first", BODY, MIXED, dt.float32, "strided", [0]),
    ]
    for dtype, ops in FOLDED.items():
        for op in ops:
            for variant in VARIANTS:
                found += write_reduction(
                    f"{op}_{dtype}_{variant}", DECLARED[op], dtype, folded(op, dtype), variant
                )
    return found


@pytest.fixture(scope="module")
def launch():
    kernels = write_all()
    module, known = check_batch(kernels), {k.name: k for k in kernels}

    def run(name, grid, *arguments):
        k = known[name]
        values = [ctypes.c_longlong(a) if type(a) is int else a for a in arguments]
        module.launch(name, grid, k.block, k.shared, values)

    run.kernels = known
    return run


def numbers(*shape, dtype=np.float32):
    rng = np.random.default_rng(math.prod(shape))
    return (rng.normal(size=shape) * (3 if np.dtype(dtype).kind == "f" else 300)).astype(dtype)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 1023, 1024, 5000])
@pytest.mark.parametrize("name", ["whole", "loose"])
def test_contiguous(launch, name, count):
    x, y = numbers(count + 1)[1:], np.arange(count, dtype=np.int32)
    x = x if name == "loose" else x.copy()
    out = np.full(count + 8, 7, np.float32)
    launch(name, (launch.kernels[name].blocks(count, 3), 1, 1), x, y, out, count)
    np.testing.assert_allclose(out[:count], np.exp(x) * y + 1, rtol=1e-5)
    assert (out[count:] == 7).all()


def test_strided(launch):
    x, y = numbers(5, 7, 3).T, numbers(7, 1).astype(td.bfloat16.np)
    out = np.empty((3, 7, 10), np.float16)[:, :, ::2]
    layout = pack_layout((3, 7, 5), [(1, 3, 21), (0, 1, 0), (70, 10, 2)])
    launch("spread", (1, 1, 1), x, y, out, layout)
    want = np.exp(x) * y.astype(np.float32) + 1
    np.testing.assert_allclose(out.astype(np.float32), want, rtol=2e-3, atol=1e-3)


def test_operands_by_value(launch):
    x, out = numbers(100), np.empty(100, np.float32)
    two = ctypes.c_ushort(int(td.bfloat16.np.type(2.5).view(np.uint16)))
    launch("with_scalar", (1, 1, 1), x, two, out, 100)
    np.testing.assert_allclose(out, np.exp(x) * 2.5 + 1, rtol=1e-5)
    y = numbers(100).astype(td.bfloat16.np)
    layout = pack_layout((100,), [(1,), (1,)])
    launch("with_first", (1, 1, 1), ctypes.c_float(0.5), y, out, layout)
    np.testing.assert_allclose(out, np.exp(np.float32(0.5)) * y.astype(np.float32) + 1, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "op"), [(d, op) for d, ops in FOLDED.items() for op in ops], ids=str)
@pytest.mark.parametrize("shape", [(6, 37, 5), (3, 1, 1), (2, 1000, 33), (1, 4099, 1), (7, 64, 1)])
def test_reductions(launch, op, dtype, shape):
    x = numbers(*shape, dtype=dtype.np)
    if op == "prod":
        x = np.sign(x)
    out_dtype = folded(op, dtype).np
    outer, length, inner = shape

    def same(out, want):
        np.testing.assert_allclose(out, want.astype(out_dtype), rtol=1e-5, atol=1e-3)

    want = FOLDS[op](x.astype(np.int64) if op in ("sum", "prod") and dtype is dt.int16 else x, axis=1)
    out = np.empty((outer, inner), out_dtype)
    name = f"{op}_{dtype}_columns"
    launch(name, (launch.kernels[name].blocks(inner), 2, 1), x, out, outer, length, inner)
    same(out, want)
    rows = np.ascontiguousarray(np.moveaxis(x, 1, 2))
    for variant in ("rows", "short_rows"):
        out = np.empty(outer * inner, out_dtype)
        launch(f"{op}_{dtype}_{variant}", (2, 1, 1), rows, out, outer * inner, length)
        same(out, want.reshape(-1))
    check_splits(launch, f"{op}_{dtype}_split", x, rows, (want, same, out_dtype))


def check_splits(launch, name, x, rows, wanted):
    """Several blocks share a row, or a column."""
    want, same, out_dtype = wanted
    (outer, length, inner), lines = x.shape, rows.shape[0] * rows.shape[1]
    for parts in (1, 3):
        state = launch.kernels[f"{name}_rows_0"].temporaries
        workspace = np.full(parts * lines * state, 0x5A, np.uint8)
        out = np.empty(lines, out_dtype)
        launch(f"{name}_rows_0", (parts, lines, 1), rows, workspace, length)
        launch(f"{name}_rows_1", (lines, 1, 1), workspace, out, parts)
        same(out, want.reshape(-1))
        out = np.empty((outer, inner), out_dtype)
        across = launch.kernels[f"{name}_columns_0"].blocks(inner)
        launch(f"{name}_columns_0", (across, 2, parts), x, workspace, outer, length, inner)
        launch(f"{name}_columns_1", (across, 1, 1), workspace, out, outer, parts, inner)
        same(out, want)


def test_the_first_nan_is_the_largest(launch):
    x = numbers(1, 500)
    x[0, [300, 77, 411]] = np.nan
    for op in ("argmax", "argmin"):
        out = np.empty(1, np.int64)
        launch(f"{op}_float32_rows", (1, 1, 1), x, out, 1, 500)
        assert out == 77
    out = np.empty(1, np.float32)
    launch("max_float32_rows", (1, 1, 1), x, out, 1, 500)
    assert np.isnan(out)


def test_long_sums_keep_their_rounding_errors(launch):
    x = np.full((1, 300000), 0.1, np.float32)
    out = np.empty(1, np.float32)
    launch("sum_float32_rows", (1, 1, 1), x, out, 1, x.size)
    assert out == np.float32(np.sum(x, dtype=np.float64))


def test_what_has_no_code_is_said():
    body = Expr("call", (s.arg(0, dt.float32),), dt.float32, None)
    with pytest.raises(UnsupportedError, match="cannot be called from the GPU"):
        write_elementwise("x", body, [dt.float32], dt.float32, "contiguous")
