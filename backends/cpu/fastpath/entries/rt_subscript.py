"""Native entries: `x[key]` for keys of ints, slices, new axes and one ellipsis, or one tensor of integers.

Every other key is left to Python.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..runtime import capi, rt_entry, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_gathers, rt_views


# The state of reading a key: rank of the result, axes of the source used up, bytes to move the data pointer; and what
# `basic_index` calls a plan: the number of its entries, and of each start (or position), length (or what it is), step
class KeyState(Struct):
    """The state of reading a key, and what `basic_index` calls a plan."""

    rank: i64  # of the result
    axis: i64  # axes of the source used up
    moved: i64  # bytes to move the data pointer
    count: i64  # number of entries
    entries: ptr = array(96)  # each start (or position), length (or kind), step


POSITION, NEW_AXIS = -1, -2


@rt_entry.entry(records=False)
def subscript(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `x[key]`.

    Python twin: eager/tensor/methods.py:getitem
    """
    g: base.Globals = entry.globals_
    if unlikely(kwnames != NULL or count != 2):
        return Outcome.FALL_BACK
    source = load(ptr, args, 0)
    if unlikely(capi.type_of(load(ptr, args, 8)) == g.tensor):
        return gather_rows(entry, g, rt_operands.plain_array(g, source, flags), args, flags)
    flags = base.allowed_flags(entry, flags)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    dims, strides, at = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(sizeof(KeyState))
    if unlikely(array == NULL or not read_key(array, args + 8, dims, strides, at)):
        return Outcome.FALL_BACK
    entry.calls += 1
    data = array.data + KeyState(at).moved
    made = rt_views.make_view_at(g, source, array, KeyState(at).rank, dims, strides, data)
    if unlikely(base.has_history(g, source, flags)):
        return record_view(entry, source, at, made)
    return made


@noinline
def record_view(entry: ptr, source: ptr, at: ptr, made: ptr) -> ptr:
    """Record the view that a key has selected (NULL: a failure), as a call of `basic_index`."""
    if unlikely(made == NULL):
        return NULL
    plan = make_index_entries(at)
    if unlikely(plan == NULL):
        capi.decref(made)
        return NULL
    values = stack(24)
    store(ptr, values, 0, source)
    store(ptr, values, 8, plan)
    result = rt_record.record_call(entry, values, 2, made)
    capi.decref(plan)
    return result


@native
def make_index_entries(at: KeyState) -> ptr:
    """Return the index entries of the key that was read; NULL with an exception set."""
    result = capi.PyTuple_New(at.count)
    if likely(result != NULL):
        for k in range(at.count):
            entry = make_index_entry(at + KeyState.entries + k * 24)
            if unlikely(entry == NULL):
                capi.decref(result)
                return NULL
            store(ptr, result, capi.PyTuple.items + k * 8, entry)
    return result


@native
def make_index_entry(words: ptr) -> ptr:
    if load(i64, words, 8) == NEW_AXIS:
        return capi.new_ref(capi.Py_None)
    if load(i64, words, 8) == POSITION:
        return capi.PyLong_FromLongLong(load(i64, words, 0))
    result = capi.PyTuple_New(3)
    if likely(result != NULL):
        for k in range(3):
            number = capi.PyLong_FromLongLong(load(i64, words, k * 8))
            if unlikely(number == NULL):
                capi.decref(result)
                return NULL
            store(ptr, result, capi.PyTuple.items + k * 8, number)
    return result


@noinline
def gather_rows(entry: base.OperatorEntry, g: ptr, array: capi.Ndarray, args: ptr, flags: i64) -> ptr:
    """Return `x[i]` for one tensor of integers, the rows at these positions, or an `Outcome`."""
    if array == NULL or array.ndim == 0:
        return Outcome.FALL_BACK
    return rt_entry.finish(entry, rt_gathers.gather_elements(g, array, load(ptr, args, 8), 0, flags))


