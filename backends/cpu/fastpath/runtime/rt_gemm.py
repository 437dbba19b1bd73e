"""Native runtime: one product of two matrices: prewritten code for small products and vectors, or BLAS's gemm.

The sizes alone decide which code computes a product: a small one is a chain of fused multiply-adds for each element
(`codegen.small_product`), a product with a vector also has its own code (`codegen.vector_product`), and any other one
is BLAS's gemm. Each returns the same bits for every layout of the operands. BLAS is column-major: a row-major array is
its transpose there, so `a @ b` is computed as `b' a'`. Types: `E` elements as stored, `T` as multiplied.
"""

from __future__ import annotations

from typing import TypeAlias

from ..compiler import dsl
from ..compiler.dsl import NULL, extern, i8, i64, load, native, ptr, stack, stack_of, store, template
from ..compiler.structs import Struct, array
from . import capi

T: TypeAlias = int
E: TypeAlias = int


class ProductCall(Struct):
    """The table of a matrix product's call."""

    m: i64
    k: i64
    n: i64
    am: i64  # strides in bytes of a (m, k), b (k, n), c (m; its n is contiguous)
    ak: i64
    bk: i64
    bn: i64
    cm: i64
    sum: i64  # 1: the products are summed up in one result
    lead: i64  # number of leading axes
    axes: ptr = array(1)  # sizes of the leading axes; then, for each, the strides of a, b and c


class Matrix(Struct):
    """An operand: its first element, strides in bytes, sizes."""

    data: ptr
    row: i64
    column: i64
    rows: i64
    columns: i64


ESIZE: i64 = template(4)  # bytes of an element as it is stored
ISIZE: i64 = template(4)  # bytes of an element as it is multiplied: 16-bit floats are multiplied as float32
PARTS: i64 = template(1)  # 2 for complex elements, of two T each
WRAPS: i64 = template(0)  # 1: elements are integers
VECTORS: i64 = template(1)  # 0: products with a vector are not asked for, and have no code of their own
HALF: i64 = template(0)  # 1: elements are 16-bit floats
# A product is small if it has at most SMALL multiplications (up to there OpenBLAS has a kernel for each layout, and
# their bits differ), or at most SIDE rows, SIDE columns, BLOCK elements in its result and a depth of DEEP. A sum of
# products over the steps of a loop may have any depth: BLAS would pack operands of which it reads each element once.
SMALL: i64 = 1048576
SIDE: i64 = 256
BLOCK: i64 = 32768
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
def is_small_product(m: i64, k: i64, n: i64, is_sum: i64) -> bool:
    """Return whether a product of real matrices runs `codegen.small_product` rather than BLAS."""
    is_small_result = m <= SIDE and n <= SIDE and m * n <= BLOCK
    return m * k * n <= SMALL or (is_small_result and (k <= DEEP or is_sum != 0))


