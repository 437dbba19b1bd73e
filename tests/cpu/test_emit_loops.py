"""Emitted loops: every layout of the eager loops, reductions, and fused kernels."""

import ctypes

import numpy as np
import pytest
from emit_harness import buffer, fused, loop, reduce_loop, softmax
from fold_table import FOLDS
from hypothesis import given, settings
from hypothesis import strategies as st
from rotation import share_each_commit
from tandem.backends.cpu.codegen.elementwise import lanes_below
from tandem.backends.cpu.codegen.text import Function, Module
from tandem.backends.cpu.fastpath.compiler import engine
from tandem.errors import LoweringError, UnsupportedError
from tandem.lowering.fusion import loop_ir
from tandem.lowering.fusion.loop_ir import Buffer, FusedKernel, Reduce, Stage, Store, load, row
from tandem.operators.scalar_ir import nodes as s
from tandem.registry import dtypes as dt

F32 = dt.float32


def layouts(x):
    """Views with the strides that arrays come with."""
    wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
    wide[::2, ::3] = x
    return {
        "contiguous": x,
        "fortran": np.asfortranarray(x),
        "reversed": x[::-1, ::-1].copy()[::-1, ::-1],
        "strided": wide[::2, ::3],
        "row": np.broadcast_to(x[:1], x.shape),
        "column": np.broadcast_to(x[:, :1], x.shape),
        "single": np.broadcast_to(x[:1, :1], x.shape),
    }


SHAPES = [(0, 0), (0, 3), (3, 0), (1, 1), (1, 16), (3, 5), (2, 17), (3, 64), (5, 300), (20, 33), (300, 2)]


@pytest.fixture(scope="module")
def subtract():
    return {d: loop(s.instantiate(s.sub, [d] * 2), [d] * 2) for d in (F32, dt.int8, dt.float64)}


