"""Native structs for calls of compiled graphs: the guards of arguments, and the allocation of results.

The native entry of a jitted function gets the thread's current stream, checks its arguments, allocates results and
scratch memory from the stream's pool, and calls the emitted ``main``, which launches the kernels; no Python runs. If
the pool has no free block, Python allocates that block. Python runs the first call on memory of another stream or
library: from then on that memory is kept until the stream is done.
"""

from __future__ import annotations

from typing import Any

from ....registry.dispatch.keys import CUDA_KEYS, GRAD_CUDA_KEYS
from ....registry.values import TensorSpec
from ...cpu.fastpath.compiler.structs import sizeof
from ...cpu.fastpath.glue import jit_layout as at
from ...cpu.fastpath.glue.class_slots import slot_offset
from ...cpu.fastpath.glue.jit_structs import make_int64_array
from ...cpu.fastpath.glue.structs import StructMemory
from ..fastpath import result
from ..kernels.tensor import CudaTensor
from ..runtime.arrays import DeviceArray, contiguous_layout
from ..runtime.memory import Buffer, Pool


class DeviceEntry:
    """The native struct by which the native entry calls an executable.

    Attributes:
        record: the struct, a ``DeviceCalls``.
    """

    def __init__(self, executable: Any):
        code, submission = result.result_code(), executable.choice.submission
        records = [result.result_struct(layout) for layout in executable.fresh]
        self.record = StructMemory(sizeof(at.DeviceCalls))
        self.record.kept += [code, submission, *records]
        functions = {
            at.DeviceCalls.ready: "current_stream",
            at.DeviceCalls.result: "make_result",
            at.DeviceCalls.block: "allocate",
        }
        for offset, name in functions.items():
            self.record.set(offset, code[name])
        self.record.point(at.DeviceCalls.device, result.device_struct(executable.at.index))
        self.record.point(at.DeviceCalls.results, make_int64_array([value.address for value in records]))
        if executable.convention.workspace:
            self.record.point(at.DeviceCalls.scratch, result.block_struct(executable.convention.workspace))
        self.record.set(at.DeviceCalls.launches, submission.address)

    def guard(self, spec: TensorSpec, slot: int) -> StructMemory:
        """The native guard of a tensor argument.

        Args:
            spec: the shape, dtype and device; the tensor has to be contiguous.
            slot: the index of its address in the table of buffers.
        """
        result = StructMemory(sizeof(at.DeviceGuard))
        layout = contiguous_layout(spec.shape, spec.dtype, int(spec.device.partition(":")[2]))
        objects = {
            at.DeviceGuard.type: CudaTensor,
            at.DeviceGuard.keys: CUDA_KEYS,
            at.DeviceGuard.grad_keys: GRAD_CUDA_KEYS,
            at.DeviceGuard.layout: layout,
        }
        for offset, value in objects.items():
            result.refer(offset, value)
        for offset, (cls, name) in _SLOTS.items():
            result.set(offset, slot_offset(cls, name))
        result.set(at.DeviceGuard.at, slot)
        return result


_SLOTS: dict[int, tuple[type, str]] = {
    at.DeviceGuard.data_at: (CudaTensor, "_data"),
    at.DeviceGuard.ptr_at: (DeviceArray, "ptr"),
    at.DeviceGuard.layout_at: (DeviceArray, "layout"),
    at.DeviceGuard.buffer_at: (DeviceArray, "buffer"),
    at.DeviceGuard.pool_at: (Buffer, "pool"),
    at.DeviceGuard.users_at: (Buffer, "users"),
    at.DeviceGuard.stream_at: (Pool, "stream"),
}