@native
def read_key(array: capi.Ndarray, key: ptr, dims: ptr, strides: ptr, at: KeyState) -> bool:
    """Read the key (`key` points to it) into the view's sizes, strides and offset; false if Python must read it."""
    rank = i64(array.ndim)
    items, count = key, i64(1)
    if capi.type_of(load(ptr, key, 0)) == capi.PyTuple_Type:
        items = load(ptr, key, 0) + capi.PyTuple.items
        count = capi.PyVarObject(load(ptr, key, 0)).size
    if rank + count > base.MAX_RANK:
        return False
    at.rank = 0
    at.axis = 0
    at.moved = 0
    at.count = 0
    open_axes = rank - count_axes(items, count)
    if open_axes < 0:
        return False
    filled = False
    for k in range(count):
        item = load(ptr, items, k * 8)
        if item == capi.Py_Ellipsis:
            if filled:
                return False
            filled = True
            keep_axes(array, open_axes, dims, strides, at)
        elif not read_item(array, item, dims, strides, at):
            return False
    if not filled:
        keep_axes(array, open_axes, dims, strides, at)
    return True


@native
def count_axes(items: ptr, count: i64) -> i64:
    """Return how many axes of the source the items of a key use."""
    used: i64 = 0
    for k in range(count):
        item = load(ptr, items, k * 8)
        if item != capi.Py_None and item != capi.Py_Ellipsis:
            used += 1
    return used


@native
def append_axis(dims: ptr, strides: ptr, at: KeyState, size: i64, stride: i64) -> None:
    rank = at.rank
    store(i64, dims, rank * 8, size)
    store(i64, strides, rank * 8, stride)
    at.rank = rank + 1


@native
def append_entry(at: KeyState, start: i64, length: i64, step: i64) -> None:
    """Write an index entry."""
    words = at + KeyState.entries + at.count * 24
    store(i64, words, 0, start)
    store(i64, words, 8, length)
    store(i64, words, 16, step)
    at.count += 1


@native
def keep_axes(array: capi.Ndarray, count: i64, dims: ptr, strides: ptr, at: KeyState) -> None:
    for _k in range(count):
        axis = at.axis
        size, stride = (
            load(i64, array.dims, axis * 8),
            load(i64, array.strides, axis * 8),
        )
        append_axis(dims, strides, at, size, stride)
        append_entry(at, 0, size, 1)
        at.axis = axis + 1


@native
def read_item(array: capi.Ndarray, item: ptr, dims: ptr, strides: ptr, at: KeyState) -> bool:
    if item == capi.Py_None:
        append_axis(dims, strides, at, 1, 0)
        append_entry(at, 0, NEW_AXIS, 0)
        return True
    axis = at.axis
    size, stride = (
        load(i64, array.dims, axis * 8),
        load(i64, array.strides, axis * 8),
    )
    at.axis = axis + 1
    if capi.type_of(item) == capi.PyLong_Type:
        position = resolve_position(item, size)
        at.moved += position * stride
        append_entry(at, position, POSITION, 0)
        return position >= 0
    return capi.type_of(item) == capi.PySlice_Type and read_slice(item, size, stride, dims, strides, at)


@native
def resolve_position(item: ptr, size: i64) -> i64:
    """Return a non-negative position, or -1."""
    overflow = stack(4)
    position = capi.PyLong_AsLongLongAndOverflow(item, overflow)
    if position < 0:
        if unlikely(position == -1) and capi.PyErr_Occurred() != NULL:
            capi.PyErr_Clear()
            return -1
        position += size
    return position if position >= 0 and position < size and load(i32, overflow, 0) == 0 else -1


@native
def plain_bound(x: ptr) -> bool:
    return bool(x == capi.Py_None or capi.type_of(x) == capi.PyLong_Type)


