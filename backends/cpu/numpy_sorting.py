"""NumPy's functions that sort contiguous numbers, which use the widest vectors of the processor."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from .fastpath.glue.layout import numpy_table
from .target import vector_target

_GET_FUNCTIONS = 365  # _PyDataType_GetArrFuncs in NumPy's table
_SORT = 21 + 12  # the first of three functions, which is not stable, after 21 casts and 12 other functions
_ARGSORT = _SORT + 3  # likewise, after three functions that sort
_COUNT = 1000  # numbers of the trial


@cache
def find_sort_function(dtype: np.dtype[Any]) -> int:
    """Return the address of ``int sort(void *start, npy_intp count, void *array)``, which takes NULL as array.

    It needs no GIL. The result is 0 if the function is not found, or does not sort some numbers as ``np.sort`` does.
    """
    # without masks NumPy has no vectors for short integers; its stable sort of these is by their digits
    is_radix = dtype.kind in "biu" and dtype.itemsize <= 2 and not vector_target().masks
    address = _find_address(dtype, _SORT + 2 if is_radix else _SORT)
    numbers = _make_numbers(dtype)
    wanted = np.sort(numbers)
    sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(address)
    failed = sort(numbers.ctypes.data, numbers.size, None) if address else 1
    return 0 if failed or numbers.tobytes() != wanted.tobytes() else address


@cache
def find_argsort_function(dtype: np.dtype[Any]) -> int:
    """Return the address of ``int argsort(void *start, npy_intp *order, npy_intp count, void *array)``.

    ``order`` holds the positions of the elements, in any order; NULL does for the array, and it needs no GIL. The
    result is 0 if the function is not found, or does not order some numbers as ``np.argsort`` does.
    """
    address = _find_address(dtype, _ARGSORT)
    numbers, order = _make_numbers(dtype), np.arange(_COUNT, dtype=np.intp)
    sort = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p
    )(address)
    failed = sort(numbers.ctypes.data, order.ctypes.data, numbers.size, None) if address else 1
    return 0 if failed or order.tobytes() != np.argsort(numbers).tobytes() else address


def _find_address(dtype: np.dtype[Any], index: int) -> int:
    """Return the address of a function of a dtype, 0 if there is none."""
    get_functions = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(numpy_table()[_GET_FUNCTIONS])
    functions = get_functions(dtype)
    if not functions:
        return 0
    return ctypes.c_void_p.from_address(functions + ctypes.sizeof(ctypes.c_void_p) * index).value or 0


def _make_numbers(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the numbers of the trial, many of them equal."""
    return np.random.default_rng(0).integers(-100, 100, _COUNT).astype(dtype)
