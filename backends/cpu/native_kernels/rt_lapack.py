"""Native runtime: loops that call LAPACK for each matrix of a batch.

LAPACK's matrices are stored by columns, so each one is copied to scratch memory and its factors are copied from there.
``SIZE`` is the size of an element: 8 for float64, 16 for complex128. Sizes must fit 32 bits. A loop counts a failure
where an allocation fails.
"""

from __future__ import annotations

from ..fastpath.compiler.dsl import (
    NULL,
    extern,
    f64,
    i32,
    i64,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    template,
)
from ..fastpath.runtime import capi
from .rt_integers import larger, smaller

geqrf = extern("LAPACK_geqrf", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)")
ungqr = extern("LAPACK_ungqr", "None(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)")
getrf = extern("LAPACK_getrf", "None(ptr, ptr, ptr, ptr, ptr, ptr)")

SIZE: i64 = template(8)
COMPLETE: i64 = template(0)  # 1: Q is square
ROWS, COLUMNS, INNER, LEADING, LENGTH, INFO = 0, 4, 8, 12, 16, 20  # offsets of the 32-bit integers of a call


@native
def copy_element(source: ptr, to: ptr) -> None:
    store(i64, to, 0, load(i64, source, 0))
    if SIZE == 16:
        store(i64, to, 8, load(i64, source, 8))


@noinline
def read_columns(source: ptr, over: i64, along: i64, rows: i64, columns: i64, to: ptr) -> None:
    """Copy a matrix with the given strides, in bytes, to memory by columns."""
    for j in range(columns):
        for i in range(rows):
            copy_element(source + i * over + j * along, to + (j * rows + i) * SIZE)


@noinline
def write_columns(source: ptr, leading: i64, rows: i64, columns: i64, to: ptr, over: i64, along: i64) -> None:
    """Copy a matrix by columns, of ``leading`` elements each, to one with the given strides."""
    for i in range(rows):
        for j in range(columns):
            copy_element(source + (j * leading + i) * SIZE, to + i * over + j * along)


@noinline
def clear_below(to: ptr, rows: i64, columns: i64, over: i64, along: i64) -> None:
    """Set the elements below the diagonal to 0."""
    for i in range(rows):
        for j in range(smaller(i, columns)):
            store(i64, to, i * over + j * along, 0)
            if SIZE == 16:
                store(i64, to, i * over + j * along + 8, 0)


@native
def write_sizes(sizes: ptr, rows: i64, columns: i64, inner: i64) -> None:
    store(i32, sizes, ROWS, i32(rows))
    store(i32, sizes, COLUMNS, i32(columns))
    store(i32, sizes, INNER, i32(inner))
    store(i32, sizes, LEADING, i32(larger(rows, 1)))


@native
def reflect(sizes: ptr, matrix: ptr, tau: ptr, work: ptr) -> None:
    """Factorize a matrix by reflections, or ask for the size of the work memory."""
    geqrf(sizes + ROWS, sizes + COLUMNS, matrix, sizes + LEADING, tau, work, sizes + LENGTH, sizes + INFO)


@native
def make_orthonormal(sizes: ptr, matrix: ptr, tau: ptr, work: ptr) -> None:
    """Compute Q from reflections, or ask for the size of the work memory."""
    ungqr(
        sizes + ROWS,
        sizes + COLUMNS,
        sizes + INNER,
        matrix,
        sizes + LEADING,
        tau,
        work,
        sizes + LENGTH,
        sizes + INFO,
    )


