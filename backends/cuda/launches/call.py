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
from ...cpu.fastpath.glue import jit_layout as at
from ...cpu.fastpath.glue.jit_structs import make_int64_array
from ...cpu.fastpath.glue.layout import slot_offset
from ...cpu.fastpath.glue.structs import Struct
from ..fastpath import result
from ..kernels.tensor import CudaTensor
from ..runtime.arrays import DeviceArray, contiguous_layout
from ..runtime.memory import Buffer, Pool


class DeviceEntry:
    """The native struct by which the native entry calls an executable.

    Attributes:
        record: the struct (``V_*``).
    """

    def __init__(self, executable: Any):
        code, submission = result.result_code(), executable.choice.submission
        records = [result.result_record(layout) for layout in executable.fresh]
        self.record = Struct(at.V_SIZE)
        self.record.kept += [code, submission, *records]
        functions = {at.V_READY: "ready", at.V_RESULT: "result", at.V_BLOCK: "block"}
        for offset, name in functions.items():
            self.record.set(offset, code[name])
        self.record.point(at.V_DEVICE, result.device_record(executable.at.index))
        self.record.point(at.V_RESULTS, make_int64_array([value.address for value in records]))
        if executable.convention.workspace:
            self.record.point(at.V_SCRATCH, result.block_record(executable.convention.workspace))
        self.record.set(at.V_WAY, submission.address)

    def guard(self, spec: TensorSpec, slot: int) -> Struct:
        """The native guard of a tensor argument.

        Args:
            spec: the shape, dtype and device; the tensor has to be contiguous.
            slot: the index of its address in the table of buffers.
        """
        result = Struct(at.C_SIZE)
        layout = contiguous_layout(spec.shape, spec.dtype, int(spec.device.partition(":")[2]))
        objects = {
            at.C_TYPE: CudaTensor,
            at.C_KEYS: CUDA_KEYS,
            at.C_GRAD_KEYS: GRAD_CUDA_KEYS,
            at.C_LAYOUT: layout,
        }
        for offset, value in objects.items():
            result.refer(offset, value)
        for offset, (cls, name) in _SLOTS.items():
            result.set(offset, slot_offset(cls, name))
        result.set(at.C_AT, slot)
        return result


_SLOTS: dict[int, tuple[type, str]] = {
    at.C_DATA_AT: (CudaTensor, "_data"),
    at.C_PTR_AT: (DeviceArray, "ptr"),
    at.C_LAYOUT_AT: (DeviceArray, "layout"),
    at.C_BUFFER_AT: (DeviceArray, "buffer"),
    at.C_POOL_AT: (Buffer, "pool"),
    at.C_USERS_AT: (Buffer, "users"),
    at.C_STREAM_AT: (Pool, "stream"),
}
