"""Native runtime: loops of linear algebra for matrices of a few rows, unrolled for their size.

They compute in float64, as NumPy does. ``N`` is the number of rows, ``T`` the type of the elements. Where a matrix is
singular, or not positive definite, the result is NaN and a failure is counted.
"""

from __future__ import annotations

from typing import TypeAlias

from ..fastpath.compiler.dsl import (
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

T: TypeAlias = float  # a type parameter
N: i64 = template(4)
SMALLEST: f64 = 2.2250738585072014e-308  # the reciprocals of smaller numbers may overflow

sqrt = extern("sqrt", "f64(f64)")


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
def swap_rows(lu: ptr, order: ptr, one: i64, two: i64) -> None:
    for j in range(N):
        x, y = load(f64, lu, (one * N + j) * 8), load(f64, lu, (two * N + j) * 8)
        store(f64, lu, (one * N + j) * 8, y)
        store(f64, lu, (two * N + j) * 8, x)
    first = load(i64, order, one * 8)
    store(i64, order, one * 8, load(i64, order, two * 8))
    store(i64, order, two * 8, first)


@native
def factorize(lu: ptr, order: ptr) -> bool:
    """Replace a matrix by its LU factors, with partial pivoting; return whether no pivot is 0.

    ``order[i]`` becomes the row of the matrix that is row i of the factors.
    """
    regular = True
    for i in range(N):
        store(i64, order, i * 8, i)
    for k in range(N):
        pivot, most = k, magnitude(load(f64, lu, (k * N + k) * 8))
        for i in range(k + 1, N):
            size = magnitude(load(f64, lu, (i * N + k) * 8))
            if size > most:
                pivot, most = i, size
        if pivot != k:
            swap_rows(lu, order, k, pivot)
        diagonal = load(f64, lu, (k * N + k) * 8)
        if diagonal == 0.0:
            regular = False
        inverse, small = 1.0 / diagonal, most < SMALLEST
        for i in range(k + 1, N):
            at = (i * N + k) * 8
            factor = load(f64, lu, at) / diagonal if unlikely(small) else load(f64, lu, at) * inverse
            store(f64, lu, at, factor)
            for j in range(k + 1, N):
                at = (i * N + j) * 8
                store(f64, lu, at, load(f64, lu, at) - factor * load(f64, lu, (k * N + j) * 8))
    return regular


@native
def solve_column(lu: ptr, order: ptr, b: ptr, b_rows: i64, x: ptr, x_rows: i64) -> None:
    """Solve for one right-hand side."""
    w = stack(N * 8)
    for i in range(N):
        total = f64(load(T, b, load(i64, order, i * 8) * b_rows))
        for j in range(i):
            total -= load(f64, lu, (i * N + j) * 8) * load(f64, w, j * 8)
        store(f64, w, i * 8, total)
    for k in range(N):
        i = N - 1 - k
        total = load(f64, w, i * 8)
        for j in range(i + 1, N):
            total -= load(f64, lu, (i * N + j) * 8) * load(f64, w, j * 8)
        store(f64, w, i * 8, total / load(f64, lu, (i * N + i) * 8))
    for i in range(N):
        store(T, x, i * x_rows, T(load(f64, w, i * 8)))


@native
def solve_columns(lu: ptr, order: ptr, b: ptr, steps: ptr, x: ptr) -> None:
    """Solve for N right-hand sides; ``steps`` are the strides of both: rows and columns."""
    w = stack(N * N * 8)
    for i in range(N):
        source = b + load(i64, order, i * 8) * load(i64, steps, 0)
        for c in range(N):
            store(f64, w, (i * N + c) * 8, f64(load(T, source, c * load(i64, steps, 8))))
        for j in range(i):
            subtract_row(w, i, j, load(f64, lu, (i * N + j) * 8))
    for k in range(N):
        i = N - 1 - k
        for j in range(i + 1, N):
            subtract_row(w, i, j, load(f64, lu, (i * N + j) * 8))
        diagonal, to = load(f64, lu, (i * N + i) * 8), x + i * load(i64, steps, 16)
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
    lu, order = stack(N * N * 8), stack(N * 8)
    for _ in range(load(i64, dims, 0)):
        read_matrix(a, load(i64, steps, 24), load(i64, steps, 32), lu)
        regular = factorize(lu, order)
        if unlikely(not regular):
            fill_with_nan(x, N, columns, load(i64, steps, 56), load(i64, steps, 64))
            failed += 1
        else:
            done: i64 = 0
            while N > 1 and columns - done >= N:
                from_, to = b + done * load(i64, steps, 48), x + done * load(i64, steps, 64)
                solve_columns(lu, order, from_, steps + 40, to)
                done += N
            while done < columns:
                from_, to = b + done * load(i64, steps, 48), x + done * load(i64, steps, 64)
                solve_column(lu, order, from_, load(i64, steps, 40), to, load(i64, steps, 56))
                done += 1
        a, b, x = a + load(i64, steps, 0), b + load(i64, steps, 8), x + load(i64, steps, 16)
    store(i64, data, 0, load(i64, data, 0) + failed)


@native
def cholesky(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of ``cholesky_lo``, (m,m)->(m,m); it reads the lower triangle."""
    a, out = load(ptr, args, 0), load(ptr, args, 8)
    rows, columns, over, along = (
        load(i64, steps, 16),
        load(i64, steps, 24),
        load(i64, steps, 32),
        load(i64, steps, 40),
    )
    lower, failed = stack(N * N * 8), i64(0)
    for _ in range(load(i64, dims, 0)):
        definite = True
        for i in range(N):
            for j in range(i + 1):
                total = f64(load(T, a, i * rows + j * columns))
                for k in range(j):
                    total -= load(f64, lower, (i * N + k) * 8) * load(f64, lower, (j * N + k) * 8)
                if j == i:
                    if not total > 0.0:
                        definite = False
                    store(f64, lower, (i * N + i) * 8, sqrt(total))
                else:
                    store(f64, lower, (i * N + j) * 8, total / load(f64, lower, (j * N + j) * 8))
        if unlikely(not definite):
            fill_with_nan(out, N, N, over, along)
            failed += 1
        else:
            for i in range(N):
                for j in range(N):
                    value = load(f64, lower, (i * N + j) * 8) if j <= i else 0.0
                    store(T, out, i * over + j * along, T(value))
        a, out = a + load(i64, steps, 0), out + load(i64, steps, 8)
    store(i64, data, 0, load(i64, data, 0) + failed)
