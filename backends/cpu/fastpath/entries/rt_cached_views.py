"""The native entry of views without an entry of their own, an inline cache of layouts.

A view operator computes sizes, strides and offset from those of its first argument and from integers. The first call
with a combination runs in Python; the entry remembers the layout of its result, and answers later calls with it. This
serves views that are declared by a rule, and composites of views, as inline caches do in a virtual machine.

Operators that return a list of views have an entry with the same keys. The layouts of a list are the bytes of a `bytes`
object: a call holds it, so that Python code that runs meanwhile may replace the one in the slot. A list of the
operator's stub owns these objects.

A call of a composite that autograd records repeats the calls of view operators that the first one made, its *steps*
(rt_view_steps.py). They are found when the first recorded call of a slot has run in Python.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..runtime import capi, rt_entry, rt_keys, rt_layouts, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_view_steps, rt_views

LISTS: i64 = dsl.template(0)  # 1: the operators return lists of views
SLOTS = 512  # layouts that an operator remembers; a power of two
PROBES = 4  # slots that a key may be in; a power of two
MOST_AXES = 8
MOST_ARGUMENTS = 7
MOST_VIEWS = 256  # of a list whose layouts are remembered
SOURCE: i64 = -1


class Layout(Struct):
    """The layout of a view."""

    rank: i64  # `SOURCE`: the result is the source itself
    code: i64  # of the elements' dtype; `base.FOREIGN`: that of the source
    offset: i64  # bytes from the first element of the source
    read_only: i64
    dims: ptr = array(MOST_AXES)
    strides: ptr = array(MOST_AXES)


class LayoutKey(Struct):
    """The key of the calls that a slot answers."""

    length: i64  # of the key in integers; 0: free
    key: ptr = array(rt_keys.MAX_KEY)
    steps: ptr  # address of the list item that refers to the steps; None: not known yet, False: Python runs the call


class ViewEntry(base.OperatorEntry):
    """The data of the entry of one operator."""

    find_steps: ptr  # of a composite: returns the steps of a recorded call, given the source and the result


class CachedList(LayoutKey):
    """The key of the calls that a list of layouts answers."""

    item: ptr  # address of the list item that refers to the layouts


LAYOUT = sizeof(LayoutKey)  # offset of the layout, which follows the key
LAYOUT_SIZE = sizeof(Layout)
SLOT_SIZE = LAYOUT + LAYOUT_SIZE
LIST_SLOT_SIZE = sizeof(CachedList)


@rt_entry.entry
def cached_view(entry: ViewEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry: one tensor, then integers, booleans, None and sequences of them, by position or by name."""
    g = entry.globals_
    if unlikely(count < 1 or count > MOST_ARGUMENTS):
        return Outcome.FALL_BACK
    source = load(ptr, args, 0)
    source_array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(source_array == NULL):
        return Outcome.FALL_BACK
    key = stack(rt_keys.MAX_KEY * 8)
    length = write_key(entry, source_array, args, count, kwnames, key)
    history = base.has_history(g, source, flags)
    by_steps = history and entry.find_steps != NULL
    if unlikely(length == rt_keys.INVALID or (history and kwnames != NULL and not by_steps)):
        return Outcome.FALL_BACK
    slot: LayoutKey = find_slot(entry.variants, key, length)
    if unlikely(slot.length != length or not rt_layouts.equal_integers(slot.key, key, length)):
        return call_and_remember(entry, args, count, kwnames, key, length, by_steps)
    if unlikely(by_steps):
        steps = load(ptr, slot.steps, 0)
        if unlikely(steps == capi.Py_None):
            return call_and_remember(entry, args, count, kwnames, key, length, by_steps)
        if unlikely(steps == capi.Py_False):
            return Outcome.FALL_BACK
        entry.calls += 1
        return rt_view_steps.run_steps(source, steps, LISTS)
    entry.calls += 1
    if LISTS:
        return make_views(g, source, source_array, slot)
    if Layout(slot + LAYOUT).rank == SOURCE:
        return capi.new_ref(source)
    if unlikely(history and Layout(slot + LAYOUT).code != base.FOREIGN):
        return Outcome.FALL_BACK
    result = view_by_layout(g, source, source_array, slot + LAYOUT)
    if unlikely(history):
        values = stack(MOST_ARGUMENTS * 8 + 8)
        capi.memcpy(values, args, count * 8)
        store(ptr, values, count * 8, result)
        return rt_record.record_call(entry, values, count)
    return result


