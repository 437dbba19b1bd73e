"""Addresses of the BLAS and LAPACK functions that SciPy publishes as C pointers."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ... import lazy


@cache
def find_blas_functions() -> dict[str, int]:
    """Return the addresses of BLAS functions by name; empty if SciPy publishes none."""
    try:
        table = lazy.module("scipy.linalg.cython_blas").__pyx_capi__
    except ImportError:
        return {}
    names = tuple(letter + name for letter in "sdcz" for name in ("gemm", "gemv"))
    return {f"blas_{name}": address for name, address in _read_addresses(table, names).items()}


@cache
def find_lapack_functions(letter: str) -> dict[str, int]:
    """Return the addresses of LAPACK functions for ``"d"`` or ``"z"``, without that letter; empty if there are none."""
    try:
        table = lazy.module("scipy.linalg.cython_lapack").__pyx_capi__
    except ImportError:
        return {}
    orthonormal = "orgqr" if letter == "d" else "ungqr"
    addresses = _read_addresses(table, [letter + name for name in ("geqrf", orthonormal, "getrf")])
    names = ("geqrf", "ungqr", "getrf")
    return {f"LAPACK_{name}": address for name, address in zip(names, addresses.values())}


def _read_addresses(table: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """Return the addresses in capsules; nothing if a name is missing."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = api.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if any(name not in table for name in names):
        return {}
    return {name: get(table[name], api.PyCapsule_GetName(table[name])) for name in names}
