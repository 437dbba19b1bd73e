"""Native runtime: loops of linear algebra for matrices of a few rows, unrolled for their size; substitution for any.

They compute in float64, as NumPy does. ``N`` is the number of rows, ``T`` the type of the elements. Where a matrix is
singular, or not positive definite, the result is NaN and a failure is counted.
"""

from __future__ import annotations

from typing import TypeAlias

from ..fastpath.compiler.dsl import (
    alwaysinline,
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
    vector_range,
)

T: TypeAlias = float  # a type parameter
N: i64 = template(4)
LANES: i64 = 8  # matrices that are factorized together
SYMMETRIZE: i64 = template(0)  # whether ``cholesky`` factorizes symmetric parts
SMALLEST: f64 = 2.2250738585072014e-308  # the reciprocals of smaller numbers may overflow

sqrt = extern("llvm.sqrt.f64", "f64(f64)")


@native
def magnitude(x: f64) -> f64:
    return -x if x < 0.0 else x


@native
def read_matrix(source: ptr, rows: i64, columns: i64, to: ptr) -> None:
    """Copy a square matrix with the given strides, in bytes, to contiguous float64."""
    for i in range(N):
        for j in range(N):
            store(f64, to, (i * N + j) * 8, f64(load(T, source, i * rows + j * columns)))


@native
def swap_rows(matrix: ptr, one: i64, two: i64) -> None:
    for j in range(N):
        x, y = load(f64, matrix, (one * N + j) * 8), load(f64, matrix, (two * N + j) * 8)
        store(f64, matrix, (one * N + j) * 8, y)
        store(f64, matrix, (two * N + j) * 8, x)


@native
def find_pivot(upper: ptr, k: i64) -> i64:
    """Return the row, from row `k` on, whose element in column `k` is the largest; without branches."""
    pivot, most = k, magnitude(load(f64, upper, (k * N + k) * 8))
    for i in range(k + 1, N):
        size = magnitude(load(f64, upper, (i * N + k) * 8))
        pivot, most = i if size > most else pivot, size if size > most else most
    return pivot


@native
def factorize(upper: ptr, lower: ptr, order: ptr) -> bool:
    """Replace a matrix by its upper factor, with partial pivoting; return whether no pivot is 0.

    ``lower`` becomes the lower factor without its diagonal, and ``order[i]`` the row of the matrix that is row i of the
    factors. Rows are combined in full, which makes vectors: elements below the diagonal of ``upper`` have no meaning.
    """
    regular = True
    for i in range(N):
        store(i64, order, i * 8, i)
    for k in range(N):
        pivot = find_pivot(upper, k)
        if pivot != k:
            swap_rows(upper, k, pivot)
            swap_rows(lower, k, pivot)
            first = load(i64, order, k * 8)
            store(i64, order, k * 8, load(i64, order, pivot * 8))
            store(i64, order, pivot * 8, first)
        diagonal = load(f64, upper, (k * N + k) * 8)
        regular = regular & bool(diagonal != 0.0)
        inverse, small = 1.0 / diagonal, magnitude(diagonal) < SMALLEST
        for i in range(k + 1, N):
            element = load(f64, upper, (i * N + k) * 8)
            factor = element / diagonal if unlikely(small) else element * inverse
            store(f64, lower, (i * N + k) * 8, factor)
            subtract_row(upper, i, k, factor)
    return regular


@native
def solve_column(upper: ptr, lower: ptr, order: ptr, b: ptr, b_rows: i64, x: ptr, x_rows: i64) -> None:
    """Solve for one right-hand side."""
    w = stack(N * 8)
    for i in range(N):
        total = f64(load(T, b, load(i64, order, i * 8) * b_rows))
        for j in range(i):
            total -= load(f64, lower, (i * N + j) * 8) * load(f64, w, j * 8)
        store(f64, w, i * 8, total)
    for k in range(N):
        i = N - 1 - k
        total = load(f64, w, i * 8)
        for j in range(i + 1, N):
            total -= load(f64, upper, (i * N + j) * 8) * load(f64, w, j * 8)
        store(f64, w, i * 8, total / load(f64, upper, (i * N + i) * 8))
    for i in range(N):
        store(T, x, i * x_rows, T(load(f64, w, i * 8)))


