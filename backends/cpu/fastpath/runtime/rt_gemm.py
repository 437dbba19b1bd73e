"""Native runtime: one product of two matrices: prewritten code for small products and vectors, or BLAS's gemm.

The sizes alone decide which code computes a product: a small one is a chain of fused multiply-adds for each element
(`codegen.small_product`), a product with a vector also has its own code (`codegen.vector_product`), and any other one
is BLAS's gemm. Each returns the same bits for every layout of the operands. BLAS is column-major: a row-major array is
its transpose there, so `a @ b` is computed as `b' a'`. Types: `E` elements as stored, `T` as multiplied; `I`, `A` and
`O` as in `rt_folds`.
"""

from __future__ import annotations

from typing import TypeAlias

from ..compiler.dsl import NULL, extern, i8, i32, i64, load, native, noinline, ptr, stack, store, template
from ..compiler.structs import Struct, array
from . import capi

T: TypeAlias = int
A: TypeAlias = int
E: TypeAlias = int


# The table of a call: sizes; strides in bytes of a (m, k), b (k, n), c (m; its n is contiguous); whether the products
# are summed up in one result; how many leading axes there are; and for each of these its size and strides of a, b, c.
class ProductCall(Struct):
    """The table of a matrix product's call."""

    m: i64
    k: i64
    n: i64
    strides: ptr = array(5)  # ProductStrides
    sum: i64  # 1: the products are summed up in one result
    lead: i64  # number of leading axes
    axes: ptr = array(1)  # per leading axis: size, strides of a, b, c


AXIS_BYTES = 32


class ProductStrides(Struct):
    """Strides in bytes of a (m, k), b (k, n), c (m; its n is contiguous)."""

    am: i64
    ak: i64
    bk: i64
    bn: i64
    cm: i64


ESIZE: i64 = template(4)  # bytes of an element as it is stored
ISIZE: i64 = template(4)  # bytes of an element as it is multiplied: 16-bit floats are multiplied as float32
PARTS: i64 = template(1)  # 2 for complex elements, of two T each
WRAPS: i64 = template(0)  # 1: elements are integers
HALF: i64 = template(0)  # 1: elements are 16-bit floats
SMALL: i64 = (
    1048576  # multiplications: up to here BLAS has code of its own for each layout, with bits of its own
)
SIDE: i64 = 256  # a product with no more rows and columns, and no more than
BLOCK: i64 = 32768  # elements of the result, is small along a depth of
DEEP: i64 = 1024
LARGEST: i64 = 2147483647  # BLAS uses 32-bit integers
MOST_AXES: i64 = 64

gemm = extern("blas_gemm", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)")
gemv = extern("blas_gemv", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)")
small_product = extern("small_product", "None(ptr, ptr, ptr, ptr, ptr)")
dot_product = extern("dot_product", "None(ptr, ptr, ptr, i64, i64, i64, i64, i64)")
rows_by_vector = extern("rows_by_vector", "None(ptr, ptr, ptr, i64, i64, i64, i64, i64)")
columns_by_vector = extern("columns_by_vector", "None(ptr, ptr, ptr, i64, i64, i64, i64, i64)")


@native
def is_small(m: i64, k: i64, n: i64) -> bool:
    """Return whether a product of real matrices uses prewritten code rather than BLAS."""
    return m * k * n <= SMALL or (m <= SIDE and n <= SIDE and m * n <= BLOCK and k <= DEEP)


