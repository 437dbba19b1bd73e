"""Calls of compiled graphs from machine code: what guards compare, and the one step that Python does.

The entry of a jitted function checks its arguments, asks the function that :func:`make_step` gives for the tensors of
the results and the stream, and calls the emitted ``main``. It serves the calls of one stream, the one that was current
when it was made; those on other streams, or on memory of other pools, are answered by Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...registry.values import TensorSpec
from ..cpu.native import jit_layout as at
from ..cpu.native.layout import slot_offset
from ..cpu.native.records import Record
from . import devices
from .arrays import DeviceArray, Layout, contiguous_layout
from .memory import Buffer, Pool, pool_of
from .streams import Stream, stream_at
from .tensor import CUDA_KEYS, CudaTensor, cuda_tensor

NOTHING = (None, 0)


class DeviceEntry:
    """How the native entry calls an executable.

    Attributes:
        step: makes the results of a call.
        launches: where the table of the way lies by which its kernels get into the stream.
    """

    def __init__(self, executable: Any):
        index = executable.at.index
        self._stream = stream_at(index)
        self._pool = pool_of(self._stream)
        self.launches = executable.choice.way.address
        self.step = make_step(
            executable.at, self._stream, self._pool, executable.fresh, executable.plan.workspace
        )

    def guard(self, spec: TensorSpec, slot: int) -> Record:
        """What a tensor must be, and where its address goes.

        Args:
            spec: its shape, dtype and device; it is contiguous.
            slot: its place in the table of buffers.
        """
        found = Record(at.C_SIZE)
        layout = contiguous_layout(spec.shape, spec.dtype, int(spec.device.partition(":")[2]))
        objects = {at.C_TYPE: CudaTensor, at.C_KEYS: CUDA_KEYS, at.C_LAYOUT: layout, at.C_POOL: self._pool}
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
}


def make_step(
    device: devices.Device, stream: Stream, pool: Pool, layouts: list[Layout], workspace: int
) -> Callable[[], Any]:
    """A function that gives the results of a call and their addresses, the scratch memory and its address, and the
    stream's handle, as one tuple; None on another stream.

    Args:
        device: the device.
        stream: the stream that it serves.
        pool: its memory.
        layouts: of the results.
        workspace: bytes of scratch memory.
    """
    index, context, handle, get = device.index, device.context, stream.handle or 0, pool.get

    def step() -> Any:
        if stream_at(index) is not stream:
            return None
        if devices.current_thread.context != context:
            device.make_current()
        made: list[Any] = []
        for layout in layouts:
            buffer = get(layout.nbytes)
            made += (cuda_tensor(DeviceArray(buffer.ptr, layout, buffer)), buffer.ptr)
        if workspace:
            scratch = get(workspace)
            return (*made, scratch, scratch.ptr, handle)
        return (*made, *NOTHING, handle)

    def single() -> Any:
        if stream_at(index) is not stream:
            return None
        if devices.current_thread.context != context:
            device.make_current()
        buffer = get(size)
        ptr = buffer.ptr
        return cuda_tensor(DeviceArray(ptr, layout, buffer)), ptr, None, 0, handle

    if len(layouts) == 1 and not workspace:
        layout, size = layouts[0], layouts[0].nbytes
        return single
    return step