@native
def copy_elements(source: ptr, to: ptr, rows: i64, columns: i64, over: i64, step: i64) -> None:
    for i in range(rows):
        for p in range(columns):
            for part in range(PARTS):
                some = part * (ESIZE // PARTS)
                store(E, to, (i * columns + p) * ESIZE + some, load(E, source, i * over + p * step + some))


@native
def real_product(a: ptr, b: ptr, c: ptr, call: ProductCall, keep: i64) -> None:
    """Multiply real or complex matrices; with `keep` the product is added to `c`."""
    m, k, n = call.m, call.k, call.n
    one: Matrix = stack_of(a, call.am, call.ak, m, k)
    two: Matrix = stack_of(b, call.bk, call.bn, k, n)
    done = False
    if PARTS == 1 and VECTORS:
        if n == 1:
            done = multiply_real_by_vector(one, b, call.bk, c, keep)
        elif m == 1:
            done = multiply_real_by_vector(stack_of(b, call.bn, call.bk, n, k), a, call.ak, c, keep)
    if not done and (PARTS == 2 or (m != 1 and n != 1 and not is_small_product(m, k, n, call.sum))):
        done = multiply_by_blas(one, two, c, keep)
    if not done:  # also if there is no memory for a copy; both add to the result
        if keep == 0:
            clear_elements(c, m * n)
        if PARTS == 1:
            small_product(a, b, c, call, call + ProductCall.am)
        else:
            complex_chain(a, b, c, call)


@native
def multiply_by_blas(one: Matrix, two: Matrix, c: ptr, keep: i64) -> bool:
    """Multiply by BLAS, copying operands where needed; return false if a copy cannot be allocated."""
    a, b = one.data, two.data
    if not is_blas_layout(one):
        make_dense(one)
    if not is_blas_layout(two):
        make_dense(two)
    served = one.data != NULL and two.data != NULL
    if served:
        if PARTS == 2 and two.columns == 1:
            call_gemv(one, two.data, two.row, c, keep)
        elif PARTS == 2 and one.rows == 1:
            transposed = stack_of(two.data, two.column, two.row, two.columns, two.rows)
            call_gemv(transposed, one.data, one.column, c, keep)
        else:
            call_gemm(one, two, c, keep)
    if one.data != a:
        capi.free(one.data)
    if two.data != b:
        capi.free(two.data)
    return bool(served)


@native
def multiply_real_by_vector(x: Matrix, v: ptr, step: i64, c: ptr, keep: i64) -> bool:
    """Multiply a matrix by a vector with `codegen.vector_product`; return false if a copy cannot be allocated."""
    m, k, data = x.rows, x.columns, x.data
    vector: Matrix = stack_of(v, 0, step, 1, k)
    is_dense = x.column == ISIZE or k == 1
    by_columns = not is_dense and m > 1 and x.row == ISIZE
    if not is_dense and not by_columns:
        make_dense(x)
    if not by_columns and step != ISIZE and k != 1:
        make_dense(vector)
    served = x.data != NULL and vector.data != NULL
    if served:
        if keep == 0:
            clear_elements(c, m)
        if by_columns:
            columns_by_vector(x.data, v, c, m, k, x.row, x.column, step)
        elif m == 1:
            dot_product(x.data, vector.data, c, m, k, x.row, ISIZE, ISIZE)
        else:
            rows_by_vector(x.data, vector.data, c, m, k, x.row, ISIZE, ISIZE)
    if x.data != data:
        capi.free(x.data)
    if vector.data != v:
        capi.free(vector.data)
    return bool(served)


@native
def clear_elements(c: ptr, count: i64) -> None:
    for i in range(count * PARTS):
        store(T, c, i * (ISIZE // PARTS), T(0))


@native
def is_blas_layout(x: Matrix) -> bool:
    """Return whether BLAS can read a matrix in place: with dense rows, or dense columns, in order.

    Complex matrices need dense rows: BLAS's result for others has other bits.
    """
    return has_dense_rows(x) or (PARTS == 1 and are_rows_dense(x.column, x.row, x.columns, x.rows))


@dsl.noinline
def make_dense(x: Matrix) -> None:
    """Replace a matrix by a contiguous copy, whose address is NULL if it cannot be allocated."""
    to = capi.malloc(x.rows * x.columns * ISIZE)
    if to != NULL:
        copy_elements(x.data, to, x.rows, x.columns, x.row, x.column)
    x.data, x.row, x.column = to, x.columns * ISIZE, ISIZE


@native
def complex_chain(a: ptr, b: ptr, c: ptr, call: ProductCall) -> None:
    """Add a product of complex matrices element by element; used when the copies for BLAS cannot be allocated."""
    part = ISIZE // 2
    for i in range(call.m):
        for j in range(call.n):
            out = c + i * call.cm + j * ISIZE
            for p in range(call.k):
                x = a + i * call.am + p * call.ak
                y = b + p * call.bk + j * call.bn
                real = load(T, x, 0) * load(T, y, 0) - load(T, x, part) * load(T, y, part)
                imaginary = load(T, x, 0) * load(T, y, part) + load(T, x, part) * load(T, y, 0)
                store(T, out, 0, load(T, out, 0) + real)
                store(T, out, part, load(T, out, part) + imaginary)


@native
def call_gemm(one: Matrix, two: Matrix, c: ptr, keep: i64) -> None:
    """Call BLAS's gemm."""
    flags = stack(2)
    n, m, k = stack_of(two.columns), stack_of(one.rows), stack_of(one.columns)
    over, across = stack_of(leading_dimension(two, flags)), stack_of(leading_dimension(one, flags + 1))
    by, rest = stack(16), stack(16)
    write_number(by, T(1))
    write_number(rest, T(keep))
    gemm(flags, flags + 1, n, m, k, by, two.data, over, one.data, across, rest, c, n)


@native
def call_gemv(x: Matrix, v: ptr, step: i64, out: ptr, keep: i64) -> None:
    """Multiply a complex matrix by a vector. The result is cleared first: BLAS libraries differ about NaN there."""
    flag, plain = stack(1), has_dense_rows(x)
    over = stack_of(leading_dimension(x, flag))
    store(i8, flag, 0, i8(84) if plain else i8(78))  # BLAS sees a row-major matrix as its transpose
    rows = stack_of(x.columns if plain else x.rows)
    columns = stack_of(x.rows if plain else x.columns)
    if keep == 0:
        clear_elements(out, x.rows)
    by, rest = stack(16), stack(16)
    write_number(by, T(1))
    write_number(rest, T(keep))
    step = step // ISIZE if x.columns > 1 else 1
    gemv(flag, rows, columns, by, x.data, over, v, stack_of(step), rest, out, stack_of(1))


@native
def write_number(where: ptr, value: T) -> None:
    """Write a real number as an element."""
    store(T, where, 0, value)
    if PARTS == 2:
        store(T, where, ISIZE // 2, T(0))


@native
def leading_dimension(x: Matrix, flag: ptr) -> i64:
    """Return the leading dimension of a matrix for BLAS.

    Write the flag N for a row-major matrix, T for a transposed one.
    """
    plain = has_dense_rows(x)
    store(i8, flag, 0, i8(78) if plain else i8(84))
    if plain:
        return x.row // ISIZE if x.rows > 1 else x.columns
    return x.column // ISIZE if x.columns > 1 else x.rows


@native
def has_dense_rows(x: Matrix) -> bool:
    """Return whether the rows of a matrix are dense and consecutive."""
    return are_rows_dense(x.row, x.column, x.rows, x.columns)


@native
def are_rows_dense(row: i64, column: i64, rows: i64, columns: i64) -> bool:
    return (column == ISIZE or columns == 1) and (rows == 1 or (row >= columns * ISIZE and row % ISIZE == 0))
