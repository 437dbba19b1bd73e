"""The native entry of views without an entry of their own, an inline cache of layouts.

A view operator computes sizes, strides and offset from those of its first argument and from integers. The first call
with a combination runs in Python; the entry remembers the layout of its result, and answers later calls with it. This
serves views that are declared by a rule, and composites of views, as inline caches do in a virtual machine.

Operators that return a list of views have an entry with the same keys. The layouts of a list are the bytes of a `bytes`
object: a call holds it, so that Python code that runs meanwhile may replace the one in the slot. A list of the
operator's stub owns these objects.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i32, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..runtime import capi, rt_arguments, rt_entry, rt_layouts, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_views

SLOTS = 64  # layouts that an operator remembers; a power of two
MOST_AXES = 8
MOST_ARGUMENTS = 7
MOST_VIEWS = 256  # of a list whose layouts are remembered
KEY_LENGTH = 48
REFUSED = -1
INTEGER, BOOLEAN, NONE, TUPLE, KEYWORD = 1, 2, 3, 4, 5  # tags of arguments in a key


class Layout(Struct):
    """The layout of a view."""

    rank: i64
    offset: i64  # bytes from the first element of the source
    read_only: i64
    dims: ptr = array(MOST_AXES)
    strides: ptr = array(MOST_AXES)


class LayoutKey(Struct):
    """The key of the calls that a slot answers."""

    length: i64  # of the key in integers; 0: free
    key: ptr = array(KEY_LENGTH)


LAYOUT = sizeof(LayoutKey)  # offset of the layout, which follows the key
SLOT_SIZE = LAYOUT + sizeof(Layout)


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
    history = base.has_history(g, source, flags)
    if unlikely(length == REFUSED or (kwnames != NULL and history)):
        return Outcome.FALL_BACK
    slot: LayoutKey = find_slot(entry.variants, key, length, SLOT_SIZE)
    if unlikely(slot.length != length or not rt_layouts.equal_integers(slot.key, key, length)):
        return call_and_remember(entry, args, count, kwnames, key, length)
    entry.calls += 1
    result = view_by_layout(g, source, source_array, slot + LAYOUT)
    if unlikely(history):
        values = stack(MOST_ARGUMENTS * 8 + 8)
        capi.memcpy(values, args, count * 8)
        store(ptr, values, count * 8, result)
        return rt_record.record_call(entry, values, count)
    return result


@native
def view_by_layout(g: ptr, source: ptr, source_array: capi.Ndarray, layout: Layout) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set."""
    data, read_only = source_array.data + layout.offset, layout.read_only
    result: base.TensorObject = rt_views.make_view_at(
        g, source, source_array, layout.rank, layout.dims, layout.strides, data
    )
    if unlikely(read_only != 0 and result != NULL):
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
    length = write_arguments(args + 8, count - 1, key, 1 + 2 * rank)
    if kwnames != NULL and length != REFUSED:
        return write_keywords(entry, args + count * 8, kwnames, key, length)
    return length


@noinline
def write_keywords(
    entry: base.OperatorEntry, values: ptr, kwnames: capi.PyVarObject, key: ptr, length: i64
) -> i64:
    """Write arguments that are given by name; return the new length of the key, or REFUSED."""
    names: capi.PyVarObject = entry.names
    for k in range(kwnames.size):
        index: i64 = 0
        while index < names.size and capi.item(names, index) != capi.item(kwnames, k):
            index += 1
        if index == names.size or length + 1 > KEY_LENGTH:
            return REFUSED
        store(i64, key, length * 8, index << 8 | KEYWORD)
        length = write_arguments(values + k * 8, 1, key, length + 1)
        if length == REFUSED:
            return REFUSED
    return length


@native
def write_arguments(values: ptr, count: i64, key: ptr, length: i64) -> i64:
    """Write arguments from index `length` of a key on; return the length of the key, or REFUSED."""
    for k in range(count):
        length = write_argument(load(ptr, values, k * 8), key, length)
        if unlikely(length == REFUSED):
            return REFUSED
    return length


@noinline
def write_argument(x: capi.PyVarObject, key: ptr, length: i64) -> i64:
    """Write an argument at index `length` of a key; return the length of the key, or REFUSED."""
    items = capi.sequence_items(x)
    if items == NULL:
        return write_scalar(x, key, length)
    if length + 1 > KEY_LENGTH:
        return REFUSED
    store(i64, key, length * 8, x.size << 8 | TUPLE)
    return write_arguments(items, x.size, key, length + 1)


@native
def write_scalar(x: ptr, key: ptr, length: i64) -> i64:
    """Write an int, a bool or None; return the length of the key, or REFUSED."""
    tag, value = i64(INTEGER), rt_arguments.whole_number(x)
    if x == capi.Py_None:
        tag, value = i64(NONE), i64(0)
    elif capi.type_of(x) == capi.PyBool_Type:
        tag, value = i64(BOOLEAN), i64(x == capi.Py_True)
    if unlikely(value == rt_arguments.NO_NUMBER or length + 2 > KEY_LENGTH):
        return REFUSED
    store(i64, key, length * 8, tag)
    store(i64, key, length * 8 + 8, value)
    return length + 2


