"""Native runtime: the entries of `concat(tensors, axis=0)` and `stack(tensors, axis=0)` for tensors of one dtype."""

from __future__ import annotations

from .dsl import (
    NULL,
    i64,
    likely,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from .layout import (
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
    PyTuple_Type,
    allowed,
    entry_data,
    failed,
    has_history,
    make_tensor,
    slow,
    thread_flags,
    type_of,
)
from .rt_copies import COPY, item_size
from .rt_elementwise import MAX_RANK, coalesce, operand_strides, run_nest
from .rt_memory import new_array
from .rt_operands import plain_array
from .rt_record import record_call
from .rt_reduce import BAD, axis_number

STACK: i64 = 0  # 1: along a new axis


@native
def join(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    axis = axis_argument(desc, args, count, kwnames, 1, load_ptr(g, G_ZERO))
    if unlikely(count < 1 or flags == ELSEWHERE or axis == NULL):
        return slow(desc, args, nargsf, kwnames)
    flags = allowed(desc, flags)
    tensors = load_ptr(args, 0)
    items: ptr = NULL
    if type_of(tensors) == PyTuple_Type:
        items = tensors + TUPLE_ITEMS
    elif type_of(tensors) == PyList_Type:
        items = load_ptr(tensors, LIST_ITEMS)
    if unlikely(items == NULL or load_i64(tensors, OB_SIZE) < 1):
        return slow(desc, args, nargsf, kwnames)
    result = joined_array(g, items, load_i64(tensors, OB_SIZE), axis, flags)
    if unlikely(result == NULL):
        return slow(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return failed(desc, args, nargsf, kwnames)
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    history = False
    for k in range(load_i64(tensors, OB_SIZE)):
        if has_history(g, load_ptr(items, k * 8), flags):
            history = True
    tensor = make_tensor(g, result)
    if unlikely(history):
        values = stack(24)
        store_ptr(values, 0, tensors)
        store_ptr(values, 8, axis)
        return record_call(desc, values, 2, tensor)
    return tensor


@native
def joined_array(g: ptr, items: ptr, count: i64, axis: ptr, flags: i64) -> ptr:
    """The result's array. NULL: Python has to answer; -1: an exception is set."""
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
        if array == NULL or not alike(array, first, own, along):
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
    if likely(step != 0):
        fill(made, items, count, along, own)
    return made


@native
def alike(array: ptr, first: ptr, rank: i64, along: i64) -> bool:
    """Whether an array has the dtype and, beside the axis, the shape of the first."""
    number = load_i32(load_ptr(array, ND_DESCR), DESCR_TYPE_NUM)
    if number != load_i32(load_ptr(first, ND_DESCR), DESCR_TYPE_NUM) or i64(load_i32(array, ND_NDIM)) != rank:
        return False
    for d in range(rank):
        same = load_i64(load_ptr(array, ND_DIMS), d * 8) == load_i64(load_ptr(first, ND_DIMS), d * 8)
        if not same and (STACK or d != along):
            return False
    return (load_i32(array, ND_FLAGS) & ALIGNED) != 0


@native
def fill(made: ptr, items: ptr, count: i64, along: i64, own: i64) -> None:
    """Copy each array to its place."""
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
        array = load_ptr(load_ptr(items, k * 8), T_ARRAY)
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
