"""Native entries: copies of elements of any dtype, between any strides.

The operands of a copy are source and target; if an instance has more (NARGS), the others have stride 0.
"""

from __future__ import annotations

from typing import Any

from ..compiler.dsl import NULL, i8, i16, i32, i64, load, native, noinline, ptr, stack, store, unlikely
from ..runtime import capi, rt_gil, rt_memory
from ..runtime import rt_base as base
from . import rt_elementwise


@native
def copy_loop(pointers: ptr, sizes: ptr, strides: ptr, size: ptr) -> None:
    """Copy rows of elements of `size` bytes."""
    count, bytes_each = load(i64, sizes, 8), i64(size)
    step, to_step = load(i64, strides, 8), load(i64, strides, 24)
    for row in range(load(i64, sizes, 0)):
        source = load(ptr, pointers, 0) + row * load(i64, strides, 0)
        target = load(ptr, pointers, 8) + row * load(i64, strides, 16)
        if step == bytes_each and to_step == bytes_each:
            capi.memcpy(target, source, count * bytes_each)
        else:
            copy_row(source, target, count, step, to_step, bytes_each)


COPY: Any = copy_loop  # the loop's address, to be passed as an argument


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
            capi.memcpy(target + i * to_step, source + i * step, size)


@native
def item_size(array: capi.Ndarray) -> i64:
    return capi.Descr(array.descr).itemsize


@native
def write_row_major_strides(to: ptr, shape: ptr, rank: i64, size: i64) -> i64:
    """Write the strides of a contiguous result next to those of the source; return its size in bytes."""
    step = size
    for k in range(rank):
        d = rank - 1 - k
        store(i64, to, d * base.NARGS * 8 + 8, step)
        for i in range(2, base.NARGS):
            store(i64, to, (d * base.NARGS + i) * 8, 0)
        step *= load(i64, shape, d * 8)
    return step


@noinline
def copy_contiguous(g: ptr, array: capi.Ndarray, rank: i64, dims: ptr) -> ptr:
    """Return a new contiguous array with the elements of another, of the given sizes; NULL with an exception set."""
    size, own = item_size(array), i64(array.ndim)
    shape, strides, pointers = (
        stack(base.MAX_RANK * 8),
        stack(base.MAX_RANK * base.NARGS * 8),
        stack(base.NARGS * 8),
    )
    for d in range(own):
        store(i64, shape, d * 8, load(i64, array.dims, d * 8))
    rt_elementwise.operand_strides(array, own, strides)
    total = write_row_major_strides(strides, shape, own, size)
    made: capi.Ndarray = rt_memory.new_array(g, array.descr, rank, dims, total)
    if unlikely(made == NULL):
        return NULL
    store(ptr, pointers, 0, array.data)
    for i in range(1, base.NARGS):
        store(ptr, pointers, i * 8, made.data)
    if total != 0:
        capi.incref(array)
        saved = rt_gil.release_gil(total >= rt_gil.RELEASE_BYTES)
        rt_elementwise.run_nest(
            COPY, pointers, shape, strides, rt_elementwise.coalesce(shape, strides, own), ptr(size)
        )
        rt_gil.acquire_gil(saved)
        capi.decref(array)
    return made
