"""The native entries of views: `reshape(x, shape)`, `permute(x, axes)`, `broadcast_to(x, shape)`, `x.T`, `x.mT`.

So are those of operators that return the same elements: `clone(x)`, `contiguous(x)`, `stop_gradient(x)`. A view shares
the storage of its source, which is created here if there is none yet.
"""

from __future__ import annotations

from ..compiler import dsl
from ..compiler.dsl import NULL, i32, i64, likely, load, native, ptr, stack, store, template, unlikely
from ..runtime import (
    capi,
    rt_arguments,
    rt_batches,
    rt_entry,
    rt_layouts,
    rt_memory,
    rt_operands,
    rt_record,
    rt_spare_numbers,
)
from ..runtime import rt_base as base
from ..runtime.rt_entry import Outcome
from . import rt_copies

VIEW: i64 = template(0)  # which view this instance of the entry is
RESHAPE, PERMUTE, BROADCAST, ALL_AXES, LAST_AXES = 0, 1, 2, 3, 4

# Result of an instance: a copy; a view if the operand is contiguous, else a copy; a view.
COPY, DENSE, ALIAS = 0, 1, 2
RESULT: i64 = template(0)

# Results of the functions that write sizes and strides: both are written; only sizes, since the strides do not allow a
# view; Python must run the call.
VIEWED, MOVED, REFUSED = 0, 1, -1