@pytest.mark.parametrize("dtype", [F32, dt.int8, dt.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elementwise_loop_in_every_layout(subtract, dtype, shape):
    rng = np.random.default_rng(0)
    x, y = rng.integers(-50, 50, (2, *shape)).astype(dtype.np)
    for first in layouts(x).values():
        for second in layouts(y).values():
            for out in (np.empty(shape, dtype.np), np.empty(shape[::-1], dtype.np).T):
                np.testing.assert_array_equal(subtract[dtype](first, second, out=out), first - second)


def test_nothing_outside_the_result_is_written(subtract):
    guarded = np.full((8, 40), 7, np.float32)
    x = np.ones((4, 13), np.float32)
    for out in (guarded[2:6, 5:18], guarded[2:6, 5:31:2], guarded[5:1:-1, 30:17:-1]):
        guarded[:] = 7
        subtract[F32](x, x, out=out)
        assert (out == 0).all()
        assert (guarded == 7).sum() == guarded.size - out.size


def test_a_result_may_be_an_operand(subtract):
    for n in (1, 15, 16, 100, 1000):
        x, y = np.arange(n, dtype=np.float32), np.full(n, 2, np.float32)
        subtract[F32](x, y, out=x)
        np.testing.assert_array_equal(x, np.arange(n) - 2)
        z = np.arange(2 * n, dtype=np.float32)[::2]
        expected = z - y
        subtract[F32](z, y, out=z)
        np.testing.assert_array_equal(z, expected)


def test_unaligned_arrays(subtract):
    raw = np.zeros(4 * 50 + 1, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = np.arange(50)
    np.testing.assert_array_equal(subtract[F32](x, x[::-1]), x - x[::-1])


@pytest.mark.parametrize("lanes", [4, 16, 64])
def test_mask_takes_counts_of_64_bits(lanes):
    f = Function(Module(), lanes)
    bits = f.op(f"bitcast {f.vec('i1')} {lanes_below(f, '%count')} to i{lanes}")
    f.do(f"ret i64 {bits if lanes == 64 else f.op(f'zext i{lanes} {bits} to i64')}")
    f.module.helper("mask", f.text("i64 @mask(i64 %count) #0"))
    code = engine.compile_ir(str(f.module), ["mask"], passes=engine.Passes.CLEAN)
    mask = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_int64)(code["mask"])
    for count in (0, 1, 3, lanes - 1, lanes, lanes + 1, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**62):
        assert mask(count) == 2 ** min(count, lanes) - 1, count


@pytest.mark.full
def test_loop_writes_more_than_2_to_31_elements(subtract):
    count = 2**31 + 3
    x = np.broadcast_to(np.int8([5]), (count,))
    out = np.zeros(count, np.int8)
    subtract[dt.int8](x, np.broadcast_to(np.int8([2]), (count,)), out=out)
    assert out.min() == out.max() == 3


# ---- reductions -----------------------------------------------------------------------------------------------------

RESULT = {"any": dt.bool_, "all": dt.bool_, "argmax": dt.int64, "argmin": dt.int64}


def reduced_dtype(op, dtype):
    if op in ("sum", "prod") and dtype.kind in "biu":
        return dt.int64 if dtype.kind in "bi" else dt.uint64
    return RESULT.get(op, dtype)


def sample(op, dtype, shape, rng):
    if dtype is dt.bool_:
        return rng.random(shape) < (0.95 if op == "all" else 0.05)
    if op in ("any", "all"):
        return (rng.random(shape) < (0.97 if op == "all" else 0.03)).astype(dtype.np)
    if dtype.kind == "f":
        return (
            1 + 0.002 * rng.standard_normal(shape) if op == "prod" else rng.standard_normal(shape)
        ).astype(dtype.np)
    low = 0 if dtype.kind == "u" else -3
    return rng.integers(low, 4 if op == "prod" else 100, shape).astype(dtype.np)


def check_reduction(got, x, op, axis, dtype):
    wide = x.astype(np.longdouble) if dtype.kind == "f" else x
    expected = getattr(np, op)(wide, axis=axis)
    if op in ("sum", "prod") and dtype.kind == "f":
        # a product of n factors has up to n roundings; and every 16-bit result has one large one
        eps = {dt.float16: 2.0**-10, dt.bfloat16: 2.0**-7, F32: 2.0**-19, dt.float64: 2.0**-46}[dtype]
        eps *= 64 if op == "prod" else 1
        np.testing.assert_allclose(got.astype("f8"), expected.astype("f8"), rtol=eps, atol=8 * eps)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("dtype", share_each_commit((dt.bool_, *dt.REAL), 3), ids=str)
def test_reduction_loop_in_every_layout(op, dtype):
    if dtype is dt.bool_ and op == "prod":
        pytest.skip("the operator casts bools")
    run, rng = reduce_loop(op, dtype, reduced_dtype(op, dtype)), np.random.default_rng(0)
    for shape in [(1, 1), (3, 5), (2, 300), (40, 17), (2100, 3)]:
        x = sample(op, dtype, shape, rng)
        for view in layouts(x).values():
            for axis in (0, 1):
                check_reduction(run(view, axis), view, op, axis, dtype)


def test_reductions_over_nothing():
    empty = np.zeros((3, 0), np.float32)
    for op, value in {"sum": 0, "prod": 1, "any": False, "all": True}.items():  # others are refused
        run = reduce_loop(op, F32, RESULT.get(op, F32))
        assert run(empty, 1).tolist() == [value] * 3
        assert run(empty, 0).shape == (0,)


@pytest.mark.parametrize("n", [1, 5, 16, 17, 70, 1000])
def test_argmax_prefers_nan_and_first_of_equals(n):
    rng = np.random.default_rng(n)
    runs = {op: reduce_loop(op, F32, RESULT.get(op, F32)) for op in ("max", "min", "argmax", "argmin")}
    for _ in range(20):
        x = rng.integers(0, 3, (2, n)).astype(np.float32)
        x[0, rng.integers(n)] = np.nan
        x[0, rng.integers(n)] = np.nan
        tall = np.repeat(x, 5, 0)
        for view, axis in (
            (x, 1),
            (np.asfortranarray(x), 1),
            (x.T, 0),
            (tall, 1),
            (np.asfortranarray(tall), 1),
        ):
            for op, run in runs.items():
                np.testing.assert_array_equal(run(view, axis), getattr(np, op)(view, axis=axis))
    for value in (-np.inf, np.inf):
        assert runs["argmax"](np.full((1, n), value, np.float32), 1).tolist() == [0]


def test_float_sums_are_as_good_as_pairwise():
    run = reduce_loop("sum", F32, F32)
    x = np.random.default_rng(0).random((1, 3_000_000), dtype=np.float32)
    exact = x.sum(dtype="f8")
    assert abs(run(x, 1)[0] - exact) <= 2 * np.spacing(np.float32(exact))
    special = np.float32(
        [[np.inf, 1, 2], [np.inf, -np.inf, 0], [3e38, 3e38, 0], [np.nan, 1, 1], [-np.inf, 5, 5]]
    )
    np.testing.assert_array_equal(run(special, 1), [np.inf, np.nan, np.inf, np.nan, -np.inf])


# ---- fused kernels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, dt.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (4, 16), (5, 37), (2, 5000), (0, 4)], ids=str)
def test_softmax(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype.np)
    out = np.empty_like(x)
    fused(softmax(*shape, dtype))([x, out])
    e = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5 if dtype is F32 else 1e-13)


def test_kernel_with_private_memory_scalars_and_row_results():
    """Normalised rows, written transposed, and their means: scratch, strided stores, a stage without dimensions."""
    rows, columns = 5, 37
    x = buffer("x", F32, (columns, 1), 0)
    scratch = buffer("scratch", F32, (0, 1), None)
    out, means = buffer("out", F32, (1, rows), 1), buffer("means", dt.float64, (1, 0), 2)
    scale = s.cast(loop_ir.scalar(0, dt.float64), F32)
    mean = row("total", F32) / columns
    stages = (
        Stage((0,), (Reduce(FOLDS["sum"], load(x), "total"), Store("scratch", load(x) * scale))),
        Stage((0,), (Store("out", load(scratch) - mean * scale),)),
        Stage((), (Store("means", s.cast(mean, dt.float64)),)),
    )
    run = fused(FusedKernel("normalise", (rows,), (columns,), (x, scratch, out, means), stages))
    a = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    b, m = np.empty((columns, rows), np.float32), np.empty(rows)
    run([a, b, m], [np.float64(2.5)])
    np.testing.assert_allclose(m, a.mean(axis=1), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(b, (2.5 * (a - a.mean(axis=1, keepdims=True))).T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3), (5, 7), (33, 5000), (100, 16), (0, 4)], ids=str)
