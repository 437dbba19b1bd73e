"""Native runtime: the entry of `matmul(x, y)` and `x @ y`: shapes, batches, and operands that BLAS has to have moved.

The operands of its nests are x, y and the result: NIN is 2 and NARGS is 3. Products are the variants' loops
(`rt_products`), one call for each point of the leading axes.
"""

from __future__ import annotations

from .dsl import (
    NULL,
    call_void,
    extern,
    i64,
    likely,
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
from .layout import ND_DATA, ND_DIMS, ND_NDIM, ND_STRIDES
from .rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    ELSEWHERE,
    allowed,
    call_miss,
    decref,
    entry_data,
    failed,
    has_history,
    incref,
    make_tensor,
    slow,
    thread_flags,
)
from .rt_copies import copied
from .rt_elementwise import MAX_RANK, V_DESCR, V_ITEMSIZE, V_LOOP, V_TO, advance, find_variant
from .rt_memory import new_array
from .rt_operands import CODE_BITS, operand_code
from .rt_products import P_K, P_M, P_N, S_AK, S_AM, S_BK, S_BN, S_CM
from .rt_record import record_call

PyEval_SaveThread = extern("PyEval_SaveThread", "ptr()")
PyEval_RestoreThread = extern("PyEval_RestoreThread", "None(ptr)")

V_BLAS = V_TO  # 1: the loop takes dense rows or dense columns only
LARGEST: i64 = 2147483647  # BLAS counts in 32-bit integers
LONG: i64 = 4000000  # multiplications from which on other threads may run meanwhile


