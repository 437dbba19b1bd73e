"""Copies between the host's memory and a device's, and from device to device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ...errors import AllocationError
from ...registry.dtypes import as_dtype
from .arrays import DeviceArray, Layout, contiguous_layout, empty, span
from .devices import device_at, device_of
from .memory import is_out_of_memory
from .streams import DISABLE_TIMING, Stream, stream_at, told


class Pinned:
    """Page-locked memory of the host, which a device reads and writes by itself; freed with the object.

    Args:
        nbytes: its size.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_at", "_copies", "ptr")

    def __init__(self, nbytes: int):
        self._at = at = device_of(None)
        at.make_current()
        self.ptr = 0
        self._copies: dict[Stream, int] = {}  # the driver's event behind the last one in each stream
        try:
            self.ptr = at.driver.get("cuMemHostAlloc", ctypes.c_void_p, max(nbytes, 1), 1)  # for every device
        except Exception as fault:
            if is_out_of_memory(fault):
                raise AllocationError(
                    f"pin_memory: the host has no {nbytes} bytes to lock: {fault}"
                ) from None
            raise
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self.ptr, False),
            "version": 3,
        }

    def used_by(self, stream: Stream) -> None:
        """Note that a stream copies from it or to it, so that it is not freed before that is done."""
        stream.at.make_current()
        driver = stream.at.driver
        if stream not in self._copies:
            self._copies[stream] = driver.get("cuEventCreate", ctypes.c_void_p, DISABLE_TIMING)
        driver.cuEventRecord(self._copies[stream], stream.handle)

    def __del__(self) -> None:
        if self.ptr:
            for stream, event in self._copies.items():
                stream.at.give_back("cuEventSynchronize", event)
                stream.at.give_back("cuEventDestroy_v2", event)
            self._at.give_back("cuMemFreeHost", self.ptr)


def pinned_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """An uninitialised ndarray in page-locked memory."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64))
    return np.asarray(Pinned(size * dtype.itemsize))[: size * dtype.itemsize].view(dtype).reshape(shape)


def pinned_by(array: Any) -> Pinned | None:
    """The page-locked memory that an ndarray lies in; None if it lies elsewhere."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, Pinned) else None


def to_device(array: Any, index: int, non_blocking: bool = False) -> DeviceArray:
    """The elements of an ndarray in a new array of a device.

    Args:
        array: an ndarray.
        index: the device's number.
        non_blocking: return before the copy is done, if the ndarray lies in page-locked memory; it must not be written
            before that.

    Raises:
        OutOfMemoryError: the device has no memory for it.
    """
    given = np.asarray(array, order="C")
    made = empty(contiguous_layout(given.shape, as_dtype(given.dtype), index))
    if given.size:
        at, stream = device_at(index), stream_at(index)
        at.make_current()
        at.driver.cuMemcpyHtoDAsync_v2(made.ptr, given.ctypes.data, given.nbytes, stream.handle)
        memory = pinned_by(given) if non_blocking else None
        if memory is None:
            at.driver.cuStreamSynchronize(stream.handle)
        else:
            memory.used_by(stream)
    return made


def to_host(array: DeviceArray, non_blocking: bool = False) -> Any:
    """The elements of a device's array in a new ndarray, of the same order of axes in memory.

    Args:
        array: the array.
        non_blocking: return before the copy is done; the ndarray lies in page-locked memory, and is filled once the
            stream has been waited for.
    """
    layout = array.layout
    native = layout.dtype.np
    if not layout.size:
        return np.empty(layout.shape, native)
    first, stop = span(array)
    dense = stop - first == layout.nbytes
    non_blocking = non_blocking and dense
    make = pinned_array if non_blocking else np.empty
    whole = make((stop - first,), np.uint8)
    at, stream = device_at(layout.index), stream_at(layout.index)
    at.make_current()
    at.driver.cuMemcpyDtoHAsync_v2(whole.ctypes.data, first, stop - first, stream.handle)
    array.buffer.used_by(stream)
    memory = pinned_by(whole)
    if memory is None:
        at.driver.cuStreamSynchronize(stream.handle)
        told(layout.index, stream)
    else:
        memory.used_by(stream)
    step = layout.dtype.itemsize
    found: Any = np.ndarray(
        layout.shape, native, whole, array.ptr - first, [step * stride for stride in layout.strides]
    )
    return found if dense else np.array(found)


def between(array: DeviceArray, target: Layout) -> DeviceArray:
    """The elements of a contiguous array in a new one on another device."""
    made = empty(target)
    if target.size:
        here, there = device_at(array.layout.index), device_at(target.index)
        stream = stream_at(array.layout.index)
        done = stream_at(target.index).record_event()  # what used the new memory there before
        stream.wait_event(done)
        here.make_current()
        here.driver.cuMemcpyPeerAsync(
            made.ptr, there.context, array.ptr, here.context, target.nbytes, stream.handle
        )
        array.buffer.used_by(stream)
        stream_at(target.index).wait_stream(stream)
    return made


def copy_bytes(target: int, source: DeviceArray) -> None:
    """The bytes of a contiguous array to another place on its device."""
    layout = source.layout
    at, stream = device_at(layout.index), stream_at(layout.index)
    at.make_current()
    at.driver.cuMemcpyDtoDAsync_v2(target, source.ptr, layout.nbytes, stream.handle)