@native
def solve_columns(upper: ptr, lower: ptr, order: ptr, b: ptr, steps: ptr, x: ptr) -> None:
    """Solve for N right-hand sides; ``steps`` are the strides of both: rows and columns."""
    w = stack(N * N * 8)
    for i in range(N):
        source = b + load(i64, order, i * 8) * load(i64, steps, 0)
        for c in range(N):
            store(f64, w, (i * N + c) * 8, f64(load(T, source, c * load(i64, steps, 8))))
        for j in range(i):
            subtract_row(w, i, j, load(f64, lower, (i * N + j) * 8))
    for k in range(N):
        i = N - 1 - k
        for j in range(i + 1, N):
            subtract_row(w, i, j, load(f64, upper, (i * N + j) * 8))
        diagonal, to = load(f64, upper, (i * N + i) * 8), x + i * load(i64, steps, 16)
        for c in range(N):
            result = load(f64, w, (i * N + c) * 8) / diagonal
            store(f64, w, (i * N + c) * 8, result)
            store(T, to, c * load(i64, steps, 24), T(result))


@native
def subtract_row(w: ptr, one: i64, two: i64, factor: f64) -> None:
    """Subtract a multiple of row ``two`` from row ``one``."""
    for c in range(N):
        at = (one * N + c) * 8
        store(f64, w, at, load(f64, w, at) - factor * load(f64, w, (two * N + c) * 8))


@noinline
def fill_with_nan(to: ptr, rows: i64, columns: i64, over: i64, along: i64) -> None:
    zero: f64 = 0.0
    for i in range(rows):
        for j in range(columns):
            store(T, to, i * over + j * along, T(zero / zero))