@native
def matmul(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 2 or flags == ELSEWHERE):
        return slow(desc, args, nargsf, kwnames)
    flags = allowed(desc, flags)
    arrays = stack(16)
    left = operand_code(g, load_ptr(args, 0), flags, arrays)
    right = operand_code(g, load_ptr(args, 8), flags, arrays + 8)
    one, two = load_ptr(arrays, 0), load_ptr(arrays, 8)
    if unlikely(left < 0 or right < 0 or one == NULL or two == NULL):
        return slow(desc, args, nargsf, kwnames)
    variant = find_variant(desc, left | right << CODE_BITS)
    if unlikely(variant == NULL):
        return call_miss(desc, args, nargsf, kwnames)
    if unlikely(load_ptr(variant, V_LOOP) == NULL):
        return slow(desc, args, nargsf, kwnames)
    result = with_ready(variant, one, two, g)
    if unlikely(result == NULL):
        return slow(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return failed(desc, args, nargsf, kwnames)
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
def with_ready(variant: ptr, one: ptr, two: ptr, g: ptr) -> ptr:
    """The product of operands that may have to be moved first. NULL: for Python; -1: an exception is set."""
    p, q = i64(load_i32(one, ND_NDIM)), i64(load_i32(two, ND_NDIM))
    if unlikely(p < 1 or q < 1 or p > MAX_RANK or q > MAX_RANK):
        return NULL
    left, right = ready(variant, one, p, g), ready(variant, two, q, g)
    found = ptr(-1)
    if likely(left != NULL and right != NULL):
        found = multiplied(variant, left, p, right, q, g)
    if left != NULL:
        decref(left)
    if right != NULL:
        decref(right)
    return found


@native
def ready(variant: ptr, array: ptr, rank: i64, g: ptr) -> ptr:
    """The array, or a copy that lies dense; a new reference. NULL with an exception set."""
    size, inner = load_i64(variant, V_ITEMSIZE), axis_size(array, rank - 1)
    step = axis_step(array, rank - 1)
    rows, over = i64(1), i64(0)
    if rank > 1:
        rows, over = axis_size(array, rank - 2), axis_step(array, rank - 2)
    if (
        load_i64(variant, V_BLAS) == 0
        or fits(over, step, rows, inner, size)
        or fits(step, over, inner, rows, size)
    ):
        incref(array)
        return array
    return copied(g, array, rank, load_ptr(array, ND_DIMS))


@native
def fits(row: i64, column: i64, rows: i64, columns: i64, size: i64) -> bool:
    """Whether BLAS takes the strides of a matrix; as `rt_products.row_wise`."""
    return (column == size or columns == 1) and (rows == 1 or (row >= columns * size and row % size == 0))


@native
def multiplied(variant: ptr, one: ptr, p: i64, two: ptr, q: i64, g: ptr) -> ptr:
    sizes, steps = stack(24), stack(40)
    shape, strides = stack((MAX_RANK + 2) * 8), stack(MAX_RANK * 24)
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
    store_i64(sizes, P_M, m)
    store_i64(sizes, P_K, k)
    store_i64(sizes, P_N, n)
    store_i64(steps, S_AM, m_step)
    store_i64(steps, S_AK, axis_step(one, p - 1))
    store_i64(steps, S_BK, k_step)
    store_i64(steps, S_BN, n_step)
    store_i64(steps, S_CM, n * load_i64(variant, V_ITEMSIZE))
    lead = leading_axes(one, p - 2, two, q - 2, shape, strides)
    if unlikely(lead < 0):
        return NULL
    rank = lead
    if p > 1:
        store_i64(shape, rank * 8, m)
        rank += 1
    if q > 1:
        store_i64(shape, rank * 8, n)
        rank += 1
    return product(variant, one, two, sizes, steps, shape, strides, lead, rank, g)


@native
def leading_axes(one: ptr, p: i64, two: ptr, q: i64, shape: ptr, strides: ptr) -> i64:
    """The common shape of the leading axes and the operands' strides over it; how many, or -1 if they do not fit."""
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
        store_i64(shape, d * 8, left if right == 1 else right)
        store_i64(strides, d * 24, axis_step(one, i) if left != 1 else 0)
        store_i64(strides, d * 24 + 8, axis_step(two, j) if right != 1 else 0)
    return rank


@native
def product(
    variant: ptr,
    one: ptr,
    two: ptr,
    sizes: ptr,
    steps: ptr,
    shape: ptr,
    strides: ptr,
    lead: i64,
    rank: i64,
    g: ptr,
) -> ptr:
    """Make the result and run through the leading axes."""
    block = load_i64(sizes, P_M) * load_i64(sizes, P_N) * load_i64(variant, V_ITEMSIZE)
    step = block
    for j in range(lead):
        d = lead - 1 - j
        store_i64(strides, d * 24 + 16, step)
        step *= load_i64(shape, d * 8)
    made = new_array(g, load_ptr(variant, V_DESCR), rank, shape, step)
    if unlikely(made == NULL):
        return ptr(-1)
    if unlikely(step == 0):
        return made
    out = load_ptr(made, ND_DATA)
    if unlikely(load_i64(sizes, P_K) == 0):
        for i in range(step):
            store_i8(out, i, 0)
        return made
    pointers = stack(24)
    store_ptr(pointers, 0, load_ptr(one, ND_DATA))
    store_ptr(pointers, 8, load_ptr(two, ND_DATA))
    store_ptr(pointers, 16, out)
    run_products(load_ptr(variant, V_LOOP), pointers, sizes, steps, shape, strides, lead, step)
    return made


@native
def run_products(
    loop: ptr, pointers: ptr, sizes: ptr, steps: ptr, shape: ptr, strides: ptr, lead: i64, total: i64
) -> None:
    index = stack(MAX_RANK * 8)
    for d in range(lead):
        store_i64(index, d * 8, 0)
    saved: ptr = NULL
    if total * load_i64(sizes, P_K) > LONG * 4:
        saved = PyEval_SaveThread()
    more = True
    while more:
        call_void(loop, load_ptr(pointers, 0), load_ptr(pointers, 8), load_ptr(pointers, 16), sizes, steps)
        more = advance(pointers, shape, strides, index, lead)
    if saved != NULL:
        PyEval_RestoreThread(saved)