@native
def qr(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `qr`: (m,n)->(m,k),(k,n), or (m,n)->(m,m),(m,n) if it is COMPLETE."""
    a, q, r = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16)
    rows, columns = load(i64, dims, 8), load(i64, dims, 16)
    inner, width = smaller(rows, columns), rows if COMPLETE else load(i64, dims, 24)
    first, second, length = stack(24), stack(24), stack(16)
    write_sizes(first, rows, columns, inner)
    write_sizes(second, rows, width, inner)
    store(i32, first, LENGTH, i32(-1))
    store(i32, second, LENGTH, i32(-1))
    reflect(first, length, length, length)
    work = i64(load(f64, length, 0))
    make_orthonormal(second, length, length, length)
    work = larger(work, i64(load(f64, length, 0)))
    store(i32, first, LENGTH, i32(work))
    store(i32, second, LENGTH, i32(work))
    size = rows * larger(columns, width)
    room = capi.malloc((size + inner + work + 1) * SIZE)
    if room == NULL:
        store(i64, data, 0, load(i64, data, 0) + 1)
        return
    tau = room + size * SIZE
    for _ in range(load(i64, dims, 0)):
        read_columns(a, load(i64, steps, 24), load(i64, steps, 32), rows, columns, room)
        reflect(first, room, tau, tau + inner * SIZE)
        write_columns(room, rows, width, columns, r, load(i64, steps, 56), load(i64, steps, 64))
        clear_below(r, width, columns, load(i64, steps, 56), load(i64, steps, 64))
        make_orthonormal(second, room, tau, tau + inner * SIZE)
        write_columns(room, rows, rows, width, q, load(i64, steps, 40), load(i64, steps, 48))
        a, q, r = a + load(i64, steps, 0), q + load(i64, steps, 8), r + load(i64, steps, 16)
    capi.free(room)


@native
def lu(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `lu_permuted`: (m,n)->(m,n),(k),(m), whose last results are int32 and int64."""
    a, factors = load(ptr, args, 0), load(ptr, args, 8)
    pivots, order = load(ptr, args, 16), load(ptr, args, 24)
    rows, columns, inner = load(i64, dims, 8), load(i64, dims, 16), load(i64, dims, 24)
    sizes, step, order_step = stack(24), load(i64, steps, 64), load(i64, steps, 72)
    write_sizes(sizes, rows, columns, inner)
    room = capi.malloc(rows * columns * SIZE + inner * 4 + 16)
    if room == NULL:
        store(i64, data, 0, load(i64, data, 0) + 1)
        return
    exchanges = room + rows * columns * SIZE
    for _ in range(load(i64, dims, 0)):
        read_columns(a, load(i64, steps, 32), load(i64, steps, 40), rows, columns, room)
        getrf(sizes + ROWS, sizes + COLUMNS, room, sizes + LEADING, exchanges, sizes + INFO)
        write_columns(room, rows, rows, columns, factors, load(i64, steps, 48), load(i64, steps, 56))
        for i in range(rows):
            store(i64, order, i * order_step, i)
        for i in range(inner):
            other = load(i32, exchanges, i * 4)
            store(i32, pivots, i * step, other)
            to = (i64(other) - 1) * order_step
            kept = load(i64, order, i * order_step)
            store(i64, order, i * order_step, load(i64, order, to))
            store(i64, order, to, kept)
        a, factors = a + load(i64, steps, 0), factors + load(i64, steps, 8)
        pivots, order = pivots + load(i64, steps, 16), order + load(i64, steps, 24)
    capi.free(room)


# -- minors ------------------------------------------------------------------------------------------------------------
@native
def real_part(matrix: ptr, index: i64) -> f64:
    return load(f64, matrix, index * SIZE)


@native
def imaginary_part(matrix: ptr, index: i64) -> f64:
    return load(f64, matrix, index * SIZE + 8) if SIZE == 16 else 0.0


@noinline
def find_minor(w: ptr, size: i64) -> i64:
    """Return the order of the first leading minor that is not positive definite; 0 if all are.

    The lower triangle of the matrix, in memory by columns, is overwritten.
    """
    for k in range(size):
        pivot = real_part(w, k * size + k)
        if not pivot > 0.0:
            return k + 1
        for j in range(k + 1, size):
            x, y = real_part(w, k * size + j) / pivot, imaginary_part(w, k * size + j) / pivot
            for i in range(j, size):
                u, v = real_part(w, k * size + i), imaginary_part(w, k * size + i)
                at = (j * size + i) * SIZE
                store(f64, w, at, load(f64, w, at) - (u * x + v * y))
                if SIZE == 16:
                    store(f64, w, at + 8, load(f64, w, at + 8) - (v * x - u * y))
    return 0


@native
def minor(args: ptr, dims: ptr, steps: ptr, data: ptr) -> None:
    """The loop of `indefinite_minor`, (m,m),(m,m)->(), whose result is int32; it reads lower triangles."""
    a, factor, out, size = load(ptr, args, 0), load(ptr, args, 8), load(ptr, args, 16), load(i64, dims, 8)
    room = capi.malloc(size * size * SIZE + 1)
    if room == NULL:
        store(i64, data, 0, load(i64, data, 0) + 1)
        return
    last = (size - 1) * (load(i64, steps, 40) + load(i64, steps, 48))
    for _ in range(load(i64, dims, 0)):
        order: i64 = 0
        if size > 0 and load(f64, factor, last) != load(f64, factor, last):
            read_columns(a, load(i64, steps, 24), load(i64, steps, 32), size, size, room)
            order = find_minor(room, size)
            if order == 0:
                order = size
        store(i32, out, 0, i32(order))
        a, factor, out = a + load(i64, steps, 0), factor + load(i64, steps, 8), out + load(i64, steps, 16)
    capi.free(room)
