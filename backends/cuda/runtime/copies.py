"""Copies between host and device memory, and between devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import AllocationError, OutOfMemoryError
from ....registry.dtypes import as_dtype
from .api import ON_DEVICE, TO_DEVICE, TO_HOST
from .arrays import DeviceArray, Layout, contiguous_layout, empty, span
from .devices import device_of
from .memory import Buffer, allocate, pool_of
from .streams import Event, Stream, default_stream, stream_at


class PinnedMemory:
    """Page-locked host memory, which a device reads and writes directly; freed with the object.

    cupy's own pool is not used: it would reuse the memory at once, while a stream may still copy.

    Args:
        nbytes: the size.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_at", "_copies", "ptr")

    def __init__(self, nbytes: int):
        self._copies: dict[Stream, Event] = {}  # recorded after the last copy in each stream
        self._at, self.ptr = device_of(None), 0
        runtime = self._at.runtime
        try:
            self.ptr = runtime.hostAlloc(max(nbytes, 1), runtime.hostAllocPortable)
        except OutOfMemoryError as fault:
            raise AllocationError(f"pin_memory: the host cannot lock {nbytes} bytes: {fault}") from None
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.ptr, False),
            "version": 3,
        }

    def used_by(self, stream: Stream) -> None:
        """Note that a stream copies from or to this memory, so that it is not freed before the copy is done."""
        if stream not in self._copies:
            self._copies[stream] = Event()
        self._copies[stream].record(stream)

    def __del__(self) -> None:
        for event in self._copies.values():
            self._at.finalize(event.synchronize)
        if self.ptr:
            self._at.finalize(lambda: self._at.runtime.freeHost(self.ptr))


def make_pinned_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """An uninitialised ndarray in page-locked memory."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    return np.asarray(PinnedMemory(size * dtype.itemsize))[: size * dtype.itemsize].view(dtype).reshape(shape)


def find_pinned(array: Any) -> PinnedMemory | None:
    """The page-locked memory of an ndarray; None if its memory is not page-locked."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, PinnedMemory) else None


def to_device(array: Any, index: int, non_blocking: bool = False) -> DeviceArray:
    """Copy an ndarray to a new array on a device.

    Args:
        array: an ndarray.
        index: the device's number.
        non_blocking: return before the copy is done, if the ndarray is in page-locked memory; the ndarray must not be
            written before that.

    Raises:
        OutOfMemoryError: the device has no memory for it.
    """
    given = np.asarray(array, order="C")
    return _copy_into_buffer(given, allocate(given.nbytes, index), index, non_blocking)


def make_constant(array: Any, index: int) -> DeviceArray:
    """Copy an ndarray to a constant on a device, which all streams may read at once.

    Raises:
        OutOfMemoryError: the device has no memory for it.
    """
    given = np.asarray(array, order="C")
    buffer = pool_of(default_stream(f"cuda:{index}")).get_from_driver(given.nbytes)
    return _copy_into_buffer(given, buffer, index)


def _copy_into_buffer(given: Any, buffer: Buffer, index: int, non_blocking: bool = False) -> DeviceArray:
    if given.size:
        stream = stream_at(index)
        stream.copy(buffer.ptr, given.ctypes.data, given.nbytes, TO_DEVICE)
        memory = find_pinned(given) if non_blocking else None
        if memory is None:
            stream.wait()
        else:
            memory.used_by(stream)
    return DeviceArray(buffer.ptr, contiguous_layout(given.shape, as_dtype(given.dtype), index), buffer)


def to_host(array: DeviceArray, non_blocking: bool = False) -> Any:
    """Copy a device array to a new ndarray with the same order of axes in memory.

    Args:
        array: the array.
        non_blocking: return before the copy is done; the ndarray is in page-locked memory, and is valid after the
            stream has been synchronized.
    """
    layout = array.layout
    native, step = layout.dtype.np, layout.dtype.itemsize
    if not layout.size:
        return np.empty(layout.shape, native)
    first, stop = span(array)
    dense = stop - first == layout.nbytes
    make = make_pinned_array if non_blocking and dense else np.empty
    whole = make((stop - first,), np.uint8)
    stream = stream_at(layout.index)
    stream.copy(whole.ctypes.data, first, stop - first, TO_HOST)
    array.buffer.used_by(stream)
    memory = find_pinned(whole)
    if memory is None:
        stream.synchronize()
    else:
        memory.used_by(stream)
    strides = [step * stride for stride in layout.strides]
    result: Any = np.ndarray(layout.shape, native, whole, array.ptr - first, strides)
    return result if dense else np.array(result)


def copy_between_devices(array: DeviceArray, target: Layout) -> DeviceArray:
    """Copy a contiguous array to a new array on another device."""
    result = empty(target)
    if target.size:
        here, stream = array.layout.index, stream_at(array.layout.index)
        done = stream_at(target.index).record_event()  # after earlier uses of the new memory
        stream.wait_event(done)
        stream.at.runtime.memcpyPeerAsync(
            result.ptr, target.index, array.ptr, here, target.nbytes, stream.number
        )
        array.buffer.used_by(stream)
        stream_at(target.index).wait_stream(stream)
    return result


def copy_bytes(target: int, source: DeviceArray) -> None:
    """Copy the bytes of a contiguous array to another address on its device."""
    layout = source.layout
    stream_at(layout.index).copy(target, source.ptr, layout.nbytes, ON_DEVICE)
