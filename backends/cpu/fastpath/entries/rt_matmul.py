"""Native runtime: the entry of `matmul(x, y)` and `x @ y`: it allocates the result and fills the table of the call.

The variants' loops (`rt_products.multiply`) compute the products over the leading axes.
"""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    call_void,
    i64,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i8,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.layout import ND_DATA, ND_DIMS, ND_NDIM, ND_STRIDES
from .rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    ELSEWHERE,
    allowed_flags,
    call_miss,
    decref,
    entry_data,
    fall_back,
    has_history,
    incref,
    make_tensor,
    retry_in_python,
    thread_flags,
)
from .rt_elementwise import MAX_RANK, V_DESCR, V_ITEMSIZE, V_LOOP, find_variant
from .rt_gemm import (
    AXIS_BYTES,
    LARGEST,
    P_AXES,
    P_K,
    P_LEAD,
    P_M,
    P_N,
    P_STRIDES,
    P_SUM,
    S_AK,
    S_AM,
    S_BK,
    S_BN,
    S_CM,
)
from .rt_gil import acquire_gil, release_gil
from .rt_memory import new_array
from .rt_operands import CODE_BITS, operand_code
from .rt_record import record_call

CALL_BYTES: i64 = P_AXES + MAX_RANK * AXIS_BYTES
LONG: i64 = 250000  # multiplications from which the GIL is released


@native
def matmul(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `matmul`.

    Python twin: backends/cpu/kernels/matmul.py:product_kernel
    """
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 2 or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    arrays = stack(16)
    left = operand_code(g, load_ptr(args, 0), flags, arrays)
    right = operand_code(g, load_ptr(args, 8), flags, arrays + 8)
    one, two = load_ptr(arrays, 0), load_ptr(arrays, 8)
    if unlikely(left < 0 or right < 0 or one == NULL or two == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    variant = find_variant(desc, left | right << CODE_BITS)
    if unlikely(variant == NULL):
        return call_miss(desc, args, nargsf, kwnames)
    if unlikely(load_ptr(variant, V_LOOP) == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    result = multiply_aligned(variant, one, two, g)
    if unlikely(result == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return retry_in_python(desc, args, nargsf, kwnames)
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    tensor = make_tensor(g, result)
    if unlikely(has_history(g, load_ptr(args, 0), flags) or has_history(g, load_ptr(args, 8), flags)):
        values = stack(24)
        store_ptr(values, 0, load_ptr(args, 0))
        store_ptr(values, 8, load_ptr(args, 8))
        return record_call(desc, values, 2, tensor)
    return tensor


@native
def axis_size(array: ptr, d: i64) -> i64:
    return load_i64(load_ptr(array, ND_DIMS), d * 8)


@native
def axis_step(array: ptr, d: i64) -> i64:
    return load_i64(load_ptr(array, ND_STRIDES), d * 8)


@native
def multiply_aligned(variant: ptr, one: ptr, two: ptr, g: ptr) -> ptr:
    """Return the product of two arrays. NULL: Python must run the call; -1: an exception is set."""
    p, q = i64(load_i32(one, ND_NDIM)), i64(load_i32(two, ND_NDIM))
    if unlikely(p < 1 or q < 1 or p > MAX_RANK or q > MAX_RANK):
        return NULL
    incref(one)  # products may run without the GIL
    incref(two)
    result = multiply_arrays(variant, one, p, two, q, g)
    decref(two)
    decref(one)
    return result


@native
def multiply_arrays(variant: ptr, one: ptr, p: i64, two: ptr, q: i64, g: ptr) -> ptr:
    call, shape = stack(CALL_BYTES), stack((MAX_RANK + 2) * 8)
    strides = call + P_STRIDES
    m, k, n = i64(1), axis_size(one, p - 1), i64(1)
    m_step, n_step = i64(0), i64(0)
    if p > 1:
        m, m_step = axis_size(one, p - 2), axis_step(one, p - 2)
    inner, k_step = axis_size(two, 0), axis_step(two, 0)
    if q > 1:
        n, n_step = axis_size(two, q - 1), axis_step(two, q - 1)
        inner, k_step = axis_size(two, q - 2), axis_step(two, q - 2)
    if unlikely(inner != k or m > LARGEST or k > LARGEST or n > LARGEST):
        return NULL
    store_i64(call, P_M, m)
    store_i64(call, P_K, k)
    store_i64(call, P_N, n)
    store_i64(strides, S_AM, m_step)
    store_i64(strides, S_AK, axis_step(one, p - 1))
    store_i64(strides, S_BK, k_step)
    store_i64(strides, S_BN, n_step)
    store_i64(strides, S_CM, n * load_i64(variant, V_ITEMSIZE))
    store_i64(call, P_SUM, 0)
    rank = leading_axes(one, p - 2, two, q - 2, shape, call)
    if unlikely(rank < 0):
        return NULL
    store_i64(call, P_LEAD, rank)
    if p > 1:
        store_i64(shape, rank * 8, m)
        rank += 1
    if q > 1:
        store_i64(shape, rank * 8, n)
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
        axis = call + P_AXES + d * AXIS_BYTES
        store_i64(shape, d * 8, left if right == 1 else right)
        store_i64(axis, 0, left if right == 1 else right)
        store_i64(axis, 8, axis_step(one, i) if left != 1 else 0)
        store_i64(axis, 16, axis_step(two, j) if right != 1 else 0)
    return rank


@native
def compute_product(variant: ptr, one: ptr, two: ptr, call: ptr, shape: ptr, rank: i64, g: ptr) -> ptr:
    """Allocate the result and compute it."""
    lead = load_i64(call, P_LEAD)
    step = load_i64(call, P_M) * load_i64(call, P_N) * load_i64(variant, V_ITEMSIZE)
    for j in range(lead):
        axis = call + P_AXES + (lead - 1 - j) * AXIS_BYTES
        store_i64(axis, 24, step)
        step *= load_i64(axis, 0)
    made = new_array(g, load_ptr(variant, V_DESCR), rank, shape, step)
    if unlikely(made == NULL):
        return ptr(-1)
    if unlikely(step == 0):
        return made
    out = load_ptr(made, ND_DATA)
    if unlikely(load_i64(call, P_K) == 0):
        for i in range(step):
            store_i8(out, i, 0)
        return made
    many = step // load_i64(variant, V_ITEMSIZE) * load_i64(call, P_K)
    saved = release_gil(many >= LONG)
    call_void(load_ptr(variant, V_LOOP), load_ptr(one, ND_DATA), load_ptr(two, ND_DATA), out, call)
    acquire_gil(saved)
    return made
