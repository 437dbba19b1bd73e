"""Native runtime: `index(x, [i], axis=0)`, `take(x, i, axis=None)` and `x[i]` for one tensor of integers."""

from __future__ import annotations

from .dsl import (
    NULL,
    apart,
    i8,
    i16,
    i32,
    i64,
    likely,
    load,
    load_i32,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store,
    store_i64,
    store_ptr,
    u8,
    u16,
    u32,
    unlikely,
)
from .layout import (
    ALIGNED,
    C_CONTIGUOUS,
    LIST_ITEMS,
    ND_DATA,
    ND_DESCR,
    ND_DIMS,
    ND_FLAGS,
    ND_NDIM,
    ND_STRIDES,
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
    Py_None,
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
from .rt_elementwise import MAX_RANK, coalesce, run_nest
from .rt_memory import new_array
from .rt_operands import INT8, INT16, INT32, INT64, UINT16, UINT32, UINT64, operand_code, plain_array
from .rt_record import record_call
from .rt_reduce import BAD, axis_number

TAKE: i64 = 0  # 1: `take`, whose index is a tensor and not a list of them, and whose axis may be None
OUTSIDE: i64 = -1


@native
def gather(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    desc = entry_data(self)
    g = load_ptr(desc, D_GLOBALS)
    flags = thread_flags(g)
    count = nargsf & ARGS_MASK
    axis = axis_argument(desc, args, count, kwnames, 2, Py_None if TAKE else load_ptr(g, G_ZERO))
    if unlikely(count < 2 or flags == ELSEWHERE or axis == NULL):
        return slow(desc, args, nargsf, kwnames)
    flags = allowed(desc, flags)
    source, chosen = load_ptr(args, 0), index_tensor(load_ptr(args, 8))
    array = plain_array(g, source, flags)
    if unlikely(array == NULL or chosen == NULL):
        return slow(desc, args, nargsf, kwnames)
    along = gathered_axis(axis, array)
    if unlikely(along == BAD):
        return slow(desc, args, nargsf, kwnames)
    result = gathered(g, array, chosen, along, flags)
    if unlikely(result == NULL):
        return slow(desc, args, nargsf, kwnames)
    if unlikely(i64(result) == -1):
        return failed(desc, args, nargsf, kwnames)
    store_i64(desc, D_CALLS, load_i64(desc, D_CALLS) + 1)
    tensor = make_tensor(g, result)
    if unlikely(has_history(g, source, flags)):
        values = stack(32)
        store_ptr(values, 0, source)
        store_ptr(values, 8, load_ptr(args, 8))
        store_ptr(values, 16, axis)
        return record_call(desc, values, 3, tensor)
    return tensor


@native
def index_tensor(x: ptr) -> ptr:
    """The one index of a call, or NULL."""
    if TAKE:
        return x
    if type_of(x) == PyTuple_Type and load_i64(x, OB_SIZE) == 1:
        return load_ptr(x, TUPLE_ITEMS)
    if type_of(x) == PyList_Type and load_i64(x, OB_SIZE) == 1:
        return load_ptr(load_ptr(x, LIST_ITEMS), 0)
    return NULL


@native
def gathered_axis(axis: ptr, array: ptr) -> i64:
    if TAKE and axis == Py_None:  # positions in the flattened tensor
        return 0 if load_i32(array, ND_NDIM) == 1 else BAD
    return axis_number(axis, i64(load_i32(array, ND_NDIM)))


@apart
def gathered(g: ptr, array: ptr, chosen: ptr, along: i64, flags: i64) -> ptr:
    """The result's array. NULL: Python has to answer; -1: an exception is set."""
    where, shape = stack(8), stack(2 * MAX_RANK * 8)
    code = operand_code(g, chosen, flags, where)
    places = load_ptr(where, 0)
    if places == NULL or code < INT8 or code > UINT64:
        return NULL
    own, extra = i64(load_i32(array, ND_NDIM)), i64(load_i32(places, ND_NDIM))
    if own + extra - 1 > MAX_RANK or (load_i32(array, ND_FLAGS) & ALIGNED) == 0:
        return NULL
    count, step = i64(1), item_size(array)
    for d in range(extra):
        count *= load_i64(load_ptr(places, ND_DIMS), d * 8)
        store_i64(shape, (along + d) * 8, load_i64(load_ptr(places, ND_DIMS), d * 8))
    for d in range(own):
        if d != along:
            at = d if d < along else d + extra - 1
            store_i64(shape, at * 8, load_i64(load_ptr(array, ND_DIMS), d * 8))
    for d in range(own + extra - 1):
        step *= load_i64(shape, d * 8)
    size = load_i64(load_ptr(array, ND_DIMS), along * 8)
    for i in range(count):
        if place(places, code, i, extra, size) == OUTSIDE:
            return NULL
    made = new_array(g, load_ptr(array, ND_DESCR), own + extra - 1, shape, step)
    if unlikely(made == NULL):
        return ptr(-1)
    if likely(step != 0):
        copy_chosen(made, array, along, places, code, count)
    return made


@native
def place(places: ptr, code: i64, i: i64, rank: i64, size: i64) -> i64:
    """The i-th position, not negative, or OUTSIDE."""
    at = load_ptr(places, ND_DATA)
    if (load_i32(places, ND_FLAGS) & C_CONTIGUOUS) != 0:
        at += i * item_size(places)
    else:
        rest = i
        for k in range(rank):
            d = rank - 1 - k
            extent = load_i64(load_ptr(places, ND_DIMS), d * 8)
            at += rest % extent * load_i64(load_ptr(places, ND_STRIDES), d * 8)
            rest = rest // extent
    found = integer_at(at, code)
    if found < 0 and code != UINT64:
        found += size
    return found if found >= 0 and found < size else OUTSIDE


@native
def integer_at(at: ptr, code: i64) -> i64:
    if code in (INT64, UINT64):
        return load_i64(at, 0)
    if code == INT32:
        return i64(load(i32, at, 0))
    if code == INT16:
        return i64(load(i16, at, 0))
    if code == INT8:
        return i64(load(i8, at, 0))
    if code == UINT32:
        return i64(load(u32, at, 0))
    return i64(load(u16, at, 0)) if code == UINT16 else i64(load(u8, at, 0))


@native
def copy_chosen(made: ptr, array: ptr, along: i64, places: ptr, code: i64, count: i64) -> None:
    """Copy what lies at each position: a nest over the other axes, or an element."""
    shape, strides, pointers = stack(MAX_RANK * 8), stack(MAX_RANK * 16), stack(16)
    dims, steps = load_ptr(array, ND_DIMS), load_ptr(array, ND_STRIDES)
    own, extra = i64(load_i32(array, ND_NDIM)), i64(load_i32(places, ND_NDIM))
    step, used, block = item_size(array), own - 1, item_size(array)
    for k in range(own):
        d = own - 1 - k
        if d == along:
            block = step
            step *= count
        else:
            used -= 1
            store_i64(shape, used * 8, load_i64(dims, d * 8))
            store_i64(strides, used * 16, load_i64(steps, d * 8))
            store_i64(strides, used * 16 + 8, step)
            step *= load_i64(dims, d * 8)
    rank = coalesce(shape, strides, own - 1)
    source, target = load_ptr(array, ND_DATA), load_ptr(made, ND_DATA)
    size, over = load_i64(dims, along * 8), load_i64(steps, along * 8)
    for i in range(count):
        chosen = source + place(places, code, i, extra, size) * over
        if rank == 0 and block == 4:
            store(i32, target, i * 4, load(i32, chosen, 0))
        elif rank == 0 and block == 8:
            store(i64, target, i * 8, load(i64, chosen, 0))
        else:
            store_ptr(pointers, 0, chosen)
            store_ptr(pointers, 8, target + i * block)
            run_nest(COPY, pointers, shape, strides, rank, ptr(item_size(array)))
