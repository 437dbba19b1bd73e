"""Native runtime: the entries of `concat(tensors, axis=0)` and `stack(tensors, axis=0)` for tensors of one dtype."""

from __future__ import annotations

from ..compiler.dsl import NULL, i64, likely, load, native, noinline, ptr, stack, store, unlikely
from ..glue.layout import ALIGNED, Descr, Ndarray, PyList, PyTuple
from .rt_arguments import axis_argument
from .rt_base import (
    ARGS_MASK,
    ELSEWHERE,
    Globals,
    OperatorEntry,
    PyList_Type,
    PyTuple_New,
    PyTuple_Type,
    TensorObject,
    allowed_flags,
    decref,
    entry_data,
    fall_back,
    has_history,
    incref,
    make_tensor,
    retry_in_python,
    thread_flags,
    type_of,
)
from .rt_copies import COPY, item_size
from .rt_elementwise import MAX_RANK, coalesce, operand_strides, run_nest
from .rt_gil import RELEASE_BYTES, PyEval_RestoreThread, PyEval_SaveThread
from .rt_memory import new_array
from .rt_operands import plain_array
from .rt_record import record_call
from .rt_reduce import BAD, axis_number

STACK: i64 = 0  # 1: along a new axis
ITSELF: i64 = -1


@native
def join(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """The entry of `concat` and `stack`.

    Python twin: operators/shape/joining.py:_concat_kernel
    """
    desc: OperatorEntry = entry_data(self)
    g: Globals = desc.globals_
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    axis = axis_argument(desc, args, count, kwnames, 1, g.zero)
    if unlikely(count < 1 or flags == ELSEWHERE or axis == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    tensors: PyList = load(ptr, args, 0)
    items: ptr = NULL
    if type_of(tensors) == PyTuple_Type:
        items = tensors + PyTuple.items
    elif type_of(tensors) == PyList_Type:
        items = tensors.items
    if unlikely(items == NULL or tensors.size < 1):
        return fall_back(desc, args, nargsf, kwnames)
    count = tensors.size
    history = False
    for k in range(count):
        if has_history(g, load(ptr, items, k * 8), flags):
            history = True
    result = join_arrays(g, items, count, axis, flags)
    if unlikely(result == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return retry_in_python(desc, args, nargsf, kwnames)
    desc.calls += 1
    tensor = make_tensor(g, result)
    if unlikely(history):
        values = stack(24)
        store(ptr, values, 0, tensors)
        store(ptr, values, 8, axis)
        return record_call(desc, values, 2, tensor)
    return tensor


@native
def join_arrays(g: ptr, items: ptr, count: i64, axis: ptr, flags: i64) -> ptr:
    """Return the result's array. NULL: Python must run the call; -1: an exception is set."""
    first: Ndarray = plain_array(g, load(ptr, items, 0), flags)
    if first == NULL:
        return NULL
    own = i64(first.ndim)
    along = axis_number(axis, own + STACK)
    if along == BAD or own >= MAX_RANK:
        return NULL
    shape = stack(MAX_RANK * 8)
    total: i64 = 0
    for k in range(count):
        array: Ndarray = plain_array(g, load(ptr, items, k * 8), flags)
        if array == NULL or not is_joinable(array, first, own, along):
            return NULL
        total += 1 if STACK else load(i64, array.dims, along * 8)
    step = item_size(first)
    for d in range(own + STACK):
        at = d - 1 if STACK != 0 and d > along else d
        size = total
        if d != along:
            size = load(i64, first.dims, at * 8)
        store(i64, shape, d * 8, size)
        step *= size
    made = new_array(g, first.descr, own + STACK, shape, step)
    if unlikely(made == NULL):
        return ptr(-1)
    if unlikely(step >= RELEASE_BYTES):
        return fill_unlocked(made, items, count, along, own)
    if likely(step != 0):
        fill(made, items, TensorObject.array, count, along, own)
    return made


@noinline
def fill_unlocked(made: ptr, items: ptr, count: i64, along: i64, own: i64) -> ptr:
    """Copy without the GIL; a tuple holds the arrays, because another thread may change the list and the tensors."""
    arrays = PyTuple_New(count)
    if unlikely(arrays == NULL):
        decref(made)
        return ptr(-1)
    for k in range(count):
        array = TensorObject(load(ptr, items, k * 8)).array
        incref(array)
        store(ptr, arrays, PyTuple.items + k * 8, array)
    saved = PyEval_SaveThread()
    fill(made, arrays + PyTuple.items, ITSELF, count, along, own)
    PyEval_RestoreThread(saved)
    decref(arrays)
    return made


@native
def is_joinable(array: Ndarray, first: Ndarray, rank: i64, along: i64) -> bool:
    """Return whether an array has the dtype and, apart from the axis, the shape of the first."""
    number = Descr(array.descr).type_num
    if number != Descr(first.descr).type_num or i64(array.ndim) != rank:
        return False
    for d in range(rank):
        same = load(i64, array.dims, d * 8) == load(i64, first.dims, d * 8)
        if not same and (STACK or d != along):
            return False
    return (array.flags & ALIGNED) != 0


@native
def fill(made: Ndarray, items: ptr, slot: i64, count: i64, along: i64, own: i64) -> None:
    """Copy each array, which is the item or a slot of it, into the result."""
    shape, strides, pointers, steps = (
        stack(MAX_RANK * 8),
        stack(MAX_RANK * 16),
        stack(16),
        stack(MAX_RANK * 8),
    )
    size, rank = item_size(made), own + STACK
    step = size
    for k in range(rank):
        store(i64, steps, (rank - 1 - k) * 8, step)
        step *= load(i64, made.dims, (rank - 1 - k) * 8)
    target = made.data
    for k in range(count):
        array: Ndarray = load(ptr, items, k * 8)
        if slot != ITSELF:
            array = load(ptr, array, slot)
        operand_strides(array, own, strides)
        elements: i64 = 1
        for d in range(own):
            extent = load(i64, array.dims, d * 8)
            store(i64, shape, d * 8, extent)
            elements *= extent
            at = d + 1 if STACK != 0 and d >= along else d
            store(i64, strides, d * 16 + 8, load(i64, steps, at * 8))
        store(ptr, pointers, 0, array.data)
        store(ptr, pointers, 8, target)
        wide: i64 = 1
        if STACK == 0:
            wide = load(i64, array.dims, along * 8)
        if elements != 0:
            run_nest(COPY, pointers, shape, strides, coalesce(shape, strides, own), ptr(size))
        target += wide * load(i64, steps, along * 8)
