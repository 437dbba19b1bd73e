"""Native runtime: the entry of views without an entry of their own, an inline cache of layouts.

A view operator computes sizes, strides and offset from those of its first argument and from integers. The first call
with a combination runs in Python; the entry remembers the layout of its result, and answers later calls with it. This
serves views that are declared by a rule, and composites of views, as inline caches do in a virtual machine.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..glue.layout import WRITEABLE, Descr, Ndarray, PyList, PyTuple, PyVarObject
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    Globals,
    OperatorEntry,
    Py_None,
    Py_True,
    PyArray_Type,
    PyBool_Type,
    PyErr_Clear,
    PyErr_Occurred,
    PyList_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    PyTuple_Type,
    TensorObject,
    allowed_flags,
    call_miss,
    decref,
    entry_data,
    fall_back,
    has_history,
    incref,
    thread_flags,
    type_of,
)
from .rt_operands import plain_array
from .rt_record import record_call
from .rt_views import make_view_at

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


@native
def cached_view(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry: one tensor, then integers, booleans, None and sequences of them, by position or by name."""
    desc: OperatorEntry = entry_data(self)
    g = desc.globals_
    flags, count = thread_flags(g), nargsf & ARGS_MASK
    if unlikely(count < 1 or count > MOST_ARGUMENTS or flags == ELSEWHERE):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    source = load(ptr, args, 0)
    base: Ndarray = plain_array(g, source, flags)
    if unlikely(base == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    key = stack(KEY_LENGTH * 8)
    length = write_key(desc, base, args, count, kwnames, key)
    if unlikely(length == REFUSED or (kwnames != NULL and has_history(g, source, flags))):
        return fall_back(desc, args, nargsf, kwnames)
    slot: CachedLayout = find_slot(desc.variants, key, length)
    if unlikely(slot.length != length or not equal_keys(slot + CachedLayout.key, key, length)):
        return call_and_remember(desc, args, nargsf, kwnames, key, length)
    desc.calls += 1
    result = view_by_layout(g, source, base, slot)
    if unlikely(has_history(g, source, flags)):
        values = stack(MOST_ARGUMENTS * 8 + 8)
        for k in range(count):
            store(ptr, values, k * 8, load(ptr, args, k * 8))
        return record_call(desc, values, count, result)
    return result


@native
def view_by_layout(g: ptr, source: ptr, base: Ndarray, slot: CachedLayout) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set."""
    data = base.data + slot.offset
    result: TensorObject = make_view_at(
        g, source, base, slot.rank, slot + CachedLayout.dims, slot + CachedLayout.strides, data
    )
    if unlikely(slot.read_only != 0 and result != NULL):
        view: Ndarray = result.array
        view.flags = view.flags & i32(~WRITEABLE)
    return result


# Keys ---------------------------------------------------------------------------------------------------------------
@native
def write_key(desc: ptr, base: Ndarray, args: ptr, count: i64, kwnames: ptr, key: ptr) -> i64:
    """Write all that the layout of the result depends on; return the length of the key, or REFUSED."""
    rank = i64(base.ndim)
    if unlikely(rank > MOST_AXES):
        return REFUSED
    kind = i64(Descr(base.descr).type_num) << 16 | i64(base.flags & WRITEABLE)
    store(i64, key, 0, kind << 16 | rank << 8 | count)
    for axis in range(rank):
        store(i64, key, axis * 16 + 8, load(i64, base.dims, axis * 8))
        store(i64, key, axis * 16 + 16, load(i64, base.strides, axis * 8))
    length = 1 + 2 * rank
    for k in range(1, count):
        length = write_argument(load(ptr, args, k * 8), key, length)
        if unlikely(length == REFUSED):
            return REFUSED
    if kwnames != NULL:
        return write_keywords(desc, args + count * 8, kwnames, key, length)
    return length


@noinline
def write_keywords(desc: OperatorEntry, values: ptr, kwnames: PyVarObject, key: ptr, length: i64) -> i64:
    """Write arguments that are given by name; return the new length of the key, or REFUSED."""
    names: PyVarObject = desc.names
    for k in range(kwnames.size):
        name, index = load(ptr, kwnames, PyTuple.items + k * 8), i64(0)
        while index < names.size and load(ptr, names, PyTuple.items + index * 8) != name:
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
    items: ptr = x + PyTuple.items
    if type_of(x) == PyList_Type:
        items = PyList(x).items
    elif type_of(x) != PyTuple_Type:
        return write_scalar(x, key, length)
    count = PyVarObject(x).size
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
    if likely(type_of(x) == PyLong_Type):
        overflow = stack(4)
        value = PyLong_AsLongLongAndOverflow(x, overflow)
        if load(i32, overflow, 0) != 0:
            return REFUSED
        if unlikely(value == -1) and PyErr_Occurred() != NULL:
            PyErr_Clear()
            return REFUSED
    elif x == Py_None:
        tag = NONE
    elif type_of(x) == PyBool_Type:
        tag, value = i64(BOOLEAN), i64(x == Py_True)
    else:
        return REFUSED
    store(i64, key, length * 8, tag)
    store(i64, key, length * 8 + 8, value)
    return length + 2


@native
def find_slot(table: ptr, key: ptr, length: i64) -> ptr:
    """Return the one place of a key."""
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
    desc: OperatorEntry, args: ptr, nargsf: i64, kwnames: ptr, key: ptr, length: i64
) -> ptr:
    """Let Python run the call, and remember the layout of its result."""
    source: TensorObject = load(ptr, args, 0)
    base = source.array
    incref(base)  # Python code may replace the tensor's array
    result = call_miss(desc, args, nargsf, kwnames)
    if likely(result != NULL) and source.array == base and is_view_of(desc.globals_, result, source):
        remember(find_slot(desc.variants, key, length), TensorObject(result).array, base, key, length)
    decref(base)
    return result


@native
def is_view_of(g: Globals, result: TensorObject, source: TensorObject) -> bool:
    """Return whether a result is another tensor over the source's memory, within its elements."""
    if type_of(result) != g.tensor or result == source or result.storage != source.storage:
        return False
    view: Ndarray = result.array
    base: Ndarray = source.array
    if result.storage == Py_None or view == NULL or type_of(view) != PyArray_Type or view.descr != base.descr:
        return False
    is_plain = result.keys == g.keys and result.meta == Py_None
    if i64(view.ndim) > MOST_AXES or not (is_plain or result.keys == g.grad_keys):
        return False
    first, last = stack(16), stack(16)
    if reach(view, first) and reach(base, last):
        return load(i64, first, 0) >= load(i64, last, 0) and load(i64, first, 8) <= load(i64, last, 8)
    return has_no_elements(view)


@native
def reach(x: Ndarray, bounds: ptr) -> bool:
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
def has_no_elements(x: Ndarray) -> bool:
    for axis in range(i64(x.ndim)):
        if load(i64, x.dims, axis * 8) == 0:
            return True
    return False


@native
def remember(slot: CachedLayout, view: Ndarray, base: Ndarray, key: ptr, length: i64) -> None:
    """Overwrite a slot; the GIL is held, so that no other call reads it meanwhile."""
    for k in range(length):
        store(i64, slot, CachedLayout.key + k * 8, load(i64, key, k * 8))
    rank = i64(view.ndim)
    for axis in range(rank):
        store(i64, slot, CachedLayout.dims + axis * 8, load(i64, view.dims, axis * 8))
        store(i64, slot, CachedLayout.strides + axis * 8, load(i64, view.strides, axis * 8))
    slot.rank = rank
    slot.offset = i64(view.data) - i64(base.data)
    slot.read_only = i64((base.flags & ~view.flags & WRITEABLE) != 0)
    slot.length = length
