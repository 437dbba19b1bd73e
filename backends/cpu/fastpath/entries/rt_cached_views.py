"""The native entry of views without an entry of their own, an inline cache of layouts.

A view operator computes sizes, strides and offset from those of its first argument and from integers. The first call
with a combination runs in Python; the entry remembers the layout of its result, and answers later calls with it. This
serves views that are declared by a rule, and composites of views, as inline caches do in a virtual machine.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..runtime import capi, rt_entry, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_views

SLOTS = 64  # layouts that an operator remembers; a power of two
MOST_AXES = 8
MOST_ARGUMENTS = 7
KEY_LENGTH = 48
REFUSED = -1
INTEGER, BOOLEAN, NONE, TUPLE, KEYWORD = 1, 2, 3, 4, 5  # tags of arguments in a key


class CachedLayout(Struct):
    """The layout of a view, and the key of the calls that it answers."""

    length: i64  # of the key in integers; 0: free
    key: ptr = array(KEY_LENGTH)
    rank: i64
    offset: i64  # bytes from the first element of the source
    read_only: i64
    dims: ptr = array(MOST_AXES)
    strides: ptr = array(MOST_AXES)


SLOT_SIZE = sizeof(CachedLayout)


@rt_entry.entry
def cached_view(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry: one tensor, then integers, booleans, None and sequences of them, by position or by name."""
    g = entry.globals_
    if unlikely(count < 1 or count > MOST_ARGUMENTS):
        return Outcome.FALL_BACK
    source = load(ptr, args, 0)
    source_array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(source_array == NULL):
        return Outcome.FALL_BACK
    key = stack(KEY_LENGTH * 8)
    length = write_key(entry, source_array, args, count, kwnames, key)
    if unlikely(length == REFUSED or (kwnames != NULL and base.has_history(g, source, flags))):
        return Outcome.FALL_BACK
    slot: CachedLayout = find_slot(entry.variants, key, length)
    if unlikely(slot.length != length or not equal_keys(slot + CachedLayout.key, key, length)):
        return call_and_remember(entry, args, count, kwnames, key, length)
    entry.calls += 1
    result = view_by_layout(g, source, source_array, slot)
    if unlikely(base.has_history(g, source, flags)):
        values = stack(MOST_ARGUMENTS * 8 + 8)
        for k in range(count):
            store(ptr, values, k * 8, load(ptr, args, k * 8))
        return rt_record.record_call(entry, values, count, result)
    return result


