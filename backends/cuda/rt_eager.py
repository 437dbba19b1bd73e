"""Native code that answers eager calls on CUDA tensors: the entry of elementwise operators of each number of operands.

It stands behind the operator's entry for tensors on the host, which hands on what it does not take. The entry looks the
plan of the arguments' layouts up, makes the result, and launches the kernel; what it does not know goes to Python.
"""

from __future__ import annotations

from ..cpu.native.dsl import (
    NULL,
    apart,
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
    D_SIZE,
    D_TABLE,
    ELSEWHERE,
    G_NOTE,
    NO_GRAD,
    T_ARRAY,
    T_KEYS,
    T_META,
    Py_None,
    PyErr_ExceptionMatches,
    decref,
    entry_data,
    failed,
    incref,
    slow,
    thread_flags,
    type_of,
)
from ..cpu.native.rt_operands import scalar_code, write_scalar
from .rt_launch import queue
from .rt_result import (
    A_BUFFER,
    A_LAYOUT,
    A_PTR,
    B_POOL,
    H_ARRAY,
    H_GRAD_KEYS,
    H_KEYS,
    H_SHORTAGE,
    H_TENSOR,
    S_HANDLE,
    S_POOL,
    PyLong_AsUnsignedLongLongMask,
    ready,
    result,
)

NIN: i64 = 2  # number of operands; a compile-time constant of each instance of the entry

# The record of a door begins as any operator's; then the backend's record
N_HOME = D_SIZE
N_SIZE = N_HOME + 8

# A plan: how many words it is looked up by, and from E_KEYS on these; the object that keeps it; the device; the result
E_COUNT, E_OWNER, E_DEVICE, E_RESULT = 0, 8, 16, 24
# Of an elementwise operator: whether all arrays lie alike without gaps; the launchers by variant; per operand, as what
# a number is written
E_DENSE, E_CONTIGUOUS, E_UNALIGNED, E_STRIDED, E_TO = 32, 40, 48, 56, 64
E_KEYS = 192
MOST_WORDS = 24
E_SIZE = E_KEYS + 8 * MOST_WORDS

CODE_MASK: i64 = 0xFFFFFFFFFFFF
ALIGNED = 15  # bits of an address that wide accesses want to be zero


@native
def flags_of(door: ptr) -> i64:
    """The thread's flags. ELSEWHERE: its calls are Python's; a layer, a mode or the trace sees them, or new tensors are
    noted."""
    g = load_ptr(door, D_GLOBALS)
    return thread_flags(g) if likely(load_ptr(g, G_NOTE) == NULL) else i64(ELSEWHERE)


@native
def plain(home: ptr, x: ptr, flags: i64) -> ptr:
    """The array of a plain tensor (or of one with history, where nothing is recorded), borrowed; NULL for all else."""
    if unlikely(type_of(x) != load_ptr(home, H_TENSOR)):
        return NULL
    array, keys = load_ptr(x, T_ARRAY), load_ptr(x, T_KEYS)
    if unlikely(array == NULL):
        return NULL
    if unlikely(type_of(array) != load_ptr(home, H_ARRAY)):
        return NULL
    if likely(keys == load_ptr(home, H_KEYS) and load_ptr(x, T_META) == Py_None):
        return array
    return array if flags == NO_GRAD and keys == load_ptr(home, H_GRAD_KEYS) else NULL


@native
def find(table: ptr, key: ptr, count: i64) -> ptr:
    """The plan of a key of so many words, or NULL. The table: its size - 1, then the addresses of plans, or NULL."""
    code: i64 = 0
    for i in range(count):
        word = load_i64(key, i * 8)
        code = ((code ^ word ^ (word >> 4)) * 31) & CODE_MASK
    mask = load_i64(table, 0)
    at = (code ^ (code >> 7)) & mask
    found = load_ptr(table, at * 8 + 8)
    while found != NULL and not same(found, key, count):
        at = (at + 1) & mask
        found = load_ptr(table, at * 8 + 8)
    return found


@native
def same(plan: ptr, key: ptr, count: i64) -> bool:
    if load_i64(plan, E_COUNT) != count:
        return False
    i: i64 = 0
    while i < count and load_i64(plan, E_KEYS + i * 8) == load_i64(key, i * 8):
        i += 1
    return i == count


