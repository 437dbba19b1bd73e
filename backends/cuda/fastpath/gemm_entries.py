"""Native code of a :class:`..blas.gemm.Gemm`: call cuBLAS.

A struct (:class:`Gemm`) holds the address of cuBLAS's struct (:mod:`..blas.cublas`) and the constant arguments of a
call.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import NULL, call_i32, i32, i64, load, native, ptr, stack, store, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ...cpu.fastpath.runtime import capi
from ...cpu.fastpath.runtime import rt_base as base
from ..blas import cublas


class Gemm(Struct):
    """A call of cuBLAS's gemm."""

    blas: ptr
    one: ptr
    zero: ptr
    kind: i64
    compute: i64
    count: i64
    sizes: ptr = array(3)  # m, n, k
    a: ptr = array(4)  # per matrix: offset in bytes, transposed, leading dimension, stride of a batch
    b: ptr = array(4)
    c: ptr = array(4)


FIRST, TRANSPOSED, LEAD, STEP = 0, 8, 16, 24


@native
def multiply(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``gemm(stream, one, two, out)``: cuBLAS's status.

    Python twin: backends/cuda/blas/gemm.py:_make_python_gemm
    """
    r = base.entry_data(self)
    if unlikely((nargsf & base.ARGS_MASK) != 4 or kwnames != NULL):
        return capi.PyLong_FromLongLong(7)  # CUBLAS_STATUS_INVALID_VALUE
    values = stack(24)
    for i in range(3):
        store(i64, values, i * 8, capi.PyLong_AsUnsignedLongLongMask(load(ptr, args, i * 8 + 8)))
    stream = capi.PyLong_AsUnsignedLongLongMask(load(ptr, args, 0))
    if unlikely(capi.PyErr_Occurred() != NULL):
        return NULL
    return capi.PyLong_FromLongLong(i64(queue_product(r, ptr(stream), values)))


@native
def queue_product(r: Gemm, stream: ptr, values: ptr) -> i32:
    """Put a product into a stream, and return cuBLAS's status.

    Args:
        r: the struct.
        stream: the driver's handle.
        values: the addresses of both operands and of the result.
    """
    blas = r.blas
    status = call_i32(load(ptr, blas, cublas.SET_STREAM), load(ptr, blas, cublas.HANDLE), stream)
    if unlikely(status != 0):
        return status
    b = load(i64, values, 0) + load(i64, r, Gemm.b + FIRST)
    a = load(i64, values, 8) + load(i64, r, Gemm.a + FIRST)
    c = load(i64, values, 16) + load(i64, r, Gemm.c + FIRST)
    if r.count == 1:
        return multiply_one(r, a, b, c)
    return multiply_many(r, a, b, c)


@native
def multiply_one(r: Gemm, a: i64, b: i64, c: i64) -> i32:
    blas, kind = r.blas, i32(r.kind)
    return call_i32(
        load(ptr, blas, cublas.GEMM),
        load(ptr, blas, cublas.HANDLE),
        i32(load(i64, r, Gemm.a + TRANSPOSED)),
        i32(load(i64, r, Gemm.b + TRANSPOSED)),
        i32(load(i64, r, Gemm.sizes)),
        i32(load(i64, r, Gemm.sizes + 8)),
        i32(load(i64, r, Gemm.sizes + 16)),
        r.one,
        ptr(a),
        kind,
        i32(load(i64, r, Gemm.a + LEAD)),
        ptr(b),
        kind,
        i32(load(i64, r, Gemm.b + LEAD)),
        r.zero,
        ptr(c),
        kind,
        i32(load(i64, r, Gemm.c + LEAD)),
        i32(r.compute),
        i32(cublas.DEFAULT),
    )


@native
def multiply_many(r: Gemm, a: i64, b: i64, c: i64) -> i32:
    blas, kind = r.blas, i32(r.kind)
    return call_i32(
        load(ptr, blas, cublas.BATCHED),
        load(ptr, blas, cublas.HANDLE),
        i32(load(i64, r, Gemm.a + TRANSPOSED)),
        i32(load(i64, r, Gemm.b + TRANSPOSED)),
        i32(load(i64, r, Gemm.sizes)),
        i32(load(i64, r, Gemm.sizes + 8)),
        i32(load(i64, r, Gemm.sizes + 16)),
        r.one,
        ptr(a),
        kind,
        i32(load(i64, r, Gemm.a + LEAD)),
        load(i64, r, Gemm.a + STEP),
        ptr(b),
        kind,
        i32(load(i64, r, Gemm.b + LEAD)),
        load(i64, r, Gemm.b + STEP),
        r.zero,
        ptr(c),
        kind,
        i32(load(i64, r, Gemm.c + LEAD)),
        load(i64, r, Gemm.c + STEP),
        i32(r.count),
        i32(r.compute),
        i32(cublas.DEFAULT),
    )
