"""Native entries: `x[key]` for keys of ints, slices, new axes and one ellipsis, or one tensor of integers or bools.

A tensor of one integer without axes is accepted for an int. NumPy selects the elements at keys with several tensors.

Every other key is left to Python.
"""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, stack_of, store, unlikely
from ..compiler.structs import Struct, array, sizeof
from ..runtime import capi, rt_arguments, rt_batches, rt_entry, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies, rt_gathers, rt_index_keys, rt_views


class KeyState(Struct):
    """The state of reading a key or a plan: the view so far, and the plan's entries."""

    source: capi.Ndarray
    globals_: base.Globals
    flags: i64  # of the call
    has_tensor: i64  # whether a position is a tensor: the result is a copy
    data: ptr  # the first element of the view
    rank: i64  # of the view
    axis: i64  # axes of the source used up
    dims: ptr = array(base.MAX_RANK)
    strides: ptr = array(base.MAX_RANK)
    count: i64  # number of entries
    entries: ptr = array(3 * base.MAX_RANK)  # each start (or position), length (or kind), step


POSITION, NEW_AXIS = -1, -2


@rt_entry.entry(records=False, count=2, at_level=rt_batches.run_at_level)
def subscript(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `x[key]`.

    Python twin: eager/tensor/methods.py:getitem
    """
    result = select(entry, args, flags)
    if likely(i64(result) != Outcome.FALL_BACK):
        return result
    source, key = load(ptr, args, 0), load(ptr, args, 8)
    converted = rt_index_keys.convert_key(entry.globals_, key)
    if converted == NULL:
        return rt_index_keys.select_by_numpy(entry, source, key, flags)
    result = select(entry, stack_of(source, converted), flags)
    if i64(result) == Outcome.FALL_BACK:
        result = rt_index_keys.select_by_numpy(entry, source, converted, flags)
    capi.decref(converted)
    return result


@noinline
def select(entry: base.OperatorEntry, args: ptr, flags: i64) -> ptr:
    """Return `x[key]` for a key without objects of NumPy and lists, or an `Outcome`."""
    g: base.Globals = entry.globals_
    source = load(ptr, args, 0)
    if unlikely(capi.type_of(load(ptr, args, 8)) == g.tensor):
        return gather(entry, g, rt_operands.plain_array(g, source, flags), args, flags)
    flags = base.allowed_flags(entry, flags)
    state: KeyState = stack(sizeof(KeyState))
    if unlikely(not read_key(state, g, flags, rt_operands.plain_array(g, source, flags), args + 8)):
        return Outcome.FALL_BACK
    if unlikely(state.has_tensor != 0):
        if base.has_history(g, source, flags):
            return Outcome.FALL_BACK
        return copy_selected(entry, state)
    made = make_selected(entry, source, state)
    return record_view(entry, source, state, made) if unlikely(base.has_history(g, source, flags)) else made


@native
def make_selected(entry: base.OperatorEntry, source: ptr, state: KeyState) -> ptr:
    """Count a call, and return the view that was read; NULL with an exception set."""
    entry.calls += 1
    return rt_views.make_view_at(
        entry.globals_, source, state.source, state.rank, state.dims, state.strides, state.data
    )


@noinline
def copy_selected(entry: base.OperatorEntry, state: KeyState) -> ptr:
    """Return a tensor with a copy of the elements that were selected."""
    g, source = entry.globals_, state.source
    view = rt_views.view_array(
        g, source, capi.Ndarray(source).descr, state.rank, state.dims, state.strides, state.data
    )
    made: ptr = Outcome.RETRY
    if likely(view != NULL):
        made = rt_copies.copy_contiguous(g, view, state.rank, state.dims)
        capi.decref(view)
        if unlikely(made == NULL):
            made = Outcome.RETRY
    return rt_entry.finish(entry, made)


@noinline
def record_view(entry: ptr, source: ptr, state: ptr, made: ptr) -> ptr:
    """Record the view that a key has selected (NULL: a failure), as a call of `basic_index`."""
    if unlikely(made == NULL):
        return NULL
    plan = make_index_entries(state)
    if unlikely(plan == NULL):
        capi.decref(made)
        return NULL
    result = rt_record.record_call(entry, stack_of(source, plan, made), 2)
    capi.decref(plan)
    return result


@native
def make_index_entries(state: KeyState) -> ptr:
    """Return the index entries of the key that was read; NULL with an exception set."""
    entries = stack(base.MAX_RANK * 8)
    for k in range(state.count):
        store(ptr, entries, k * 8, make_index_entry(state.entries + k * 24))
    return capi.make_tuple(capi.PyTuple_Type, entries, state.count)


@native
def make_index_entry(words: ptr) -> ptr:
    if load(i64, words, 8) == NEW_AXIS:
        return capi.new_ref(capi.Py_None)
    if load(i64, words, 8) == POSITION:
        return capi.PyLong_FromLongLong(load(i64, words, 0))
    return capi.tuple_of_integers(words, 3)


@noinline
def gather(entry: base.OperatorEntry, g: ptr, array: capi.Ndarray, args: ptr, flags: i64) -> ptr:
    """Return `x[i]` for one tensor: the rows at its integers, or the elements at a mask; or an `Outcome`."""
    if array == NULL or array.ndim == 0:
        return Outcome.FALL_BACK
    mask = stack(8)
    if rt_operands.tensor_code(g, load(ptr, args, 8), flags, mask) == base.BOOL:
        return rt_entry.finish(entry, select_elements(array, load(ptr, mask, 0)))
    return rt_entry.finish(entry, rt_gathers.gather_elements(g, array, load(ptr, args, 8), 0, flags))


@native
def select_elements(array: capi.Ndarray, mask: capi.Ndarray) -> ptr:
    """Return the elements of a contiguous array at a mask, by NumPy; or an `Outcome`."""
    if (array.flags & capi.C_CONTIGUOUS) == 0 or mask.ndim == 0:
        return Outcome.FALL_BACK  # NumPy's result may not be contiguous; a mask without axes adds one
    operands = stack_of(array, mask)
    capi.hold_all(operands, 2)
    result = capi.PyObject_GetItem(array, mask)
    capi.release_all(operands, 2)
    if unlikely(result == NULL):
        capi.PyErr_Clear()  # Python raises tandem's exception
        return Outcome.FALL_BACK
    return result


# Axes of the view -----------------------------------------------------------------------------------------------------
@native
def start_view(state: KeyState, array: capi.Ndarray) -> None:
    """Begin to read a key of an array."""
    state.source, state.data, state.has_tensor = array, array.data, 0
    state.rank, state.axis, state.count = 0, 0, 0


@native
def append_axis(state: KeyState, size: i64, stride: i64) -> None:
    store(i64, state.dims, state.rank * 8, size)
    store(i64, state.strides, state.rank * 8, stride)
    state.rank += 1


@native
def append_entry(state: KeyState, start: i64, length: i64, step: i64) -> None:
    """Write an index entry."""
    words = state.entries + state.count * 24
    store(i64, words, 0, start)
    store(i64, words, 8, length)
    store(i64, words, 16, step)
    state.count += 1


@native
def append_new_axis(state: ptr) -> None:
    append_axis(state, 1, 0)
    append_entry(state, 0, NEW_AXIS, 0)


@native
def axis_size(state: KeyState) -> i64:
    """Return the size of the next axis of the source."""
    return load(i64, state.source.dims, state.axis * 8)


@native
def select_position(state: KeyState, position: i64) -> bool:
    """Use up the next axis at one position, not negative; return whether it is one."""
    state.data += position * load(i64, state.source.strides, state.axis * 8)
    append_entry(state, position, POSITION, 0)
    state.axis += 1
    return position >= 0


@native
def select_range(state: KeyState, start: i64, length: i64, step: i64) -> bool:
    """Use up the next axis with a range of positions; return true."""
    stride = load(i64, state.source.strides, state.axis * 8)
    state.data += start * stride
    append_axis(state, length, stride * step if length > 1 else stride)
    append_entry(state, start, length, step)
    state.axis += 1
    return True


# Keys -----------------------------------------------------------------------------------------------------------------
@native
def read_key(state: KeyState, g: base.Globals, flags: i64, array: capi.Ndarray, key: ptr) -> bool:
    """Read the key (`key` points to it) of an array or NULL; return false if Python must read it."""
    state.globals_ = g
    state.flags = flags
    items, count = key, i64(1)
    if capi.type_of(load(ptr, key, 0)) == capi.PyTuple_Type:
        items = load(ptr, key, 0) + capi.PyTuple.items
        count = capi.PyVarObject(load(ptr, key, 0)).size
    if unlikely(array == NULL) or i64(array.ndim) + count > base.MAX_RANK:
        return False
    start_view(state, array)
    open_axes = i64(array.ndim) - count_axes(items, count)
    if open_axes < 0:
        return False
    filled = False
    for k in range(count):
        item = load(ptr, items, k * 8)
        if item == capi.Py_Ellipsis:
            if filled:
                return False
            filled = True
            keep_axes(state, open_axes)
        elif not read_item(state, item):
            return False
    if not filled:
        keep_axes(state, open_axes)
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
def keep_axes(state: ptr, count: i64) -> None:
    for _k in range(count):
        select_range(state, 0, axis_size(state), 1)


@native
def read_item(state: KeyState, item: ptr) -> bool:
    if item == capi.Py_None:
        append_new_axis(state)
        return True
    if capi.type_of(item) == capi.PyLong_Type:
        return select_position(state, rt_arguments.position(item, axis_size(state)))
    if capi.type_of(item) == capi.PySlice_Type:
        return read_slice(state, item)
    return capi.type_of(item) == state.globals_.tensor and select_tensor(state, item)


@noinline
def select_tensor(state: KeyState, item: ptr) -> bool:
    """Use up the next axis at the position in a tensor without axes; return whether it is one."""
    size, position = axis_size(state), tensor_integer(state, item)
    if position < 0 and position != rt_arguments.NO_NUMBER:
        position += size
    state.has_tensor = 1
    return position >= 0 and position < size and select_position(state, position)


@native
def tensor_integer(state: KeyState, x: ptr) -> i64:
    """Return the integer in a plain tensor without axes, or NO_NUMBER."""
    where = stack(8)
    code = rt_operands.operand_code(state.globals_, x, state.flags, where)
    array: capi.Ndarray = load(ptr, where, 0)
    if array == NULL or array.ndim != 0 or code < base.INT8 or code > base.UINT64:
        return rt_arguments.NO_NUMBER
    value = rt_gathers.integer_at(array.data, code)
    return rt_arguments.NO_NUMBER if code == base.UINT64 and value < 0 else value


@native
def plain_bound(x: ptr) -> bool:
    return bool(x == capi.Py_None or capi.type_of(x) == capi.PyLong_Type)


@native
def read_slice(state: KeyState, item: capi.PySlice) -> bool:
    if likely(plain_bound(item.start) and plain_bound(item.stop) and plain_bound(item.step)):
        return read_plain_slice(state, item)
    start, stop = make_bound(state, item.start), make_bound(state, item.stop)
    step = make_bound(state, item.step)
    plain: ptr = NULL
    if start != NULL and stop != NULL and step != NULL:
        plain = capi.PySlice_New(start, stop, step)
    result = plain != NULL and read_plain_slice(state, plain)
    capi.PyErr_Clear()  # of a failed allocation
    capi.release_all(stack_of(start, stop, step, plain), 4)
    return result


@noinline
def make_bound(state: KeyState, x: ptr) -> ptr:
    """Return a bound of a slice as an int or None, a new reference; NULL if Python must read the slice."""
    if plain_bound(x):
        return capi.new_ref(x)
    value = tensor_integer(state, x) if capi.type_of(x) == state.globals_.tensor else rt_arguments.NO_NUMBER
    if value == rt_arguments.NO_NUMBER:
        return NULL
    return capi.PyLong_FromLongLong(value)


@native
def read_plain_slice(state: ptr, item: capi.PySlice) -> bool:
    bounds = stack(24)
    if capi.PySlice_Unpack(item, bounds, bounds + 8, bounds + 16) < 0:
        capi.PyErr_Clear()
        return False
    step = load(i64, bounds, 16)
    length = capi.PySlice_AdjustIndices(axis_size(state), bounds, bounds + 8, step)
    if likely(length > 0):
        return select_range(state, load(i64, bounds, 0), length, step)
    return select_range(state, 0, 0, 1)


# -- basic_index(x, plan) ----------------------------------------------------------------------------------------------
@rt_entry.entry(count=2)
def basic_index(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `basic_index`, whose plan has an int or (start, length, step) per axis, and None for new axes.

    Python twin: operators/indexing/slicing.py:to_numpy_index
    """
    g, source, plan = entry.globals_, load(ptr, args, 0), load(ptr, args, 8)
    state: KeyState = stack(sizeof(KeyState))
    if unlikely(not read_plan(state, rt_operands.plain_array(g, source, flags), plan)):
        return Outcome.FALL_BACK
    made = make_selected(entry, source, state)
    return rt_record.finish_call(entry, flags, stack_of(source, plan, made), 2)


@native
def read_plan(state: KeyState, array: capi.Ndarray, plan: capi.PyVarObject) -> bool:
    """Read the plan of an array or NULL; return false if Python must read it."""
    if array == NULL or not capi.is_tuple(plan) or plan.size > base.MAX_RANK:
        return False
    start_view(state, array)
    rank = i64(array.ndim)
    for k in range(plan.size):
        entry = capi.item(plan, k)
        if entry == capi.Py_None:
            append_new_axis(state)
        elif state.axis >= rank or not read_entry(state, entry):
            return False
    return state.axis == rank


@native
def read_entry(state: ptr, entry: capi.PyVarObject) -> bool:
    size = axis_size(state)
    if capi.type_of(entry) == capi.PyLong_Type:
        chosen = rt_arguments.whole_number(entry)
        return select_position(state, chosen if chosen < size else -1)
    if not capi.is_tuple(entry) or entry.size != 3:
        return False
    start = rt_arguments.whole_number(capi.item(entry, 0))
    length = rt_arguments.whole_number(capi.item(entry, 1))
    step = rt_arguments.whole_number(capi.item(entry, 2))
    if start < 0 or start >= size or length < 1 or length > size:
        return False
    last = start + (length - 1) * step
    if step == 0 or step > size or step < -size or last < 0 or last >= size:
        return False
    return select_range(state, start, length, step)