@native
def view_by_layout(g: ptr, source: ptr, source_array: capi.Ndarray, slot: CachedLayout) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set."""
    data = source_array.data + slot.offset
    result: base.TensorObject = rt_views.make_view_at(
        g, source, source_array, slot.rank, slot + CachedLayout.dims, slot + CachedLayout.strides, data
    )
    if unlikely(slot.read_only != 0 and result != NULL):
        view: capi.Ndarray = result.array
        view.flags = view.flags & i32(~capi.WRITEABLE)
    return result


# Keys ---------------------------------------------------------------------------------------------------------------
@native
def write_key(entry: ptr, source_array: capi.Ndarray, args: ptr, count: i64, kwnames: ptr, key: ptr) -> i64:
    """Write all that the layout of the result depends on; return the length of the key, or REFUSED."""
    rank = i64(source_array.ndim)
    if unlikely(rank > MOST_AXES):
        return REFUSED
    kind = i64(capi.Descr(source_array.descr).type_num) << 16 | i64(source_array.flags & capi.WRITEABLE)
    store(i64, key, 0, kind << 16 | rank << 8 | count)
    for axis in range(rank):
        store(i64, key, axis * 16 + 8, load(i64, source_array.dims, axis * 8))
        store(i64, key, axis * 16 + 16, load(i64, source_array.strides, axis * 8))
    length = 1 + 2 * rank
    for k in range(1, count):
        length = write_argument(load(ptr, args, k * 8), key, length)
        if unlikely(length == REFUSED):
            return REFUSED
    if kwnames != NULL:
        return write_keywords(entry, args + count * 8, kwnames, key, length)
    return length


@noinline
def write_keywords(
    entry: base.OperatorEntry, values: ptr, kwnames: capi.PyVarObject, key: ptr, length: i64
) -> i64:
    """Write arguments that are given by name; return the new length of the key, or REFUSED."""
    names: capi.PyVarObject = entry.names
    for k in range(kwnames.size):
        name, index = load(ptr, kwnames, capi.PyTuple.items + k * 8), i64(0)
        while index < names.size and load(ptr, names, capi.PyTuple.items + index * 8) != name:
            index += 1
        if index == names.size or length + 1 > KEY_LENGTH:
            return REFUSED
        store(i64, key, length * 8, index << 8 | KEYWORD)
        length = write_argument(load(ptr, values, k * 8), key, length + 1)
        if length == REFUSED:
            return REFUSED
    return length


@noinline
def write_argument(x: ptr, key: ptr, length: i64) -> i64:
    """Write an argument at index `length` of a key; return the length of the key, or REFUSED."""
    items: ptr = x + capi.PyTuple.items
    if capi.type_of(x) == capi.PyList_Type:
        items = capi.PyList(x).items
    elif capi.type_of(x) != capi.PyTuple_Type:
        return write_scalar(x, key, length)
    count = capi.PyVarObject(x).size
    if length + 1 > KEY_LENGTH:
        return REFUSED
    store(i64, key, length * 8, count << 8 | TUPLE)
    length += 1
    for k in range(count):
        length = write_argument(load(ptr, items, k * 8), key, length)
        if length == REFUSED:
            return REFUSED
    return length


@native
def write_scalar(x: ptr, key: ptr, length: i64) -> i64:
    """Write an int, a bool or None; return the length of the key, or REFUSED."""
    if length + 2 > KEY_LENGTH:
        return REFUSED
    tag, value = i64(INTEGER), i64(0)
    if likely(capi.type_of(x) == capi.PyLong_Type):
        overflow = stack(4)
        value = capi.PyLong_AsLongLongAndOverflow(x, overflow)
        if load(i32, overflow, 0) != 0:
            return REFUSED
        if unlikely(value == -1) and capi.PyErr_Occurred() != NULL:
            capi.PyErr_Clear()
            return REFUSED
    elif x == capi.Py_None:
        tag = NONE
    elif capi.type_of(x) == capi.PyBool_Type:
        tag, value = i64(BOOLEAN), i64(x == capi.Py_True)
    else:
        return REFUSED
    store(i64, key, length * 8, tag)
    store(i64, key, length * 8 + 8, value)
    return length + 2


@native
def find_slot(table: ptr, key: ptr, length: i64) -> ptr:
    """Return the one slot of a key."""
    mixed: i64 = length
    for k in range(length):
        mixed = (mixed ^ load(i64, key, k * 8)) * 1099511628211
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    return table + (mixed & (SLOTS - 1)) * SLOT_SIZE


@native
def equal_keys(one: ptr, other: ptr, length: i64) -> bool:
    for k in range(length):
        if load(i64, one, k * 8) != load(i64, other, k * 8):
            return False
    return True


# A call without a cached layout --------------------------------------------------------------------------------------
@noinline
def call_and_remember(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, key: ptr, length: i64
) -> ptr:
    """Let Python run the call, and remember the layout of its result."""
    source: base.TensorObject = load(ptr, args, 0)
    source_array = source.array
    capi.incref(source_array)  # Python code may replace the tensor's array
    result = base.call_miss(entry, args, count, kwnames)
    if likely(result != NULL) and source.array == source_array and is_view_of(entry.globals_, result, source):
        remember(
            find_slot(entry.variants, key, length), base.TensorObject(result).array, source_array, key, length
        )
    capi.decref(source_array)
    return result


@native
def is_view_of(g: base.Globals, result: base.TensorObject, source: base.TensorObject) -> bool:
    """Return whether a result is another tensor over the source's memory, within its elements."""
    if capi.type_of(result) != g.tensor or result == source or result.storage != source.storage:
        return False
    view: capi.Ndarray = result.array
    source_array: capi.Ndarray = source.array
    if (
        result.storage == capi.Py_None
        or view == NULL
        or capi.type_of(view) != capi.PyArray_Type
        or view.descr != source_array.descr
    ):
        return False
    is_plain = result.keys == g.keys and result.meta == capi.Py_None
    if i64(view.ndim) > MOST_AXES or not (is_plain or result.keys == g.grad_keys):
        return False
    first, last = stack(16), stack(16)
    if reach(view, first) and reach(source_array, last):
        return load(i64, first, 0) >= load(i64, last, 0) and load(i64, first, 8) <= load(i64, last, 8)
    return has_no_elements(view)


@native
def reach(x: capi.Ndarray, bounds: ptr) -> bool:
    """Write the addresses of the first and the last element; return whether there are any elements."""
    low, high = i64(x.data), i64(x.data)
    for axis in range(i64(x.ndim)):
        size = load(i64, x.dims, axis * 8)
        if size == 0:
            return False
        step = (size - 1) * load(i64, x.strides, axis * 8)
        if step < 0:
            low += step
        else:
            high += step
    store(i64, bounds, 0, low)
    store(i64, bounds, 8, high)
    return True


@native
def has_no_elements(x: capi.Ndarray) -> bool:
    for axis in range(i64(x.ndim)):
        if load(i64, x.dims, axis * 8) == 0:
            return True
    return False


@native
def remember(
    slot: CachedLayout, view: capi.Ndarray, source_array: capi.Ndarray, key: ptr, length: i64
) -> None:
    """Overwrite a slot; the GIL is held, so that no other call reads it meanwhile."""
    for k in range(length):
        store(i64, slot, CachedLayout.key + k * 8, load(i64, key, k * 8))
    rank = i64(view.ndim)
    for axis in range(rank):
        store(i64, slot, CachedLayout.dims + axis * 8, load(i64, view.dims, axis * 8))
        store(i64, slot, CachedLayout.strides + axis * 8, load(i64, view.strides, axis * 8))
    slot.rank = rank
    slot.offset = i64(view.data) - i64(source_array.data)
    slot.read_only = i64((source_array.flags & ~view.flags & capi.WRITEABLE) != 0)
    slot.length = length
