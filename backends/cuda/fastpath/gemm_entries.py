"""Calls of cuBLAS by native code.

A struct (:class:`Gemm`) holds the address of cuBLAS's struct (:mod:`..blas.cublas`) and the constant arguments of a
call.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import call_i32, i32, i64, load, native, ptr, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ..blas import cublas


class Matrix(Struct):
    """A matrix of a call, or a batch of matrices."""

    first: i64  # bytes from the operand's address
    transposed: i32
    lead: i32  # the leading dimension
    step: i64  # elements from one matrix of the batch to the next


class Gemm(Struct):
    """A call of cuBLAS's gemm."""

    blas: ptr
    one: ptr
    zero: ptr
    kind: i32
    compute: i32
    count: i32
    m: i32
    n: i32
    k: i32
    a: ptr = array(3)  # a Matrix, as b and c
    b: ptr = array(3)
    c: ptr = array(3)


@native
def queue_product(r: Gemm, stream: ptr, values: ptr) -> i32:
    """Put a product into a stream; ``values`` are the addresses of both operands and of the result."""
    blas = r.blas
    status = call_i32(load(ptr, blas, cublas.SET_STREAM), load(ptr, blas, cublas.HANDLE), stream)
    if unlikely(status != 0):
        return status
    if r.count == 1:
        return multiply_one(r, r.a, r.b, r.c, values)
    return multiply_many(r, r.a, r.b, r.c, values)


@native
def address_of(matrix: Matrix, values: ptr, index: i64) -> ptr:
    return ptr(load(i64, values, index * 8) + matrix.first)


@native
def multiply_one(r: Gemm, a: Matrix, b: Matrix, c: Matrix, values: ptr) -> i32:
    return call_i32(
        load(ptr, r.blas, cublas.GEMM),
        load(ptr, r.blas, cublas.HANDLE),
        a.transposed,
        b.transposed,
        r.m,
        r.n,
        r.k,
        r.one,
        address_of(a, values, 1),
        r.kind,
        a.lead,
        address_of(b, values, 0),
        r.kind,
        b.lead,
        r.zero,
        address_of(c, values, 2),
        r.kind,
        c.lead,
        r.compute,
        i32(cublas.DEFAULT),
    )


@native
def multiply_many(r: Gemm, a: Matrix, b: Matrix, c: Matrix, values: ptr) -> i32:
    return call_i32(
        load(ptr, r.blas, cublas.BATCHED),
        load(ptr, r.blas, cublas.HANDLE),
        a.transposed,
        b.transposed,
        r.m,
        r.n,
        r.k,
        r.one,
        address_of(a, values, 1),
        r.kind,
        a.lead,
        a.step,
        address_of(b, values, 0),
        r.kind,
        b.lead,
        b.step,
        r.zero,
        address_of(c, values, 2),
        r.kind,
        c.lead,
        c.step,
        r.count,
        r.compute,
        i32(cublas.DEFAULT),
    )
