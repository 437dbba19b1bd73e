"""Native code of a :class:`..runtime.launching.Launch` and of a :class:`..blas.gemm.Gemm`.

The struct of a launch (:class:`Launch`): the driver's function, the sizes, and the addresses of the static parameters.
"""

from __future__ import annotations

from ...cpu.fastpath.compiler import dsl
from ...cpu.fastpath.compiler.dsl import NULL, i32, i64, load, native, ptr, store, template, unlikely
from ...cpu.fastpath.compiler.structs import Struct, array
from ...cpu.fastpath.runtime import capi
from ...cpu.fastpath.runtime import rt_base as base
from . import gemm_entries


class Launch(Struct):
    """A kernel launch with its parameters."""

    driver: ptr  # cuLaunchKernel
    function: ptr  # the kernel
    sizes: ptr = array(7)  # three sizes of the grid, three of a block, bytes of shared memory
    dynamic: i64  # parameters given at the call
    static: i64  # parameters that stay
    values: ptr = array(32)  # addresses of the values that stay


MAX_PARAMETERS = 32
CUDA_INVALID_VALUE, CUBLAS_INVALID_VALUE = 1, 7
PRODUCT: i64 = template(0)  # compile-time constant: whether a launcher calls cuBLAS (a `Gemm`), not a kernel


@native
def launch(self: ptr, args: ptr, nargsf: i64, kwnames: ptr) -> ptr:
    """``launcher(stream, *values)``: the status of the driver, or of cuBLAS.

    A value has 8 bytes, of which a kernel reads the first. The values of a product are three addresses.

    Python twin: backends/cuda/runtime/launching.py:Launch.__call__
    Python twin: backends/cuda/blas/gemm.py:_make_python_gemm
    """
    launcher: Launch = base.entry_data(self)
    count = i64(3) if PRODUCT else launcher.dynamic
    if unlikely((nargsf & base.ARGS_MASK) != count + 1 or kwnames != NULL):
        return capi.PyLong_FromLongLong(CUBLAS_INVALID_VALUE if PRODUCT else CUDA_INVALID_VALUE)
    values = dsl.stack(MAX_PARAMETERS * 8)
    for i in range(count):
        store(i64, values, i * 8, capi.PyLong_AsUnsignedLongLongMask(load(ptr, args, i * 8 + 8)))
    stream = capi.PyLong_AsUnsignedLongLongMask(load(ptr, args, 0))
    if unlikely(capi.PyErr_Occurred() != NULL):
        return NULL
    return capi.PyLong_FromLongLong(queue(launcher, ptr(stream), values))


@native
def queue(launcher: ptr, stream: ptr, values: ptr) -> i64:
    """Put a kernel or a product into a stream, and return the status of the driver or of cuBLAS.

    Args:
        launcher: its struct.
        stream: the driver's handle.
        values: the dynamic parameters of the kernel, or the addresses of both operands and of the result, 8 bytes each.
    """
    if PRODUCT:
        return i64(gemm_entries.queue_product(launcher, stream, values))
    return queue_kernel(launcher, stream, values)


@native
def queue_kernel(record: Launch, stream: ptr, values: ptr) -> i64:
    """Put a launcher's kernel into a stream; ``values`` are its dynamic parameters."""
    count, static = record.dynamic, record.static
    table = dsl.stack(MAX_PARAMETERS * 8)
    for i in range(count):
        store(ptr, table, i * 8, values + i * 8)
    for i in range(static):
        store(ptr, table, (count + i) * 8, load(ptr, record, Launch.values + i * 8))
    return i64(
        dsl.call_i32(
            record.driver,
            record.function,
            i32(load(i64, record, Launch.sizes)),
            i32(load(i64, record, Launch.sizes + 8)),
            i32(load(i64, record, Launch.sizes + 16)),
            i32(load(i64, record, Launch.sizes + 24)),
            i32(load(i64, record, Launch.sizes + 32)),
            i32(load(i64, record, Launch.sizes + 40)),
            i32(load(i64, record, Launch.sizes + 48)),
            stream,
            table,
            NULL,
        )
    )
