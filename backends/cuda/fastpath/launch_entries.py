"""Native code of a :class:`..runtime.launcher.Launcher`: pack the parameters and launch the kernel.

A launcher's struct (:class:`Launch`): the driver's function, the sizes, and the addresses of the static parameters.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler.dsl import NULL, call_i32, i32, i64, load, native, ptr, stack, store, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ...cpu.fastpath.runtime import capi
from ...cpu.fastpath.runtime import rt_base as base


class Launch(Struct):
    """A kernel launch with its parameters."""

    driver: ptr  # cuLaunchKernel
    function: ptr  # the kernel
    grid: ptr = array(6)  # three sizes of the grid, then three of a block
    shared: i64  # bytes of shared memory
    dynamic: i64  # parameters given at the call
    static: i64  # parameters that stay
    values: ptr = array(32)  # addresses of the values that stay


MAX_PARAMETERS = 32


@native
def launch(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``launcher(stream, *values)``: the driver's status. A value has 8 bytes, of which the kernel reads the first.

    Python twin: backends/cuda/runtime/launching.py:_make_python_launcher
    """
    record: Launch = base.entry_data(self)
    count = record.dynamic
    if unlikely((nargsf & base.ARGS_MASK) != count + 1 or kwnames != NULL):
        return capi.PyLong_FromLongLong(1)  # CUDA_ERROR_INVALID_VALUE
    values = stack(MAX_PARAMETERS * 8)
    for i in range(count):
        store(i64, values, i * 8, capi.PyLong_AsUnsignedLongLongMask(load(ptr, args, i * 8 + 8)))
    stream = capi.PyLong_AsUnsignedLongLongMask(load(ptr, args, 0))
    if unlikely(capi.PyErr_Occurred() != NULL):
        return NULL
    return capi.PyLong_FromLongLong(queue_kernel(record, ptr(stream), values))


@native
def queue_kernel(record: Launch, stream: ptr, values: ptr) -> i64:
    """Put a launcher's kernel into a stream, and return the driver's status.

    Args:
        record: the launcher's struct.
        stream: the driver's handle.
        values: the dynamic parameters, 8 bytes each.
    """
    count, static = record.dynamic, record.static
    table = stack(MAX_PARAMETERS * 8)
    for i in range(count):
        store(ptr, table, i * 8, values + i * 8)
    for i in range(static):
        store(ptr, table, (count + i) * 8, load(ptr, record, Launch.values + i * 8))
    return i64(
        call_i32(
            record.driver,
            record.function,
            i32(load(i64, record, Launch.grid)),
            i32(load(i64, record, Launch.grid + 8)),
            i32(load(i64, record, Launch.grid + 16)),
            i32(load(i64, record, Launch.grid + 24)),
            i32(load(i64, record, Launch.grid + 32)),
            i32(load(i64, record, Launch.grid + 40)),
            i32(record.shared),
            stream,
            table,
            NULL,
        )
    )
