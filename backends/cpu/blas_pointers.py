"""Addresses of the BLAS functions that SciPy publishes as C pointers."""

from __future__ import annotations

import ctypes
from functools import cache

from ... import lazy


@cache
def find_blas_functions() -> dict[str, int]:
    """Return the addresses of BLAS functions by name; empty if SciPy publishes none."""
    try:
        table = lazy.module("scipy.linalg.cython_blas").__pyx_capi__
    except ImportError:
        return {}
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = api.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    names = tuple(letter + name for letter in "sdcz" for name in ("gemm", "gemv"))
    return {f"blas_{name}": get(table[name], api.PyCapsule_GetName(table[name])) for name in names}
