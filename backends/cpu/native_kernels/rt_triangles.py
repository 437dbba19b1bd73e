"""Native runtime: loops that call LAPACK and BLAS on triangles where they are in memory.

By columns, a matrix that is stored by rows is its transpose, and its lower triangle the upper one. So a matrix whose
elements are neighbours along an axis is not copied. ``SIZE`` is the size of an element: 8 for float64, 16 for
complex128. Numbers are passed as 64-bit integers, which functions with 32-bit integers read too.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    NULL,
    extern,
    f64,
    i64,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    template,
    unlikely,
)
from ..fastpath.runtime import capi
from .rt_lapack import SIZE, copy_element, write_columns
from .rt_solvers import SMALLEST, UPPER, magnitude, substitute_all

potrf = extern("LAPACK_potrf", "None(ptr, ptr, ptr, ptr, ptr, i64)")
trsm = extern(
    "LAPACK_trsm", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64)"
)
trsv = extern("LAPACK_trsv", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, i64)")

LETTER_L, LETTER_N, LETTER_R, LETTER_T, LETTER_U = 76, 78, 82, 84, 85
NAN_BITS: i64 = 0x7FF8000000000000
COUNTS: i64 = template(1)  # whether matrices without a factor are failures


@native
def is_by_rows(count: i64, over: i64, along: i64) -> bool:
    """Return whether the elements of a row of ``count`` are neighbours, and rows do not overlap."""
    return along == SIZE and over % SIZE == 0 and over >= count * SIZE


# -- Cholesky factors --------------------------------------------------------------------------------------------------
@noinline
def copy_lower(a: ptr, over: i64, along: i64, size: i64, to: ptr, to_over: i64) -> None:
    """Copy a lower triangle to a matrix that is stored by rows, whose other elements become 0."""
    for i in range(size):
        row, from_ = to + i * to_over, a + i * over
        if along == SIZE:
            capi.memcpy(row, from_, (i + 1) * SIZE)
        else:
            for j in range(i + 1):
                copy_element(from_ + j * along, row + j * SIZE)
        capi.memset(row + (i + 1) * SIZE, 0, (size - i - 1) * SIZE)


@noinline
def fill_square_with_nan(to: ptr, size: i64, over: i64, along: i64) -> None:
    for i in range(size):
        for j in range(size):
            for part in range(SIZE // 8):
                store(i64, to, i * over + j * along + part * 8, NAN_BITS)


@noinline
def factorize(a: ptr, over: i64, along: i64, size: i64, to: ptr, to_over: i64) -> bool:
    """Factorize a matrix into one stored by rows, or fill it with NaN; return whether it is positive definite."""
    numbers = stack(32)
    copy_lower(a, over, along, size, to, to_over)
    store(i64, numbers, 0, LETTER_U)
    store(i64, numbers, 8, size)
    store(i64, numbers, 16, to_over // SIZE)
    store(i64, numbers, 24, 0)
    potrf(numbers, numbers + 8, to, numbers + 16, numbers + 24, 1)
    if unlikely(load(i64, numbers, 24) != 0):
        fill_square_with_nan(to, size, to_over, SIZE)
        return False
    return True


@native
def cholesky_by_lapack(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of ``cholesky_lo``, (m,m)->(m,m), which reads the lower triangle."""
    a, out, size = load(ptr, args, 0), load(ptr, args, 8), load(i64, dims, 8)
    to_over, to_along, failed = load(i64, steps, 32), load(i64, steps, 40), i64(0)
    is_direct, room = is_by_rows(size, to_over, to_along), out
    if unlikely(not is_direct):
        room = capi.malloc(size * size * SIZE + 1)
    for _ in range(load(i64, dims, 0) if size > 0 else 0):
        to, pitch = out if is_direct else room, to_over if is_direct else size * SIZE
        if unlikely(room == NULL):
            fill_square_with_nan(out, size, to_over, to_along)
            failed += 1
        elif not factorize(a, load(i64, steps, 16), load(i64, steps, 24), size, to, pitch):
            failed += 1
        if unlikely(not is_direct and room != NULL):
            write_columns(room, size, size, size, out, to_along, to_over)  # columns of the transpose
        a, out = a + load(i64, steps, 0), out + load(i64, steps, 8)
    if unlikely(not is_direct):
        capi.free(room)
    if COUNTS:
        store(i64, data, 0, load(i64, data, 0) + failed)


