"""Calls of compiled graphs from machine code: what guards compare, and what makes the results.

The entry of a jitted function finds the thread's current stream, checks its arguments, takes results and scratch memory
from the pool of that stream, and calls the emitted ``main``, which puts the kernels into it: no Python is run. Where
the pool has no block, Python is asked for that one block. A first call on memory of another stream or library is left
to it: from then on that memory is kept until the stream is done.
"""

from __future__ import annotations

from typing import Any

from ...registry.keys import CUDA_KEYS, GRAD_CUDA_KEYS
from ...registry.values import TensorSpec
from ..cpu.native import jit_layout as at
from ..cpu.native.jit_records import word_array
from ..cpu.native.layout import slot_offset
from ..cpu.native.records import Record
from . import native_result
from .arrays import DeviceArray, contiguous_layout
from .memory import Buffer, Pool
from .tensor import CudaTensor


class DeviceEntry:
    """How the native entry calls an executable.

    Attributes:
        record: what it reads, ``V_*``.
    """

    def __init__(self, executable: Any):
        code, way = native_result.code(), executable.choice.way
        records = [native_result.result_record(layout) for layout in executable.fresh]
        self.record = Record(at.V_SIZE)
        self.record.kept += [code, way, *records]
        functions = {at.V_READY: "ready", at.V_RESULT: "result", at.V_BLOCK: "block"}
        for offset, name in functions.items():
            self.record.set(offset, code[name])
        self.record.point(at.V_DEVICE, native_result.device_record(executable.at.index))
        self.record.point(at.V_RESULTS, word_array([found.address for found in records]))
        if executable.plan.workspace:
            self.record.point(at.V_SCRATCH, native_result.result_of(executable.plan.workspace))
        self.record.set(at.V_WAY, way.address)

    def guard(self, spec: TensorSpec, slot: int) -> Record:
        """What a tensor must be, and where its address goes.

        Args:
            spec: its shape, dtype and device; it is contiguous.
            slot: its place in the table of buffers.
        """
        found = Record(at.C_SIZE)
        layout = contiguous_layout(spec.shape, spec.dtype, int(spec.device.partition(":")[2]))
        objects = {
            at.C_TYPE: CudaTensor,
            at.C_KEYS: CUDA_KEYS,
            at.C_GRAD_KEYS: GRAD_CUDA_KEYS,
            at.C_LAYOUT: layout,
        }
        for offset, value in objects.items():
            found.refer(offset, value)
        for offset, (cls, name) in _SLOTS.items():
            found.set(offset, slot_offset(cls, name))
        found.set(at.C_AT, slot)
        return found


_SLOTS: dict[int, tuple[type, str]] = {
    at.C_DATA_AT: (CudaTensor, "_data"),
    at.C_PTR_AT: (DeviceArray, "ptr"),
    at.C_LAYOUT_AT: (DeviceArray, "layout"),
    at.C_BUFFER_AT: (DeviceArray, "buffer"),
    at.C_POOL_AT: (Buffer, "pool"),
    at.C_USERS_AT: (Buffer, "users"),
    at.C_STREAM_AT: (Pool, "stream"),
}
