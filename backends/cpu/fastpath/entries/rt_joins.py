"""The native entries of `concat(tensors, axis=0)` and `stack(tensors, axis=0)` for tensors of one dtype."""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i64, likely, load, native, ptr, stack, stack_of, store, template, unlikely
from ..runtime import capi, rt_arguments, rt_entry, rt_gil, rt_layouts, rt_memory, rt_operands, rt_record
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies

STACK: i64 = template(0)  # 1: along a new axis
ITSELF: i64 = -1


@rt_entry.entry
def join(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `concat` and `stack`.

    Python twin: operators/shape/joining.py:_concat_kernel
    """
    g: base.Globals = entry.globals_
    axis = rt_arguments.axis_argument(entry, args, count, kwnames, 1, g.zero)
    if unlikely(count < 1 or axis == NULL):
        return Outcome.FALL_BACK
    tensors: capi.PyVarObject = load(ptr, args, 0)
    items = capi.sequence_items(tensors)
    if unlikely(items == NULL or tensors.size < 1):
        return Outcome.FALL_BACK
    if unlikely(rt_record.is_recorded(g, flags, items, tensors.size)):
        return join_recorded(entry, tensors, axis, flags)
    return rt_entry.finish(entry, join_arrays(g, items, tensors.size, axis, flags))


@dsl.noinline
def join_recorded(entry: base.OperatorEntry, sequence: ptr, axis: ptr, flags: i64) -> ptr:
    """Return the recorded result, or an `Outcome`; a tuple holds the tensors, since Python code may change a list."""
    tensors: capi.PyVarObject = capi.PySequence_Tuple(sequence)
    if unlikely(tensors == NULL):
        return tensors
    array = join_arrays(entry.globals_, tensors + capi.PyTuple.items, tensors.size, axis, flags)
    result = rt_record.record_call(entry, stack_of(tensors, axis, rt_entry.finish(entry, array)), 2)
    capi.decref(tensors)
    return result


@native
def join_arrays(g: ptr, items: ptr, count: i64, axis: ptr, flags: i64) -> ptr:
    """Return the result's array, or an `Outcome`."""
    first: capi.Ndarray = rt_operands.plain_array(g, load(ptr, items, 0), flags)
    if first == NULL:
        return Outcome.FALL_BACK
    own = i64(first.ndim)
    along = rt_arguments.position(axis, own + STACK)
    if along == rt_arguments.BAD or own >= base.MAX_RANK:
        return Outcome.FALL_BACK
    shape = stack(base.MAX_RANK * 8)
    total: i64 = 0
    for k in range(count):
        array: capi.Ndarray = rt_operands.plain_array(g, load(ptr, items, k * 8), flags)
        if array == NULL or not is_joinable(array, first, own, along):
            return Outcome.FALL_BACK
        total += 1 if STACK else load(i64, array.dims, along * 8)
    for d in range(own + STACK):
        at = d - 1 if STACK != 0 and d > along else d
        store(i64, shape, d * 8, load(i64, first.dims, at * 8) if d != along else total)
    step = rt_layouts.count_elements(shape, own + STACK) * rt_layouts.item_size(first)
    made = rt_memory.new_array(g, first.descr, own + STACK, shape, step)
    if unlikely(made == NULL):
        return Outcome.RETRY
    if unlikely(step >= rt_gil.RELEASE_BYTES):
        return fill_unlocked(made, items, count, along, own)
    if likely(step != 0):
        fill(made, items, base.TensorObject.array, count, along, own)
    return made


@dsl.noinline
def fill_unlocked(made: ptr, items: ptr, count: i64, along: i64, own: i64) -> ptr:
    """Copy without the GIL; a tuple holds the arrays, because another thread may change the list and the tensors."""
    arrays = capi.PyTuple_New(count)
    if unlikely(arrays == NULL):
        capi.decref(made)
        return Outcome.RETRY
    for k in range(count):
        capi.set_item(arrays, k, capi.new_ref(base.TensorObject(load(ptr, items, k * 8)).array))
    saved = capi.PyEval_SaveThread()
    fill(made, arrays + capi.PyTuple.items, ITSELF, count, along, own)
    capi.PyEval_RestoreThread(saved)
    capi.decref(arrays)
    return made


@native
def is_joinable(array: capi.Ndarray, first: capi.Ndarray, rank: i64, along: i64) -> bool:
    """Return whether an array has the dtype and, apart from the axis, the shape of the first."""
    number = capi.Descr(array.descr).type_num
    if number != capi.Descr(first.descr).type_num or i64(array.ndim) != rank:
        return False
    for d in range(rank):
        same = load(i64, array.dims, d * 8) == load(i64, first.dims, d * 8)
        if not same and (STACK or d != along):
            return False
    return (array.flags & capi.ALIGNED) != 0


@native
def fill(made: capi.Ndarray, items: ptr, slot: i64, count: i64, along: i64, own: i64) -> None:
    """Copy each array, which is the item or a slot of it, into the result."""
    strides, steps = stack(base.MAX_RANK * 16), stack(base.MAX_RANK * 8)
    shape, size, target = stack(base.MAX_RANK * 8), rt_layouts.item_size(made), made.data
    rt_layouts.write_row_major_strides(steps, 8, made.dims, own + STACK, size)
    for k in range(count):
        array: capi.Ndarray = load(ptr, items, k * 8)
        if slot != ITSELF:
            array = load(ptr, array, slot)
        rt_layouts.operand_strides(array, own, own, strides)
        capi.memcpy(shape, array.dims, own * 8)
        for d in range(own):
            at = d + 1 if STACK != 0 and d >= along else d
            store(i64, strides, d * 16 + 8, load(i64, steps, at * 8))
        if rt_layouts.count_elements(shape, own) != 0:
            pointers = stack_of(array.data, target)
            rank = rt_layouts.coalesce(shape, strides, own)
            rt_layouts.run_nest(rt_copies.COPY, pointers, shape, strides, rank, ptr(size))
        target += (1 if STACK else load(i64, array.dims, along * 8)) * load(i64, steps, along * 8)