def test_columns_and_rows_reduce(op, shape):
    if shape[0] == 0 and op in ("argmax", "argmin", "max", "min"):
        pytest.skip("NumPy refuses")
    x = sample(op, F32, shape, np.random.default_rng(0))
    result = reduced_dtype(op, F32)
    source = buffer("x", F32, (shape[1], 1), 0)
    value = FOLDS[op].operand(load(source), result)
    out = np.empty(shape[1], result.np)
    stage = Stage((0, 1), (Reduce(FOLDS[op], value, "out"),))
    fused(FusedKernel("columns", (), shape, (source, buffer("out", result, (0, 1), 1)), (stage,)))([x, out])
    check_reduction(out, x, op, 0, F32)
    stages = (
        Stage((0, 1), (Reduce(FOLDS[op], value, "all"),)),
        Stage((), (Store("out", row("all", result)),)),
    )
    fused(FusedKernel("whole", (), shape, (source, buffer("out", result, (0, 0), 1)), stages))([x, out])
    check_reduction(out[:1], x.ravel(), op, None, F32)


def test_reducing_the_middle_of_three_dimensions():
    x = np.random.default_rng(0).standard_normal((3, 20, 5, 7)).astype(np.float32)
    source = buffer("x", F32, (700, 35, 7, 1), 0)
    out = buffer("out", dt.int64, (35, 0, 7, 1), 1)
    stage = Stage((0, 1, 2), (Reduce(FOLDS["argmax"], load(source), "out"),))
    got = np.empty((3, 5, 7), np.int64)
    fused(FusedKernel("middle", (3,), (20, 5, 7), (source, out), (stage,)))([x, got])
    np.testing.assert_array_equal(got, x.argmax(axis=1))


def test_positions_and_offsets():
    """out[i, j] = x[i, 3 - j] + 10 * i + j over a reversed view."""
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    source, out = buffer("x", dt.int64, (4, -1), 0, 3), buffer("out", dt.int64, (4, 1), 1)
    value = load(source) + loop_ir.index(0) * 10 + loop_ir.index(1)
    got = np.empty_like(x)
    fused(FusedKernel("positions", (), (3, 4), (source, out), (Stage((0, 1), (Store("out", value),)),)))(
        [x, got]
    )
    i, j = np.indices(x.shape)
    np.testing.assert_array_equal(got, x[:, ::-1] + 10 * i + j)


def test_half_types_in_a_kernel():
    x = np.arange(40).astype(dt.bfloat16.np)
    source, out = buffer("x", dt.bfloat16, (1,), 0), buffer("out", dt.float16, (1,), 1)
    body = s.cast(s.cast(load(source), F32) * 0.5, dt.float16)
    got = np.empty(40, np.float16)
    fused(FusedKernel("halves", (), (40,), (source, out), (Stage((0,), (Store("out", body),)),)))([x, got])
    np.testing.assert_array_equal(got, (np.arange(40) * 0.5).astype(np.float16))


