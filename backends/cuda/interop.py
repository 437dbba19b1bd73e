"""Sharing device memory with other libraries: DLPack both ways, and arrays with ``__cuda_array_interface__``.

Source: the DLPack specification 1.0 and version 3 of the CUDA array interface.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ... import lazy
from ...eager.meta_tensor import row_major
from ...errors import ArgumentError, DeviceError, UnsupportedError, ValueArgumentError
from ...registry.dtypes import ALL, DType, as_dtype
from ..cpu.native import engine, lang
from . import rt_lent
from .arrays import DeviceArray, layout_of
from .borrowed import Borrowed
from .devices import device_of
from .streams import Event, Stream, default_stream, stream_at

CUDA = 2  # kDLCUDA
MANAGED = 13  # kDLCUDAManaged
VERSION = (1, 0)
READ_ONLY = 1  # in the flags of a versioned capsule
DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # kDLInt, kDLUInt, kDLFloat, kDLComplex, kDLBool
BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Plain(ctypes.Structure):
    """DLManagedTensor, of DLPack before 1.0."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


NAMES: dict[type[Any], bytes] = {_Plain: b"dltensor", _Versioned: b"dltensor_versioned"}
USED = {kind: b"used_" + name for kind, name in NAMES.items()}

_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes, _rename.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

# What consumers hold, by number: the struct, its sizes, and the array that keeps the memory.
_lent: dict[int, tuple[Any, ...]] = {}
_serial = itertools.count(1)


# -- giving ------------------------------------------------------------------------------------------------------------
def _deleter(kind: Any) -> Any:
    """What a consumer calls when it needs the memory no more."""

    def delete(address: int) -> None:
        _lent.pop(kind.from_address(address).context or 0, None)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(delete)


def _drop(capsule: int) -> None:
    """A capsule goes; if nobody has taken what is in it, that goes too."""
    for kind, name in NAMES.items():
        if _valid(capsule, name):
            _lent.pop(kind.from_address(_dying(capsule, name)).context or 0, None)


DELETERS = {kind: _deleter(kind) for kind in NAMES}
_unused = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop)
_CALLED = {"capsule_gone": _unused, "plain_done": DELETERS[_Plain], "versioned_done": DELETERS[_Versioned]}


@functools.cache
def _callbacks() -> dict[str, Any]:
    """The addresses that consumers get: of machine code around the functions above, if there is some."""
    found = {name: ctypes.cast(one, ctypes.c_void_p).value or 0 for name, one in _CALLED.items()}
    if lazy.native_layer().why_off():
        return found
    key = engine.fingerprint("cuda lent", Path(rt_lent.__file__).read_text())
    bodies = {name: getattr(rt_lent, name) for name in found}
    imports = {f"tandem_{name}": address for name, address in found.items()}
    code = engine.build(key, lambda: lang.emit(bodies, {}), list(found), imports, level=1)
    return {name: code[name] for name in found} | {"code": code}


def _described(array: DeviceArray) -> tuple[_Tensor, Any, Any]:
    """An array as DLPack describes it, and what has to live as long: its sizes and its strides."""
    layout = array.layout
    rank = len(layout.shape)
    sizes, steps = (ctypes.c_int64 * rank)(*layout.shape), (ctypes.c_int64 * rank)(*layout.strides)
    code = BFLOAT if layout.dtype.name == "bfloat16" else CODES[layout.dtype.kind]
    found = _Tensor(
        array.ptr if layout.size else None,
        CUDA,
        layout.index,
        rank,
        code,
        8 * layout.dtype.itemsize,
        1,
        sizes,
        steps,
        0,
    )
    return found, sizes, steps


def export(
    array: DeviceArray,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The capsule that ``__dlpack__`` gives.

    Args:
        array: what to share.
        stream: the consumer's stream, as the Array API standard numbers it: None or 1 the default stream, 2 the
            default stream of the thread, -1 no wait, else its handle.
        max_version: the newest DLPack that the consumer reads; from (1, 0) on it gets a versioned capsule.
        dl_device: the device that the consumer wants.
        copy: must not be True.

    Raises:
        DeviceError: another device is wanted.
        ValueArgumentError: a copy is wanted, or there is no such stream.
    """
    where = (CUDA, array.layout.index)
    if dl_device is not None and tuple(dl_device) != where:
        raise DeviceError(f"DLPack: the tensor lies on device {where}, and {tuple(dl_device)} is asked for")
    if copy:
        raise ValueArgumentError("DLPack: copy=True is not served; export x.clone()")
    _let_wait(array, stream)
    kind: Any = _Versioned if max_version is not None and tuple(max_version) >= VERSION else _Plain
    made, number = kind(), next(_serial)
    if kind is _Versioned:
        made.major, made.minor, made.flags = *VERSION, 0
    made.tensor, sizes, steps = _described(array)
    made.context = number
    called = _callbacks()
    made.deleter = called["plain_done" if kind is _Plain else "versioned_done"]
    _lent[number] = made, sizes, steps, array
    return _new(ctypes.addressof(made), NAMES[kind], called["capsule_gone"])


class _Consumer(Stream):
    """A stream that another library works in. It may be gone when its work has to be waited for."""

    __slots__ = ()

    def record_event(self, event: Event | None = None) -> Event:
        """An event that has happened: the host waits for the device."""
        self.at.make_current()
        self.at.driver.cuCtxSynchronize()
        return Event()


def _let_wait(array: DeviceArray, stream: int | None) -> None:
    """Let a consumer's stream wait for the one that makes the array."""
    if stream is not None and (type(stream) is not int or stream == 0 or stream < -1):
        raise ValueArgumentError(f"DLPack: {stream!r} is no stream: None, -1, 1, 2, or a stream's handle")
    mine = theirs = stream_at(array.layout.index)
    if stream is None or stream <= 2:
        theirs = default_stream(array.device)
    elif stream != mine.number:
        theirs = _Consumer(array.device, handle=stream)
    if stream != -1:
        theirs.wait_stream(mine)
    array.buffer.used_by(theirs)


# -- taking ------------------------------------------------------------------------------------------------------------
class _Taken:
    """What a producer lends; told to the producer when it is needed no more."""

    __slots__ = ("_deleter", "address")

    def __init__(self, address: int, deleter: int | None):
        self.address = address
        self._deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter) if deleter else None

    def __del__(self) -> None:
        if self._deleter is not None:
            self._deleter(self.address)


