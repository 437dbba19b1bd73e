"""Native code that answers calls of one CUDA tensor and arguments that are no tensors: views, `x[key]`, reductions.

The arguments are written down as words, by which the plan is found: one that Python has made for these very arguments.
In a key of `x[key]` integers stand apart, so that one plan serves them all.
"""

from __future__ import annotations

from ..cpu.native.dsl import (
    NULL,
    apart,
    extern,
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
from ..cpu.native.layout import LIST_ITEMS, OB_SIZE, TUPLE_ITEMS
from ..cpu.native.rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    D_TABLE,
    ELSEWHERE,
    G_ZERO,
    T_STORAGE,
    Py_False,
    Py_None,
    Py_True,
    PyErr_Clear,
    PyList_Type,
    PyLong_AsLongLongAndOverflow,
    PyLong_Type,
    PyTuple_Type,
    PyType_GenericAlloc,
    call_miss,
    decref,
    entry_data,
    incref,
    slow,
    type_of,
)
from ..cpu.native.rt_storage import S_OWNER, S_VERSION
from ..cpu.native.rt_subscript import SLICE_START, SLICE_STEP, SLICE_STOP, Py_Ellipsis, PySlice_Type
from .rt_eager import E_DEVICE, E_OWNER, E_RESULT, MOST_WORDS, N_HOME, find, flags_of, plain, told
from .rt_launch import queue
from .rt_result import (
    A_BUFFER,
    A_LAYOUT,
    A_PTR,
    B_POOL,
    H_ARRAY,
    H_DTYPE,
    H_STORAGE,
    S_HANDLE,
    S_POOL,
    PyLong_AsUnsignedLongLongMask,
    block,
    ready,
    result,
    tensor_of,
)

PyLong_FromUnsignedLongLong = extern("PyLong_FromUnsignedLongLong", "ptr(i64)")

SUBSCRIPT: i64 = 0  # whether this instance of the entry is that of `x[key]`, a compile-time constant

# A plan: the launchers of its kernels (the first is NULL for a view), and the scratch memory between the two; of a view
# its layout, its first byte behind the source's, and of each integer of the key: how many there are along its axis, and
# the bytes from one to the next
E_FIRST, E_SECOND, E_SCRATCH = 32, 40, 48
E_LAYOUT, E_OFFSET, E_INTEGERS, E_STEPS = 56, 64, 72, 80
MOST_INTEGERS = 6
E_MASK = E_STEPS + 16 * MOST_INTEGERS  # bits of the argument's address that the kernels want to be zero

# The words: an object that there is once is its address; a number beginning with one of these is all else
INTEGER, APART, TUPLE, LIST, SLICE = 1, 2, 3, 4, 5
BAD: i64 = -1


