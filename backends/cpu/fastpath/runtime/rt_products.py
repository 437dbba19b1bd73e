"""Native runtime: matrix products, the same code for eager calls, jitted calls and the NumPy kernel.

`multiply(a, b, c, call)` computes the product for each point of the leading axes. `call` is a table of i64 (offsets in
`rt_gemm`). Leading axes that only `a` has become rows of one product. `rt_gemm.real_product` computes real and complex
products; 16-bit floats are widened for it, and integers are multiplied here.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, native, noinline, ptr, stack, store
from . import capi, rt_folds, rt_gemm
from .rt_gemm import A, T


@native
def multiply(a: ptr, b: ptr, c: ptr, call: rt_gemm.ProductCall) -> None:
    """Compute the products for all points of the leading axes, or their sum."""
    sizes, strides = stack(24), stack(40)
    for d in range(3):
        store(i64, sizes, d * 8, load(i64, call, d * 8))
    for d in range(5):
        store(i64, strides, d * 8, load(i64, call, rt_gemm.ProductCall.strides + d * 8))
    lead, adds = call.lead, call.sum
    rows = i64(0)
    if adds == 0 and lead > 0:
        rows = count_merged_rows(call, sizes, strides)
    if rows == 0:
        multiply_each(a, b, c, sizes, strides, call)
        return
    rt_gemm.ProductCall(sizes).m = rows
    dense: ptr = NULL
    if rt_gemm.ProductStrides(strides).am == -1:
        dense = copy_rows_dense(a, call, rows * rt_gemm.ProductCall(sizes).k)
        if dense == NULL:  # there is no memory for a copy
            rt_gemm.ProductCall(sizes).m = call.m
            rt_gemm.ProductStrides(strides).am = load(i64, call, rt_gemm.ProductCall.strides)
            multiply_each(a, b, c, sizes, strides, call)
            return
        rt_gemm.ProductStrides(strides).am = rt_gemm.ProductCall(sizes).k * rt_gemm.ESIZE
        rt_gemm.ProductStrides(strides).ak = rt_gemm.ESIZE
    multiply_one(dense if dense != NULL else a, b, c, sizes, strides, 0)
    if dense != NULL:
        capi.free(dense)


@native
def count_merged_rows(
    call: rt_gemm.ProductCall, sizes: rt_gemm.ProductCall, strides: rt_gemm.ProductStrides
) -> i64:
    """Return the number of rows if `b` is one matrix for all leading axes, else 0; write their stride (-1: varies)."""
    rows, step = sizes.m, strides.am
    lead = call.lead
    varies, points = False, i64(1)
    for j in range(lead):
        axis = call + rt_gemm.ProductCall.axes + (lead - 1 - j) * rt_gemm.AXIS_BYTES
        count, along = load(i64, axis, 0), load(i64, axis, 8)
        if load(i64, axis, 16) != 0:
            return 0
        points *= count
        if count != 1:
            if rows == 1:
                step = along
            elif along != rows * step:
                varies = True
            rows *= count
    if points == 1 or rows > rt_gemm.LARGEST:
        return 0
    strides.am = -1 if varies else step
    return rows


@noinline
def copy_rows_dense(a: ptr, call: rt_gemm.ProductCall, count: i64) -> ptr:
    """Return a contiguous copy of `a` with all its leading axes; NULL if it cannot be allocated."""
    to = capi.malloc(count * rt_gemm.ESIZE)
    if to == NULL:
        return NULL
    index, pointers = stack(rt_gemm.MOST_AXES * 8), stack(24)
    start_at(call, a, NULL, NULL, index, pointers)
    out, more = to, True
    while more:
        rt_gemm.copy_elements(
            load(ptr, pointers, 0),
            out,
            call.m,
            call.k,
            load(i64, call, rt_gemm.ProductCall.strides),
            load(i64, call, rt_gemm.ProductCall.strides + rt_gemm.ProductStrides.ak),
        )
        out += call.m * call.k * rt_gemm.ESIZE
        more = step_leading_axes(call, index, pointers)
    return to


@native
def start_at(call: rt_gemm.ProductCall, a: ptr, b: ptr, c: ptr, index: ptr, pointers: ptr) -> None:
    """Write the first index of the leading axes, and the pointers of the operands and the result there."""
    for d in range(call.lead):
        store(i64, index, d * 8, 0)
    store(ptr, pointers, 0, a)
    store(ptr, pointers, 8, b)
    store(ptr, pointers, 16, c)


@native
def step_leading_axes(call: rt_gemm.ProductCall, index: ptr, pointers: ptr) -> bool:
    """Step the leading axes like an odometer and move the pointers; return false after the last step."""
    more, d = False, call.lead - 1
    while d >= 0 and not more:
        axis = call + rt_gemm.ProductCall.axes + d * rt_gemm.AXIS_BYTES
        at = load(i64, index, d * 8) + 1
        more = at < load(i64, axis, 0)
        steps = i64(1) if more else 1 - at
        for k in range(3):
            moved = load(ptr, pointers, k * 8) + steps * load(i64, axis, 8 + k * 8)
            store(ptr, pointers, k * 8, moved)
        store(i64, index, d * 8, at if more else 0)
        d -= 1
    return more


@native
def multiply_each(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr, call: rt_gemm.ProductCall) -> None:
    """Compute one product for each point of the leading axes."""
    index, pointers = stack(rt_gemm.MOST_AXES * 8), stack(24)
    start_at(call, a, b, c, index, pointers)
    keep, more = i64(0), True
    while more:
        a, b, c = load(ptr, pointers, 0), load(ptr, pointers, 8), load(ptr, pointers, 16)
        multiply_one(a, b, c, sizes, strides, keep)
        keep = call.sum
        more = step_leading_axes(call, index, pointers)


@native
def multiply_one(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr, keep: i64) -> None:
    """Compute one product of matrices; with `keep` it is added to `c`."""
    if rt_gemm.WRAPS:
        multiply_integer_matrices(a, b, c, sizes, strides)
    elif rt_gemm.HALF:
        multiply_halves(a, b, c, sizes, strides)
    else:
        rt_gemm.real_product(a, b, c, sizes, strides, keep)


@native
def multiply_halves(
    a: ptr, b: ptr, c: ptr, sizes: rt_gemm.ProductCall, strides: rt_gemm.ProductStrides
) -> None:
    """Multiply float16 or bfloat16: the product of float32 matrices, rounded."""
    m, k, n = sizes.m, sizes.k, sizes.n
    room = capi.malloc((m * k + k * n + m * n) * rt_gemm.ISIZE)
    if room == NULL:
        multiply_halves_slowly(a, b, c, sizes, strides)
        return
    one, two, out = room, room + m * k * rt_gemm.ISIZE, room + (m * k + k * n) * rt_gemm.ISIZE
    widen(a, one, m, k, strides.am, strides.ak)
    widen(b, two, k, n, strides.bk, strides.bn)
    dense: rt_gemm.ProductStrides = stack(40)
    dense.am = k * rt_gemm.ISIZE
    dense.ak = rt_gemm.ISIZE
    dense.bk = n * rt_gemm.ISIZE
    dense.bn = rt_gemm.ISIZE
    dense.cm = n * rt_gemm.ISIZE
    rt_gemm.real_product(one, two, out, sizes, dense, 0)
    for i in range(m * n):
        rt_folds.store_result(c + i * rt_gemm.ESIZE, load(A, out, i * rt_gemm.ISIZE))
    capi.free(room)


@native
def widen(source: ptr, to: ptr, rows: i64, columns: i64, over: i64, step: i64) -> None:
    """Copy a matrix of 16-bit floats as float32."""
    for i in range(rows):
        for p in range(columns):
            store(
                A, to, (i * columns + p) * rt_gemm.ISIZE, rt_folds.load_element(source + i * over + p * step)
            )


@noinline
def multiply_halves_slowly(
    a: ptr, b: ptr, c: ptr, sizes: rt_gemm.ProductCall, strides: rt_gemm.ProductStrides
) -> None:
    """Multiply 16-bit floats element by element; used when float32 copies cannot be allocated."""
    for i in range(sizes.m):
        for j in range(sizes.n):
            total: A = A(0)
            for p in range(sizes.k):
                left = rt_folds.load_element(a + i * strides.am + p * strides.ak)
                right = rt_folds.load_element(b + p * strides.bk + j * strides.bn)
                total += left * right
            rt_folds.store_result(c + i * strides.cm + j * rt_gemm.ESIZE, total)


@native
def multiply_integers(a: ptr, b: ptr, c: ptr, call: ptr) -> None:
    """Multiply integers for all points of the leading axes; sums wrap, so any order gives the same result."""
    sizes, strides = stack(24), stack(40)
    for d in range(3):
        store(i64, sizes, d * 8, load(i64, call, d * 8))
    for d in range(5):
        store(i64, strides, d * 8, load(i64, call, rt_gemm.ProductCall.strides + d * 8))
    multiply_each(a, b, c, sizes, strides, call)


@native
def multiply_integer_matrices(
    a: ptr, b: ptr, c: ptr, sizes: rt_gemm.ProductCall, strides: rt_gemm.ProductStrides
) -> None:
    """Multiply matrices of integers, row by row."""
    n, to = sizes.n, strides.bn
    for i in range(sizes.m):
        out = c + i * strides.cm
        for j in range(n):
            store(T, out, j * rt_gemm.ISIZE, T(0))
        for p in range(sizes.k):
            factor = load(T, a + i * strides.am, p * strides.ak)
            line = b + p * strides.bk
            for j in range(n):
                store(
                    T,
                    out,
                    j * rt_gemm.ISIZE,
                    load(T, out, j * rt_gemm.ISIZE) + factor * load(T, line, j * to),
                )