def take(obj: Any) -> tuple[DeviceArray, bool] | None:
    """The device memory of another library's array; None if its elements do not lie on a CUDA device.

    Args:
        obj: what has ``__dlpack__`` or ``__cuda_array_interface__``.

    Returns:
        The array, and whether it must not be written.

    Raises:
        DeviceError: the elements lie on a device of another kind.
        UnsupportedError: its dtype has no counterpart.
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
    except TypeError:  # of a library that knows DLPack before 1.0
        capsule = obj.__dlpack__(stream=mine)
    kind: Any = next((k for k, name in NAMES.items() if _valid(id(capsule), name)), None)
    if kind is None:
        raise ArgumentError("from DLPack: the capsule has been taken already, or is none of DLPack's")
    address = _pointer(capsule, NAMES[kind])
    held = kind.from_address(address)
    if kind is _Versioned and held.major > VERSION[0]:
        raise UnsupportedError(
            f"from DLPack: a capsule of version {held.major}.{held.minor}; version 1 is read"
        )
    tensor = held.tensor
    dtype = _dtype(tensor)
    rank = tensor.ndim
    shape = tuple(tensor.shape[axis] for axis in range(rank))
    strides = tuple(tensor.strides[axis] for axis in range(rank)) if tensor.strides else row_major(shape)
    _rename(capsule, USED[kind])
    taken = _Taken(address, held.deleter)
    made = _array((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, tensor.device_id, taken)
    return made, kind is _Versioned and bool(held.flags & READ_ONLY)


def _dtype(tensor: Any) -> DType:
    for dtype in ALL:
        code = BFLOAT if dtype.name == "bfloat16" else CODES[dtype.kind]
        if (code, 8 * dtype.itemsize, 1) == (tensor.code, tensor.bits, tensor.lanes):
            return dtype
    raise UnsupportedError(
        f"from DLPack: elements of code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes have no dtype here"
    )


def _from_interface(obj: Any, interface: dict[str, Any]) -> tuple[DeviceArray, bool]:
    if interface.get("mask") is not None:
        raise UnsupportedError("__cuda_array_interface__ with a mask; fill it first")
    kind = np.dtype(interface["typestr"])
    if not kind.isnative:
        raise UnsupportedError(
            f"__cuda_array_interface__ with elements of the other byte order, {kind.str!r}"
        )
    dtype, shape = as_dtype(kind), tuple(interface["shape"])
    steps = interface.get("strides")
    strides = row_major(shape) if steps is None else tuple(step // dtype.itemsize for step in steps)
    if steps is not None and any(step % dtype.itemsize for step in steps):
        raise UnsupportedError(
            f"strides {steps} in bytes are no multiples of the {dtype.itemsize} of an element"
        )
    address = int(interface["data"][0] or 0)
    at = device_of(None)
    index = at.index
    if address:
        at.make_current()
        index = at.driver.get("cuPointerGetAttribute", ctypes.c_int, DEVICE_ORDINAL, address)
    stream = interface.get("stream")
    if stream is not None and stream != (stream_at(index).handle or 1):
        stream_at(index).wait_stream(Stream(f"cuda:{index}", handle=0 if stream in (1, 2) else stream))
    return _array(address, shape, strides, dtype, index, obj), bool(interface["data"][1])


def _array(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, index: int, owner: Any
) -> DeviceArray:
    """An array in memory that somebody else owns."""
    layout = layout_of(shape, strides, dtype, index)
    if layout.size and address % dtype.itemsize:  # a kernel that met it would take the whole context down
        raise ArgumentError(
            f"elements of {dtype.name} at the device address {address:#x} are not aligned to their "
            f"{dtype.itemsize} bytes; copy the array first"
        )
    low, high = layout.extent()
    start = address + low * dtype.itemsize
    buffer = Borrowed(start, (high + 1 - low) * dtype.itemsize if layout.size else 0, owner)
    return DeviceArray(address, layout, buffer)
