"""Memory layout of CPython's and NumPy's objects and of the Tensor's slots; all offsets are checked before use.

The constants hold for 64-bit CPython 3.11 to 3.13 with the GIL and NumPy 2. `check()` compares each of them with a live
object and returns the reason why native code cannot be used, if there is one.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined] # its _ARRAY_API capsule is NumPy's public C interface

from .....registry import native_type
from .....registry.dispatch import state as dispatch_state
from ..runtime.capi import Descr, Ndarray, PyComplex, PyFloat, PyList, PyObject, PyTuple, PyVarObject

MEMBER_DEF, MEMBERDEF_OFFSET = 40, 16


# Entries read these also while the interpreter exits, so they are never freed. Structs do not refer to them: the
# number of references from anything but states is known.
for lasting in (dispatch_state.ACTIVE, dispatch_state.variable):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
AT_REST = dispatch_state.IDLE_REFERENCES + 1

# Functions of NumPy's C interface, by their index in its table.
NUMPY_API = {"PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282, "PyArray_DescrFromType": 45}
_NUMPY_TYPE_INDEX = 2


def numpy_table() -> Any:
    """Return NumPy's table of C functions and types."""
    return _capsule_table(_multiarray_umath._ARRAY_API)


def ufunc_table() -> Any:
    """Return NumPy's table of C functions for ufuncs."""
    return _capsule_table(_multiarray_umath._UFUNC_API)


def _capsule_table(capsule: Any) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))


def numpy_symbols() -> dict[str, int]:
    """Return the addresses of the NumPy functions that native code uses, and of the array type."""
    table = numpy_table()
    return {name: table[index] for name, index in NUMPY_API.items()} | {"PyArray_Type": id(np.ndarray)}


def read_i64(address: Any) -> int:
    return ctypes.c_int64.from_address(address).value


def read_i32(address: Any) -> int:
    return ctypes.c_int32.from_address(address).value


def slot_offset(cls: type, name: str) -> int:
    """Return the offset of a `__slots__` entry in the instances of a class."""
    member = read_i64(id(cls.__dict__[name]) + MEMBER_DEF)
    return read_i64(member + MEMBERDEF_OFFSET)


def _array_fault(array: Any) -> str:
    at: Any = id(array)
    known = {
        "data": (read_i64(at + Ndarray.data), array.ctypes.data),
        "ndim": (read_i32(at + Ndarray.ndim), array.ndim),
        "descr": (read_i64(at + Ndarray.descr), id(array.dtype)),
        "base": (read_i64(at + Ndarray.base), 0 if array.base is None else id(array.base)),
        "flags": (read_i32(at + Ndarray.flags) & 0x501, array.flags.num & 0x501),
        "item size": (read_i64(id(array.dtype) + Descr.itemsize), array.dtype.itemsize),
        "type number": (read_i32(id(array.dtype) + Descr.type_num), array.dtype.num),
    }
    for i in range(array.ndim):
        known[f"dimension {i}"] = (read_i64(read_i64(at + Ndarray.dims) + 8 * i), array.shape[i])
        known[f"stride {i}"] = (read_i64(read_i64(at + Ndarray.strides) + 8 * i), array.strides[i])
    return next(
        (f"ndarray field {k!r} is not where it was expected" for k, (a, b) in known.items() if a != b), ""
    )


def _python_fault() -> str:
    marker, floats, pair = object(), 1.5, complex(1.5, 2.5)
    both = (marker, floats)
    items = [marker]
    facts = {
        "tuple": read_i64(id(both) + PyTuple.items) == id(marker)
        and read_i64(id(both) + PyVarObject.size) == 2,
        "list": read_i64(read_i64(id(items) + PyList.items)) == id(marker),
        "float": PyFloat(id(floats)).value == 1.5,
        "complex": PyComplex(id(pair)).imag == 2.5,
        "type": read_i64(id(marker) + PyObject.type) == id(object),
        "reference count": read_i32(id(marker) + PyObject.refcnt) == sys.getrefcount(marker) - 1,
    }
    return next(
        (f"the layout of {name} is not the expected one" for name, good in facts.items() if not good), ""
    )


def check() -> str:
    """Return why native code is not used in this process; empty when it is."""
    return native_type.fault or find_fault()


@functools.cache
def find_fault() -> str:
    """Return why this interpreter and NumPy cannot run native code, switched on or not; empty if they can."""
    fault = native_type.find_build_fault() or _python_fault()
    if fault:
        return fault
    if int(np.__version__.split(".")[0]) != 2 or numpy_table()[_NUMPY_TYPE_INDEX] != id(np.ndarray):
        return f"NumPy {np.__version__} does not offer the C interface of NumPy 2"
    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    samples = [
        base,
        base[::-1, 1:, ::2],
        np.array(3, np.int64),
        np.zeros((0, 2), np.complex128),
        np.array([True]),
    ]
    return next((fault for fault in map(_array_fault, samples) if fault), "")


def slot_constants(cls: Any, prefix: str, names: tuple[str, ...], probe: Any = None) -> dict[str, int]:
    """Return slot offsets of a class as compile-time constants of native functions, such as `T_ARRAY`.

    Args:
        cls: the class.
        prefix: of the constants' names.
        names: of the slots.
        probe: an instance with all slots filled; None to make one whose slots may be filled with anything.

    Raises:
        RuntimeError: a slot is not where its descriptor says.
    """
    result = {}
    if probe is None:
        probe = cls.__new__(cls)
        for name in names:
            setattr(probe, name, object())
    for name in names:
        offset = result[prefix + name.strip("_").upper()] = slot_offset(cls, name)
        if read_i64(id(probe) + offset) != id(getattr(probe, name)):
            raise RuntimeError(f"slot {name} of {cls.__name__} is not at offset {offset}")
    return result


def class_constants(tensor: type, storage: type, number: type) -> dict[str, int]:
    """Return slot offsets of the classes that native functions instantiate."""
    slots = slot_constants(tensor, "T_", ("_array", "_keys", "_meta", "_storage"))
    slots |= slot_constants(dispatch_state.Guards, "K_", ("flags",))
    slots["AT_REST"] = AT_REST
    slots |= slot_constants(storage, "S_", ("owner", "version", "hold_count"))
    return slots | slot_constants(number, "N_", ("value",))
