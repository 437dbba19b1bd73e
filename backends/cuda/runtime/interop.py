"""Sharing device memory with other libraries: DLPack export and import, and import of ``__cuda_array_interface__``.

cupy creates and reads the capsules. tandem orders the streams, waits for the consumer's work before the memory returns
to its pool, and copies read-only memory, which cupy does not report.

Source: the DLPack specification 1.0 and version 3 of the CUDA array interface.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .... import lazy
from ....eager.tensor.interop.dlpack import needs_copy
from ....errors import ArgumentError, DeviceError, UnsupportedError, ValueArgumentError
from ....operators.declare.view_spec import row_major_strides
from ....registry.dtypes import as_dtype
from ..kernels.library import layout_of_cupy, library
from .arrays import DeviceArray, Layout, layout_of
from .devices import device_of
from .memory import ExternalBuffer
from .streams import Event, Stream, default_stream, stream_at

casting = lazy.Module(".backends.cuda.kernels.casting")

CUDA = 2  # kDLCUDA
MANAGED = 13  # kDLCUDAManaged
VERSION = (1, 0)
PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
FLAGS, READ_ONLY = 24, 1  # the offset of the flags in a DLManagedTensorVersioned, and one of the flags

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_is_capsule_named = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule_named.argtypes, _is_capsule_named.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int


# -- export ------------------------------------------------------------------------------------------------------------
def export(
    array: DeviceArray,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The capsule that ``__dlpack__`` returns.

    Args:
        array: the array to share.
        stream: the consumer's stream, as the Array API standard numbers it: None or 1 the default stream, 2 the
            default stream of the thread, -1 no wait, else a handle.
        max_version: the newest DLPack version that the consumer reads; from (1, 0) on it gets a versioned capsule.
        dl_device: the device that the consumer asks for.
        copy: True copies, False never does, None copies if a stride is negative, which PyTorch cannot read.

    Raises:
        BufferError: ``copy`` is False, and a stride is negative.
        DeviceError: ``dl_device`` is another device.
        ValueArgumentError: ``stream`` is invalid.
    """
    own = (CUDA, array.layout.index)
    if dl_device is not None and tuple(dl_device) != own:
        raise DeviceError(f"DLPack: the tensor is on device {own}, and dl_device is {tuple(dl_device)}")
    if needs_copy(array.layout.strides, copy):
        array = casting.copy_array(array)
    _make_consumer_wait(array, stream)
    return library().capsule(array, max_version)


class _Consumer(Stream):
    """Another library's stream, which may be destroyed before tandem has to wait for its work."""

    __slots__ = ()

    def record_event(self, event: Event | None = None) -> Event:
        """Wait for the device on the host, and return a completed event."""
        self.at.runtime.deviceSynchronize()
        return Event()


def _make_consumer_wait(array: DeviceArray, stream: int | None) -> None:
    """Make a consumer's stream wait for the stream that computes the array."""
    if stream is not None and (type(stream) is not int or stream == 0 or stream < -1):
        raise ValueArgumentError(
            f"DLPack: stream must be None, -1, 1, 2 or a stream's handle, not {stream!r}"
        )
    mine = theirs = stream_at(array.layout.index)
    if stream is None or stream <= 2:
        theirs = default_stream(array.device)
    elif stream != mine.number:
        theirs = _Consumer(array.device, handle=stream)
    if stream != -1:
        theirs.wait_stream(mine)
    array.buffer.used_by(theirs)


# -- import ------------------------------------------------------------------------------------------------------------
def import_array(obj: Any) -> tuple[DeviceArray, bool] | None:
    """Wrap the device memory of another library's array; None if its elements are not on a CUDA device.

    Args:
        obj: an object with ``__dlpack__`` or ``__cuda_array_interface__``.

    Returns:
        The array, and whether it is read-only.

    Raises:
        DeviceError: the elements are on a device of another kind.
        UnsupportedError: the dtype has no counterpart.
    """
    if hasattr(obj, "__dlpack_device__"):
        kind, index = obj.__dlpack_device__()
        return _from_dlpack(obj, int(index)) if int(kind) in (CUDA, MANAGED) else None
    interface = getattr(obj, "__cuda_array_interface__", None)
    return None if interface is None else _from_interface(obj, interface)


def _from_dlpack(obj: Any, index: int) -> tuple[DeviceArray, bool]:
    mine = stream_at(index).handle or 1
    try:
        capsule = obj.__dlpack__(stream=mine, max_version=VERSION)
    except TypeError:  # a library that implements DLPack before 1.0
        capsule = obj.__dlpack__(stream=mine)
    if not any(_is_capsule_named(capsule, name) for name in (PLAIN, VERSIONED)):
        raise ArgumentError("from DLPack: the capsule has been used already, or is not a DLPack capsule")
    read_only = False
    if _is_capsule_named(capsule, VERSIONED):
        flags = ctypes.c_uint64.from_address((_capsule_pointer(capsule, VERSIONED) or 0) + FLAGS)
        read_only = bool(flags.value & READ_ONLY)
    try:
        result = library().from_dlpack(capsule)
    except (TypeError, ValueError, BufferError) as fault:  # a dtype or a version that cupy does not support
        raise UnsupportedError(f"from DLPack: {fault}") from None
    layout = layout_of_cupy(result, result.data.device_id)
    return _wrap_memory(int(result.data.ptr), layout, result), read_only


def _from_interface(obj: Any, interface: dict[str, Any]) -> tuple[DeviceArray, bool]:
    if interface.get("mask") is not None:
        raise UnsupportedError("__cuda_array_interface__ with a mask; fill it first")
    kind = np.dtype(interface["typestr"])
    if not kind.isnative:
        raise UnsupportedError(
            f"__cuda_array_interface__ with elements of non-native byte order, {kind.str!r}"
        )
    dtype, shape = as_dtype(kind), tuple(interface["shape"])
    steps = interface.get("strides")
    strides = row_major_strides(shape) if steps is None else tuple(step // dtype.itemsize for step in steps)
    if steps is not None and any(step % dtype.itemsize for step in steps):
        raise UnsupportedError(
            f"strides {steps} in bytes are not multiples of the item size {dtype.itemsize}"
        )
    address = int(interface["data"][0] or 0)
    at = device_of(None)
    index = at.index
    if address:
        attributes = at.runtime.pointerGetAttributes(address)
        if attributes.type == at.runtime.memoryTypeUnregistered:
            raise ArgumentError(f"__cuda_array_interface__: CUDA does not know the address {address:#x}")
        index = attributes.device
    stream = interface.get("stream")
    if stream is not None and stream != (stream_at(index).handle or 1):
        stream_at(index).wait_stream(Stream(f"cuda:{index}", handle=0 if stream in (1, 2) else stream))
    return _wrap_memory(address, layout_of(shape, strides, dtype, index), obj), bool(interface["data"][1])


def _wrap_memory(address: int, layout: Layout, owner: Any) -> DeviceArray:
    """An array in memory that another library owns."""
    dtype = layout.dtype
    if layout.size and address % dtype.itemsize:  # a misaligned access would destroy the whole context
        raise ArgumentError(
            f"elements of {dtype.name} at the device address {address:#x} are not aligned to their "
            f"{dtype.itemsize} bytes; copy the array first"
        )
    start, stop = layout.span()
    return DeviceArray(address, layout, ExternalBuffer(address + start, stop - start, owner))