@native
def read_slice(item: capi.PySlice, size: i64, stride: i64, dims: ptr, strides: ptr, at: KeyState) -> bool:
    bounds = stack(24)
    if not (plain_bound(item.start) and plain_bound(item.stop)):
        return False
    if not plain_bound(item.step):
        return False
    if capi.PySlice_Unpack(item, bounds, bounds + 8, bounds + 16) < 0:
        capi.PyErr_Clear()
        return False
    step = load(i64, bounds, 16)
    count = capi.PySlice_AdjustIndices(size, bounds, bounds + 8, step)
    if likely(count > 0):
        at.moved += load(i64, bounds, 0) * stride
        append_entry(at, load(i64, bounds, 0), count, step)
    else:
        append_entry(at, 0, 0, 1)
    append_axis(dims, strides, at, count, stride * step if count > 1 else stride)
    return True


# -- basic_index(x, plan) ----------------------------------------------------------------------------------------------
@rt_entry.entry
def basic_index(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `basic_index`, whose plan has an int or (start, length, step) per axis, and None for new axes.

    Python twin: operators/indexing/slicing.py:to_numpy_index
    """
    g = entry.globals_
    if unlikely(kwnames != NULL or count != 2):
        return Outcome.FALL_BACK
    source, plan = load(ptr, args, 0), load(ptr, args, 8)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    dims, strides, at = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(sizeof(KeyState))
    if unlikely(array == NULL or not read_plan(array, plan, dims, strides, at)):
        return Outcome.FALL_BACK
    entry.calls += 1
    data = array.data + KeyState(at).moved
    made = rt_views.make_view_at(g, source, array, KeyState(at).rank, dims, strides, data)
    if unlikely(base.has_history(g, source, flags)):
        values = stack(24)
        store(ptr, values, 0, source)
        store(ptr, values, 8, plan)
        return rt_record.record_call(entry, values, 2, made)
    return made


@native
def read_plan(array: capi.Ndarray, plan: capi.PyVarObject, dims: ptr, strides: ptr, at: KeyState) -> bool:
    rank = i64(array.ndim)
    if capi.type_of(plan) != capi.PyTuple_Type or plan.size > base.MAX_RANK:
        return False
    at.rank = 0
    at.axis = 0
    at.moved = 0
    for k in range(plan.size):
        entry = load(ptr, plan, capi.PyTuple.items + k * 8)
        if entry == capi.Py_None:
            append_axis(dims, strides, at, 1, 0)
        elif at.axis >= rank or not read_entry(array, entry, dims, strides, at):
            return False
    return at.axis == rank


@native
def read_entry(array: ptr, entry: capi.PyVarObject, dims: ptr, strides: ptr, at: KeyState) -> bool:
    axis = at.axis
    size, stride = axis_of(array, capi.Ndarray.dims, axis), axis_of(array, capi.Ndarray.strides, axis)
    at.axis = axis + 1
    if capi.type_of(entry) == capi.PyLong_Type:
        chosen = whole_number(entry)
        at.moved += chosen * stride
        return chosen >= 0 and chosen < size
    if capi.type_of(entry) != capi.PyTuple_Type or entry.size != 3:
        return False
    start = whole_number(load(ptr, entry, capi.PyTuple.items))
    length = whole_number(load(ptr, entry, capi.PyTuple.items + 8))
    step = whole_number(load(ptr, entry, capi.PyTuple.items + 16))
    if start == NO_NUMBER or step == NO_NUMBER or length < 1 or start < 0 or start >= size or length > size:
        return False
    last = start + (length - 1) * step
    if step == 0 or step > size or step < -size or last < 0 or last >= size:
        return False
    at.moved += start * stride
    append_axis(dims, strides, at, length, stride * step if length > 1 else stride)
    return True


NO_NUMBER: i64 = -(1 << 62)


@native
def whole_number(x: ptr) -> i64:
    """Return an exact int that fits 64 bits, or NO_NUMBER."""
    if capi.type_of(x) != capi.PyLong_Type:
        return NO_NUMBER
    overflow = stack(4)
    value = capi.PyLong_AsLongLongAndOverflow(x, overflow)
    return value if load(i32, overflow, 0) == 0 else NO_NUMBER


@native
def axis_of(array: ptr, field: i64, axis: i64) -> i64:
    return load(i64, load(ptr, array, field), axis * 8)