@native
def find_slot(table: ptr, key: ptr, length: i64, size: i64) -> ptr:
    """Return the one slot of a key in a table of slots of `size` bytes."""
    mixed: i64 = length
    for k in range(length):
        mixed = (mixed ^ load(i64, key, k * 8)) * 1099511628211
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    return table + (mixed & (SLOTS - 1)) * size


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
        slot = find_slot(entry.variants, key, length, SLOT_SIZE)
        write_slot_key(slot, key, length)
        write_layout(slot + LAYOUT, base.TensorObject(result).array, source_array)
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
    if rt_layouts.write_bounds(view, first) and rt_layouts.write_bounds(source_array, last):
        return load(i64, first, 0) >= load(i64, last, 0) and load(i64, first, 8) <= load(i64, last, 8)
    return rt_layouts.count_elements(view.dims, i64(view.ndim)) == 0


@native
def write_slot_key(slot: LayoutKey, key: ptr, length: i64) -> None:
    """Write the key of a slot; the GIL is held until its layout is written, so that no call reads it meanwhile."""
    capi.memcpy(slot.key, key, length * 8)
    slot.length = length


@native
def write_layout(layout: Layout, view: capi.Ndarray, source_array: capi.Ndarray) -> None:
    """Write the layout of a view of an array."""
    rank = i64(view.ndim)
    capi.memcpy(layout.dims, view.dims, rank * 8)
    capi.memcpy(layout.strides, view.strides, rank * 8)
    layout.rank = rank
    layout.offset = i64(view.data) - i64(source_array.data)
    layout.read_only = i64((source_array.flags & ~view.flags & capi.WRITEABLE) != 0)


# Lists of views -------------------------------------------------------------------------------------------------------
class CachedList(LayoutKey):
    """The key of the calls that a list of layouts answers."""

    item: ptr  # address of the list item that refers to the layouts


LIST_SLOT_SIZE = sizeof(CachedList)
LAYOUT_SIZE = sizeof(Layout)


@rt_entry.entry
def cached_views(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry; arguments are those of `cached_view`. Calls with history fall back."""
    g = entry.globals_
    if unlikely(count < 1 or count > MOST_ARGUMENTS):
        return Outcome.FALL_BACK
    source = load(ptr, args, 0)
    source_array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(source_array == NULL or base.has_history(g, source, flags)):
        return Outcome.FALL_BACK
    key = stack(KEY_LENGTH * 8)
    length = write_key(entry, source_array, args, count, kwnames, key)
    if unlikely(length == REFUSED):
        return Outcome.FALL_BACK
    slot: CachedList = find_slot(entry.variants, key, length, LIST_SLOT_SIZE)
    if unlikely(slot.length != length or not rt_layouts.equal_integers(slot.key, key, length)):
        return call_and_remember_list(entry, args, count, kwnames, key, length)
    entry.calls += 1
    layouts = load(ptr, slot.item, 0)
    capi.incref(layouts)
    capi.incref(source_array)
    result = make_views(g, source, source_array, layouts)
    capi.decref(source_array)
    capi.decref(layouts)
    return result


@native
def make_views(g: ptr, source: ptr, source_array: ptr, layouts: capi.PyBytes) -> ptr:
    """Return a tuple of tensors over the same memory; NULL with an exception set."""
    count = layouts.size // LAYOUT_SIZE
    result = capi.PyTuple_New(count)
    if unlikely(result == NULL):
        return NULL
    for k in range(count):
        layout = layouts + capi.PyBytes.items + k * LAYOUT_SIZE
        view = view_by_layout(g, source, source_array, layout)
        if unlikely(view == NULL):
            capi.decref(result)
            return NULL
        store(ptr, result, capi.PyTuple.items + k * 8, view)
    return result


@noinline
def call_and_remember_list(
    entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, key: ptr, length: i64
) -> ptr:
    """Let Python run the call, and remember the layouts of its results."""
    source: base.TensorObject = load(ptr, args, 0)
    source_array = source.array
    capi.incref(source_array)  # Python code may replace the tensor's array
    result = base.call_miss(entry, args, count, kwnames)
    if (
        likely(result != NULL)
        and source.array == source_array
        and are_views_of(entry.globals_, result, source)
    ):
        remember_list(
            find_slot(entry.variants, key, length, LIST_SLOT_SIZE), result, source_array, key, length
        )
    capi.decref(source_array)
    return result


@native
def are_views_of(g: ptr, result: capi.PyTuple, source: ptr) -> bool:
    """Return whether a result is a tuple of other tensors over the source's memory, within its elements."""
    if capi.type_of(result) != capi.PyTuple_Type or result.size > MOST_VIEWS:
        return False
    for k in range(result.size):
        if not is_view_of(g, load(ptr, result, capi.PyTuple.items + k * 8), source):
            return False
    return True


@native
def remember_list(
    slot: CachedList, result: capi.PyTuple, source_array: capi.Ndarray, key: ptr, length: i64
) -> None:
    """Overwrite a slot; the GIL is held, and no Python code runs before all of it is written."""
    layouts: capi.PyBytes = capi.PyBytes_FromStringAndSize(NULL, result.size * LAYOUT_SIZE)
    if unlikely(layouts == NULL):
        capi.PyErr_Clear()
        return
    for k in range(result.size):
        view: base.TensorObject = load(ptr, result, capi.PyTuple.items + k * 8)
        write_layout(layouts + capi.PyBytes.items + k * LAYOUT_SIZE, view.array, source_array)
    write_slot_key(slot, key, length)
    before = load(ptr, slot.item, 0)
    store(ptr, slot.item, 0, layouts)
    capi.decref(before)