@native
def solve(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of ``solve``, (m,m),(m,n)->(m,n)."""
    a, b, x = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    columns, failed = load(i64, dims, 16), i64(0)
    upper, lower, order = stack(N * N * 8), stack(N * N * 8), stack(N * 8)
    for _ in range(load(i64, dims, 0)):
        read_matrix(a, load(i64, steps, 24), load(i64, steps, 32), upper)
        regular = factorize(upper, lower, order)
        if unlikely(not regular):
            fill_with_nan(x, N, columns, load(i64, steps, 56), load(i64, steps, 64))
            failed += 1
        else:
            done: i64 = 0
            while N > 1 and columns - done >= N:
                from_, to = b + done * load(i64, steps, 48), x + done * load(i64, steps, 64)
                solve_columns(upper, lower, order, from_, steps + 40, to)
                done += N
            while done < columns:
                from_, to = b + done * load(i64, steps, 48), x + done * load(i64, steps, 64)
                solve_column(upper, lower, order, from_, load(i64, steps, 40), to, load(i64, steps, 56))
                done += 1
        a, b, x = a + load(i64, steps, 0), b + load(i64, steps, 8), x + load(i64, steps, 16)
    store(i64, data, 0, load(i64, data, 0) + failed)


@alwaysinline
def read_triangles(a: ptr, step: i64, rows: i64, columns: i64, to: ptr, lanes: i64) -> None:
    """Copy the lower triangles of some matrices to float64; element by element, next to each other.

    The mean of an element and its mirror image is computed in the dtype of the matrices, as ``(x + x.mT) / 2`` is.
    """
    for i in range(N):
        for j in range(i + 1):
            for lane in range(lanes):
                element = load(T, a, lane * step + i * rows + j * columns)
                if SYMMETRIZE:
                    element = (element + load(T, a, lane * step + j * rows + i * columns)) / 2
                store(f64, to, ((i * N + j) * lanes + lane) * 8, f64(element))


@alwaysinline
def factorize_definite(lower: ptr, lanes: i64) -> None:
    """Replace some symmetric matrices by their lower factors; elements of others become NaN.

    The lanes make vectors where ``lanes`` is a constant; each has the bits that it has alone. A column is copied, so
    that loads do not depend on stores.
    """
    column, inverse = stack(N * LANES * 8), stack(LANES * 8)
    for k in range(N):
        for lane in vector_range(lanes):
            at = ((k * N + k) * lanes + lane) * 8
            root = sqrt(load(f64, lower, at))
            store(f64, lower, at, root)
            store(f64, inverse, lane * 8, 1.0 / root)
        for i in range(k + 1, N):
            for lane in vector_range(lanes):
                at = ((i * N + k) * lanes + lane) * 8
                factor = load(f64, lower, at) * load(f64, inverse, lane * 8)
                store(f64, lower, at, factor)
                store(f64, column, (i * lanes + lane) * 8, factor)
        for i in range(k + 1, N):
            for j in range(k + 1, i + 1):
                for lane in vector_range(lanes):
                    one, two = (i * lanes + lane) * 8, (j * lanes + lane) * 8
                    at = ((i * N + j) * lanes + lane) * 8
                    product = load(f64, column, one) * load(f64, column, two)
                    store(f64, lower, at, load(f64, lower, at) - product)


@alwaysinline
def write_triangle(lower: ptr, lanes: i64, out: ptr, over: i64, along: i64) -> bool:
    """Write one lower factor, or NaN; return whether the matrix was positive definite."""
    definite = True
    for i in range(N):
        definite = definite & bool(load(f64, lower, (i * N + i) * lanes * 8) > 0.0)
    if unlikely(not definite):
        fill_with_nan(out, N, N, over, along)
    else:
        for i in range(N):
            for j in range(N):
                value = load(f64, lower, (i * N + j) * lanes * 8) if j <= i else 0.0
                store(T, out, i * over + j * along, T(value))
    return definite


@alwaysinline
def factorize_some(a: ptr, out: ptr, steps: ptr, lower: ptr, lanes: i64) -> i64:
    """Factorize some matrices that follow each other; return how many are not positive definite."""
    step, failed = load(i64, steps, 0), i64(0)
    read_triangles(a, step, load(i64, steps, 16), load(i64, steps, 24), lower, lanes)
    factorize_definite(lower, lanes)
    for lane in range(lanes):
        to = out + lane * load(i64, steps, 8)
        if not write_triangle(lower + lane * 8, lanes, to, load(i64, steps, 32), load(i64, steps, 40)):
            failed += 1
    return failed


@native
def cholesky(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of ``cholesky_lo``, (m,m)->(m,m); it reads the lower triangle, or factorizes the symmetric part."""
    a, out, left = load(ptr, args, 0), load(ptr, args, 8), load(i64, dims, 0)
    lower, failed = stack(N * N * LANES * 8), i64(0)
    while left >= LANES:
        failed += factorize_some(a, out, steps, lower, LANES)
        a, out = a + LANES * load(i64, steps, 0), out + LANES * load(i64, steps, 8)
        left -= LANES
    while left > 0:
        failed += factorize_some(a, out, steps, lower, 1)
        a, out = a + load(i64, steps, 0), out + load(i64, steps, 8)
        left -= 1
    store(i64, data, 0, load(i64, data, 0) + failed)


UPPER: i64 = template(0)
CHUNK: i64 = 64  # columns of the right-hand side that are solved together


FEW_COLUMNS: i64 = 4  # that are solved one by one, where rows are too short for vectors


@alwaysinline
def subtract_products(row: ptr, a: ptr, along: i64, x: ptr, x_rows: i64, x_columns: i64, width: i64) -> None:
    """Subtract four rows of the solution, times the elements of ``a``, from a row."""
    one, two = load(f64, a), load(f64, a, along)
    three, four = load(f64, a, 2 * along), load(f64, a, 3 * along)
    second, third, fourth = x + x_rows, x + 2 * x_rows, x + 3 * x_rows
    for c in vector_range(width):
        total = load(f64, row, c * 8) - one * load(f64, x, c * x_columns)
        total = total - two * load(f64, second, c * x_columns)
        total = total - three * load(f64, third, c * x_columns)
        store(f64, row, c * 8, total - four * load(f64, fourth, c * x_columns))


@alwaysinline
def subtract_rows(
    row: ptr, a: ptr, along: i64, x: ptr, x_rows: i64, x_columns: i64, count: i64, width: i64
) -> None:
    """Subtract rows of the solution, times the elements of ``a``, from a row."""
    j: i64 = 0
    while j + 4 <= count:
        subtract_products(row, a + j * along, along, x + j * x_rows, x_rows, x_columns, width)
        j += 4
    while j < count:
        factor, solved = load(f64, a, j * along), x + j * x_rows
        for c in range(width):
            store(f64, row, c * 8, load(f64, row, c * 8) - factor * load(f64, solved, c * x_columns))
        j += 1


@alwaysinline
def substitute(a: ptr, over: i64, along: i64, m: i64, b: ptr, x: ptr, steps: ptr, width: i64) -> bool:
    """Solve for some columns; return whether the diagonal has no 0. ``steps`` are the strides of both sides."""
    row, regular = stack(CHUNK * 8), True
    b_rows, b_columns = load(i64, steps, 0), load(i64, steps, 8)
    x_rows, x_columns = load(i64, steps, 16), load(i64, steps, 24)
    for k in range(m):
        i = m - 1 - k if UPPER else k
        for c in range(width):
            store(f64, row, c * 8, load(f64, b, i * b_rows + c * b_columns))
        first = i + 1 if UPPER else 0
        left, solved = a + i * over + first * along, x + first * x_rows
        if x_columns == 8:  # a constant stride makes vectors
            subtract_rows(row, left, along, solved, x_rows, 8, k, width)
        else:
            subtract_rows(row, left, along, solved, x_rows, x_columns, k, width)
        diagonal = load(f64, a, i * over + i * along)
        regular = regular & bool(diagonal != 0.0)
        for c in range(width):
            store(f64, x, i * x_rows + c * x_columns, load(f64, row, c * 8) / diagonal)
    return regular


@noinline
def substitute_column(a: ptr, over: i64, along: i64, m: i64, b: ptr, x: ptr, steps: ptr) -> bool:
    """Solve for one column."""
    b_rows, x_rows, regular = load(i64, steps, 0), load(i64, steps, 16), True
    for k in range(m):
        i = m - 1 - k if UPPER else k
        first = i + 1 if UPPER else 0
        left, solved = a + i * over + first * along, x + first * x_rows
        total = load(f64, b, i * b_rows)
        for j in range(k):
            total -= load(f64, left, j * along) * load(f64, solved, j * x_rows)
        diagonal = load(f64, a, i * over + i * along)
        regular = regular & bool(diagonal != 0.0)
        store(f64, x, i * x_rows, total / diagonal)
    return regular


@native
def substitute_all(a: ptr, over: i64, along: i64, m: i64, b: ptr, x: ptr, sides: ptr, columns: i64) -> bool:
    """Solve for all columns, some at a time."""
    regular, done = True, i64(0)
    while done < columns:
        left, width = columns - done, i64(1)
        from_, to = b + done * load(i64, sides, 8), x + done * load(i64, sides, 24)
        if left < FEW_COLUMNS:
            regular = substitute_column(a, over, along, m, from_, to, sides) & regular
        elif left < CHUNK:
            width = left
            regular = substitute(a, over, along, m, from_, to, sides, left) & regular
        else:
            width = CHUNK
            regular = substitute(a, over, along, m, from_, to, sides, CHUNK) & regular
        done += width
    return regular


@native
def solve_triangular(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of substitution, (m,m),(m,n)->(m,n)."""
    a, b, x = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    m, columns, failed = load(i64, dims, 8), load(i64, dims, 16), i64(0)
    over, along = load(i64, steps, 24), load(i64, steps, 32)
    for _ in range(load(i64, dims, 0)):
        if unlikely(not substitute_all(a, over, along, m, b, x, steps + 40, columns)):
            failed += 1
        a, b, x = a + load(i64, steps, 0), b + load(i64, steps, 8), x + load(i64, steps, 16)
    store(i64, data, 0, load(i64, data, 0) + failed)
