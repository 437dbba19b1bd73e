"""Native runtime: matrix products, the same code for eager calls, jitted calls and the NumPy kernel.

`multiply(a, b, c, call)` computes the product for each point of the leading axes. `call` is a table of i64 (offsets in
`rt_gemm`). Leading axes that only `a` has become rows of one product. `rt_gemm.real_product` computes real and complex
products; 16-bit floats are widened for it, and integers are multiplied here.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, f32, i64, load, native, noinline, ptr, stack, stack_of, store
from . import capi, rt_gemm, rt_halves, rt_layouts
from .rt_gemm import T

FEW: i64 = 8  # integers of a row or a column that are multiplied one by one


@native
def multiply(a: ptr, b: ptr, c: ptr, call: rt_gemm.ProductCall) -> None:
    """Compute the products for all points of the leading axes, or their sum."""
    one: rt_gemm.ProductCall = stack(rt_gemm.ProductCall.lead)  # sizes and strides of one product
    capi.memcpy(one, call, rt_gemm.ProductCall.lead)
    merges = rt_gemm.WRAPS == 0 and call.sum == 0 and call.lead > 0
    if not merges or not multiply_merged_rows(a, b, c, one, call):
        multiply_each(a, b, c, one, call)


@native
def multiply_merged_rows(a: ptr, b: ptr, c: ptr, one: rt_gemm.ProductCall, call: rt_gemm.ProductCall) -> bool:
    """Multiply all rows of `a` by one matrix; return false, with `one` unchanged, if that is not possible."""
    rows = count_merged_rows(call, one)
    if rows == 0:
        return False
    dense: ptr = NULL
    if one.am == -1:
        dense = copy_rows_dense(a, call, rows * one.k)
        if dense == NULL:  # there is no memory for a copy
            one.am = call.am
            return False
        one.am, one.ak = one.k * rt_gemm.ESIZE, rt_gemm.ESIZE
    one.m = rows
    multiply_one(dense if dense != NULL else a, b, c, one, 0)
    if dense != NULL:
        capi.free(dense)
    return True


@native
def count_merged_rows(call: rt_gemm.ProductCall, one: rt_gemm.ProductCall) -> i64:
    """Return the number of rows if `b` is one matrix for all leading axes, else 0; write their stride (-1: varies)."""
    rows, step = call.m, call.am
    varies, points, steps = False, i64(1), call.axes + call.lead * 8
    for j in range(call.lead):
        d = call.lead - 1 - j
        count, along = load(i64, call.axes, d * 8), load(i64, steps, d * 24)
        if load(i64, steps, d * 24 + 8) != 0:
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
    one.am = -1 if varies else step
    return rows


@noinline
def copy_rows_dense(a: ptr, call: rt_gemm.ProductCall, count: i64) -> ptr:
    """Return a contiguous copy of `a` with all its leading axes; NULL if it cannot be allocated."""
    to = capi.malloc(count * rt_gemm.ESIZE)
    if to == NULL:
        return NULL
    index, pointers = stack(rt_gemm.MOST_AXES * 8), stack_of(a, NULL, NULL)
    rt_layouts.fill_integers(index, call.lead, 0)
    out, more = to, True
    while more:
        rt_gemm.copy_elements(load(ptr, pointers, 0), out, call.m, call.k, call.am, call.ak)
        out += call.m * call.k * rt_gemm.ESIZE
        more = rt_layouts.advance(pointers, call.axes, call.axes + call.lead * 8, index, call.lead)
    return to


@native
def multiply_each(a: ptr, b: ptr, c: ptr, one: ptr, call: rt_gemm.ProductCall) -> None:
    """Compute one product for each point of the leading axes."""
    index, pointers = stack(rt_gemm.MOST_AXES * 8), stack_of(a, b, c)
    rt_layouts.fill_integers(index, call.lead, 0)
    keep, more = i64(0), True
    while more:
        a, b, c = load(ptr, pointers, 0), load(ptr, pointers, 8), load(ptr, pointers, 16)
        multiply_one(a, b, c, one, keep)
        keep = call.sum
        more = rt_layouts.advance(pointers, call.axes, call.axes + call.lead * 8, index, call.lead)


@native
def multiply_one(a: ptr, b: ptr, c: ptr, call: ptr, keep: i64) -> None:
    """Compute one product of matrices; with `keep` it is added to `c`."""
    if rt_gemm.WRAPS:
        multiply_integers(a, b, c, call)
    elif rt_gemm.HALF:
        multiply_halves(a, b, c, call)
    else:
        rt_gemm.real_product(a, b, c, call, keep)


@native
def multiply_halves(a: ptr, b: ptr, c: ptr, call: rt_gemm.ProductCall) -> None:
    """Multiply float16 or bfloat16: the product of float32 matrices, rounded."""
    m, k, n, wide = call.m, call.k, call.n, i64(rt_gemm.ISIZE)
    room = capi.malloc((m * k + k * n + m * n) * wide)
    if room == NULL:
        multiply_halves_slowly(a, b, c, call)
        return
    one, two, out = room, room + m * k * wide, room + (m * k + k * n) * wide
    widen(a, one, m, k, call.am, call.ak)
    widen(b, two, k, n, call.bk, call.bn)
    rt_gemm.real_product(one, two, out, stack_of(m, k, n, k * wide, wide, n * wide, wide, n * wide, 0), 0)
    for i in range(m * n):
        rt_halves.store_half(c + i * rt_gemm.ESIZE, load(f32, out, i * rt_gemm.ISIZE))
    capi.free(room)


@native
def widen(source: ptr, to: ptr, rows: i64, columns: i64, over: i64, step: i64) -> None:
    """Copy a matrix of 16-bit floats as float32."""
    if columns == 1:
        rows, columns, step = 1, rows, over
    for i in range(rows):
        if step == rt_gemm.ESIZE:
            widen_row(source + i * over, to + i * columns * rt_gemm.ISIZE, columns)
        else:
            for p in range(columns):
                value = rt_halves.load_half(source + i * over + p * step)
                store(f32, to, (i * columns + p) * rt_gemm.ISIZE, value)


@native
def widen_row(source: ptr, to: ptr, count: i64) -> None:
    """Copy contiguous 16-bit floats as float32; of a constant step LLVM makes vectors."""
    for p in range(count):
        store(f32, to, p * rt_gemm.ISIZE, rt_halves.load_half(source + p * rt_gemm.ESIZE))


@noinline
def multiply_halves_slowly(a: ptr, b: ptr, c: ptr, call: rt_gemm.ProductCall) -> None:
    """Multiply 16-bit floats element by element; used when float32 copies cannot be allocated."""
    for i in range(call.m):
        for j in range(call.n):
            total: f32 = 0.0
            for p in range(call.k):
                left = rt_halves.load_half(a + i * call.am + p * call.ak)
                right = rt_halves.load_half(b + p * call.bk + j * call.bn)
                total += left * right
            rt_halves.store_half(c + i * call.cm + j * rt_gemm.ESIZE, total)


@native
def multiply_integers(a: ptr, b: ptr, c: ptr, call: rt_gemm.ProductCall) -> None:
    """Multiply matrices of integers; sums wrap, so any order gives the same result."""
    n, size = call.n, i64(rt_gemm.ISIZE)
    is_dense = call.ak == size and call.bk == size and call.k >= FEW
    for i in range(call.m):
        row, out = a + i * call.am, c + i * call.cm
        if is_dense:
            for j in range(n):
                store(T, out, j * size, dot(row, b + j * call.bn, call.k))
        elif call.bn == size and n >= FEW:
            add_rows(row, call.ak, b, call.bk, out, call.k, n)
        else:
            for j in range(n):
                total = T(0)
                for p in range(call.k):
                    total += load(T, row, p * call.ak) * load(T, b, p * call.bk + j * call.bn)
                store(T, out, j * size, total)


@noinline
def dot(a: ptr, b: ptr, count: i64) -> T:
    """Return the sum of the products of contiguous integers."""
    total = T(0)
    for p in range(count):
        total += load(T, a, p * rt_gemm.ISIZE) * load(T, b, p * rt_gemm.ISIZE)
    return total


@noinline
def add_rows(a: ptr, ak: i64, b: ptr, bk: i64, out: ptr, count: i64, n: i64) -> None:
    """Write the sum of contiguous rows of integers, each times an element of ``a``; four rows at a time."""
    for j in range(n):
        store(T, out, j * rt_gemm.ISIZE, T(0))
    p: i64 = 0
    while p + 4 <= count:
        one, two = load(T, a, p * ak), load(T, a, (p + 1) * ak)
        three, four = load(T, a, (p + 2) * ak), load(T, a, (p + 3) * ak)
        row = b + p * bk
        second, third, fourth = row + bk, row + 2 * bk, row + 3 * bk
        for j in range(n):
            at = j * rt_gemm.ISIZE
            total = load(T, out, at) + one * load(T, row, at) + two * load(T, second, at)
            store(T, out, at, total + three * load(T, third, at) + four * load(T, fourth, at))
        p += 4
    while p < count:
        factor = load(T, a, p * ak)
        for j in range(n):
            at = j * rt_gemm.ISIZE
            store(T, out, at, load(T, out, at) + factor * load(T, b, p * bk + at))
        p += 1
