"""NumPy's other names of data types, and its abstract types, for :func:`issubdtype`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .dtypes import (
    DType,
    as_dtype,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

if TYPE_CHECKING:
    from .types import DTypeLike

byte, short, intc, long, longlong = int8, int16, int32, int64, int64
ubyte, ushort, uintc, ulong, ulonglong = uint8, uint16, uint32, uint64, uint64
int_ = intp = int64
uint = uintp = uint64
half, single, double = float16, float32, float64
csingle, cdouble = complex64, complex128
float_, complex_ = float32, complex64

# -- abstract types ----------------------------------------------------------------------------------------------------
generic, number, inexact, floating = np.generic, np.number, np.inexact, np.floating
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
complexfloating = np.complexfloating
_KINDS = {"b": np.bool_, "i": signedinteger, "u": unsignedinteger, "f": floating, "c": complexfloating}
_Type = type[np.generic]


def issubdtype(arg1: DTypeLike | _Type, arg2: DTypeLike | _Type) -> bool:
    """Whether a data type is another one, or belongs to an abstract type such as ``td.floating``.

    Args:
        arg1: a data type, or an abstract type.
        arg2: a data type, or an abstract type.

    Raises:
        DTypeError: an argument is not a data type.

    >>> import tandem as td
    >>> td.issubdtype(td.float32, td.floating), td.issubdtype(td.int8, td.floating)
    (True, False)
    """
    one, two = (
        value
        if isinstance(value, type) and issubclass(value, np.generic) and _is_abstract(value)
        else as_dtype(value)
        for value in (arg1, arg2)
    )
    if isinstance(two, DType):
        return one is two
    return issubclass(_KINDS[one.kind] if isinstance(one, DType) else one, two)


def _is_abstract(value: _Type) -> bool:
    return value in (
        generic,
        number,
        inexact,
        floating,
        integer,
        signedinteger,
        unsignedinteger,
        complexfloating,
    )
