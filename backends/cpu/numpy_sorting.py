"""NumPy's functions that sort contiguous numbers, which use the widest vectors of the processor."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from .fastpath.glue.layout import numpy_table

_GET_FUNCTIONS = 365  # _PyDataType_GetArrFuncs in NumPy's table
_SORT = 21 + 12  # the first of three functions, which is not stable, after 21 casts and 12 other functions
_COUNT = 1000  # numbers of the trial


@cache
def find_sort_function(dtype: np.dtype[Any]) -> int:
    """Return the address of ``int sort(void *start, npy_intp count, void *array)``, which takes NULL as array.

    It needs no GIL. The result is 0 if the function is not found, or does not sort some numbers as ``np.sort`` does.
    """
    get_functions = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(numpy_table()[_GET_FUNCTIONS])
    functions = get_functions(dtype)
    if not functions:
        return 0
    address = ctypes.c_void_p.from_address(functions + ctypes.sizeof(ctypes.c_void_p) * _SORT).value or 0
    numbers = np.random.default_rng(0).integers(-100, 100, _COUNT).astype(dtype)
    wanted = np.sort(numbers)
    sort = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(address)
    failed = sort(numbers.ctypes.data, numbers.size, None) if address else 1
    return 0 if failed or numbers.tobytes() != wanted.tobytes() else address
