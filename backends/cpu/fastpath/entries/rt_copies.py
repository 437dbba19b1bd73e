"""Native entries: copies of elements of any dtype, between any strides, by entries whose NARGS is 2; `copy.copy`."""

from __future__ import annotations

from typing import Any

from ..compiler import dsl
from ..compiler.dsl import (
    NULL,
    i8,
    i16,
    i32,
    i64,
    likely,
    load,
    native,
    noinline,
    ptr,
    stack,
    store,
    unlikely,
)
from ..runtime import capi, rt_entry, rt_gil, rt_layouts, rt_memory, rt_operands
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome


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


KEEP_ORDER = 2  # NPY_KEEPORDER
COPY: Any = copy_loop  # the loop's address, to be passed as an argument


FILLED: i64 = 4096  # bytes of a row of equal elements that are copied at a time: they stay in the first cache
FEW: i64 = 128  # elements that are written one by one
LINE: i64 = 64  # bytes of a cache line
CACHED: i64 = 1 << 20  # bytes that stay in the second cache
LEAST_STEP: i64 = 32  # bytes between elements of which few share a cache line


@native
def is_zero(element: ptr, size: i64) -> bool:
    for i in range(size):
        if load(i8, element, i) != 0:
            return False
    return True


@native
def fill_row(element: ptr, target: ptr, count: i64, size: i64) -> None:
    """Write one element many times: what is written is copied behind itself."""
    total = count * size
    if size == 1 or is_zero(element, size):
        capi.memset(target, i32(load(i8, element, 0)), total)
        return
    capi.memcpy(target, element, size)
    done = size
    while done < total:
        more = done if done < FILLED else FILLED
        more = more if more < total - done else total - done
        capi.memcpy(target + done, target, more)
        done += more


@native
def copy_row(source: ptr, target: ptr, count: i64, step: i64, to_step: i64, size: i64) -> None:
    if step == 0 and to_step == size and (count > FEW or size == 1):
        fill_row(source, target, count, size)
    elif size == 4:
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
def copy_nest(pointers: ptr, shape: ptr, strides: ptr, rank: i64, size: i64, total: i64) -> None:
    """Copy `total` bytes of elements of `size` bytes; shape and strides are overwritten."""
    if likely(total != 0):
        rank = rt_layouts.coalesce(shape, strides, rank)
        saved = rt_gil.release_gil(total >= rt_gil.RELEASE_BYTES)
        axis = find_adjacent(shape, strides, rank, size) if total >= CACHED else i64(-1)
        if unlikely(axis >= 0):
            copy_transposed(pointers, shape, strides, rank, size, axis)
        else:
            rt_layouts.move_long_axis_last(shape, strides, rank)
            rt_layouts.run_nest(COPY, pointers, shape, strides, rank, ptr(size))
        rt_gil.acquire_gil(saved)


@native
def find_adjacent(shape: ptr, strides: ptr, rank: i64, size: i64) -> i64:
    """Return the axis along which elements are adjacent in the source, if in the target they are along the last one.

    Returns:
        The axis; -1 if there is none, or if the lines that one row reads stay in the cache for the next row.
    """
    last = strides + (rank - 1) * 16
    step = load(i64, last)
    if load(i64, last, 8) != size or step < LEAST_STEP or step * load(i64, shape, rank * 8 - 8) < CACHED:
        return -1
    axis = rank - 2
    while axis >= 0 and load(i64, strides, axis * 16) != size:
        axis -= 1
    return axis


