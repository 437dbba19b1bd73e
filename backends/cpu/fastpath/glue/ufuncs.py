"""NumPy's inner loops by address: a ufunc's loop for given dtypes, read from the ufunc object and checked."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np

from .....registry.dtypes import DType
from .layout import read_i32, read_i64

# Offsets in a ufunc object.
NIN, NOUT, NARGS, FUNCTIONS, DATA, NTYPES, NAME, TYPES = 16, 20, 24, 32, 40, 48, 56, 64


@cache
def find_fault(ufunc: np.ufunc) -> str:
    """Return why the loops of a ufunc cannot be read; empty if its fields are at the expected offsets."""
    at = id(ufunc)
    counts = [read_i32(at + offset) for offset in (NIN, NOUT, NARGS, NTYPES)]
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes]:
        return f"{ufunc.__name__}: the numbers of operands and loops are not where they were expected"
    if ctypes.string_at(read_i64(at + NAME)).decode() != ufunc.__name__:
        return f"{ufunc.__name__}: the name is not where it was expected"
    spelled = [text.replace("->", "") for text in ufunc.types]
    numbers = ctypes.string_at(read_i64(at + TYPES), ufunc.ntypes * ufunc.nargs)
    expected = bytes(np.dtype(letter).num for text in spelled for letter in text)
    return "" if numbers == expected else f"{ufunc.__name__}: the types are not where they were expected"


def find_inner_loop(ufunc: np.ufunc, dtypes: Sequence[DType]) -> tuple[int, int] | None:
    """Return the addresses of a ufunc's loop for operands and result of these dtypes and of its data, or None."""
    wanted = [dtype.np for dtype in dtypes]
    for index, text in enumerate(ufunc.types):
        if [np.dtype(letter) for letter in text.replace("->", "")] == wanted and not find_fault(ufunc):
            loop = read_i64(read_i64(id(ufunc) + FUNCTIONS) + 8 * index)
            return (loop, read_i64(read_i64(id(ufunc) + DATA) + 8 * index)) if loop else None
    return None