@native
def keyed(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    door, count = entry_data(self), nargsf & ARGS_MASK
    flags = flags_of(door)
    if unlikely(count < 1 or flags == ELSEWHERE):
        return slow(door, args, nargsf, kwnames)
    home, source = load_ptr(door, N_HOME), load_ptr(args, 0)
    array = plain(home, source, flags)
    if unlikely(array == NULL):
        return slow(door, args, nargsf, kwnames)
    key, integers = stack(MOST_WORDS * 8), stack(MOST_INTEGERS * 8 + 8)
    store_ptr(key, 0, load_ptr(array, A_LAYOUT))
    store_i64(integers, 0, 0)
    used = written(home, args, count, kwnames, key, integers)
    if unlikely(used == BAD):
        return slow(door, args, nargsf, kwnames)
    plan = find(load_ptr(door, D_TABLE), key, used)
    if unlikely(plan == NULL):
        return call_miss(door, args, nargsf, kwnames)
    found: ptr = NULL
    if load_ptr(plan, E_FIRST) == NULL:
        found = view(load_ptr(door, D_GLOBALS), home, source, array, plan, integers)
    else:
        found = launched(plan, array)
    if unlikely(found == NULL):
        return slow(door, args, nargsf, kwnames)
    if unlikely(i64(found) == -1):
        return told(door, home, args, nargsf, kwnames)
    store_i64(door, D_CALLS, load_i64(door, D_CALLS) + 1)
    return found


# -- the key -----------------------------------------------------------------------------------------------------------
@native
def written(home: ptr, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr) -> i64:
    """Write the arguments after the first down: how many words, or BAD."""
    if SUBSCRIPT:
        return selected(home, args, count, kwnames, key, integers)
    store_i64(key, 8, count)
    used: i64 = 2
    i: i64 = 1
    while i < count and used != BAD:
        used = word(home, load_ptr(args, i * 8), key, used)
        i += 1
    if likely(kwnames == NULL) or used == BAD:
        return used
    for k in range(load_i64(kwnames, OB_SIZE)):
        if used == BAD or used >= MOST_WORDS:
            return BAD
        store_ptr(key, used * 8, load_ptr(kwnames, TUPLE_ITEMS + k * 8))
        used = word(home, load_ptr(args, (count + k) * 8), key, used + 1)
    return used


@native
def word(home: ptr, x: ptr, key: ptr, at: i64) -> i64:
    """Write a value down from one place on: the next free place, or BAD for what has no words."""
    if unlikely(at >= MOST_WORDS):
        return BAD
    kind = type_of(x)
    if kind == PyLong_Type:
        return integer(x, key, at)
    if kind in (PyTuple_Type, PyList_Type):
        return several(home, x, key, at)
    if x in (Py_None, Py_True, Py_False, Py_Ellipsis) or kind == load_ptr(home, H_DTYPE):
        store_ptr(key, at * 8, x)
        return at + 1
    return bounds(home, x, key, at) if kind == PySlice_Type else BAD


@native
def integer(x: ptr, key: ptr, at: i64) -> i64:
    overflow = stack(4)
    if unlikely(at + 1 >= MOST_WORDS):
        return BAD
    store_i64(key, at * 8, INTEGER)
    store_i64(key, at * 8 + 8, PyLong_AsLongLongAndOverflow(x, overflow))
    return at + 2 if load_i32(overflow, 0) == 0 else BAD


@native
def several(home: ptr, x: ptr, key: ptr, at: i64) -> i64:
    """The items of a tuple or a list."""
    count, tag, items = load_i64(x, OB_SIZE), i64(TUPLE), x + TUPLE_ITEMS
    if type_of(x) == PyList_Type:
        tag, items = i64(LIST), load_ptr(x, LIST_ITEMS)
    if unlikely(count > MOST_WORDS):
        return BAD
    store_i64(key, at * 8, tag | (count << 8))
    used = at + 1
    i: i64 = 0
    while i < count and used != BAD:
        item = load_ptr(items, i * 8)
        used = integer(item, key, used) if likely(type_of(item) == PyLong_Type) else BAD
        i += 1
    return used


@native
def bounds(home: ptr, x: ptr, key: ptr, at: i64) -> i64:
    """A slice: each bound an integer or None."""
    store_i64(key, at * 8, SLICE)
    used = bound(load_ptr(x, SLICE_START), key, at + 1)
    used = bound(load_ptr(x, SLICE_STOP), key, used)
    return bound(load_ptr(x, SLICE_STEP), key, used)


@native
def bound(x: ptr, key: ptr, at: i64) -> i64:
    if unlikely(at == BAD or at >= MOST_WORDS):
        return BAD
    if x == Py_None:
        store_ptr(key, at * 8, x)
        return at + 1
    return integer(x, key, at) if type_of(x) == PyLong_Type else BAD


@native
def selected(home: ptr, args: ptr, count: i64, kwnames: ptr, key: ptr, integers: ptr) -> i64:
    """The key of `x[key]`; integers are put down apart."""
    if unlikely(count != 2 or kwnames != NULL):
        return BAD
    x = load_ptr(args, 8)
    if type_of(x) != PyTuple_Type:
        return item_of(home, x, key, 1, integers)
    items = load_i64(x, OB_SIZE)
    if unlikely(items > MOST_WORDS):
        return BAD
    store_i64(key, 8, TUPLE | (items << 8))
    used: i64 = 2
    i: i64 = 0
    while i < items and used != BAD:
        used = item_of(home, load_ptr(x, TUPLE_ITEMS + i * 8), key, used, integers)
        i += 1
    return used


@native
def item_of(home: ptr, x: ptr, key: ptr, at: i64, integers: ptr) -> i64:
    if unlikely(at >= MOST_WORDS):
        return BAD
    if type_of(x) != PyLong_Type:
        return BAD if type_of(x) in (PyTuple_Type, PyList_Type) else word(home, x, key, at)
    overflow, count = stack(4), load_i64(integers, 0)
    value = PyLong_AsLongLongAndOverflow(x, overflow)
    if unlikely(load_i32(overflow, 0) != 0 or count == MOST_INTEGERS):
        return BAD
    store_i64(integers, count * 8 + 8, value)
    store_i64(integers, 0, count + 1)
    store_i64(key, at * 8, APART)
    return at + 1


# -- views -------------------------------------------------------------------------------------------------------------
@native
def view(g: ptr, home: ptr, source: ptr, array: ptr, plan: ptr, integers: ptr) -> ptr:
    """A tensor on a part of the memory; NULL: Python does it; -1: an exception is set."""
    offset = load_i64(plan, E_OFFSET)
    for i in range(load_i64(plan, E_INTEGERS)):
        at, size = load_i64(integers, i * 8 + 8), load_i64(plan, E_STEPS + i * 16)
        if at < 0:
            at += size
        if unlikely(at < 0 or at >= size):
            return NULL
        offset += at * load_i64(plan, E_STEPS + i * 16 + 8)
    owner, layout = load_ptr(plan, E_OWNER), load_ptr(plan, E_LAYOUT)
    incref(owner)  # which keeps the layout
    incref(array)
    found = view_at(g, home, source, array, layout, offset)
    decref(array)
    decref(owner)
    return found


@native
def view_at(g: ptr, home: ptr, source: ptr, array: ptr, layout: ptr, offset: i64) -> ptr:
    buffer, address = load_ptr(array, A_BUFFER), load_ptr(array, A_PTR)
    storage = storage_of(g, home, source, buffer)
    if unlikely(storage == NULL):
        return NULL
    if offset == 0:
        incref(address)
    else:
        address = PyLong_FromUnsignedLongLong(PyLong_AsUnsignedLongLongMask(address) + offset)
    made: ptr = NULL
    if likely(address != NULL):
        made = PyType_GenericAlloc(load_ptr(home, H_ARRAY), 0)
    if unlikely(made == NULL):
        if address != NULL:
            decref(address)
        decref(storage)
        return ptr(-1)
    incref(layout)
    incref(buffer)
    store_ptr(made, A_PTR, address)
    store_ptr(made, A_LAYOUT, layout)
    store_ptr(made, A_BUFFER, buffer)
    tensor = tensor_of(home, made)
    if unlikely(tensor == NULL):
        decref(storage)
        return ptr(-1)
    store_ptr(tensor, T_STORAGE, storage)
    decref(Py_None)
    return tensor


@native
def storage_of(g: ptr, home: ptr, source: ptr, buffer: ptr) -> ptr:
    """The storage of a tensor, a new reference, made if there was none; NULL: Python does it."""
    known = load_ptr(source, T_STORAGE)
    if likely(known != Py_None):
        if unlikely(known == NULL):
            return NULL
        incref(known)
        return known
    made = PyType_GenericAlloc(load_ptr(home, H_STORAGE), 0)
    if unlikely(made == NULL):
        PyErr_Clear()
        return NULL
    zero = load_ptr(g, G_ZERO)
    incref(buffer)
    incref(zero)
    store_ptr(made, S_OWNER, buffer)
    store_ptr(made, S_VERSION, zero)
    if unlikely(load_ptr(source, T_STORAGE) != Py_None):
        decref(made)
        return NULL  # making it has run code that has made another one
    incref(made)
    store_ptr(source, T_STORAGE, made)
    decref(Py_None)
    return made


# -- kernels -----------------------------------------------------------------------------------------------------------
@native
def launched(plan: ptr, array: ptr) -> ptr:
    """The result of one kernel, or of two; NULL: Python computes it; -1: an exception is set."""
    device = load_ptr(plan, E_DEVICE)
    stream = ready(device)
    if unlikely(stream == NULL):
        return NULL
    if unlikely(load_ptr(load_ptr(array, A_BUFFER), B_POOL) != load_ptr(stream, S_POOL)):
        return NULL
    owner, values = load_ptr(plan, E_OWNER), stack(16)
    address = PyLong_AsUnsignedLongLongMask(load_ptr(array, A_PTR))
    if unlikely((address & load_i64(plan, E_MASK)) != 0):
        return NULL
    store_i64(values, 0, address)
    incref(owner)
    incref(array)
    tensor = result(device, stream, load_ptr(plan, E_RESULT), values + 8)
    if unlikely(tensor == NULL):
        tensor = ptr(-1)
    else:
        status: i64 = 0
        if likely(load_ptr(plan, E_SECOND) == NULL):
            status = queue(load_ptr(plan, E_FIRST), load_ptr(stream, S_HANDLE), values)
        else:
            status = both(plan, device, stream, values)
        if unlikely(status != 0):
            decref(tensor)
            tensor = ptr(-1)
            if status != BAD:
                tensor = NULL
    decref(array)
    decref(owner)
    return tensor


@apart
def both(plan: ptr, device: ptr, stream: ptr, values: ptr) -> i64:
    """Two kernels, with scratch memory between: the driver's status, or BAD with an exception set."""
    middle, handle = stack(16), load_ptr(stream, S_HANDLE)
    scratch = block(device, stream, load_ptr(plan, E_SCRATCH), middle)
    if unlikely(scratch == NULL):
        return BAD
    store_i64(middle, 8, load_i64(values, 8))
    store_i64(values, 8, load_i64(middle, 0))
    status = queue(load_ptr(plan, E_FIRST), handle, values)
    if likely(status == 0):
        status = queue(load_ptr(plan, E_SECOND), handle, middle)
    decref(scratch)
    return status
