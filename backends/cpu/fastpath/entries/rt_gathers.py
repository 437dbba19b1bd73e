"""Native entries: `index(x, [i], axis=0)`, `take(x, i, axis=None)` and `x[i]` for one tensor of integers."""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import (
    NULL,
    i32,
    i64,
    likely,
    load,
    native,
    ptr,
    stack,
    store,
    template,
    u8,
    u64,
    unlikely,
)
from ..runtime import capi, rt_arguments, rt_entry, rt_gil, rt_layouts, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies

# 1: `take`, whose index is a tensor rather than a list of tensors, and whose axis may be None
TAKE: i64 = template(0)
OUTSIDE: i64 = -1
MANY: i64 = 16384  # positions that are checked and copied without the GIL
CHUNK: i64 = 256  # positions that are read at a time
FEW: i64 = 8  # positions that are copied one after the other, each for all lines


@rt_entry.entry(converts=0)
def gather(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `index` and `take`.

    Python twin: operators/indexing/gather.py:_read_kernel
    """
    g: base.Globals = entry.globals_
    axis = rt_arguments.axis_argument(entry, args, count, kwnames, 2, capi.Py_None if TAKE else g.zero)
    if unlikely(count < 2 or axis == NULL):
        return Outcome.FALL_BACK
    source, index = load(ptr, args, 0), load(ptr, args, 8)
    if TAKE and capi.type_of(index) == capi.PyLong_Type:
        return take_position(entry, source, index, axis, flags)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    chosen: ptr = index
    if TAKE == 0:
        items = capi.sequence_items(index)
        chosen = load(ptr, items, 0) if items != NULL and capi.PyVarObject(index).size == 1 else ptr(0)
    if unlikely(array == NULL or chosen == NULL):
        return Outcome.FALL_BACK
    along = rt_arguments.position(axis, i64(array.ndim))
    if TAKE and axis == capi.Py_None and array.ndim == 1:
        along = 0  # positions in the flattened tensor
    if unlikely(along == rt_arguments.BAD):
        return Outcome.FALL_BACK
    tensor = rt_entry.finish(entry, gather_elements(g, array, chosen, along, flags))
    return rt_record.finish_call(entry, flags, dsl.stack_of(source, index, axis, tensor), 3)


@dsl.noinline
def take_position(entry: base.OperatorEntry, source: ptr, index: ptr, axis: ptr, flags: i64) -> ptr:
    """Return `take(x, 3)`: the slice at a Python integer, as at a tensor without axes; or an `Outcome`."""
    g: base.Globals = entry.globals_
    chosen = rt_operands.tensor_of_scalar(g, index, base.WEAK_INT, base.INT64)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(chosen == NULL or array == NULL):
        capi.PyErr_Clear()
        capi.release(chosen)
        return Outcome.FALL_BACK
    along = rt_arguments.position(axis, i64(array.ndim))
    if axis == capi.Py_None and array.ndim == 1:
        along = 0  # the position in the flattened tensor
    result: ptr = Outcome.FALL_BACK
    if likely(along != rt_arguments.BAD):
        result = rt_entry.finish(entry, gather_elements(g, array, chosen, along, flags))
    capi.decref(chosen)
    return result


@dsl.noinline
def gather_elements(g: ptr, array: capi.Ndarray, chosen: ptr, along: i64, flags: i64) -> ptr:
    """Return the result's array, or an `Outcome`."""
    where, shape = stack(8), stack(2 * base.MAX_RANK * 8)
    code = rt_operands.operand_code(g, chosen, flags, where)
    indices: capi.Ndarray = load(ptr, where, 0)
    if indices == NULL or code < base.INT8 or code > base.UINT64:
        return Outcome.FALL_BACK
    own, extra = i64(array.ndim), i64(indices.ndim)
    if own + extra - 1 > base.MAX_RANK or (array.flags & capi.ALIGNED) == 0:
        return Outcome.FALL_BACK
    count = rt_layouts.count_elements(indices.dims, extra)
    capi.memcpy(shape + along * 8, indices.dims, extra * 8)
    for d in range(own):
        if d != along:
            at = d if d < along else d + extra - 1
            store(i64, shape, at * 8, load(i64, array.dims, d * 8))
    step = rt_layouts.count_elements(shape, own + extra - 1) * rt_layouts.item_size(array)
    capi.incref(array)
    capi.incref(indices)
    result: ptr = rt_memory.new_array(g, array.descr, own + extra - 1, shape, step)
    if unlikely(result == NULL):
        result = Outcome.RETRY
    elif likely(count != 0):
        saved = rt_gil.release_gil(step >= rt_gil.RELEASE_BYTES or count >= MANY)
        is_inside = copy_positions(result, array, along, indices, code, count)
        rt_gil.acquire_gil(saved)
        if unlikely(not is_inside):
            capi.decref(result)
            result = Outcome.FALL_BACK
    capi.decref(indices)
    capi.decref(array)
    return result


# -- positions ---------------------------------------------------------------------------------------------------------
@dsl.noinline
def read_positions(indices: capi.Ndarray, code: i64, first: i64, count: i64, size: i64, to: ptr) -> bool:
    """Write some positions, not negative, as int64; return whether all are inside the axis of ``size``."""
    source, inside = indices.data + first * rt_layouts.item_size(indices), True
    is_dense = (indices.flags & capi.C_CONTIGUOUS) != 0
    if is_dense and code == base.INT64:
        inside = read_dense(source, base.INT64, 8, count, size, to)
    elif is_dense and code == base.INT32:
        inside = read_dense(source, base.INT32, 4, count, size, to)
    else:
        for i in range(count):
            position = position_at(indices, code, first + i, i64(indices.ndim), size)
            inside = inside & bool(position != OUTSIDE)
            store(i64, to, i * 8, position)
    return inside


@dsl.alwaysinline
def read_dense(source: ptr, code: i64, step: i64, count: i64, size: i64, to: ptr) -> bool:
    """Do the same for contiguous signed positions; a dtype that is a constant is not looked up for each."""
    inside = True
    for i in range(count):
        position = integer_at(source + i * step, code)
        position += size if position < 0 else 0
        inside = inside & bool(u64(position) < u64(size))
        store(i64, to, i * 8, position)
    return inside


@native
def position_at(indices: capi.Ndarray, code: i64, i: i64, rank: i64, size: i64) -> i64:
    """Return the i-th position, not negative, or OUTSIDE."""
    at = indices.data
    if (indices.flags & capi.C_CONTIGUOUS) != 0:
        at += i * rt_layouts.item_size(indices)
    else:
        at += rt_layouts.offset_of(indices.dims, indices.strides, rank, i)
    result = integer_at(at, code)
    if result < 0 and code != base.UINT64:
        result += size
    return result if result >= 0 and result < size else OUTSIDE


@native
def integer_at(at: ptr, code: i64) -> i64:
    if code in (base.INT64, base.UINT64):
        return load(i64, at, 0)
    if code == base.INT32:
        return i64(load(i32, at, 0))
    if code == base.INT16:
        return i64(load(dsl.i16, at, 0))
    if code == base.INT8:
        return i64(load(dsl.i8, at, 0))
    if code == base.UINT32:
        return i64(load(dsl.u32, at, 0))
    return i64(load(dsl.u16, at, 0)) if code == base.UINT16 else i64(load(u8, at, 0))


# -- copies ------------------------------------------------------------------------------------------------------------
@native
def copy_blocks(target: ptr, source: ptr, positions: ptr, count: i64, over: i64, block: i64) -> None:
    """Copy contiguous blocks, ``over`` bytes apart in the source, at some positions."""
    if block == 4:
        for i in range(count):
            store(i32, target, i * 4, load(i32, source, load(i64, positions, i * 8) * over))
    elif block == 8:
        for i in range(count):
            store(i64, target, i * 8, load(i64, source, load(i64, positions, i * 8) * over))
    elif block == 1:
        for i in range(count):
            store(u8, target, i, load(u8, source, load(i64, positions, i * 8) * over))
    elif block <= 64 and block % 16 == 0:
        for i in range(count):
            chosen, to = source + load(i64, positions, i * 8) * over, target + i * block
            for k in range(block // 16):
                store(i64, to, k * 16, load(i64, chosen, k * 16))
                store(i64, to, k * 16 + 8, load(i64, chosen, k * 16 + 8))
    else:
        for i in range(count):
            capi.memcpy(target + i * block, source + load(i64, positions, i * 8) * over, block)


@native
def copy_positions(
    made: capi.Ndarray, array: capi.Ndarray, along: i64, indices: capi.Ndarray, code: i64, count: i64
) -> bool:
    """Copy the elements at each position, some positions at a time; return whether all are inside the axis."""
    positions, own = stack(CHUNK * 8), i64(array.ndim)
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 16)
    size, extent = rt_layouts.item_size(array), load(i64, array.dims, along * 8)
    over, lines = load(i64, array.strides, along * 8), rt_layouts.count_elements(array.dims, along)
    block = write_axes(array, along + 1, own, size, shape, strides)
    rank = rt_layouts.coalesce(shape, strides, own - 1 - along)
    by_lines = (rank == 0 or (rank == 1 and load(i64, strides) == size)) and (lines == 1 or count > FEW)
    if not by_lines:
        total = write_axes(array, along + 1, own, size, shape + along * 8, strides + along * 16)
        write_axes(array, 0, along, total * count, shape, strides)
        rank = rt_layouts.coalesce(shape, strides, own - 1)
    first, inside = i64(0), True
    while inside and first < count:
        some = CHUNK if count - first > CHUNK else count - first
        inside = read_positions(indices, code, first, some, extent, positions)
        if inside and by_lines:
            for line in range(lines if block > 0 else 0):
                source = array.data + rt_layouts.offset_of(array.dims, array.strides, along, line)
                copy_blocks(made.data + (line * count + first) * block, source, positions, some, over, block)
        elif inside and lines * block > 0:
            for i in range(some):
                chosen = array.data + load(i64, positions, i * 8) * over
                pointers = dsl.stack_of(chosen, made.data + (first + i) * block)
                rt_layouts.run_nest(rt_copies.COPY, pointers, shape, strides, rank, ptr(size))
        first += some
    return inside


@native
def write_axes(array: capi.Ndarray, start: i64, stop: i64, step: i64, shape: ptr, strides: ptr) -> i64:
    """Write some axes of an array, and of a result in whose memory the last has a step; return the result's bytes."""
    for k in range(stop - start):
        d = stop - 1 - k
        at = d - start
        store(i64, shape, at * 8, load(i64, array.dims, d * 8))
        store(i64, strides, at * 16, load(i64, array.strides, d * 8))
        store(i64, strides, at * 16 + 8, step)
        step *= load(i64, array.dims, d * 8)
    return step