# -- triangular systems ------------------------------------------------------------------------------------------------
@native
def has_reciprocals(a: ptr, step: i64, size: i64) -> bool:
    """Return whether no element of a diagonal is so small that its reciprocal, which BLAS uses, may overflow."""
    result = True
    for i in range(size):
        result = result & bool(magnitude(load(f64, a, i * step)) >= SMALLEST)
    return result


@native
def solve_in_place(a: ptr, pitch: i64, by_rows: bool, m: i64, x: ptr, x_pitch: i64, columns: i64) -> None:
    """Replace the right-hand sides, which are stored by rows, by the solutions; pitches are in bytes."""
    letters, numbers = stack(32), stack(48)
    # by columns, a matrix that is stored by rows is its transpose
    is_lower = bool(UPPER) == by_rows
    store(i64, letters, 0, LETTER_R)
    store(i64, letters, 8, LETTER_L if is_lower else LETTER_U)
    store(i64, letters, 16, LETTER_N if by_rows == (columns > 1) else LETTER_T)
    store(i64, letters, 24, LETTER_N)
    store(i64, numbers, 0, columns)
    store(i64, numbers, 8, m)
    store(f64, numbers, 16, 1.0)
    store(i64, numbers, 24, pitch // 8)
    store(i64, numbers, 32, x_pitch // 8)
    if columns > 1:
        trsm(
            letters,
            letters + 8,
            letters + 16,
            letters + 24,
            numbers,
            numbers + 8,
            numbers + 16,
            a,
            numbers + 24,
            x,
            numbers + 32,
            1,
            1,
            1,
            1,
        )
    else:
        trsv(letters + 8, letters + 16, letters + 24, numbers + 8, a, numbers + 24, x, numbers + 32, 1, 1, 1)


@native
def copy_sides(b: ptr, over: i64, along: i64, m: i64, columns: i64, x: ptr, x_over: i64) -> None:
    """Copy right-hand sides to where the solutions will be, by rows."""
    for i in range(m):
        for j in range(columns):
            store(f64, x, i * x_over + j * 8, load(f64, b, i * over + j * along))


@native
def solve_triangular_by_blas(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of substitution, (m,m),(m,n)->(m,n); of matrices with other strides as ``solve_triangular``."""
    a, b, x = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    m, columns, failed = load(i64, dims, 8), load(i64, dims, 16), i64(0)
    over, along, sides = load(i64, steps, 24), load(i64, steps, 32), steps + 40
    by_rows, x_over = is_by_rows(m, over, along), load(i64, sides, 16)
    is_direct = by_rows or is_by_rows(m, along, over)
    is_direct = is_direct and (columns == 1 or load(i64, sides, 24) == 8)
    is_direct = is_direct and x_over % 8 == 0 and x_over >= columns * 8 and columns > 0 and m > 0
    for _ in range(load(i64, dims, 0)):
        if is_direct and has_reciprocals(a, over + along, m):
            copy_sides(b, load(i64, sides, 0), load(i64, sides, 8), m, columns, x, x_over)
            solve_in_place(a, over if by_rows else along, by_rows, m, x, x_over, columns)
        elif unlikely(not substitute_all(a, over, along, m, b, x, sides, columns)):
            failed += 1
        a, b, x = a + load(i64, steps, 0), b + load(i64, steps, 8), x + load(i64, steps, 16)
    store(i64, data, 0, load(i64, data, 0) + failed)
