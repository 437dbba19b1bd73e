"""Read-only device memory, shared by all streams: the constants of compiled graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....registry.dtypes import as_dtype
from .api import TO_DEVICE
from .arrays import DeviceArray, contiguous_layout
from .devices import device_at
from .memory import ALLOCATED, RESERVED, Buffer, request_memory, stats_at
from .streams import Stream, stream_at


class ConstantBuffer(Buffer):
    """A block allocated by the driver; freeing it waits for the kernels that still read it.

    Args:
        nbytes: the size.
        index: the device's number.
    """

    __slots__ = ("_at", "_stats")

    def __init__(self, nbytes: int, index: int):
        super().__init__(0, nbytes)
        self._at, self._stats = at, _ = device_at(index), stats_at(index)
        at.make_current()
        self.ptr = request_memory(lambda: at.runtime.malloc(max(nbytes, 1)), nbytes, at)
        self.size = nbytes
        self._count(nbytes)

    def _count(self, nbytes: int) -> None:
        """Count bytes as reserved and in use."""
        self._stats.add(RESERVED, nbytes)
        self._stats.add(ALLOCATED, nbytes)

    def used_by(self, stream: Stream) -> None:
        """Do nothing: the driver waits for all streams when the block is freed."""

    def __del__(self) -> None:
        if self.ptr:
            self._count(-self.size)
            self._at.release_handle("free", self.ptr)


def make_constant(array: Any, index: int) -> DeviceArray:
    """Copy an ndarray to a constant on a device, which all streams may read at once.

    Raises:
        OutOfMemoryError: the device has no memory for it.
    """
    given = np.asarray(array, order="C")
    buffer = ConstantBuffer(given.nbytes, index)
    if given.nbytes:
        stream = stream_at(index)
        stream.copy(buffer.ptr, given.ctypes.data, given.nbytes, TO_DEVICE)
        stream.wait()
    return DeviceArray(buffer.ptr, contiguous_layout(given.shape, as_dtype(given.dtype), index), buffer)
