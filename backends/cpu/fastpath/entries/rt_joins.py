"""Native runtime: the entries of `concat(tensors, axis=0)` and `stack(tensors, axis=0)` for tensors of one dtype."""

from __future__ import annotations

from ..compiler.dsl import (
    NULL,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    native,
    noinline,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from ..glue.layout import (
    ALIGNED,
    DESCR_TYPE_NUM,
    LIST_ITEMS,
    ND_DATA,
    ND_DESCR,
    ND_DIMS,
    ND_FLAGS,
    ND_NDIM,
    OB_SIZE,
    TUPLE_ITEMS,
)
from .rt_arguments import axis_argument
from .rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    ELSEWHERE,
    G_ZERO,
    T_ARRAY,
    PyList_Type,
    PyTuple_New,
    PyTuple_Type,
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
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    axis = axis_argument(desc, args, count, kwnames, 1, load_ptr(g, G_ZERO))
    if unlikely(count < 1 or flags == ELSEWHERE or axis == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    flags = allowed_flags(desc, flags)
    tensors = load_ptr(args, 0)
    items: ptr = NULL
    if type_of(tensors) == PyTuple_Type:
        items = tensors + TUPLE_ITEMS
    elif type_of(tensors) == PyList_Type:
        items = load_ptr(tensors, LIST_ITEMS)
    if unlikely(items == NULL or load_i64(tensors, OB_SIZE) < 1):
        return fall_back(desc, args, nargsf, kwnames)
    count = load_i64(tensors, OB_SIZE)
    history = False
    for k in range(count):
        if has_history(g, load_ptr(items, k * 8), flags):
            history = True
    result = join_arrays(g, items, count, axis, flags)
    if unlikely(result == NULL):
        return fall_back(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return retry_in_python(desc, args, nargsf, kwnames)
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    tensor = make_tensor(g, result)
    if unlikely(history):
        values = stack(24)
        store_ptr(values, 0, tensors)
        store_ptr(values, 8, axis)
        return record_call(desc, values, 2, tensor)
    return tensor


@native
def join_arrays(g: ptr, items: ptr, count: i64, axis: ptr, flags: i64) -> ptr:
    """Return the result's array. NULL: Python must run the call; -1: an exception is set."""
    first = plain_array(g, load_ptr(items, 0), flags)
    if first == NULL:
        return NULL
    own = i64(load_i32(first, ND_NDIM))
    along = axis_number(axis, own + STACK)
    if along == BAD or own >= MAX_RANK:
        return NULL
    shape = stack(MAX_RANK * 8)
    total: i64 = 0
    for k in range(count):
        array = plain_array(g, load_ptr(items, k * 8), flags)
        if array == NULL or not is_joinable(array, first, own, along):
            return NULL
        total += 1 if STACK else load_i64(load_ptr(array, ND_DIMS), along * 8)
    step = item_size(first)
    for d in range(own + STACK):
        at = d - 1 if STACK != 0 and d > along else d
        size = total
        if d != along:
            size = load_i64(load_ptr(first, ND_DIMS), at * 8)
        store_i64(shape, d * 8, size)
        step *= size
    made = new_array(g, load_ptr(first, ND_DESCR), own + STACK, shape, step)
    if unlikely(made == NULL):
        return ptr(-1)
    if unlikely(step >= RELEASE_BYTES):
        return fill_unlocked(made, items, count, along, own)
    if likely(step != 0):
        fill(made, items, T_ARRAY, count, along, own)
    return made


@noinline
def fill_unlocked(made: ptr, items: ptr, count: i64, along: i64, own: i64) -> ptr:
    """Copy without the GIL; a tuple holds the arrays, because another thread may change the list and the tensors."""
    arrays = PyTuple_New(count)
    if unlikely(arrays == NULL):
        decref(made)
        return ptr(-1)
    for k in range(count):
        array = load_ptr(load_ptr(items, k * 8), T_ARRAY)
        incref(array)
        store_ptr(arrays, TUPLE_ITEMS + k * 8, array)
    saved = PyEval_SaveThread()
    fill(made, arrays + TUPLE_ITEMS, ITSELF, count, along, own)
    PyEval_RestoreThread(saved)
    decref(arrays)
    return made


@native
def is_joinable(array: ptr, first: ptr, rank: i64, along: i64) -> bool:
    """Return whether an array has the dtype and, apart from the axis, the shape of the first."""
    number = load_i32(load_ptr(array, ND_DESCR), DESCR_TYPE_NUM)
    if number != load_i32(load_ptr(first, ND_DESCR), DESCR_TYPE_NUM) or i64(load_i32(array, ND_NDIM)) != rank:
        return False
    for d in range(rank):
        same = load_i64(load_ptr(array, ND_DIMS), d * 8) == load_i64(load_ptr(first, ND_DIMS), d * 8)
        if not same and (STACK or d != along):
            return False
    return (load_i32(array, ND_FLAGS) & ALIGNED) != 0


@native
def fill(made: ptr, items: ptr, slot: i64, count: i64, along: i64, own: i64) -> None:
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
        store_i64(steps, (rank - 1 - k) * 8, step)
        step *= load_i64(load_ptr(made, ND_DIMS), (rank - 1 - k) * 8)
    target = load_ptr(made, ND_DATA)
    for k in range(count):
        array = load_ptr(items, k * 8)
        if slot != ITSELF:
            array = load_ptr(array, slot)
        operand_strides(array, own, strides)
        elements: i64 = 1
        for d in range(own):
            extent = load_i64(load_ptr(array, ND_DIMS), d * 8)
            store_i64(shape, d * 8, extent)
            elements *= extent
            at = d + 1 if STACK != 0 and d >= along else d
            store_i64(strides, d * 16 + 8, load_i64(steps, at * 8))
        store_ptr(pointers, 0, load_ptr(array, ND_DATA))
        store_ptr(pointers, 8, target)
        wide: i64 = 1
        if STACK == 0:
            wide = load_i64(load_ptr(array, ND_DIMS), along * 8)
        if elements != 0:
            run_nest(COPY, pointers, shape, strides, coalesce(shape, strides, own), ptr(size))
        target += wide * load_i64(steps, along * 8)