@noinline
def copy_transposed(pointers: ptr, shape: ptr, strides: ptr, rank: i64, size: i64, axis: i64) -> None:
    """Copy elements that are adjacent along another axis in the source; shape and strides are overwritten.

    One cache line of the target at a time is written along the last axis, and the next one is at the next position
    along the other axis: each cache line of the source is read once.
    """
    last = rank - 1
    rt_layouts.swap_axes(shape, strides, axis, last - 1)
    count, step, block, own = load(i64, shape, last * 8), load(i64, strides, last * 16), i64(1), stack(16)
    if size < LINE:
        block = LINE // size
    first = i64(0)
    while first < count:
        store(i64, shape, last * 8, block if block < count - first else count - first)
        store(ptr, own, 0, load(ptr, pointers, 0) + first * step)
        store(ptr, own, 8, load(ptr, pointers, 8) + first * size)
        rt_layouts.run_nest(COPY, own, shape, strides, rank, ptr(size))
        first += block


@noinline
def copy_contiguous(g: ptr, array: capi.Ndarray, rank: i64, dims: ptr) -> ptr:
    """Return a new contiguous array with the elements of another, of the given sizes; NULL with an exception set."""
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 16)
    own, size = i64(array.ndim), rt_layouts.item_size(array)
    capi.memcpy(shape, array.dims, own * 8)
    rt_layouts.operand_strides(array, own, own, strides)
    total = rt_layouts.write_row_major_strides(strides + 8, 16, shape, own, size)
    made: capi.Ndarray = rt_memory.new_array(g, array.descr, rank, dims, total)
    if likely(made != NULL):
        capi.incref(array)
        copy_nest(dsl.stack_of(array.data, made.data), shape, strides, own, size, total)
        capi.decref(array)
    return made


@noinline
def copy_with_shape(g: ptr, array: ptr, rank: i64, dims: ptr) -> ptr:
    """Return a tensor of the given sizes with a copy of the elements; NULL with an exception set."""
    made = copy_contiguous(g, array, rank, dims)
    return base.make_tensor(g, made) if likely(made != NULL) else made


# Plain tensors ------------------------------------------------------------------------------------------------------
@native
def copy_plain(g: base.Globals, x: base.TensorObject) -> ptr:
    """Return a copy of a plain tensor without autograd's data, in the order of its memory; or an `Outcome`."""
    array: capi.Ndarray = rt_operands.plain_array(g, x, base.PLAIN)
    if unlikely(array == NULL or x.meta != capi.Py_None):
        return Outcome.FALL_BACK
    capi.incref(array)
    if likely((array.flags & capi.C_CONTIGUOUS) != 0 and array.ndim <= base.MAX_RANK):
        made = copy_contiguous(g, array, i64(array.ndim), array.dims)
    else:
        made = capi.PyArray_NewCopy(array, i32(KEEP_ORDER))
    capi.decref(array)
    return base.make_tensor(g, made) if likely(made != NULL) else ptr(Outcome.RETRY)


@rt_entry.entry(records=False, count=1)
def copy_elements(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`copy.copy(x)`.

    Python twin: eager/tensor/copies.py:shallow_copy
    """
    return copy_plain(entry.globals_, load(ptr, args, 0))


@rt_entry.entry(records=False, count=2)
def copy_with_memo(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """`x.__deepcopy__(memo)` of a tensor that shares its memory with none.

    Python twin: eager/tensor/copies.py:deepcopy
    """
    g: base.Globals = entry.globals_
    x: base.TensorObject = load(ptr, args, 0)
    memo, storage = load(ptr, args, 8), x.storage
    if unlikely(capi.type_of(memo) != capi.PyDict_Type or rt_operands.plain_array(g, x, base.PLAIN) == NULL):
        return Outcome.FALL_BACK
    if storage != capi.Py_None and (capi.type_of(storage) != g.storage or capi.PyObject(storage).refcnt != 1):
        return Outcome.FALL_BACK
    made = copy_plain(g, x)
    if unlikely(i64(made) <= 0):
        return made
    number = capi.PyLong_FromLongLong(i64(x))
    if unlikely(number == NULL or capi.PyDict_SetItem(memo, number, made) < 0):
        capi.release(number)
        capi.decref(made)
        return Outcome.FAILED
    capi.decref(number)
    return made
