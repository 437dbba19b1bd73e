"""Compile emitted loops and call them with NumPy arrays."""

from __future__ import annotations

import ctypes

import numpy as np
import tandem  # noqa: F401
from tandem.backends.cpu.emit.elementwise import emit_loop
from tandem.backends.cpu.emit.fused import write_fused
from tandem.backends.cpu.emit.reduction import write_reduce_loop
from tandem.backends.cpu.emit.text import Module
from tandem.backends.cpu.native import engine

LEVEL = 0


def _table(values, kind=ctypes.c_int64):
    return (kind * max(len(values), 1))(*values)


def _strided_call(code, arrays, dims):
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code["kernel"])
    strides = [step for a in arrays for step in a.strides]
    function(_table([a.ctypes.data for a in arrays], ctypes.c_void_p), _table(dims), _table(strides))


def loop(expr, in_dtypes):
    """A function of two-dimensional arrays (or ones that broadcast to that) that runs ``emit_loop`` of ``expr``."""
    code = engine.compile_ir(emit_loop("kernel", expr, in_dtypes, expr.dtype), ["kernel"], level=LEVEL)

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
    """A function (two-dimensional array, axis) that runs ``write_reduce_loop``'s function."""
    module = Module()
    write_reduce_loop(module, "kernel", op, in_dtype, out_dtype)
    code = engine.compile_ir(str(module), ["kernel"], level=LEVEL)

    def call(x, axis):
        x = np.moveaxis(x, axis, 1)
        out = np.empty((x.shape[0], 1), out_dtype.np)
        _strided_call(code, [x, out], x.shape)
        return out[:, 0]

    call.code = code
    return call


def fused(kernel):
    """A function (arrays, run-time scalars) that runs a fused kernel on the arrays' memory."""
    module = Module()
    write_fused(module, kernel)
    code = engine.compile_ir(str(module), [kernel.name], level=LEVEL)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code[kernel.name])

    def call(arrays, scalars=()):
        slots = b"".join(np.asarray(v).tobytes().ljust(8, b"\0") for v in scalars)
        function(_table([a.ctypes.data for a in arrays], ctypes.c_void_p), ctypes.c_char_p(slots))

    call.code = code
    return call
