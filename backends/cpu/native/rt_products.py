"""Native runtime: the loops of matrix products: `(a, b, c, sizes, strides)` for one product of a batch.

`sizes` are m, k, n; `strides` in bytes are those of a (m, k), of b (k, n) and of c (m; its n is contiguous).
Types: `T` elements, `A` what they are summed in. BLAS thinks in columns: a row-major array is its transpose there, so
`a @ b` is asked for as `b' a'`.
"""

from __future__ import annotations

from typing import TypeAlias

from .dsl import extern, i8, i32, i64, load, load_i64, native, ptr, stack, store, store_i8, store_i32
from .rt_folds import element, put

T: TypeAlias = int
A: TypeAlias = int

P_M, P_K, P_N = 0, 8, 16
S_AM, S_AK, S_BK, S_BN, S_CM = 0, 8, 16, 24, 32

ISIZE: i64 = 4
PARTS: i64 = 1  # 2 for complex elements, of two T each

gemm = extern("blas_gemm", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)")
gemv = extern("blas_gemv", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)")


@native
def wrapping_product(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr) -> None:
    """Of integers, row by row: sums wrap round, so any order is right."""
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


@native
def half_product(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr) -> None:
    """Of float16 and bfloat16, summed in float32."""
    for i in range(load_i64(sizes, P_M)):
        for j in range(load_i64(sizes, P_N)):
            total: A = A(0)
            for p in range(load_i64(sizes, P_K)):
                left = element(a + i * load_i64(strides, S_AM) + p * load_i64(strides, S_AK))
                right = element(b + p * load_i64(strides, S_BK) + j * load_i64(strides, S_BN))
                total += left * right
            put(c + i * load_i64(strides, S_CM) + j * ISIZE, total)


@native
def blas_product(a: ptr, b: ptr, c: ptr, sizes: ptr, strides: ptr) -> None:
    """Of floats and complex numbers; the entry has made sure that BLAS takes their strides."""
    m, k, n = load_i64(sizes, P_M), load_i64(sizes, P_K), load_i64(sizes, P_N)
    a_row, a_column = load_i64(strides, S_AM), load_i64(strides, S_AK)
    b_row, b_column = load_i64(strides, S_BK), load_i64(strides, S_BN)
    if n == 1:
        by_vector(a, a_row, a_column, m, k, b, b_row, c)
        return
    if m == 1:
        by_vector(b, b_column, b_row, n, k, a, a_column, c)
        return
    counts, flags = stack(24), stack(2)
    store_i32(counts, 0, i32(n))
    store_i32(counts, 4, i32(m))
    store_i32(counts, 8, i32(k))
    store_i32(counts, 12, leading(b_row, b_column, k, n, flags))
    store_i32(counts, 16, leading(a_row, a_column, m, k, flags + 1))
    one, zero, to = stack(16), stack(16), counts + 20
    write_number(one, T(1))
    write_number(zero, T(0))
    store_i32(to, 0, i32(n))
    gemm(flags, flags + 1, counts, counts + 4, counts + 8, one, b, counts + 12, a, counts + 16, zero, c, to)


@native
def by_vector(x: ptr, row: i64, column: i64, rows: i64, columns: i64, v: ptr, step: i64, out: ptr) -> None:
    """A matrix times a vector. The result is cleared first: BLAS libraries differ in what they do with NaN there."""
    counts, flag = stack(24), stack(1)
    plain = row_wise(row, column, rows, columns)
    store_i32(counts, 0, i32(columns if plain else rows))
    store_i32(counts, 4, i32(rows if plain else columns))
    store_i32(counts, 8, leading(row, column, rows, columns, flag))
    store_i32(counts, 12, i32(step // ISIZE if columns > 1 else 1))
    store_i32(counts, 16, 1)
    store_i8(flag, 0, i8(84) if plain else i8(78))  # BLAS sees a row-major matrix as its transpose
    for i in range(rows * PARTS):
        store(T, out, i * (ISIZE // PARTS), T(0))
    one, zero = stack(16), stack(16)
    write_number(one, T(1))
    write_number(zero, T(0))
    gemv(flag, counts, counts + 4, one, x, counts + 8, v, counts + 12, zero, out, counts + 16)


@native
def write_number(where: ptr, value: T) -> None:
    """A real number, as an element."""
    store(T, where, 0, value)
    if PARTS == 2:
        store(T, where, ISIZE // 2, T(0))


@native
def leading(row: i64, column: i64, rows: i64, columns: i64, flag: ptr) -> i32:
    """The leading dimension of a matrix for BLAS; the flag says N for a row-major one and T for a transposed one."""
    plain = row_wise(row, column, rows, columns)
    store_i8(flag, 0, i8(78) if plain else i8(84))
    if plain:
        return i32(row // ISIZE if rows > 1 else columns)
    return i32(column // ISIZE if columns > 1 else rows)


@native
def row_wise(row: i64, column: i64, rows: i64, columns: i64) -> bool:
    """Whether the rows of a matrix lie dense, one after the other."""
    return (column == ISIZE or columns == 1) and (rows == 1 or (row >= columns * ISIZE and row % ISIZE == 0))
