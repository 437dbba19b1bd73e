"""Native runtime: copies of elements, whatever their dtype, between any strides.

The operands of a copy are source and target; where an instance has more (NARGS), the others stand still.
"""

from __future__ import annotations

from typing import Any

from .dsl import (
    NULL,
    apart,
    extern,
    i8,
    i16,
    i32,
    i64,
    load,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store,
    store_i64,
    store_ptr,
    unlikely,
)
from .layout import DESCR_ITEMSIZE, ND_DATA, ND_DESCR, ND_DIMS, ND_NDIM
from .rt_elementwise import MAX_RANK, NARGS, coalesce, operand_strides, run_nest
from .rt_memory import new_array

memcpy = extern("memcpy", "ptr(ptr, ptr, i64)")


@native
def copy_loop(pointers: ptr, sizes: ptr, strides: ptr, size: ptr) -> None:
    """Copy rows of elements of `size` bytes."""
    count, bytes_each = load_i64(sizes, 8), i64(size)
    step, to_step = load_i64(strides, 8), load_i64(strides, 24)
    for row in range(load_i64(sizes, 0)):
        source = load_ptr(pointers, 0) + row * load_i64(strides, 0)
        target = load_ptr(pointers, 8) + row * load_i64(strides, 16)
        if step == bytes_each and to_step == bytes_each:
            memcpy(target, source, count * bytes_each)
        else:
            copy_row(source, target, count, step, to_step, bytes_each)


COPY: Any = copy_loop  # its address, as an argument


@native
def copy_row(source: ptr, target: ptr, count: i64, step: i64, to_step: i64, size: i64) -> None:
    if size == 4:
        for i in range(count):
            store(i32, target, i * to_step, load(i32, source, i * step))
    elif size == 8:
        for i in range(count):
            store(i64, target, i * to_step, load(i64, source, i * step))
    elif size == 1:
        for i in range(count):
            store(i8, target, i * to_step, load(i8, source, i * step))
    elif size == 2:
        for i in range(count):
            store(i16, target, i * to_step, load(i16, source, i * step))
    else:
        for i in range(count):
            memcpy(target + i * to_step, source + i * step, size)


@native
def item_size(array: ptr) -> i64:
    return load_i64(load_ptr(array, ND_DESCR), DESCR_ITEMSIZE)


@native
def row_major(to: ptr, shape: ptr, rank: i64, size: i64) -> i64:
    """Write the strides of a contiguous result beside those of the source; the bytes that it takes."""
    step = size
    for k in range(rank):
        d = rank - 1 - k
        store_i64(to, d * NARGS * 8 + 8, step)
        for i in range(2, NARGS):
            store_i64(to, (d * NARGS + i) * 8, 0)
        step *= load_i64(shape, d * 8)
    return step


@apart
def copied(g: ptr, array: ptr, rank: i64, dims: ptr) -> ptr:
    """A new contiguous array with the elements of another, of the given sizes; NULL with an exception set."""
    size, own = item_size(array), i64(load_i32(array, ND_NDIM))
    shape, strides, pointers = stack(MAX_RANK * 8), stack(MAX_RANK * NARGS * 8), stack(NARGS * 8)
    for d in range(own):
        store_i64(shape, d * 8, load_i64(load_ptr(array, ND_DIMS), d * 8))
    operand_strides(array, own, strides)
    total = row_major(strides, shape, own, size)
    made = new_array(g, load_ptr(array, ND_DESCR), rank, dims, total)
    if unlikely(made == NULL):
        return NULL
    store_ptr(pointers, 0, load_ptr(array, ND_DATA))
    for i in range(1, NARGS):
        store_ptr(pointers, i * 8, load_ptr(made, ND_DATA))
    if total != 0:
        run_nest(COPY, pointers, shape, strides, coalesce(shape, strides, own), ptr(size))
    return made
