"""Native runtime: matrix products, the same code for eager calls, jitted calls and the NumPy kernel.

`multiply(a, b, c, call)` computes the product for each point of the leading axes. `call` is a table of i64 (offsets in
`rt_gemm`). Leading axes that only `a` has become rows of one product. `rt_gemm.real_product` computes real and complex
products; 16-bit floats are widened for it, and integers are multiplied here.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, load, load_i64, native, noinline, ptr, stack, store, store_i64
from .rt_folds import load_element, store_result
from .rt_gemm import (
    AXIS_BYTES,
    ESIZE,
    HALF,
    ISIZE,
    LARGEST,
    MOST_AXES,
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
    WRAPS,
    A,
    T,
    copy_elements,
    free,
    malloc,
    real_product,
)


@native
def multiply(a: ptr, b: ptr, c: ptr, call: ptr) -> None:
    """Compute the products for all points of the leading axes, or their sum."""
    sizes, strides = stack(24), stack(40)
    for d in range(3):
        store_i64(sizes, d * 8, load_i64(call, d * 8))
    for d in range(5):
        store_i64(strides, d * 8, load_i64(call, P_STRIDES + d * 8))
    lead, adds = load_i64(call, P_LEAD), load_i64(call, P_SUM)
    rows = i64(0)
    if adds == 0 and lead > 0:
        rows = count_merged_rows(call, sizes, strides)
    if rows == 0:
        multiply_each(a, b, c, sizes, strides, call)
        return
    store_i64(sizes, P_M, rows)
    dense: ptr = NULL
    if load_i64(strides, S_AM) == -1:
        dense = copy_rows_dense(a, call, rows * load_i64(sizes, P_K))
        if dense == NULL:  # there is no memory for a copy
            store_i64(sizes, P_M, load_i64(call, P_M))
            store_i64(strides, S_AM, load_i64(call, P_STRIDES))
            multiply_each(a, b, c, sizes, strides, call)
            return
        store_i64(strides, S_AM, load_i64(sizes, P_K) * ESIZE)
        store_i64(strides, S_AK, ESIZE)
    multiply_one(dense if dense != NULL else a, b, c, sizes, strides, 0)
    if dense != NULL:
        free(dense)


@native
def count_merged_rows(call: ptr, sizes: ptr, strides: ptr) -> i64:
    """Return the number of rows if `b` is one matrix for all leading axes, else 0; write their stride (-1: varies)."""
    rows, step = load_i64(sizes, P_M), load_i64(strides, S_AM)
    lead = load_i64(call, P_LEAD)
    varies, points = False, i64(1)
    for j in range(lead):
        axis = call + P_AXES + (lead - 1 - j) * AXIS_BYTES
        count, along = load_i64(axis, 0), load_i64(axis, 8)
        if load_i64(axis, 16) != 0:
            return 0
        points *= count
        if count != 1:
            if rows == 1:
                step = along
            elif along != rows * step:
                varies = True
            rows *= count
    if points == 1 or rows > LARGEST:
        return 0
    store_i64(strides, S_AM, -1 if varies else step)
    return rows


@noinline
def copy_rows_dense(a: ptr, call: ptr, count: i64) -> ptr:
    """Return a contiguous copy of `a` with all its leading axes; NULL if it cannot be allocated."""
    to = malloc(count * ESIZE)
    if to == NULL:
        return NULL
    index = stack(MOST_AXES * 8)
    lead, block = load_i64(call, P_LEAD), load_i64(call, P_M) * load_i64(call, P_K) * ESIZE
    for d in range(lead):
        store_i64(index, d * 8, 0)
    place, out, more = a, to, True
    while more:
        rows, columns = load_i64(call, P_M), load_i64(call, P_K)
        copy_elements(place, out, rows, columns, load_i64(call, P_STRIDES), load_i64(call, P_STRIDES + S_AK))
        out += block
        more = False
        d = lead - 1
        while d >= 0 and not more:
            axis = call + P_AXES + d * AXIS_BYTES
            at = load_i64(index, d * 8) + 1
            more = at < load_i64(axis, 0)
            place += load_i64(axis, 8) if more else (1 - at) * load_i64(axis, 8)
            store_i64(index, d * 8, at if more else 0)
            d -= 1
    return to


@native
def multiply_each(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr, call: ptr) -> None:
    """Compute one product for each point of the leading axes."""
    index = stack(MOST_AXES * 8)
    lead, adds = load_i64(call, P_LEAD), load_i64(call, P_SUM)
    for d in range(lead):
        store_i64(index, d * 8, 0)
    keep, more = i64(0), True
    while more:
        multiply_one(a, b, c, sizes, strides, keep)
        keep = adds
        more = False
        d = lead - 1
        while d >= 0 and not more:
            axis = call + P_AXES + d * AXIS_BYTES
            at = load_i64(index, d * 8) + 1
            more = at < load_i64(axis, 0)
            steps = i64(1) if more else 1 - at
            a += steps * load_i64(axis, 8)
            b += steps * load_i64(axis, 16)
            c += steps * load_i64(axis, 24)
            store_i64(index, d * 8, at if more else 0)
            d -= 1


@native
def multiply_one(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr, keep: i64) -> None:
    """Compute one product of matrices; with `keep` it is added to `c`."""
    if WRAPS:
        multiply_integer_matrices(a, b, c, sizes, strides)
    elif HALF:
        multiply_halves(a, b, c, sizes, strides)
    else:
        real_product(a, b, c, sizes, strides, keep)


@native
def multiply_halves(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr) -> None:
    """Multiply float16 or bfloat16: the product of float32 matrices, rounded."""
    m, k, n = load_i64(sizes, P_M), load_i64(sizes, P_K), load_i64(sizes, P_N)
    room = malloc((m * k + k * n + m * n) * ISIZE)
    if room == NULL:
        multiply_halves_slowly(a, b, c, sizes, strides)
        return
    one, two, out = room, room + m * k * ISIZE, room + (m * k + k * n) * ISIZE
    widen(a, one, m, k, load_i64(strides, S_AM), load_i64(strides, S_AK))
    widen(b, two, k, n, load_i64(strides, S_BK), load_i64(strides, S_BN))
    dense = stack(40)
    store_i64(dense, S_AM, k * ISIZE)
    store_i64(dense, S_AK, ISIZE)
    store_i64(dense, S_BK, n * ISIZE)
    store_i64(dense, S_BN, ISIZE)
    store_i64(dense, S_CM, n * ISIZE)
    real_product(one, two, out, sizes, dense, 0)
    for i in range(m * n):
        store_result(c + i * ESIZE, load(A, out, i * ISIZE))
    free(room)


@native
def widen(source: ptr, to: ptr, rows: i64, columns: i64, over: i64, step: i64) -> None:
    """Copy a matrix of 16-bit floats as float32."""
    for i in range(rows):
        for p in range(columns):
            store(A, to, (i * columns + p) * ISIZE, load_element(source + i * over + p * step))


@noinline
def multiply_halves_slowly(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr) -> None:
    """Multiply 16-bit floats element by element; used when float32 copies cannot be allocated."""
    for i in range(load_i64(sizes, P_M)):
        for j in range(load_i64(sizes, P_N)):
            total: A = A(0)
            for p in range(load_i64(sizes, P_K)):
                left = load_element(a + i * load_i64(strides, S_AM) + p * load_i64(strides, S_AK))
                right = load_element(b + p * load_i64(strides, S_BK) + j * load_i64(strides, S_BN))
                total += left * right
            store_result(c + i * load_i64(strides, S_CM) + j * ESIZE, total)


@native
def multiply_integers(a: ptr, b: ptr, c: ptr, call: ptr) -> None:
    """Multiply integers for all points of the leading axes; sums wrap, so any order gives the same result."""
    sizes, strides = stack(24), stack(40)
    for d in range(3):
        store_i64(sizes, d * 8, load_i64(call, d * 8))
    for d in range(5):
        store_i64(strides, d * 8, load_i64(call, P_STRIDES + d * 8))
    multiply_each(a, b, c, sizes, strides, call)


@native
def multiply_integer_matrices(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr) -> None:
    """Multiply matrices of integers, row by row."""
    n, to = load_i64(sizes, P_N), load_i64(strides, S_BN)
    for i in range(load_i64(sizes, P_M)):
        out = c + i * load_i64(strides, S_CM)
        for j in range(n):
            store(T, out, j * ISIZE, T(0))
        for p in range(load_i64(sizes, P_K)):
            factor = load(T, a + i * load_i64(strides, S_AM), p * load_i64(strides, S_AK))
            line = b + p * load_i64(strides, S_BK)
            for j in range(n):
                store(T, out, j * ISIZE, load(T, out, j * ISIZE) + factor * load(T, line, j * to))
