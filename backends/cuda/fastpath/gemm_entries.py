"""Native code of a :class:`.gemm.Gemm`: call cuBLAS.

A struct (``G_*``) holds the address of cuBLAS's struct (:mod:`.cublas`) and the constant arguments of a call.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import NULL, call_i32, i32, i64, load, native, ptr, stack, store, unlikely
from ...cpu.fastpath.entries.rt_base import ARGS_MASK, PyErr_Occurred, PyLong_FromLongLong, entry_data
from ..blas.cublas import BATCHED, DEFAULT, GEMM, HANDLE, SET_STREAM
from .launch_entries import PyLong_AsUnsignedLongLongMask

G_BLAS, G_ONE, G_ZERO, G_KIND, G_COMPUTE, G_COUNT = 0, 8, 16, 24, 32, 40
G_SIZES = 48  # m, n, k
G_A, G_B, G_C = (
    72,
    104,
    136,
)  # for each matrix: offset in bytes, transposed, leading dimension, stride of a batch
FIRST, TRANSPOSED, LEAD, STEP = 0, 8, 16, 24
G_SIZE = 168


@native
def multiply(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``gemm(stream, one, two, out)``: cuBLAS's status.

    Python twin: backends/cuda/blas/gemm.py:_make_python_gemm
    """
    r = entry_data(self)
    if unlikely((nargsf & ARGS_MASK) != 4 or kwnames != NULL):
        return PyLong_FromLongLong(7)  # CUBLAS_STATUS_INVALID_VALUE
    values = stack(24)
    for i in range(3):
        store(i64, values, i * 8, PyLong_AsUnsignedLongLongMask(load(ptr, args, i * 8 + 8)))
    stream = PyLong_AsUnsignedLongLongMask(load(ptr, args, 0))
    if unlikely(PyErr_Occurred() != NULL):
        return NULL
    return PyLong_FromLongLong(i64(queue_product(r, ptr(stream), values)))


@native
def queue_product(r: ptr, stream: ptr, values: ptr) -> i32:
    """Put a product into a stream, and return cuBLAS's status.

    Args:
        r: the struct.
        stream: the driver's handle.
        values: the addresses of both operands and of the result.
    """
    blas = load(ptr, r, G_BLAS)
    status = call_i32(load(ptr, blas, SET_STREAM), load(ptr, blas, HANDLE), stream)
    if unlikely(status != 0):
        return status
    b = load(i64, values, 0) + load(i64, r, G_B + FIRST)
    a = load(i64, values, 8) + load(i64, r, G_A + FIRST)
    c = load(i64, values, 16) + load(i64, r, G_C + FIRST)
    if load(i64, r, G_COUNT) == 1:
        return multiply_one(r, a, b, c)
    return multiply_many(r, a, b, c)


@native
def multiply_one(r: ptr, a: i64, b: i64, c: i64) -> i32:
    blas, kind = load(ptr, r, G_BLAS), i32(load(i64, r, G_KIND))
    return call_i32(
        load(ptr, blas, GEMM),
        load(ptr, blas, HANDLE),
        i32(load(i64, r, G_A + TRANSPOSED)),
        i32(load(i64, r, G_B + TRANSPOSED)),
        i32(load(i64, r, G_SIZES)),
        i32(load(i64, r, G_SIZES + 8)),
        i32(load(i64, r, G_SIZES + 16)),
        load(ptr, r, G_ONE),
        ptr(a),
        kind,
        i32(load(i64, r, G_A + LEAD)),
        ptr(b),
        kind,
        i32(load(i64, r, G_B + LEAD)),
        load(ptr, r, G_ZERO),
        ptr(c),
        kind,
        i32(load(i64, r, G_C + LEAD)),
        i32(load(i64, r, G_COMPUTE)),
        i32(DEFAULT),
    )


@native
def multiply_many(r: ptr, a: i64, b: i64, c: i64) -> i32:
    blas, kind = load(ptr, r, G_BLAS), i32(load(i64, r, G_KIND))
    return call_i32(
        load(ptr, blas, BATCHED),
        load(ptr, blas, HANDLE),
        i32(load(i64, r, G_A + TRANSPOSED)),
        i32(load(i64, r, G_B + TRANSPOSED)),
        i32(load(i64, r, G_SIZES)),
        i32(load(i64, r, G_SIZES + 8)),
        i32(load(i64, r, G_SIZES + 16)),
        load(ptr, r, G_ONE),
        ptr(a),
        kind,
        i32(load(i64, r, G_A + LEAD)),
        load(i64, r, G_A + STEP),
        ptr(b),
        kind,
        i32(load(i64, r, G_B + LEAD)),
        load(i64, r, G_B + STEP),
        load(ptr, r, G_ZERO),
        ptr(c),
        kind,
        i32(load(i64, r, G_C + LEAD)),
        load(i64, r, G_C + STEP),
        i32(load(i64, r, G_COUNT)),
        i32(load(i64, r, G_COMPUTE)),
        i32(DEFAULT),
    )
