"""Native code that calls cuBLAS: what a :class:`.gemm.Gemm` does, and the entry of eager products.

A record holds the address of cuBLAS's own (:mod:`.cublas`), and what stays of a call.
"""

from __future__ import annotations

from ..cpu.native.dsl import (
    NULL,
    call_i32,
    i32,
    i64,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    unlikely,
)
from ..cpu.native.rt_base import (
    ARGS_MASK,
    D_CALLS,
    D_TABLE,
    ELSEWHERE,
    PyErr_Occurred,
    PyLong_FromLongLong,
    decref,
    entry_data,
    incref,
    slow,
)
from .cublas import BATCHED, DEFAULT, GEMM, HANDLE, SET_STREAM
from .rt_eager import (
    E_CONTIGUOUS,
    E_DEVICE,
    E_OWNER,
    E_RESULT,
    N_HOME,
    find,
    flags_of,
    hold,
    lookup_key,
    operands,
    release,
    told,
)
from .rt_launch import PyLong_AsUnsignedLongLongMask
from .rt_result import S_HANDLE, S_POOL, ready, result

G_BLAS, G_ONE, G_ZERO, G_KIND, G_COMPUTE, G_COUNT = 0, 8, 16, 24, 32, 40
G_SIZES = 48  # m, n, k
G_A, G_B, G_C = 72, 104, 136  # for each side: bytes before the first matrix, transposed, lead, step
FIRST, TRANSPOSED, LEAD, STEP = 0, 8, 16, 24
G_SIZE = 168


@native
def multiply(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``gemm(stream, one, two, out)``: cuBLAS's status."""
    r = entry_data(self)
    if unlikely((nargsf & ARGS_MASK) != 4 or kwnames != NULL):
        return PyLong_FromLongLong(7)  # CUBLAS_STATUS_INVALID_VALUE
    values = stack(24)
    for i in range(3):
        store_i64(values, i * 8, PyLong_AsUnsignedLongLongMask(load_ptr(args, i * 8 + 8)))
    stream = PyLong_AsUnsignedLongLongMask(load_ptr(args, 0))
    if unlikely(PyErr_Occurred() != NULL):
        return NULL
    return PyLong_FromLongLong(i64(queue_product(r, ptr(stream), values)))


@native
def queue_product(r: ptr, stream: ptr, values: ptr) -> i32:
    """Put a product into a stream, and give cuBLAS's status; ``values``: where one, two and the result lie."""
    blas = load_ptr(r, G_BLAS)
    status = call_i32(load_ptr(blas, SET_STREAM), load_ptr(blas, HANDLE), stream)
    if unlikely(status != 0):
        return status
    b = load_i64(values, 0) + load_i64(r, G_B + FIRST)
    a = load_i64(values, 8) + load_i64(r, G_A + FIRST)
    c = load_i64(values, 16) + load_i64(r, G_C + FIRST)
    if load_i64(r, G_COUNT) == 1:
        return multiply_one(r, a, b, c)
    return multiply_many(r, a, b, c)


@native
def multiply_one(r: ptr, a: i64, b: i64, c: i64) -> i32:
    blas, kind = load_ptr(r, G_BLAS), i32(load_i64(r, G_KIND))
    return call_i32(
        load_ptr(blas, GEMM),
        load_ptr(blas, HANDLE),
        i32(load_i64(r, G_A + TRANSPOSED)),
        i32(load_i64(r, G_B + TRANSPOSED)),
        i32(load_i64(r, G_SIZES)),
        i32(load_i64(r, G_SIZES + 8)),
        i32(load_i64(r, G_SIZES + 16)),
        load_ptr(r, G_ONE),
        ptr(a),
        kind,
        i32(load_i64(r, G_A + LEAD)),
        ptr(b),
        kind,
        i32(load_i64(r, G_B + LEAD)),
        load_ptr(r, G_ZERO),
        ptr(c),
        kind,
        i32(load_i64(r, G_C + LEAD)),
        i32(load_i64(r, G_COMPUTE)),
        i32(DEFAULT),
    )


@native
def multiply_many(r: ptr, a: i64, b: i64, c: i64) -> i32:
    blas, kind = load_ptr(r, G_BLAS), i32(load_i64(r, G_KIND))
    return call_i32(
        load_ptr(blas, BATCHED),
        load_ptr(blas, HANDLE),
        i32(load_i64(r, G_A + TRANSPOSED)),
        i32(load_i64(r, G_B + TRANSPOSED)),
        i32(load_i64(r, G_SIZES)),
        i32(load_i64(r, G_SIZES + 8)),
        i32(load_i64(r, G_SIZES + 16)),
        load_ptr(r, G_ONE),
        ptr(a),
        kind,
        i32(load_i64(r, G_A + LEAD)),
        load_i64(r, G_A + STEP),
        ptr(b),
        kind,
        i32(load_i64(r, G_B + LEAD)),
        load_i64(r, G_B + STEP),
        load_ptr(r, G_ZERO),
        ptr(c),
        kind,
        i32(load_i64(r, G_C + LEAD)),
        load_i64(r, G_C + STEP),
        i32(load_i64(r, G_COUNT)),
        i32(load_i64(r, G_COMPUTE)),
        i32(DEFAULT),
    )


# -- eager calls -------------------------------------------------------------------------------------------------------
@native
def product(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``one @ two`` of two tensors of known layouts; see :mod:`.rt_eager`."""
    door = entry_data(self)
    flags = flags_of(door)
    if unlikely(kwnames != NULL or (nargsf & ARGS_MASK) != 2 or flags == ELSEWHERE):
        return slow(door, args, nargsf, kwnames)
    home, arrays, key = load_ptr(door, N_HOME), stack(16), stack(16)
    lookup_key(home, args, flags, arrays, key)
    plan = find(load_ptr(door, D_TABLE), key, 2)
    if unlikely(plan == NULL):
        return slow(door, args, nargsf, kwnames)
    found = multiplied(plan, args, arrays)
    if unlikely(found == NULL):
        return slow(door, args, nargsf, kwnames)
    if unlikely(i64(found) == -1):
        return told(door, home, args, nargsf, kwnames)
    store_i64(door, D_CALLS, load_i64(door, D_CALLS) + 1)
    return found


@native
def multiplied(plan: ptr, args: ptr, arrays: ptr) -> ptr:
    """The product; NULL: Python computes it; -1: an exception is set."""
    device, values = load_ptr(plan, E_DEVICE), stack(24)
    stream = ready(device)
    if unlikely(stream == NULL):
        return NULL
    if unlikely(operands(plan, args, arrays, load_ptr(stream, S_POOL), values) < 0):
        return NULL
    owner = load_ptr(plan, E_OWNER)
    incref(owner)
    hold(arrays)
    tensor = result(device, stream, load_ptr(plan, E_RESULT), values + 16)
    if unlikely(tensor == NULL):
        tensor = ptr(-1)
    elif unlikely(queue_product(load_ptr(plan, E_CONTIGUOUS), load_ptr(stream, S_HANDLE), values) != 0):
        decref(tensor)
        tensor = NULL  # Python asks once more, and says what cuBLAS refuses
    release(arrays)
    decref(owner)
    return tensor