@native
def view_by_layout(g: base.Globals, source: ptr, source_array: capi.Ndarray, layout: Layout) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set."""
    data, read_only = source_array.data + layout.offset, layout.read_only
    descr = source_array.descr if layout.code == base.FOREIGN else load(ptr, g.descrs, layout.code * 8)
    result: base.TensorObject = rt_views.make_view_of(
        g, source, source_array, descr, layout.rank, layout.dims, layout.strides, data
    )
    if unlikely(read_only != 0 and result != NULL):
        view: capi.Ndarray = result.array
        view.flags = view.flags & dsl.i32(~capi.WRITEABLE)
    return result


# Keys ---------------------------------------------------------------------------------------------------------------
@native
def write_key(
    entry: base.OperatorEntry, source_array: capi.Ndarray, args: ptr, count: i64, kwnames: ptr, key: ptr
) -> i64:
    """Write all that the layout of the result depends on; return the length of the key, or INVALID."""
    rank = i64(source_array.ndim)
    if unlikely(rank > MOST_AXES):
        return rt_keys.INVALID
    kind = i64(capi.Descr(source_array.descr).type_num) << 16 | i64(source_array.flags & capi.WRITEABLE)
    store(i64, key, 0, kind << 16 | rank << 8 | count)
    for axis in range(rank):
        store(i64, key, axis * 16 + 8, load(i64, source_array.dims, axis * 8))
        store(i64, key, axis * 16 + 16, load(i64, source_array.strides, axis * 8))
    dtypes = capi.type_of(load(ptr, base.Globals(entry.globals_).types, 0))
    return rt_keys.encode_arguments(args, count, kwnames, entry.names, dtypes, key, 1 + 2 * rank)


@native
def find_slot(table: ptr, key: ptr, length: i64) -> ptr:
    """Return the slot of a key: the first of `PROBES` that has the key or is free, or one to overwrite."""
    mixed: i64 = length
    for k in range(length):
        mixed = (mixed ^ load(i64, key, k * 8)) * 1099511628211
        mixed ^= (mixed >> 32) & 0xFFFFFFFF
    size = LIST_SLOT_SIZE if LISTS else SLOT_SIZE
    first = mixed & (SLOTS - 1)
    chosen = first ^ ((mixed >> 40) & (PROBES - 1))
    for probe in range(PROBES):
        slot: LayoutKey = table + (first ^ probe) * size
        if slot.length == 0 or (slot.length == length and rt_layouts.equal_integers(slot.key, key, length)):
            return slot
    return table + chosen * size


# A call without a cached layout --------------------------------------------------------------------------------------
@noinline
def call_and_remember(
    entry: ViewEntry, args: ptr, count: i64, kwnames: ptr, key: ptr, length: i64, by_steps: bool
) -> ptr:
    """Let Python run the call, and remember the layout of its result, or those of its results."""
    source: base.TensorObject = load(ptr, args, 0)
    source_array = source.array
    capi.incref(source_array)  # Python code may replace the tensor's array
    result = base.call_miss(entry, args, count, kwnames)
    if likely(result != NULL) and source.array == source_array:
        result = remember(entry, source, source_array, result, key, length, by_steps)
    capi.decref(source_array)
    return result


@native
def remember(
    entry: ViewEntry, source: ptr, source_array: ptr, result: ptr, key: ptr, length: i64, by_steps: bool
) -> ptr:
    """Overwrite the slot of a key, and return the result of its call; on failure NULL, the result released."""
    is_source = result == source and LISTS == 0
    if not is_source and not are_views(entry.globals_, result, source):
        return result
    if unlikely(by_steps):
        steps = capi.PyObject_Vectorcall(entry.find_steps, stack_of(source, result), 2, NULL)
    else:
        steps = capi.new_ref(capi.Py_None)
    if unlikely(steps == NULL):
        capi.decref(result)
        return NULL
    slot = find_slot(entry.variants, key, length)
    if LISTS:
        remember_list(entry.globals_, slot, result, source_array, key, length, steps)
        return result
    if is_source:
        Layout(slot + LAYOUT).rank = SOURCE
    else:
        write_layout(entry.globals_, slot + LAYOUT, base.TensorObject(result).array, source_array)
    write_slot_key(slot, key, length)
    put_item(LayoutKey(slot).steps, steps)
    return result


@native
def put_item(item: ptr, value: ptr) -> None:
    """Replace an item of a list, whose reference it steals; Python code may run at the end."""
    before = load(ptr, item, 0)
    store(ptr, item, 0, value)
    capi.decref(before)


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
        or not has_known_descr(g, view, source_array)
        or i64(view.ndim) > MOST_AXES
        or not (result.keys == g.grad_keys or (result.keys == g.keys and result.meta == capi.Py_None))
    ):
        return False
    first, last = stack(16), stack(16)
    if rt_layouts.write_bounds(view, first) and rt_layouts.write_bounds(source_array, last):
        return load(i64, first, 0) >= load(i64, last, 0) and load(i64, first, 8) <= load(i64, last, 8)
    return rt_layouts.count_elements(view.dims, i64(view.ndim)) == 0


@native
def has_known_descr(g: base.Globals, view: capi.Ndarray, source_array: capi.Ndarray) -> bool:
    """Return whether a view has the descriptor of its source, or, of one view, that of a dtype."""
    if likely(view.descr == source_array.descr):
        return True
    code = rt_operands.array_code(g, view)
    return bool(LISTS == 0 and code >= 0 and load(ptr, g.descrs, code * 8) == view.descr)


@native
def write_slot_key(slot: LayoutKey, key: ptr, length: i64) -> None:
    """Write the key of a slot; the GIL is held until its layout is written, so that no call reads it meanwhile."""
    capi.memcpy(slot.key, key, length * 8)
    slot.length = length


@native
def write_layout(g: ptr, layout: Layout, view: capi.Ndarray, source_array: capi.Ndarray) -> None:
    """Write the layout of a view of an array."""
    rank = i64(view.ndim)
    is_same = view.descr == source_array.descr
    layout.code = i64(base.FOREIGN) if is_same else rt_operands.array_code(g, view)
    capi.memcpy(layout.dims, view.dims, rank * 8)
    capi.memcpy(layout.strides, view.strides, rank * 8)
    layout.rank = rank
    layout.offset = i64(view.data) - i64(source_array.data)
    layout.read_only = i64((source_array.flags & ~view.flags & capi.WRITEABLE) != 0)


# Lists of views -------------------------------------------------------------------------------------------------------
@native
def make_views(g: ptr, source: ptr, source_array: ptr, slot: ptr) -> ptr:
    """Return a tuple of tensors over the same memory; NULL with an exception set."""
    layouts: capi.PyBytes = load(ptr, CachedList(slot).item, 0)
    held, count = stack_of(layouts, source_array), layouts.size // LAYOUT_SIZE
    capi.hold_all(held, 2)
    result = capi.PyTuple_New(count)
    for k in range(count if likely(result != NULL) else 0):
        layout = layouts + capi.PyBytes.items + k * LAYOUT_SIZE
        view = view_by_layout(g, source, source_array, layout)
        if unlikely(view == NULL):
            capi.decref(result)
            result = NULL
            break
        capi.set_item(result, k, view)
    capi.release_all(held, 2)
    return result


@native
def are_views(g: ptr, result: ptr, source: ptr) -> bool:
    """Return whether a result is another tensor over the source's memory, within its elements, or a tuple of them."""
    if LISTS == 0:
        return is_view_of(g, result, source)
    views: capi.PyVarObject = result
    if capi.type_of(views) != capi.PyTuple_Type or views.size > MOST_VIEWS:
        return False
    for k in range(views.size):
        if not is_view_of(g, capi.item(views, k), source):
            return False
    return True


@native
def remember_list(
    g: ptr,
    slot: CachedList,
    result: capi.PyVarObject,
    source_array: capi.Ndarray,
    key: ptr,
    length: i64,
    steps: ptr,
) -> None:
    """Overwrite a slot; the GIL is held, and no Python code runs before all of it is written."""
    layouts: capi.PyBytes = capi.PyBytes_FromStringAndSize(NULL, result.size * LAYOUT_SIZE)
    if unlikely(layouts == NULL):
        capi.PyErr_Clear()
        capi.decref(steps)
        return
    for k in range(result.size):
        view: base.TensorObject = capi.item(result, k)
        write_layout(g, layouts + capi.PyBytes.items + k * LAYOUT_SIZE, view.array, source_array)
    write_slot_key(slot, key, length)
    before = load(ptr, slot.steps, 0)
    store(ptr, slot.steps, 0, steps)
    put_item(slot.item, layouts)
    capi.decref(before)
