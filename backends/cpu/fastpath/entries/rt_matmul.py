"""The native entry of `matmul(x, y)` and `x @ y`: it allocates the result and fills the table of the call.

The variants' loops (`rt_products.multiply`) compute the products over the leading axes.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, call_void, i8, i64, load, native, ptr, stack, store, unlikely
from ..runtime import capi, rt_entry, rt_gemm, rt_gil, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome

CALL_BYTES: i64 = rt_gemm.ProductCall.axes + base.MAX_RANK * rt_gemm.AXIS_BYTES
LONG: i64 = 250000  # multiplications from which the GIL is released


@rt_entry.entry
def matmul(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `matmul`.

    Python twin: backends/cpu/kernels/matmul.py:product_kernel
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != 2):
        return Outcome.FALL_BACK
    arrays = stack(16)
    left = rt_operands.operand_code(g, load(ptr, args, 0), flags, arrays)
    right = rt_operands.operand_code(g, load(ptr, args, 8), flags, arrays + 8)
    one, two = load(ptr, arrays, 0), load(ptr, arrays, 8)
    if unlikely(left < 0 or right < 0 or one == NULL or two == NULL):
        return Outcome.FALL_BACK
    variant: base.Variant = base.find_variant(entry, left | right << base.CODE_BITS)
    if unlikely(variant == NULL):
        return Outcome.MISS
    if unlikely(variant.loop == NULL):
        return Outcome.FALL_BACK
    tensor = rt_entry.finish(entry, multiply_aligned(variant, one, two, g))
    if unlikely(
        base.has_history(g, load(ptr, args, 0), flags) or base.has_history(g, load(ptr, args, 8), flags)
    ):
        values = stack(24)
        store(ptr, values, 0, load(ptr, args, 0))
        store(ptr, values, 8, load(ptr, args, 8))
        return rt_record.record_call(entry, values, 2, tensor)
    return tensor


@native
def axis_size(array: capi.Ndarray, d: i64) -> i64:
    return load(i64, array.dims, d * 8)


@native
def axis_step(array: capi.Ndarray, d: i64) -> i64:
    return load(i64, array.strides, d * 8)


@native
def multiply_aligned(variant: ptr, one: capi.Ndarray, two: capi.Ndarray, g: ptr) -> ptr:
    """Return the product of two arrays, or an `Outcome`."""
    p, q = i64(one.ndim), i64(two.ndim)
    if unlikely(p < 1 or q < 1 or p > base.MAX_RANK or q > base.MAX_RANK):
        return Outcome.FALL_BACK
    capi.incref(one)  # products may run without the GIL
    capi.incref(two)
    result = multiply_arrays(variant, one, p, two, q, g)
    capi.decref(two)
    capi.decref(one)
    return result


@native
def multiply_arrays(variant: base.Variant, one: ptr, p: i64, two: ptr, q: i64, g: ptr) -> ptr:
    call, shape = stack(CALL_BYTES), stack((base.MAX_RANK + 2) * 8)
    strides: rt_gemm.ProductStrides = call + rt_gemm.ProductCall.strides
    m, k, n = i64(1), axis_size(one, p - 1), i64(1)
    m_step, n_step = i64(0), i64(0)
    if p > 1:
        m, m_step = axis_size(one, p - 2), axis_step(one, p - 2)
    inner, k_step = axis_size(two, 0), axis_step(two, 0)
    if q > 1:
        n, n_step = axis_size(two, q - 1), axis_step(two, q - 1)
        inner, k_step = axis_size(two, q - 2), axis_step(two, q - 2)
    if unlikely(inner != k or m > rt_gemm.LARGEST or k > rt_gemm.LARGEST or n > rt_gemm.LARGEST):
        return Outcome.FALL_BACK
    rt_gemm.ProductCall(call).m = m
    rt_gemm.ProductCall(call).k = k
    rt_gemm.ProductCall(call).n = n
    strides.am = m_step
    strides.ak = axis_step(one, p - 1)
    strides.bk = k_step
    strides.bn = n_step
    strides.cm = n * variant.itemsize
    rt_gemm.ProductCall(call).sum = 0
    rank = leading_axes(one, p - 2, two, q - 2, shape, call)
    if unlikely(rank < 0):
        return Outcome.FALL_BACK
    rt_gemm.ProductCall(call).lead = rank
    if p > 1:
        store(i64, shape, rank * 8, m)
        rank += 1
    if q > 1:
        store(i64, shape, rank * 8, n)
        rank += 1
    return compute_product(variant, one, two, call, shape, rank, g)


@native
def leading_axes(one: ptr, p: i64, two: ptr, q: i64, shape: ptr, call: ptr) -> i64:
    """Write the common shape of the leading axes and the operands' strides.

    Return the number of axes, -1 if they do not broadcast.
    """
    rank = p if p > q else q
    if rank < 0:
        return 0
    for d in range(rank):
        i, j = d - (rank - p), d - (rank - q)
        left, right = i64(1), i64(1)
        if i >= 0:
            left = axis_size(one, i)
        if j >= 0:
            right = axis_size(two, j)
        if left != right and left != 1 and right != 1:
            return -1
        axis = call + rt_gemm.ProductCall.axes + d * rt_gemm.AXIS_BYTES
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
    lead = call.lead
    step = call.m * call.n * variant.itemsize
    for j in range(lead):
        axis = call + rt_gemm.ProductCall.axes + (lead - 1 - j) * rt_gemm.AXIS_BYTES
        store(i64, axis, 24, step)
        step *= load(i64, axis, 0)
    made: capi.Ndarray = rt_memory.new_array(g, variant.descr, rank, shape, step)
    if unlikely(made == NULL):
        return Outcome.RETRY
    if unlikely(step == 0):
        return made
    out = made.data
    if unlikely(call.k == 0):
        for i in range(step):
            store(i8, out, i, 0)
        return made
    many = step // variant.itemsize * call.k
    saved = rt_gil.release_gil(many >= LONG)
    call_void(variant.loop, one.data, two.data, out, call)
    rt_gil.acquire_gil(saved)
    return made