@rt_entry.entry(at_level=rt_batches.run_at_level)
def view(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of views: sizes or axes are one argument, or follow the tensor one by one."""
    if unlikely(count < 2 or kwnames != NULL):
        return Outcome.FALL_BACK
    if likely(count == 2):
        return make_result(entry, load(ptr, args, 0), load(ptr, args, 8), flags)
    capi.hold_all(args + 8, count - 1)
    wish = capi.make_tuple(capi.PyTuple_Type, args + 8, count - 1)
    if unlikely(wish == NULL):
        return Outcome.RETRY
    result = make_result(entry, load(ptr, args, 0), wish, flags)
    capi.decref(wish)
    return result


@native
def make_result(entry: base.OperatorEntry, source: ptr, wish: ptr, flags: i64) -> ptr:
    """Return the view of a tensor with the sizes or axes of an object, or an `Outcome`."""
    g = entry.globals_
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    wanted, dims, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    rank = rt_arguments.read_integers(wish, wanted)
    if unlikely(array == NULL or rank == rt_arguments.BAD or array.ndim > base.MAX_RANK):
        return Outcome.FALL_BACK
    if VIEW == RESHAPE:
        result = reshape_strides(array, wanted, rank, dims, strides)
    elif VIEW == PERMUTE:
        result = permute_strides(array, wanted, rank, dims, strides)
    else:
        result = broadcast_strides(array, wanted, rank, dims, strides)
    if unlikely(result == REFUSED):
        return Outcome.FALL_BACK
    entry.calls += 1
    if unlikely(result == MOVED):
        made = rt_copies.copy_with_shape(g, array, rank, dims)
    else:
        made = make_view_at(g, source, array, rank, dims, strides, array.data)
    return rt_record.finish_call(entry, flags, dsl.stack_of(source, wish, made), 2)


@rt_entry.entry(count=1)
def transpose(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `x.T` and `x.mT`: all axes in reverse order, or the last two swapped."""
    g, source = entry.globals_, load(ptr, args, 0)
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(array == NULL or array.ndim > base.MAX_RANK or (VIEW == LAST_AXES and array.ndim < 2)):
        return Outcome.FALL_BACK
    axes, dims, strides = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    rank = i64(array.ndim)
    for d in range(rank):
        axis = rank - 1 - d
        if VIEW == LAST_AXES:
            axis = d if d < rank - 2 else 2 * rank - 3 - d
        store(i64, axes, d * 8, axis)
        store(i64, dims, d * 8, load(i64, array.dims, axis * 8))
        store(i64, strides, d * 8, load(i64, array.strides, axis * 8))
    entry.calls += 1
    if likely(not base.has_history(g, source, flags)):
        return make_view_at(g, source, array, rank, dims, strides, array.data)
    wish = capi.tuple_of_integers(axes, rank)
    if unlikely(wish == NULL):
        return Outcome.RETRY
    made = make_view_at(g, source, array, rank, dims, strides, array.data)
    result = rt_record.finish_call(entry, flags, dsl.stack_of(source, wish, made), 2)
    capi.decref(wish)
    return result


@rt_entry.entry(count=1)
def copy_or_view(entry: base.OperatorEntry, args: ptr, count: i64, kwnames: ptr, flags: i64) -> ptr:
    """The entry of `clone`, `contiguous` and `stop_gradient`."""
    g, source = entry.globals_, load(ptr, args, 0)
    if RESULT == ALIAS and rt_operands.has_marks(g, source):
        return Outcome.FALL_BACK  # the result is marked likewise
    array: capi.Ndarray = rt_operands.plain_array(g, source, flags)
    if unlikely(array == NULL or array.ndim > base.MAX_RANK or (array.flags & capi.ALIGNED) == 0):
        return Outcome.FALL_BACK
    rank, dims = i64(array.ndim), array.dims
    entry.calls += 1
    if RESULT == ALIAS or (RESULT == DENSE and (array.flags & capi.C_CONTIGUOUS) != 0):
        tensor = make_view_at(g, source, array, rank, dims, array.strides, array.data)
    else:
        tensor = rt_copies.copy_with_shape(g, array, rank, dims)
    return rt_record.finish_call(entry, flags, dsl.stack_of(source, tensor), 1)


@native
def permute_strides(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> i64:
    if rank != i64(array.ndim):
        return REFUSED
    seen: i64 = 0
    for d in range(rank):
        axis: i64 = load(i64, wanted, d * 8)
        if axis < 0:
            axis += rank
        if axis < 0 or axis >= rank or (seen >> axis) & 1 != 0:
            return REFUSED
        seen |= 1 << axis
        store(i64, dims, d * 8, load(i64, array.dims, axis * 8))
        store(i64, strides, d * 8, load(i64, array.strides, axis * 8))
    return VIEWED


@native
def broadcast_strides(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> i64:
    own = i64(array.ndim)
    if own > rank:
        return REFUSED
    total: i64 = 1
    for d in range(rank):
        size = load(i64, wanted, d * 8)
        if size <= 0 or size > LARGEST:
            return REFUSED
        total *= size
        if total > LARGEST:
            return REFUSED
        at = d - (rank - own)
        had = load(i64, array.dims, at * 8) if at >= 0 else 1
        step = load(i64, array.strides, at * 8) if at >= 0 else 0
        if had != size and had != 1:
            return REFUSED
        store(i64, dims, d * 8, size)
        store(i64, strides, d * 8, step if had == size else 0)
    return VIEWED


LARGEST: i64 = 2147483648  # larger results are left to Python, which checks that they can be addressed


@native
def make_view_at(g: ptr, source: ptr, array: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr) -> ptr:
    """Return a tensor over the same memory; NULL with an exception set.

    Python twin: eager/tensor/tensor.py:wrap_view
    """
    return make_view_of(g, source, array, capi.Ndarray(array).descr, rank, dims, strides, data)


@native
def make_view_of(
    g: ptr, source: ptr, array: ptr, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr
) -> ptr:
    """Return a tensor over the same memory, of a dtype; NULL with an exception set."""
    if rank == 0 and VIEW != BROADCAST:
        number = rt_spare_numbers.take_view_at(g, source, array, descr, data)
        if likely(i64(number) != rt_spare_numbers.NONE_KEPT):
            return number
    capi.incref(array)
    storage = base.shared_storage(g, source, array)
    if unlikely(storage == NULL):
        capi.decref(array)
        return NULL
    made = view_array(g, array, descr, rank, dims, strides, data)
    capi.decref(array)
    tensor: base.TensorObject = NULL
    if likely(made != NULL):
        tensor = base.make_tensor(g, made)
    if unlikely(tensor == NULL):
        capi.decref(storage)
        return NULL
    tensor.storage = storage
    capi.decref(capi.Py_None)
    return tensor


@native
def view_array(
    g: base.Globals, array: capi.Ndarray, descr: ptr, rank: i64, dims: ptr, strides: ptr, data: ptr
) -> ptr:
    """Return an array over the same memory that keeps its source alive; NULL with an exception set."""
    may_write = array.flags & capi.WRITEABLE if VIEW != BROADCAST else i32(0)
    return rt_memory.array_over(
        g.spare_arrays, descr, rank, dims, strides, data, may_write, capi.new_ref(array)
    )


# Sizes and strides of `reshape` ----------------------------------------------------------------------------------
@native
def reshape_strides(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr, strides: ptr) -> i64:
    """Write sizes, and strides if the result can be a view. Empty arrays are left to Python.

    Python twin: operators/shape/views.py:reshaped_strides
    """
    if array.ndim > base.MAX_RANK or not fill_sizes(array, wanted, rank, dims):
        return REFUSED
    if (array.flags & capi.C_CONTIGUOUS) == 0:
        return VIEWED if regroup_strides(array, rank, dims, strides) else MOVED
    rt_layouts.write_row_major_strides(strides, 8, dims, rank, rt_layouts.item_size(array))
    return VIEWED


@native
def fill_sizes(array: capi.Ndarray, wanted: ptr, rank: i64, dims: ptr) -> bool:
    """Write the sizes, one of which may be -1; return false if they do not fit.

    Python twin: operators/shape/views.py:reshape_shape
    """
    total = rt_layouts.count_elements(array.dims, i64(array.ndim))
    open_at: i64 = -1
    known: i64 = 1
    for d in range(rank):
        size = load(i64, wanted, d * 8)
        if size == -1 and open_at < 0:
            open_at = d
        elif size <= 0 or size > total:
            return False
        else:
            known *= size
            if known > total:
                return False
        store(i64, dims, d * 8, size)
    if total == 0 or total % known != 0 or (open_at < 0 and known != total):
        return False
    if open_at >= 0:
        store(i64, dims, open_at * 8, total // known)
    return True


@native
def regroup_strides(array: capi.Ndarray, rank: i64, dims: ptr, strides: ptr) -> bool:
    """Write strides over the same memory, as NumPy's reshape; return false if the elements would have to move."""
    sizes, steps = stack(base.MAX_RANK * 8), stack(base.MAX_RANK * 8)
    own: i64 = 0
    for d in range(i64(array.ndim)):
        size = load(i64, array.dims, d * 8)
        if size != 1:
            store(i64, sizes, own * 8, size)
            store(i64, steps, own * 8, load(i64, array.strides, d * 8))
            own += 1
    old, new = i64(0), i64(0)
    step = rt_layouts.item_size(array)
    while new < rank and old < own:
        old_end, new_end = old + 1, new + 1
        had, want = load(i64, sizes, old * 8), load(i64, dims, new * 8)
        while had != want:
            if want < had:
                want *= load(i64, dims, new_end * 8)
                new_end += 1
            else:
                had *= load(i64, sizes, old_end * 8)
                old_end += 1
        for d in range(old, old_end - 1):
            if load(i64, steps, d * 8) != load(i64, sizes, d * 8 + 8) * load(i64, steps, d * 8 + 8):
                return False
        step = load(i64, steps, old_end * 8 - 8)
        rt_layouts.write_row_major_strides(strides + new * 8, 8, dims + new * 8, new_end - new, step)
        old, new = old_end, new_end
    for d in range(new, rank):  # the remaining axes have size 1
        store(i64, strides, d * 8, step)
    return True
