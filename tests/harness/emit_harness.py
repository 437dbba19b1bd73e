"""Compile emitted loops and call them with NumPy arrays."""

from __future__ import annotations

import ctypes

import numpy as np
import tandem  # noqa: F401
from fold_table import FOLDS
from tandem.backends.cpu.codegen.elementwise import write_loop
from tandem.backends.cpu.codegen.folds.eager import write_fold_loop
from tandem.backends.cpu.codegen.fused import write_fused
from tandem.backends.cpu.codegen.text import Module
from tandem.backends.cpu.fastpath.compiler import engine
from tandem.lowering.fusion.loop_ir import Buffer, FusedKernel, Reduce, Stage, Store, load, row
from tandem.operators.scalar_ir import nodes as s
from tandem.registry import dtypes as dt


def _table(values, kind=ctypes.c_int64):
    return (kind * max(len(values), 1))(*values)


def _strided_call(code, arrays, dims):
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code["kernel"])
    strides = [step for a in arrays for step in a.strides]
    function(_table([a.ctypes.data for a in arrays], ctypes.c_void_p), _table(dims), _table(strides))


def loop(expr, in_dtypes):
    """A function of two-dimensional arrays (or ones that broadcast to that) that runs ``write_loop`` of ``expr``."""
    module = Module()
    write_loop(module, "kernel", expr, in_dtypes, expr.dtype)
    code = engine.compile_ir(str(module), ["kernel"], passes=engine.Passes.CLEAN)

    def call(*arrays, out=None):
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        result = np.empty(shape, expr.dtype.np) if out is None else out
        two = (1,) * (2 - len(shape)) + shape
        views = [np.broadcast_to(a, shape).reshape(two) for a in arrays]
        place = result.reshape(two)
        assert result.size == 0 or np.shares_memory(place, result)
        _strided_call(code, [*views, place], two)
        return result

    call.code = code
    return call


def reduce_loop(op, in_dtype, out_dtype):
    """A function (two-dimensional array, axis) that runs the loop of eager reductions."""
    fold = FOLDS[op]
    module = Module()
    write_fold_loop(module, "loop", fold, in_dtype, out_dtype)
    code = engine.compile_ir(str(module), ["loop"], passes=engine.Passes.CLEAN)

    def call(x, axis):
        x = np.moveaxis(x, axis, 1)
        out = np.empty(x.shape[0], out_dtype.np)
        sizes, strides = (*x.shape, int(axis == 0), 1), (x.strides[0], out.itemsize, x.strides[1], 0)
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code["loop"])
        function(x.ctypes.data, out.ctypes.data, _table(sizes), _table(strides))
        return out

    call.code = code
    return call


def fused(kernel):
    """A function (arrays, run-time scalars) that runs a fused kernel on the arrays' memory."""
    module = Module()
    scratch = write_fused(module, kernel, linkage="")
    memory = np.zeros(scratch.below + scratch.above + 64, np.uint8)
    between = -(-memory.ctypes.data // 64) * 64 + scratch.below
    code = engine.compile_ir(str(module), [kernel.name], passes=engine.Passes.CLEAN)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code[kernel.name])

    def call(arrays, scalars=()):
        slots = b"".join(np.asarray(v).tobytes().ljust(8, b"\0") for v in scalars)
        function(_table([a.ctypes.data for a in arrays], ctypes.c_void_p), ctypes.c_char_p(slots), between)

    call.code, call.memory = code, memory
    return call


def buffer(name, dtype, strides, param, offset=0):
    return Buffer(name, dtype, tuple(strides), param, offset)


def softmax(rows, columns, dtype):
    x, out = buffer("x", dtype, (columns, 1), 0), buffer("out", dtype, (columns, 1), 1)
    e = s.exp(load(x) - row("max", dtype))
    stages = (
        Stage((0,), (Reduce(FOLDS["max"], load(x), "max"),)),
        Stage((0,), (Store("out", e), Reduce(FOLDS["sum"], e, "total"))),
        Stage((0,), (Store("out", load(out) / row("total", dtype)),)),
    )
    return FusedKernel("softmax", (rows,), (columns,), (x, out), stages)


FLOATS = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    3.0,
    -7.25,
    1e-3,
    0.93,
    10.0,
    -12.0,
    88.8,
]


FLOATS += [
    -103.9,
    709.0,
    1e10,
    -1e10,
    3.4e38,
    1e-40,
    1e300,
    5e-324,
    2.0**31,
    -(2.0**31) - 0.5,
    2.0**63,
    2.0**64,
]


def specials(dtype):
    """The values of ``dtype`` that break things."""
    if dtype is dt.bool_:
        return np.array([False, True])
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array(FLOATS).astype(dtype.np)
    info = np.iinfo(dtype.np)
    values = {
        info.min,
        info.min + 1,
        info.max,
        info.max - 1,
        0,
        1,
        2,
        3,
        7,
        63,
        64,
        100,
        dtype.bits,
        dtype.bits - 1,
    }
    values |= {-1, -2, -7} if info.min < 0 else set()
    return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype.np)


def grids(dtype, arity):
    values = specials(dtype)
    return [g.ravel() for g in np.meshgrid(*[values] * arity)]


def same(got, expected, ulps=0):
    """Equal with signs of zeros and NaN; floats within some units in the last place."""
    got, expected = np.asarray(got), np.asarray(expected)
    with np.errstate(invalid="ignore"):
        equal = (got == expected) | ((got != got) & (expected != expected))
    if got.dtype.kind == "f":
        equal &= (np.signbit(got) == np.signbit(expected)) | np.isnan(got)
        if ulps:
            with np.errstate(invalid="ignore", over="ignore"):
                wide = np.abs(got.astype("f8") - expected.astype("f8"))
                close = wide <= ulps * np.spacing(np.abs(expected)).astype("f8")
            equal |= close & np.isfinite(expected)
    return equal
