"""Native code of a :class:`.launcher.Launcher`: pack the parameters and launch the kernel.

A launcher's struct (``L_*``): the driver's function, the sizes, and the addresses of the static parameters.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import (
    NULL,
    call_i32,
    extern,
    i32,
    i64,
    load,
    native,
    ptr,
    stack,
    store,
    unlikely,
)
from ...cpu.fastpath.entries.rt_base import ARGS_MASK, PyErr_Occurred, PyLong_FromLongLong, entry_data

PyLong_AsUnsignedLongLongMask = extern("PyLong_AsUnsignedLongLongMask", "i64(ptr)")

L_DRIVER, L_FUNCTION = 0, 8  # cuLaunchKernel, and the kernel that it launches
L_GRID = 16  # three sizes of the grid, then three of a block
L_SHARED, L_DYNAMIC, L_STATIC = (
    64,
    72,
    80,
)  # bytes of shared memory; parameters given at the call; those that stay
L_VALUES = 88  # the addresses of the values that stay
MAX_PARAMETERS = 32
L_SIZE = L_VALUES + 8 * MAX_PARAMETERS


@native
def launch(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``launcher(stream, *values)``: the driver's status. A value has 8 bytes, of which the kernel reads the first.

    Python twin: backends/cuda/runtime/launching.py:_make_python_launcher
    """
    record = entry_data(self)
    count = load(i64, record, L_DYNAMIC)
    if unlikely((nargsf & ARGS_MASK) != count + 1 or kwnames != NULL):
        return PyLong_FromLongLong(1)  # CUDA_ERROR_INVALID_VALUE
    values = stack(MAX_PARAMETERS * 8)
    for i in range(count):
        store(i64, values, i * 8, PyLong_AsUnsignedLongLongMask(load(ptr, args, i * 8 + 8)))
    stream = PyLong_AsUnsignedLongLongMask(load(ptr, args, 0))
    if unlikely(PyErr_Occurred() != NULL):
        return NULL
    return PyLong_FromLongLong(queue_kernel(record, ptr(stream), values))


@native
def queue_kernel(record: ptr, stream: ptr, values: ptr) -> i64:
    """Put a launcher's kernel into a stream, and return the driver's status.

    Args:
        record: the launcher's struct.
        stream: the driver's handle.
        values: the dynamic parameters, 8 bytes each.
    """
    count, static = load(i64, record, L_DYNAMIC), load(i64, record, L_STATIC)
    table = stack(MAX_PARAMETERS * 8)
    for i in range(count):
        store(ptr, table, i * 8, values + i * 8)
    for i in range(static):
        store(ptr, table, (count + i) * 8, load(ptr, record, L_VALUES + i * 8))
    return i64(
        call_i32(
            load(ptr, record, L_DRIVER),
            load(ptr, record, L_FUNCTION),
            i32(load(i64, record, L_GRID)),
            i32(load(i64, record, L_GRID + 8)),
            i32(load(i64, record, L_GRID + 16)),
            i32(load(i64, record, L_GRID + 24)),
            i32(load(i64, record, L_GRID + 32)),
            i32(load(i64, record, L_GRID + 40)),
            i32(load(i64, record, L_SHARED)),
            stream,
            table,
            NULL,
        )
    )
