"""Native entries: `index(x, [i], axis=0)`, `take(x, i, axis=None)` and `x[i]` for one tensor of integers."""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i32, i64, likely, load, native, ptr, stack, store, template, u8, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_gil, rt_layouts, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies

# 1: `take`, whose index is a tensor rather than a list of tensors, and whose axis may be None
TAKE: i64 = template(0)
OUTSIDE: i64 = -1
MANY: i64 = 16384  # positions that are checked and copied without the GIL


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
    size = load(i64, array.dims, along * 8)
    capi.incref(array)
    capi.incref(indices)
    result: ptr = Outcome.FALL_BACK
    if likely(are_all_inside(indices, code, count, extra, size)):
        result = rt_memory.new_array(g, array.descr, own + extra - 1, shape, step)
        if unlikely(result == NULL):
            result = Outcome.RETRY
        elif likely(step != 0):
            saved = rt_gil.release_gil(step >= rt_gil.RELEASE_BYTES or count >= MANY)
            copy_positions(result, array, along, indices, code, count)
            rt_gil.acquire_gil(saved)
    capi.decref(indices)
    capi.decref(array)
    return result


@native
def are_all_inside(indices: ptr, code: i64, count: i64, rank: i64, size: i64) -> bool:
    saved = rt_gil.release_gil(count >= MANY)
    i: i64 = 0
    while i < count and position_at(indices, code, i, rank, size) != OUTSIDE:
        i += 1
    rt_gil.acquire_gil(saved)
    return i == count


@native
def position_at(indices: capi.Ndarray, code: i64, i: i64, rank: i64, size: i64) -> i64:
    """Return the i-th position, not negative, or OUTSIDE."""
    at = indices.data
    if (indices.flags & capi.C_CONTIGUOUS) != 0:
        at += i * rt_layouts.item_size(indices)
    else:
        rest = i
        for k in range(rank):
            d = rank - 1 - k
            extent = load(i64, indices.dims, d * 8)
            at += rest % extent * load(i64, indices.strides, d * 8)
            rest = rest // extent
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


@native
def copy_positions(
    made: capi.Ndarray, array: capi.Ndarray, along: i64, indices: capi.Ndarray, code: i64, count: i64
) -> None:
    """Copy the elements at each position: a loop nest over the other axes, or one element."""
    shape, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 16)
    dims, steps = array.dims, array.strides
    own, extra = i64(array.ndim), i64(indices.ndim)
    size, used = rt_layouts.item_size(array), own - 1
    step, block = size, size
    for k in range(own):
        d = own - 1 - k
        if d == along:
            block = step
            step *= count
        else:
            used -= 1
            store(i64, shape, used * 8, load(i64, dims, d * 8))
            store(i64, strides, used * 16, load(i64, steps, d * 8))
            store(i64, strides, used * 16 + 8, step)
            step *= load(i64, dims, d * 8)
    rank = rt_layouts.coalesce(shape, strides, own - 1)
    source, target = array.data, made.data
    extent, over = load(i64, dims, along * 8), load(i64, steps, along * 8)
    for i in range(count):
        position = position_at(indices, code, i, extra, extent)
        if unlikely(position == OUTSIDE):  # another thread may have written it since it was checked
            position = 0
        chosen = source + position * over
        if rank == 0 and block == 4:
            store(i32, target, i * 4, load(i32, chosen, 0))
        elif rank == 0 and block == 8:
            store(i64, target, i * 8, load(i64, chosen, 0))
        else:
            pointers = dsl.stack_of(chosen, target + i * block)
            rt_layouts.run_nest(rt_copies.COPY, pointers, shape, strides, rank, ptr(size))
