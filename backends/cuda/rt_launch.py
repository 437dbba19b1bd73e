"""Native code that launches a kernel: the call of a :class:`.launcher.Launcher` packs its arguments and queues them.

A launcher's record: the driver's function, what stays of a launch, and where the values of parameters that stay lie.
"""

from __future__ import annotations

from ..cpu.native.dsl import (
    NULL,
    call_i32,
    extern,
    i32,
    i64,
    load_i64,
    load_ptr,
    native,
    ptr,
    stack,
    store_i64,
    store_ptr,
    unlikely,
)
from ..cpu.native.rt_base import ARGS_MASK, PyErr_Occurred, PyLong_FromLongLong, entry_data

PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")

L_DRIVER, L_FUNCTION = 0, 8  # cuLaunchKernel, and the kernel that it launches
L_GRID = 16  # three sizes of the grid, then three of a block
L_SHARED, L_CHANGING, L_STAYING = (
    64,
    72,
    80,
)  # bytes of shared memory; parameters given at the call; those that stay
L_VALUES = 88  # the addresses of the values that stay
MOST = 32
L_SIZE = L_VALUES + 8 * MOST


@native
def launch(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``launcher(stream, *values)``: the driver's status. Each value is 8 bytes of which the kernel reads its part."""
    record = entry_data(self)
    count = load_i64(record, L_CHANGING)
    if unlikely((nargsf & ARGS_MASK) != count + 1 or kwnames != NULL):
        return PyLong_FromLongLong(1)  # CUDA_ERROR_INVALID_VALUE
    values = stack(MOST * 8)
    for i in range(count):
        store_i64(values, i * 8, PyLong_AsUnsignedLongLongMask(load_ptr(args, i * 8 + 8)))
    stream = PyLong_AsUnsignedLongLongMask(load_ptr(args, 0))
    if unlikely(PyErr_Occurred() != NULL):
        return NULL
    return PyLong_FromLongLong(queue(record, ptr(stream), values))


@native
def queue(record: ptr, stream: ptr, values: ptr) -> i64:
    """Put a launcher's kernel into a stream, and give the driver's status.

    Args:
        record: the launcher's.
        stream: the driver's handle.
        values: the parameters that change, 8 bytes each.
    """
    count, staying = load_i64(record, L_CHANGING), load_i64(record, L_STAYING)
    table = stack(MOST * 8)
    for i in range(count):
        store_ptr(table, i * 8, values + i * 8)
    for i in range(staying):
        store_ptr(table, (count + i) * 8, load_ptr(record, L_VALUES + i * 8))
    return i64(
        call_i32(
            load_ptr(record, L_DRIVER),
            load_ptr(record, L_FUNCTION),
            i32(load_i64(record, L_GRID)),
            i32(load_i64(record, L_GRID + 8)),
            i32(load_i64(record, L_GRID + 16)),
            i32(load_i64(record, L_GRID + 24)),
            i32(load_i64(record, L_GRID + 32)),
            i32(load_i64(record, L_GRID + 40)),
            i32(load_i64(record, L_SHARED)),
            stream,
            table,
            NULL,
        )
    )
