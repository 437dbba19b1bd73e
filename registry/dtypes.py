"""The data types and how they promote.

Promotion is the Array API standard's (2024.12): within a kind to the wider type, integer with float to the float's
type; Python scalars are weak; the pairs that the standard leaves open and that would lose values are errors.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..errors import DTypeError, ScalarOverflowError


class DType:
    """A data type; one object per type, compared by identity.

    Attributes:
        name: the standard's name, such as ``"float32"``.
        np: the NumPy dtype.
        kind: ``"b"`` bool, ``"i"`` signed, ``"u"`` unsigned, ``"f"`` float, ``"c"`` complex.
        itemsize: bytes per element.
        bits: bits per element.

    >>> import tandem as td
    >>> td.float32.itemsize, td.asarray([1, 2]).dtype
    (4, tandem.int64)
    """

    __slots__ = ("bits", "itemsize", "kind", "name", "np")

    def __init__(self, name: str, numpy_type: Any, kind: str):
        self.name = name
        self.np = np.dtype(numpy_type)
        self.kind = kind
        self.itemsize = self.np.itemsize
        self.bits = 1 if kind == "b" else 8 * self.itemsize

    @property
    def is_floating(self) -> bool:
        """Whether values are real floating-point numbers."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether values are integers (bool excluded)."""
        return self.kind in "iu"

    @property
    def is_inexact(self) -> bool:
        """Whether values are floating-point numbers, real or complex: what a gradient needs."""
        return self.kind in "fc"

    def __repr__(self) -> str:
        return f"tandem.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))


bool_ = DType("bool", np.bool_, "b")
int8 = DType("int8", np.int8, "i")
int16 = DType("int16", np.int16, "i")
int32 = DType("int32", np.int32, "i")
int64 = DType("int64", np.int64, "i")
uint8 = DType("uint8", np.uint8, "u")
uint16 = DType("uint16", np.uint16, "u")
uint32 = DType("uint32", np.uint32, "u")
uint64 = DType("uint64", np.uint64, "u")
float16 = DType("float16", np.float16, "f")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "f")
float32 = DType("float32", np.float32, "f")
float64 = DType("float64", np.float64, "f")
complex64 = DType("complex64", np.complex64, "c")
complex128 = DType("complex128", np.complex128, "c")

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (float16, bfloat16, float32, float64)
COMPLEX = (complex64, complex128)
NUMERIC = INTEGERS + FLOATS + COMPLEX
REAL = INTEGERS + FLOATS
ALL = (bool_, *NUMERIC)

DEFAULT_INT, DEFAULT_FLOAT, DEFAULT_COMPLEX = int64, float32, complex64

_BY_NAME = {dtype.name: dtype for dtype in ALL} | {"bool_": bool_}
_BY_NUMPY = {dtype.np: dtype for dtype in ALL}
_BY_PYTHON: dict[Any, DType] = {bool: bool_, int: DEFAULT_INT, float: DEFAULT_FLOAT, complex: DEFAULT_COMPLEX}


def as_dtype(value: Any) -> DType:
    """The data type that ``value`` names.

    Args:
        value: a DType, its name, a NumPy dtype or scalar type, or ``bool``, ``int``, ``float``, ``complex``
            (the default type of that kind).

    Raises:
        DTypeError: no such type, or one that tandem does not have (object, string, datetime, ...).

    >>> from tandem.registry.dtypes import as_dtype
    >>> as_dtype("int8"), as_dtype(float)
    (tandem.int8, tandem.float32)
    """
    if isinstance(value, DType):
        return value
    found = (
        _BY_NAME.get(value)
        if isinstance(value, str)
        else _BY_PYTHON.get(value)
        if isinstance(value, type)
        else None
    )
    if found is not None:
        return found
    try:
        native = np.dtype(value).newbyteorder("=")
    except (TypeError, ValueError):
        native = None
    if value is None or native not in _BY_NUMPY:
        raise DTypeError(
            f"{value!r} is not a dtype of tandem; the dtypes are {', '.join(d.name for d in ALL)}"
        )
    return _BY_NUMPY[native]


def _wider(one: DType, two: DType) -> DType:
    return one if one.itemsize >= two.itemsize else two


def _mixed_integers(signed: DType, unsigned: DType) -> DType:
    if unsigned is uint64:
        raise DTypeError(
            f"{signed.name} with uint64 has no common integer type (the Array API standard leaves the pair undefined); "
            "cast one side with astype"
        )
    return signed if signed.itemsize > unsigned.itemsize else SIGNED[UNSIGNED.index(unsigned) + 1]


def _to_complex(dtype: DType) -> DType:
    return complex128 if dtype in (float64, complex128) else complex64


def _promote(one: DType, two: DType) -> DType:
    rank = "buifc"
    if rank.index(one.kind) > rank.index(two.kind):
        one, two = two, one
    if one is two or one.kind == "b":
        return two
    if two.kind == "c":
        return _wider(_to_complex(one), two) if one.is_inexact else two
    if one.kind == two.kind:
        return float32 if one.itemsize == two.itemsize else _wider(one, two)
    return two if two.kind == "f" else _mixed_integers(two, one)


_TABLE: dict[tuple[DType, DType], DType] = {}


def promote(one: DType, two: DType) -> DType:
    """The type of an operation on two types.

    Raises:
        DTypeError: a signed integer meets ``uint64``.

    >>> from tandem.registry import dtypes as dt
    >>> dt.promote(dt.int8, dt.uint8), dt.promote(dt.int64, dt.float32), dt.promote(dt.float16, dt.bfloat16)
    (tandem.int16, tandem.float32, tandem.float32)
    """
    found = _TABLE.get((one, two))
    if found is None:
        found = _TABLE[one, two] = _promote(one, two)
    return found


def scalar_dtype(value: bool | int | float | complex) -> DType:
    """The default type of a Python scalar that meets no array."""
    return _BY_PYTHON[python_type(value)]


def python_type(value: Any) -> type:
    """The type of a Python number, or of the number that a traced scalar stands for."""
    return getattr(value, "python_type", None) or type(value)


def promote_scalar(dtype: DType, value: bool | int | float | complex) -> DType:
    """The type of an operation on an array of ``dtype`` and a Python scalar, which is weak.

    Raises:
        ScalarOverflowError: an integer does not fit the array's integer type.
    """
    kind = python_type(value)
    if kind is bool:
        return dtype
    if kind is int:
        if dtype.kind in "iu":
            if type(value) is int:
                check_range(dtype, value)
            return dtype
        if dtype.kind != "b":
            return dtype
        if type(value) is int:
            check_range(DEFAULT_INT, value)
        return DEFAULT_INT
    if kind is float:
        return dtype if dtype.is_inexact else DEFAULT_FLOAT
    return dtype if dtype.kind == "c" else _to_complex(dtype) if dtype.is_floating else DEFAULT_COMPLEX


def check_range(dtype: DType, value: Any) -> None:
    """Raise ScalarOverflowError if the integer ``value`` does not fit the integer type ``dtype``."""
    info = np.iinfo(dtype.np)
    if not info.min <= value <= info.max:
        shown = value if value.bit_length() < 300 else f"of {value.bit_length()} bits"
        raise ScalarOverflowError(
            f"Python integer {shown} does not fit {dtype.name} ({info.min} to {info.max})"
        )
