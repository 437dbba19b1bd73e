"""The native entry of `matmul(x, y)` and `x @ y`: it allocates the result and fills the table of the call.

The variants' loops (`rt_products.multiply`) compute the products over the leading axes.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i8, i64, load, native, ptr, stack, stack_of, store, unlikely
from ..runtime import capi, rt_entry, rt_gemm, rt_gil, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

CALL_BYTES: i64 = rt_gemm.ProductCall.axes + base.MAX_RANK * rt_gemm.AXIS_BYTES
LONG: i64 = 250000  # multiplications from which the GIL is released


@rt_entry.entry(count=2)
def matmul(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `matmul`.

    Python twin: backends/cpu/kernels/matmul.py:product_kernel
    """
    g, x, y, arrays = entry.globals_, load(ptr, args, 0), load(ptr, args, 8), stack(16)
    key = rt_operands.pair_key(g, x, y, flags, arrays)
    if unlikely(key == base.FOREIGN or load(ptr, arrays, 8) == NULL):
        return Outcome.FALL_BACK
    variant: base.Variant = rt_entry.select_variant(entry, key)
    if unlikely(i64(variant) <= 0):
        return variant
    capi.hold_all(arrays, 2)  # products may run without the GIL
    result = multiply_arrays(variant, load(ptr, arrays, 0), load(ptr, arrays, 8), g)
    capi.release_all(arrays, 2)
    tensor = rt_entry.finish(entry, result)
    if unlikely(base.has_history(g, x, flags) or base.has_history(g, y, flags)):
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
    shape = stack((base.MAX_RANK + 2) * 8)
    call: rt_gemm.ProductCall = stack(CALL_BYTES)
    m, k, n = i64(1), axis_size(one, p - 1), i64(1)
    call.am = 0
    call.ak = axis_step(one, p - 1)
    if p > 1:
        m = axis_size(one, p - 2)
        call.am = axis_step(one, p - 2)
    inner = q - 2 if q > 1 else 0  # the axis of `two` that is summed
    call.bk = axis_step(two, inner)
    call.bn = 0
    if q > 1:
        n = axis_size(two, q - 1)
        call.bn = axis_step(two, q - 1)
    largest: i64 = rt_gemm.LARGEST
    if unlikely(axis_size(two, inner) != k or m > largest or k > largest or n > largest):
        return Outcome.FALL_BACK
    call.m = m
    call.k = k
    call.n = n
    call.cm = n * variant.itemsize
    call.sum = 0
    rank = leading_axes(one, p - 2, two, q - 2, shape, call)
    if unlikely(rank < 0):
        return Outcome.FALL_BACK
    call.lead = rank
    if p > 1:
        store(i64, shape, rank * 8, m)
        rank += 1
    if q > 1:
        store(i64, shape, rank * 8, n)
        rank += 1
    return compute_product(variant, one, two, call, shape, rank, g)


@native
def leading_axes(one: ptr, p: i64, two: ptr, q: i64, shape: ptr, call: rt_gemm.ProductCall) -> i64:
    """Write the common shape of the leading axes and the operands' strides.

    Return the number of axes, -1 if they do not broadcast.
    """
    rank = p if p > q else q
    if rank < 0:
        return 0
    for d in range(rank):
        i, j = d - (rank - p), d - (rank - q)
        left = axis_size(one, i) if i >= 0 else 1
        right = axis_size(two, j) if j >= 0 else 1
        if left != right and left != 1 and right != 1:
            return -1
        axis = call.axes + d * rt_gemm.AXIS_BYTES
        store(i64, shape, d * 8, left if right == 1 else right)
        store(i64, axis, 0, left if right == 1 else right)
        store(i64, axis, 8, axis_step(one, i) if left != 1 else 0)
        store(i64, axis, 16, axis_step(two, j) if right != 1 else 0)
    return rank


@native
def compute_product(
    variant: base.Variant,
    one: capi.Ndarray,
    two: capi.Ndarray,
    call: rt_gemm.ProductCall,
    shape: ptr,
    rank: i64,
    g: ptr,
) -> ptr:
    """Allocate the result and compute it."""
    step = call.m * call.n * variant.itemsize
    for j in range(call.lead):
        axis = call.axes + (call.lead - 1 - j) * rt_gemm.AXIS_BYTES
        store(i64, axis, 24, step)
        step *= load(i64, axis, 0)
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