@native
def copy_elements(source: ptr, to: ptr, rows: i64, columns: i64, over: i64, step: i64) -> None:
    for i in range(rows):
        for p in range(columns):
            for part in range(PARTS):
                some = part * (ESIZE // PARTS)
                store(E, to, (i * columns + p) * ESIZE + some, load(E, source, i * over + p * step + some))


@native
def real_product(a: ptr, b: ptr, c: ptr, sizes: ProductCall, strides: ProductStrides, keep: i64) -> None:
    """Multiply real or complex matrices; with `keep` the product is added to `c`."""
    m, k, n = sizes.m, sizes.k, sizes.n
    a_row, a_column = strides.am, strides.ak
    b_row, b_column = strides.bk, strides.bn
    done = False
    if PARTS == 1:
        if n == 1:
            done = multiply_real_by_vector(a, a_row, a_column, m, k, b, b_row, c, keep)
        elif m == 1:
            done = multiply_real_by_vector(b, b_column, b_row, n, k, a, a_column, c, keep)
    if not done and (PARTS == 2 or (m != 1 and n != 1 and not is_small(m, k, n))):
        done = multiply_by_blas(a, a_row, a_column, b, b_row, b_column, c, m, k, n, keep)
    if not done:  # also if there is no memory for a copy
        multiply_small(a, b, c, sizes, strides, keep)


@native
def multiply_by_blas(
    a: ptr,
    a_row: i64,
    a_column: i64,
    b: ptr,
    b_row: i64,
    b_column: i64,
    c: ptr,
    m: i64,
    k: i64,
    n: i64,
    keep: i64,
) -> bool:
    """Multiply by BLAS, copying operands where needed; return false if a copy cannot be allocated."""
    one, two = a, b
    if not is_blas_layout(a_row, a_column, m, k):
        one = copy_dense(a, m, k, a_row, a_column)
        a_row, a_column = k * ISIZE, ISIZE
    if not is_blas_layout(b_row, b_column, k, n):
        two = copy_dense(b, k, n, b_row, b_column)
        b_row, b_column = n * ISIZE, ISIZE
    served = one != NULL and two != NULL
    if served:
        if PARTS == 2 and n == 1:
            call_gemv(one, a_row, a_column, m, k, two, b_row, c, keep)
        elif PARTS == 2 and m == 1:
            call_gemv(two, b_column, b_row, n, k, one, a_column, c, keep)
        else:
            call_gemm(one, a_row, a_column, two, b_row, b_column, c, m, k, n, keep)
    if one != a:
        capi.free(one)
    if two != b:
        capi.free(two)
    return bool(served)


@native
def multiply_real_by_vector(
    x: ptr, row: i64, column: i64, m: i64, k: i64, v: ptr, step: i64, c: ptr, keep: i64
) -> bool:
    """Multiply a matrix by a vector with `codegen.vector_product`; return false if a copy cannot be allocated."""
    matrix, vector = x, v
    is_dense = column == ISIZE or k == 1
    by_columns = not is_dense and m > 1 and row == ISIZE
    if not is_dense and not by_columns:
        matrix = copy_dense(x, m, k, row, column)
        row = k * ISIZE
    if not by_columns and step != ISIZE and k != 1:
        vector = copy_dense(v, 1, k, 0, step)
    served = matrix != NULL and vector != NULL
    if served:
        if keep == 0:
            for i in range(m):
                store(T, c, i * ISIZE, T(0))
        if by_columns:
            columns_by_vector(matrix, vector, c, m, k, row, column, step)
        elif m == 1:
            dot_product(matrix, vector, c, m, k, row, ISIZE, ISIZE)
        else:
            rows_by_vector(matrix, vector, c, m, k, row, ISIZE, ISIZE)
    if matrix != x:
        capi.free(matrix)
    if vector != v:
        capi.free(vector)
    return bool(served)


@native
def is_blas_layout(row: i64, column: i64, rows: i64, columns: i64) -> bool:
    """Return whether BLAS can read a matrix in place: with dense rows, or dense columns, in order.

    Complex matrices need dense rows: BLAS's result for others has other bits.
    """
    return has_dense_rows(row, column, rows, columns) or (
        PARTS == 1 and has_dense_rows(column, row, columns, rows)
    )


@noinline
def copy_dense(source: ptr, rows: i64, columns: i64, over: i64, step: i64) -> ptr:
    """Return a contiguous copy of a matrix; NULL if it cannot be allocated."""
    to = capi.malloc(rows * columns * ISIZE)
    if to != NULL:
        copy_elements(source, to, rows, columns, over, step)
    return to


@native
def multiply_small(a: ptr, b: ptr, c: ptr, sizes: ProductCall, strides: ptr, keep: i64) -> None:
    """Multiply with the code for small products, which adds to its result."""
    if keep == 0:
        for i in range(sizes.m * sizes.n * PARTS):
            store(T, c, i * (ISIZE // PARTS), T(0))
    if PARTS == 1:
        small_product(a, b, c, sizes, strides)
    else:
        complex_chain(a, b, c, sizes, strides)


@native
def complex_chain(a: ptr, b: ptr, c: ptr, sizes: ProductCall, strides: ProductStrides) -> None:
    """Add a product of complex matrices element by element; used when the copies for BLAS cannot be allocated."""
    part = ISIZE // 2
    for i in range(sizes.m):
        for j in range(sizes.n):
            out = c + i * strides.cm + j * ISIZE
            for p in range(sizes.k):
                x = a + i * strides.am + p * strides.ak
                y = b + p * strides.bk + j * strides.bn
                real = load(T, x, 0) * load(T, y, 0) - load(T, x, part) * load(T, y, part)
                imaginary = load(T, x, 0) * load(T, y, part) + load(T, x, part) * load(T, y, 0)
                store(T, out, 0, load(T, out, 0) + real)
                store(T, out, part, load(T, out, part) + imaginary)


@native
def call_gemm(
    a: ptr,
    a_row: i64,
    a_column: i64,
    b: ptr,
    b_row: i64,
    b_column: i64,
    c: ptr,
    m: i64,
    k: i64,
    n: i64,
    keep: i64,
) -> None:
    """Call BLAS's gemm."""
    counts, flags = stack(24), stack(2)
    store(i32, counts, 0, i32(n))
    store(i32, counts, 4, i32(m))
    store(i32, counts, 8, i32(k))
    store(i32, counts, 12, leading_dimension(b_row, b_column, k, n, flags))
    store(i32, counts, 16, leading_dimension(a_row, a_column, m, k, flags + 1))
    one, rest, to = stack(16), stack(16), counts + 20
    write_number(one, T(1))
    write_number(rest, T(keep))
    store(i32, to, 0, i32(n))
    gemm(flags, flags + 1, counts, counts + 4, counts + 8, one, b, counts + 12, a, counts + 16, rest, c, to)


@native
def call_gemv(
    x: ptr, row: i64, column: i64, rows: i64, columns: i64, v: ptr, step: i64, out: ptr, keep: i64
) -> None:
    """Multiply a complex matrix by a vector. The result is cleared first: BLAS libraries differ about NaN there."""
    counts, flag = stack(24), stack(1)
    plain = has_dense_rows(row, column, rows, columns)
    store(i32, counts, 0, i32(columns if plain else rows))
    store(i32, counts, 4, i32(rows if plain else columns))
    store(i32, counts, 8, leading_dimension(row, column, rows, columns, flag))
    store(i32, counts, 12, i32(step // ISIZE if columns > 1 else 1))
    store(i32, counts, 16, 1)
    store(i8, flag, 0, i8(84) if plain else i8(78))  # BLAS sees a row-major matrix as its transpose
    if keep == 0:
        for i in range(rows * PARTS):
            store(T, out, i * (ISIZE // PARTS), T(0))
    one, rest = stack(16), stack(16)
    write_number(one, T(1))
    write_number(rest, T(keep))
    gemv(flag, counts, counts + 4, one, x, counts + 8, v, counts + 12, rest, out, counts + 16)


@native
def write_number(where: ptr, value: T) -> None:
    """Write a real number as an element."""
    store(T, where, 0, value)
    if PARTS == 2:
        store(T, where, ISIZE // 2, T(0))


@native
def leading_dimension(row: i64, column: i64, rows: i64, columns: i64, flag: ptr) -> i32:
    """Return the leading dimension of a matrix for BLAS.

    Write the flag N for a row-major matrix, T for a transposed one.
    """
    plain = has_dense_rows(row, column, rows, columns)
    store(i8, flag, 0, i8(78) if plain else i8(84))
    if plain:
        return i32(row // ISIZE if rows > 1 else columns)
    return i32(column // ISIZE if columns > 1 else rows)


@native
def has_dense_rows(row: i64, column: i64, rows: i64, columns: i64) -> bool:
    """Return whether the rows of a matrix are dense and consecutive."""
    return (column == ISIZE or columns == 1) and (rows == 1 or (row >= columns * ISIZE and row % ISIZE == 0))
