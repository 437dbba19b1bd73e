"""Addresses of BLAS and LAPACK functions: those of the OpenBLAS in NumPy's wheels, or those that SciPy publishes.

NumPy's library is loaded with NumPy; to import ``scipy.linalg`` takes 0.2 s or more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ... import lazy

OPENBLAS_NAMES = ("scipy_{}_64_", "scipy_{}_")
"""How NumPy's wheels name functions: with 64-bit or 32-bit integers. Callers pass integers that are read as either."""


@cache
def find_blas_functions() -> dict[str, int]:
    """Return the addresses of BLAS functions by name; empty if neither NumPy's wheel nor SciPy has them."""
    names = tuple(letter + name for letter in "sdcz" for name in ("gemm", "gemv"))
    addresses = _find_in_numpy(names)
    if not addresses:
        try:
            addresses = _read_addresses(lazy.module("scipy.linalg.cython_blas").__pyx_capi__, names)
        except ImportError:
            return {}
    return {f"blas_{name}": address for name, address in addresses.items()}


def _find_in_numpy(names: Sequence[str]) -> dict[str, int]:
    """Return the addresses of functions of NumPy's own OpenBLAS; nothing if a name is missing."""
    extension: Any = np._core._multiarray_umath  # type: ignore[attr-defined]
    library = ctypes.CDLL(extension.__file__)
    for pattern in OPENBLAS_NAMES:
        symbols = {name: pattern.format(name) for name in names}
        if all(hasattr(library, symbol) for symbol in symbols.values()):
            return {
                name: ctypes.cast(library[symbol], ctypes.c_void_p).value or 0
                for name, symbol in symbols.items()
            }
    return {}


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


@cache
def find_triangle_functions(letter: str) -> dict[str, int]:
    """Return the addresses of functions of triangles, of BLAS too, for ``"d"`` or ``"z"``; empty without them."""
    names = [letter + name for name in ("potrf", "trsm", "trsv")]
    addresses = _find_in_numpy(names)
    if not addresses:
        try:
            lapack, blas = lazy.module("scipy.linalg.cython_lapack"), lazy.module("scipy.linalg.cython_blas")
            addresses = _read_addresses({**lapack.__pyx_capi__, **blas.__pyx_capi__}, names)
        except ImportError:
            return {}
    return {f"LAPACK_{name[1:]}": address for name, address in addresses.items()}


def _read_addresses(table: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """Return the addresses in capsules; nothing if a name is missing."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = api.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if any(name not in table for name in names):
        return {}
    return {name: get(table[name], api.PyCapsule_GetName(table[name])) for name in names}