def test_private_buffers_may_have_any_size():
    x, big, out = buffer("x", F32, (1,), 0), buffer("big", F32, (1,), None), buffer("out", F32, (1,), 1)
    stages = Stage((0,), (Store("big", load(x)),)), Stage((0,), (Store("out", load(big)),))
    given, got = np.arange(10**6, dtype=np.float32), np.empty(10**6, np.float32)
    fused(FusedKernel("k", (), (10**6,), (x, big, out), stages))([given, got])
    np.testing.assert_array_equal(got, given)


def test_what_a_kernel_cannot_be_is_refused():
    z = buffer("z", dt.complex64, (1,), 0)
    total = Stage((0,), (Reduce(FOLDS["sum"], load(z), "all"),))
    with pytest.raises(UnsupportedError, match="complex64"):
        fused(FusedKernel("k", (), (4,), (z,), (total,)))
    y = buffer("y", F32, (0, 1), 1)
    x2 = buffer("x", F32, (3, 1), 0)
    mixed = Stage((0, 1), (Reduce(FOLDS["sum"], load(x2), "y"), Reduce(FOLDS["sum"], load(x2), "all")))
    with pytest.raises(LoweringError, match="keep"):
        fused(FusedKernel("k", (), (2, 3), (x2, y), (mixed,)))


@settings(max_examples=40)
@given(
    shape=st.lists(st.integers(1, 19), min_size=1, max_size=3),
    order=st.permutations(range(3)),
    broadcast=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_elementwise_kernels_of_any_strides(shape, order, broadcast):
    rng = np.random.default_rng(0)
    axes = [a for a in order if a < len(shape)]
    x = rng.standard_normal([shape[a] for a in axes]).astype(np.float32).transpose(np.argsort(axes))
    small = [1 if b else n for n, b in zip(shape, broadcast, strict=False)]
    y = np.broadcast_to(rng.standard_normal(small).astype(np.float32), shape)
    out = np.empty(shape, np.float32)
    strides = [tuple(step // 4 for step in a.strides) for a in (x, y, out)]
    buffers = tuple(Buffer(n, F32, st_, k) for k, (n, st_) in enumerate(zip("xyo", strides, strict=True)))
    stage = Stage(tuple(range(len(shape))), (Store("o", load(buffers[0]) * load(buffers[1]) + 1),))
    fused(FusedKernel("k", (), tuple(shape), buffers, (stage,)))([x, y, out])
    np.testing.assert_array_equal(out, x * y + np.float32(1))


@pytest.mark.parametrize("shape", [(2, 70, 130), (1, 64, 64), (3, 129, 65)], ids=str)
def test_transposed_operands_go_in_tiles(shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((shape[0], shape[2], shape[1])).astype(np.float32).transpose(0, 2, 1)
    y, out = rng.standard_normal(shape).astype(np.float32), np.empty(shape, np.float32)
    strides = [tuple(step // 4 for step in a.strides) for a in (x, y, out)]
    buffers = tuple(Buffer(n, F32, st_, k) for k, (n, st_) in enumerate(zip("xyo", strides, strict=True)))
    place = s.cast(loop_ir.index(0) * 10000 + loop_ir.index(1) * 100 + loop_ir.index(2), F32)
    for value, extra in ((load(buffers[0]) - load(buffers[1]), 0), (load(buffers[0]) * 0 + place, 1)):
        stage = Stage((0, 1, 2), (Store("o", value),))
        fused(FusedKernel("k", (), shape, buffers, (stage,)))([x, y, out])
        i, j, k = np.indices(shape)
        np.testing.assert_array_equal(out, i * 10000 + j * 100 + k if extra else x - y)


def test_kernel_with_short_last_dimension():
    x, y = np.random.default_rng(0).standard_normal((500, 3)), np.arange(3.0)
    buffers = (
        buffer("x", dt.float64, (3, 1), 0),
        buffer("y", dt.float64, (0, 1), 1),
        buffer("o", dt.float64, (3, 1), 2),
    )
    out = np.empty_like(x)
    stage = Stage((0, 1), (Store("o", load(buffers[0]) + load(buffers[1])),))
    fused(FusedKernel("k", (), (500, 3), buffers, (stage,)))([x, y, out])
    np.testing.assert_array_equal(out, x + y)