@native
def elementwise(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    door = entry_data(self)
    flags = flags_of(door)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != NIN or flags == ELSEWHERE):
        return slow(door, args, nargsf, kwnames)
    home, arrays, key = load_ptr(door, N_HOME), stack(NIN * 8), stack(NIN * 8)
    lookup_key(home, args, flags, arrays, key)
    plan = find(load_ptr(door, D_TABLE), key, NIN)
    if unlikely(plan == NULL):
        return slow(door, args, nargsf, kwnames)
    found = computed(plan, args, arrays)
    if unlikely(found == NULL):
        return slow(door, args, nargsf, kwnames)
    if unlikely(i64(found) == -1):
        return told(door, home, args, nargsf, kwnames)
    store_i64(door, D_CALLS, load_i64(door, D_CALLS) + 1)
    return found


@native
def lookup_key(home: ptr, args: ptr, flags: i64, arrays: ptr, key: ptr) -> None:
    """What the plan of a call is found by: the layouts of arrays, and the types of all else. The arrays, too."""
    for i in range(NIN):
        x = load_ptr(args, i * 8)
        array = plain(home, x, flags)
        store_ptr(arrays, i * 8, array)
        store_ptr(key, i * 8, load_ptr(array, A_LAYOUT) if likely(array != NULL) else type_of(x))


@apart
def told(door: ptr, home: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """An exception is set. That the device has no memory has been told; want of the host's is told by Python."""
    if PyErr_ExceptionMatches(load_ptr(home, H_SHORTAGE)) != 0:
        return NULL
    return failed(door, args, nargsf, kwnames)


@native
def computed(plan: ptr, args: ptr, arrays: ptr) -> ptr:
    """The result; NULL: Python computes it; -1: an exception is set."""
    device, values = load_ptr(plan, E_DEVICE), stack(NIN * 8 + 8)
    stream = ready(device)
    if unlikely(stream == NULL):
        return NULL
    bits = operands(plan, args, arrays, load_ptr(stream, S_POOL), values)
    if unlikely(bits < 0):
        return NULL
    launcher = launcher_of(plan, bits)
    if unlikely(launcher == NULL):
        return NULL
    owner = load_ptr(plan, E_OWNER)  # held, with the arrays: making the result may run anybody's code
    incref(owner)
    hold(arrays)
    tensor = result(device, stream, load_ptr(plan, E_RESULT), values + NIN * 8)
    if unlikely(tensor == NULL):
        tensor = ptr(-1)
    elif unlikely(queue(launcher, load_ptr(stream, S_HANDLE), values) != 0):
        decref(tensor)
        tensor = NULL  # Python launches once more, and says what the driver does not like
    release(arrays)
    decref(owner)
    return tensor


@native
def launcher_of(plan: ptr, bits: i64) -> ptr:
    """The launcher for addresses with these bits; NULL if there is none yet."""
    if unlikely(load_i64(plan, E_DENSE) == 0):
        return load_ptr(plan, E_STRIDED)
    return load_ptr(plan, E_CONTIGUOUS if likely((bits & ALIGNED) == 0) else E_UNALIGNED)


@native
def operands(plan: ptr, args: ptr, arrays: ptr, pool: ptr, values: ptr) -> i64:
    """Put down the addresses of arrays and the elements of numbers; all bits of the addresses that are set.

    It is -1 for arrays in memory of another pool, and for numbers that do not fit.
    """
    bits: i64 = 0
    for i in range(NIN):
        array = load_ptr(arrays, i * 8)
        if likely(array != NULL):
            if unlikely(load_ptr(load_ptr(array, A_BUFFER), B_POOL) != pool):
                return -1
            address = PyLong_AsUnsignedLongLongMask(load_ptr(array, A_PTR))
            store_i64(values, i * 8, address)
            bits |= address & ALIGNED
        else:
            x = load_ptr(args, i * 8)
            if unlikely(not write_scalar(x, scalar_code(x), load_i64(plan, E_TO + i * 8), values + i * 8)):
                return -1
    return bits


@native
def hold(arrays: ptr) -> None:
    for i in range(NIN):
        if load_ptr(arrays, i * 8) != NULL:
            incref(load_ptr(arrays, i * 8))


@native
def release(arrays: ptr) -> None:
    for i in range(NIN):
        if load_ptr(arrays, i * 8) != NULL:
            decref(load_ptr(arrays, i * 8))
