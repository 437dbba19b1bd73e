"""Memory layout of CPython's and NumPy's C structs; all offsets are verified before use.

The constants hold for 64-bit CPython 3.11 to 3.13 with the GIL and NumPy 2. `check()` compares each of them with a live
object and returns the reason why native code cannot be used, if there is one. `find_inner_loop` reads the addresses of
NumPy's inner loops.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined] # its _ARRAY_API capsule is NumPy's public C interface

from .....operators.scalar_ir.expr import Expr
from .....operators.scalar_ir.numpy_evaluation import UFUNCS
from .....registry import native_type
from .....registry.dtypes import DType
from ..compiler.structs import read
from ..runtime.capi import Ndarray, PyBytes, PyComplex, PyFloat, PyList, PyObject, PyTuple

# Offsets in a ufunc object.
NIN, NOUT, NARGS, FUNCTIONS, DATA, NTYPES, NAME, TYPES = 16, 20, 24, 32, 40, 48, 56, 64

# Functions of NumPy's C interface, by their index in its table.
NUMPY_API = {
    "PyArray_DescrFromType": 45,
    "PyArray_CopyInto": 50,
    "PyArray_NewCopy": 85,
    "PyArray_NewFromDescr": 94,
    "PyArray_SetBaseObject": 282,
    "PyArray_ToList": 86,
    "PyArray_ToString": 87,
}
_NUMPY_TYPE_INDEX = 2


def numpy_table(capsule: Any = _multiarray_umath._ARRAY_API) -> Any:
    """Return NumPy's table of C functions and types, or the table in another capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))


def ufunc_table() -> Any:
    """Return NumPy's table of C functions for ufuncs."""
    return numpy_table(_multiarray_umath._UFUNC_API)


def numpy_symbols() -> dict[str, int]:
    """Return the addresses of the NumPy functions that native code uses, and of the array type."""
    table = numpy_table()
    return {name: table[index] for name, index in NUMPY_API.items()} | {"PyArray_Type": id(np.ndarray)}


def _first_fault(kind: str, facts: dict[str, tuple[Any, Any]]) -> str:
    """Return the fault of the first field whose value is not the expected one; empty if there is none."""
    wrong = [name for name, (value, expected) in facts.items() if value != expected]
    return f"{kind}: {wrong[0]} is not where it was expected" if wrong else ""


def _array_fault(array: Any) -> str:
    at, words, reference = Ndarray(id(array)), ctypes.c_int64 * array.ndim, weakref.ref(array)
    unused = at.exports
    memoryview(array).release()  # NumPy keeps what it has made for the buffer
    facts = {
        "data": (at.data, array.ctypes.data),
        "ndim": (at.ndim, array.ndim),
        "descr": (at.descr, id(array.dtype)),
        "base": (at.base, 0 if array.base is None else id(array.base)),
        "flags": (at.flags & 0x507, array.flags.num & 0x507),
        "exported buffers": ((unused, at.exports != 0), (0, True)),
        "item size": (at.descr.itemsize, array.dtype.itemsize),
        "type number": (at.descr.type_num, array.dtype.num),
        "weak references": (at.weak_references, id(reference)),
    }
    for name, table in ("shape", at.dims), ("strides", at.strides):
        facts[name] = array.ndim and tuple(words.from_address(table)), array.ndim and getattr(array, name)
    return _first_fault("ndarray", facts)


def _python_fault() -> str:
    marker, floats, pair = object(), 1.5, complex(1.5, 2.5)
    both, items, text = (marker, floats), [marker], b"8 bytes."
    facts = {
        "item of a tuple": (read("i64", PyTuple(id(both)).items), id(marker)),
        "size of a tuple": (PyTuple(id(both)).size, 2),
        "list": (read("i64", PyList(id(items)).items), id(marker)),
        "bytes": (read("i64", PyBytes(id(text)).items), int.from_bytes(text, "little")),
        "float": (PyFloat(id(floats)).value, 1.5),
        "complex": (PyComplex(id(pair)).imag, 2.5),
        "type": (PyObject(id(marker)).type, id(object)),
        "reference count": (read("i32", id(marker) + PyObject.refcnt), sys.getrefcount(marker) - 1),
    }
    return _first_fault("Python", facts)


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


@functools.cache
def find_ufunc_fault(ufunc: np.ufunc) -> str:
    """Return why the loops of a ufunc cannot be read; empty if its fields are at the expected offsets."""
    at = id(ufunc)
    counts = [read("i32", at + offset) for offset in (NIN, NOUT, NARGS, NTYPES)]
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes]:
        return f"{ufunc.__name__}: the numbers of operands and loops are not where they were expected"
    numbers = ctypes.string_at(read("i64", at + TYPES), ufunc.ntypes * ufunc.nargs)
    expected = bytes(np.dtype(letter).num for text in ufunc.types for letter in text.replace("->", ""))
    name = ctypes.string_at(read("i64", at + NAME)).decode()
    return _first_fault(ufunc.__name__, {"name": (name, ufunc.__name__), "types": (numbers, expected)})


def find_inner_loop(ufunc: np.ufunc, dtypes: Sequence[DType]) -> tuple[int, int] | None:
    """Return the addresses of a ufunc's loop for operands and result of these dtypes and of its data, or None."""
    wanted = [dtype.np for dtype in dtypes]
    for index, text in enumerate(ufunc.types):
        if [np.dtype(letter) for letter in text.replace("->", "")] == wanted and not find_ufunc_fault(ufunc):
            tables = (read("i64", id(ufunc) + offset) for offset in (FUNCTIONS, DATA))
            loop, data = (read("i64", table + 8 * index) if table else 0 for table in tables)
            return (loop, data) if loop else None
    return None


def find_node_loop(node: Expr) -> tuple[int, int] | None:
    """Return the addresses of the inner loop of NumPy's ufunc for a node of the scalar IR and of its data, or None."""
    ufunc = np.power if node.op == "pow" else UFUNCS[node.op]
    if not isinstance(ufunc, np.ufunc):
        return None
    return find_inner_loop(ufunc, [*(a.dtype for a in node.args), node.dtype])
