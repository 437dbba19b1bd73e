"""DLPack in the host's memory: the capsules of ``Tensor.__dlpack__``, and arrays of other libraries.

NumPy writes and reads the capsules. This module adds two things. An array with a negative stride, which PyTorch cannot
read, is copied on export. bfloat16, which NumPy does not exchange, is passed to NumPy as uint16, and the dtype code in
the capsule is changed.

Source: the DLPack specification 1.0 and ``__dlpack__`` of the Array API standard.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ....registry.dtypes import bfloat16

if TYPE_CHECKING:
    from ....registry.types import Array

# By the name of a capsule: bytes from its struct to the dtype code of the array.
_CODE_OFFSETS = {b"dltensor": 20, b"dltensor_versioned": 52}
_UINT, _BFLOAT = 1, 4  # kDLUInt, kDLBfloat

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_is_capsule_named = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule_named.argtypes, _is_capsule_named.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int


def _dtype_code(capsule: object) -> Any:
    """The dtype code in a capsule, which can be written; None if the object is not an unused capsule."""
    for name, offset in _CODE_OFFSETS.items():
        if _is_capsule_named(capsule, name):
            return ctypes.c_uint8.from_address((_capsule_pointer(capsule, name) or 0) + offset)
    return None


def needs_copy(strides: tuple[int, ...], copy: bool | None) -> bool:
    """Whether an export copies the elements: if ``copy`` is True, or if a stride is negative.

    Raises:
        BufferError: a stride is negative, and ``copy`` is False.
    """
    is_reversed = any(stride < 0 for stride in strides)
    if is_reversed and copy is False:
        raise BufferError(
            f"DLPack: the strides {strides} are exported as a copy, because one is negative, and copy=False forbids it"
        )
    return is_reversed or bool(copy)


def export_array(array: Array, copy: bool | None, **options: Any) -> object:
    """The capsule that ``__dlpack__`` returns.

    Args:
        array: the array to share.
        copy: True copies, False never does, None copies if a stride is negative.
        options: other arguments of ``ndarray.__dlpack__``.

    Raises:
        BufferError: ``copy`` is False and a copy is needed, or NumPy cannot export the array as asked.
    """
    options["copy"] = needs_copy(array.strides, copy) or copy
    is_bfloat16 = array.dtype == bfloat16.np
    asked = {
        name: value for name, value in options.items() if value is not None
    }  # NumPy 2.0 takes `stream` only
    capsule = (array.view(np.uint16) if is_bfloat16 else array).__dlpack__(**asked)
    if is_bfloat16:
        _dtype_code(capsule).value = _BFLOAT
    return capsule


class _Bfloat16AsUint16:
    """Another library's array, whose capsules say uint16 instead of bfloat16."""

    def __init__(self, array: Any):
        self.array, self.is_bfloat16 = array, False

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.array.__dlpack__(**options)
        code = _dtype_code(capsule)
        if code is not None and code.value == _BFLOAT:
            code.value, self.is_bfloat16 = _UINT, True
        return capsule


def import_array(obj: Any) -> Array:
    """The array of another library as an ndarray on the same memory.

    Raises:
        BufferError: NumPy cannot read the memory or the dtype.
    """
    exporter = _Bfloat16AsUint16(obj)
    array = np.from_dlpack(exporter)
    return array.view(bfloat16.np) if exporter.is_bfloat16 else array
