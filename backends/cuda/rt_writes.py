"""Native code that answers in-place calls of elementwise operators on CUDA tensors, `x.add_(y)` and `x += y`."""

from __future__ import annotations

from ..cpu.native.dsl import (
    NULL,
    i64,
    likely,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from ..cpu.native.rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_GLOBALS,
    D_TABLE,
    ELSEWHERE,
    PyErr_Clear,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    decref,
    entry_data,
    incref,
    slow,
)
from ..cpu.native.rt_storage import S_VERSION
from .rt_eager import (
    E_DEVICE,
    E_OWNER,
    N_HOME,
    NIN,
    find,
    flags_of,
    hold,
    launcher_of,
    lookup_key,
    operands,
    release,
)
from .rt_keyed import storage_of
from .rt_launch import queue
from .rt_result import A_BUFFER, A_LAYOUT, S_HANDLE, S_POOL, ready


@native
def inplace(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    door = entry_data(self)
    flags = flags_of(door)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != NIN or flags == ELSEWHERE):
        return slow(door, args, nargsf, kwnames)
    home, arrays, key = load_ptr(door, N_HOME), stack(NIN * 8), stack(NIN * 8)
    lookup_key(home, args, flags, arrays, key)
    plan = find(load_ptr(door, D_TABLE), key, NIN)
    if unlikely(plan == NULL or load_ptr(arrays, 0) == NULL):
        return slow(door, args, nargsf, kwnames)
    owner, target = load_ptr(plan, E_OWNER), load_ptr(args, 0)
    incref(owner)  # held, with the arrays: making a storage may run anybody's code
    hold(arrays)
    done = written(plan, load_ptr(door, D_GLOBALS), home, args, arrays)
    release(arrays)
    decref(owner)
    if unlikely(not done):
        return slow(door, args, nargsf, kwnames)
    store_i64(door, D_CALLS, load_i64(door, D_CALLS) + 1)
    incref(target)
    return target


@native
def written(plan: ptr, g: ptr, home: ptr, args: ptr, arrays: ptr) -> bool:
    """Write the result into the first operand; false if Python has to, with nothing done."""
    values, target = stack(NIN * 8 + 8), load_ptr(arrays, 0)
    storage = storage_of(g, home, load_ptr(args, 0), load_ptr(target, A_BUFFER))
    if unlikely(storage == NULL):
        return False
    stream = ready(load_ptr(plan, E_DEVICE))
    done = False
    if likely(stream != NULL):
        bits = operands(plan, args, arrays, load_ptr(stream, S_POOL), values)
        store_i64(values, NIN * 8, load_i64(values, 0))
        if likely(bits >= 0 and are_apart(arrays, values)):
            done = launched(launcher_of(plan, bits), load_ptr(stream, S_HANDLE), values, storage)
    decref(storage)
    return done


@native
def launched(launcher: ptr, stream: ptr, values: ptr, storage: ptr) -> bool:
    """Launch the kernel, and count the write."""
    if unlikely(launcher == NULL):
        return False
    before = load_ptr(storage, S_VERSION)
    after = PyLong_FromLongLong(PyLong_AsLongLong(before) + 1)
    if unlikely(after == NULL):
        PyErr_Clear()
        return False
    if unlikely(queue(launcher, stream, values) != 0):
        decref(after)
        return False
    store_ptr(storage, S_VERSION, after)
    decref(before)
    return True


@native
def are_apart(arrays: ptr, values: ptr) -> bool:
    """Whether no operand lies in the target's buffer, unless it is the same array."""
    target = load_ptr(arrays, 0)
    for i in range(1, NIN):
        array = load_ptr(arrays, i * 8)
        if array != NULL and load_ptr(array, A_BUFFER) == load_ptr(target, A_BUFFER):
            if load_i64(values, i * 8) != load_i64(values, 0):
                return False
            if load_ptr(array, A_LAYOUT) != load_ptr(target, A_LAYOUT):
                return False
    return True
