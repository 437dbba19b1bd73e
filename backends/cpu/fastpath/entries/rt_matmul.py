"""The native entry of `matmul(x, y)` and `x @ y`: it allocates the result and fills the table of the call.

The variants' loops (`rt_products.multiply`) compute the products over the leading axes.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i8, i64, load, native, ptr, stack, stack_of, store, unlikely
from ..runtime import (
    capi,
    rt_batches,
    rt_entry,
    rt_gemm,
    rt_gil,
    rt_layouts,
    rt_memory,
    rt_operands,
    rt_record,
)
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

CALL_BYTES: i64 = rt_gemm.ProductCall.axes + base.MAX_RANK * 32
LONG: i64 = 250000  # multiplications from which the GIL is released


@rt_entry.entry(count=2, converts=0, at_level=rt_batches.run_at_level)
def matmul(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `matmul`.

    Python twin: backends/cpu/kernels/matmul.py:product_kernel
    """
    g, x, y, arrays = entry.globals_, load(ptr, args, 0), load(ptr, args, 8), stack(16)
    variant: base.Variant = rt_entry.select_variant(entry, rt_operands.pair_key(g, x, y, flags, arrays))
    if unlikely(i64(variant) <= 0):
        return variant
    capi.hold_all(arrays, 2)  # products may run without the GIL
    result = multiply_arrays(variant, load(ptr, arrays, 0), load(ptr, arrays, 8), g)
    capi.release_all(arrays, 2)
    tensor = rt_entry.finish(entry, result)
    if unlikely(rt_record.is_recorded(g, flags, args, 2)):
        return rt_record.record_call(entry, stack_of(x, y, tensor), 2)
    return tensor


@native
def axis_size(array: capi.Ndarray, d: i64) -> i64:
    return load(i64, array.dims, d * 8)


@native
def axis_step(array: capi.Ndarray, d: i64) -> i64:
    return load(i64, array.strides, d * 8)


@native
def multiply_arrays(variant: base.Variant, one: capi.Ndarray, two: capi.Ndarray, g: ptr) -> ptr:
    """Return the product of two arrays, or an `Outcome`."""
    p, q = i64(one.ndim), i64(two.ndim)
    if unlikely(p < 1 or q < 1 or p > base.MAX_RANK or q > base.MAX_RANK):
        return Outcome.FALL_BACK
    call: rt_gemm.ProductCall = stack(CALL_BYTES)
    m, k, n = i64(1), axis_size(one, p - 1), i64(1)
    call.am, call.ak = 0, axis_step(one, p - 1)
    if p > 1:
        m = axis_size(one, p - 2)
        call.am = axis_step(one, p - 2)
    inner = q - 2 if q > 1 else 0  # the axis of `two` that is summed
    call.bk, call.bn = axis_step(two, inner), 0
    if q > 1:
        n = axis_size(two, q - 1)
        call.bn = axis_step(two, q - 1)
    is_large = m > rt_gemm.LARGEST or k > rt_gemm.LARGEST or n > rt_gemm.LARGEST
    if unlikely(axis_size(two, inner) != k or is_large):
        return Outcome.FALL_BACK
    call.m, call.k, call.n = m, k, n
    call.cm, call.sum = n * variant.itemsize, 0
    call.lead = broadcast_leading_axes(one, p - 2, two, q - 2, call)
    if unlikely(call.lead < 0):
        return Outcome.FALL_BACK
    return compute_product(variant, one, two, call, g)


@native
def broadcast_leading_axes(one: ptr, p: i64, two: ptr, q: i64, call: rt_gemm.ProductCall) -> i64:
    """Write the sizes of the leading axes, and the operands' strides; return their number, -1 if they do not fit."""
    rank = p if p > q else q
    if rank <= 0:
        return 0
    sizes, steps = call.axes, call.axes + rank * 8
    rt_layouts.fill_integers(sizes, rank, 1)
    if not rt_layouts.merge_sizes(one, p, sizes, rank) or not rt_layouts.merge_sizes(two, q, sizes, rank):
        return -1
    rt_layouts.operand_strides(one, p, rank, steps)
    rt_layouts.operand_strides(two, q, rank, steps + 8)
    return rank


@native
def compute_product(
    variant: base.Variant, one: capi.Ndarray, two: capi.Ndarray, call: rt_gemm.ProductCall, g: ptr
) -> ptr:
    """Allocate the result and compute it."""
    shape, rank, size = stack((base.MAX_RANK + 2) * 8), call.lead, call.m * call.n * variant.itemsize
    step = rt_layouts.write_row_major_strides(call.axes + rank * 8 + 16, 24, call.axes, rank, size)
    capi.memcpy(shape, call.axes, rank * 8)
    if one.ndim > 1:
        store(i64, shape, rank * 8, call.m)
        rank += 1
    if two.ndim > 1:
        store(i64, shape, rank * 8, call.n)
        rank += 1
    made: capi.Ndarray = rt_memory.new_array(g, variant.descr, rank, shape, step)
    if unlikely(made == NULL):
        return Outcome.RETRY
    if unlikely(step == 0):
        return made
    if unlikely(call.k == 0):
        for i in range(step):
            store(i8, made.data, i, 0)
        return made
    many = step // variant.itemsize * call.k
    saved = rt_gil.release_gil(many >= LONG)
    call_void(variant.loop, one.data, two.data, made.data, call)
    rt_gil.acquire_gil(saved)
    return made
