"""Device memory that every stream reads and none writes: the constants of compiled graphs."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np

from ...errors import OutOfMemoryError
from ...registry.dtypes import as_dtype
from .arrays import DeviceArray, contiguous_layout
from .devices import device_at
from .memory import Buffer, empty_cache, no_memory, stats_at
from .streams import Stream, stream_at


class Lasting(Buffer):
    """A block of the driver's, which waits for whoever still reads it when it is freed.

    Args:
        nbytes: the size.
        index: the device's number.
    """

    __slots__ = ("_at",)

    def __init__(self, nbytes: int, index: int):
        super().__init__(0, nbytes)
        self._at = at = device_at(index)
        at.make_current()
        try:
            self.ptr = self._new()
        except OutOfMemoryError:
            gc.collect()
            empty_cache()
            try:
                self.ptr = self._new()
            except OutOfMemoryError:
                raise no_memory(nbytes, at, stats_at(index)) from None
        self.size = nbytes
        stats_at(index).reserved += nbytes

    def _new(self) -> int:
        return int(self._at.driver.get("cuMemAlloc_v2", ctypes.c_uint64, max(self.nbytes, 1)))

    def used_by(self, stream: Stream) -> None:
        """Nothing to note."""

    def __del__(self) -> None:
        if self.ptr:
            stats_at(self._at.index).reserved -= self.size
            self._at.give_back("cuMemFree_v2", self.ptr)


def lasting(array: Any, index: int) -> DeviceArray:
    """The elements of an ndarray in memory of a device that all its streams may read at once.

    Raises:
        OutOfMemoryError: the device has no memory for it.
    """
    given = np.asarray(array, order="C")
    buffer = Lasting(given.nbytes, index)
    if given.nbytes:
        at, stream = device_at(index), stream_at(index)
        at.driver.cuMemcpyHtoDAsync_v2(buffer.ptr, given.ctypes.data, given.nbytes, stream.handle)
        at.driver.cuStreamSynchronize(stream.handle)
    return DeviceArray(buffer.ptr, contiguous_layout(given.shape, as_dtype(given.dtype), index), buffer)
