"""Functions of data types, as in the Array API standard and NumPy: can_cast, finfo, iinfo, isdtype, result_type."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DTypeError, ValueArgumentError
from ..named_tuple import NamedTuple
from .dtypes import DType, as_dtype, default_float, promote, promote_scalar, scalar_dtype, set_default_float
from .native_type import accept_entry
from .operator import find_operator, lock
from .values import SCALARS, TensorBase

if TYPE_CHECKING:
    from .types import DTypeLike, TensorLike

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_ORDER = "buifc"  # of the kinds that "same_kind" can cast to one another, from left to right
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


class IInfo(NamedTuple):
    """The limits of an integer type.

    Attributes:
        bits: number of bits.
        max, min: the largest and the smallest value.
        dtype: the type.
    """

    bits: int
    max: int
    min: int
    dtype: DType


class FInfo(NamedTuple):
    """The limits of a floating-point type; of a complex type, those of its parts.

    Attributes:
        bits: number of bits.
        eps: the difference between 1.0 and the next larger number.
        max, min: the largest and the smallest finite number.
        smallest_normal: the smallest positive number with full precision; ``tiny`` is the same.
        dtype: the real type.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """The smallest positive number with full precision."""
        return self.smallest_normal

    @property
    def resolution(self) -> float:
        """The decimal resolution of the type, as in NumPy."""
        return float(10.0 ** -int(-np.log10(self.eps)))


def _dtype_of(value: DTypeLike | TensorLike) -> DType:
    """The dtype of a tensor or an array, or the one that a value names."""
    if type(value) is DType or isinstance(value, type):
        return as_dtype(value)
    own = getattr(value, "dtype", None)
    return as_dtype(value if own is None or isinstance(value, (DType, np.dtype, type)) else own)


def iinfo(type: DTypeLike | TensorLike, /) -> IInfo:
    """The limits of an integer type.

    Args:
        type: an integer dtype, or a tensor of one.

    Raises:
        DTypeError: the type is not an integer type.

    >>> import tandem as td
    >>> td.iinfo(td.int8).max
    127
    """
    return _describe_integer(_dtype_of(type))


@cache
def _describe_integer(dtype: DType) -> IInfo:
    if not dtype.is_integer:
        raise DTypeError(f"iinfo takes an integer dtype, not {dtype}; finfo has the limits of floats")
    info = np.iinfo(dtype.np)
    return IInfo(dtype.bits, int(info.max), int(info.min), dtype)


def finfo(type: DTypeLike | TensorLike, /) -> FInfo:
    """The limits of a floating-point type.

    Args:
        type: a float or complex dtype, or a tensor of one.

    Raises:
        DTypeError: the type is not a floating-point type.

    >>> import tandem as td
    >>> td.finfo(td.float32).eps
    1.1920928955078125e-07
    """
    return _describe_float(_dtype_of(type))


@cache
def _describe_float(dtype: DType) -> FInfo:
    if not dtype.is_inexact:
        raise DTypeError(f"finfo takes a floating-point dtype, not {dtype}; iinfo has the limits of integers")
    real = as_dtype(_REAL_OF.get(dtype.name, dtype.name))
    if real.name == "bfloat16":  # 8 bits of exponent, 7 of significand
        return FInfo(16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, -(2 - 2.0**-7) * 2.0**127, 2.0**-126, real)
    info = np.finfo(real.np)
    return FInfo(
        real.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), real
    )


def isdtype(dtype: DTypeLike, kind: object) -> bool:
    """Whether a dtype is of a kind.

    Args:
        dtype: the dtype.
        kind: a dtype, ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
            ``"complex floating"``, ``"numeric"``, or a tuple of these.

    Raises:
        ValueArgumentError: there is no such kind.

    >>> import tandem as td
    >>> td.isdtype(td.int8, "integral"), td.isdtype(td.int8, (td.float32, "bool"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueArgumentError(f"isdtype: there is no kind {kind!r}; the kinds are {', '.join(_KINDS)}")
        return as_dtype(dtype).kind in _KINDS[kind]
    return as_dtype(dtype) is as_dtype(kind)


def can_cast(from_: DTypeLike | TensorLike, to: DTypeLike, /, casting: str = "safe") -> bool:
    """Whether values of one dtype can be cast to another by a casting rule.

    Args:
        from_: a dtype, or a tensor.
        to: a dtype.
        casting: ``"safe"`` (type promotion returns ``to``), ``"same_kind"`` (also within a kind, or to a wider kind),
            ``"no"`` or ``"equiv"`` (the same type), ``"unsafe"`` (always).

    Raises:
        ValueArgumentError: there is no such casting rule.

    >>> import tandem as td
    >>> td.can_cast(td.int32, td.int64), td.can_cast(td.float64, td.float32)
    (True, False)
    """
    source, target = _dtype_of(from_), as_dtype(to)
    if casting == "unsafe" or source is target:
        return True
    if casting in ("no", "equiv"):
        return False
    if casting == "same_kind":
        return _ORDER.index(source.kind) <= _ORDER.index(target.kind)
    if casting != "safe":
        raise ValueArgumentError(
            f"can_cast: casting must be 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', not {casting!r}"
        )
    try:
        return promote(source, target) is target
    except DTypeError:
        return False


@accept_entry("read_common_dtype")
def result_type(*arrays_and_dtypes: DTypeLike | TensorLike) -> DType:
    """The dtype that an operator's result has for these arguments.

    Args:
        arrays_and_dtypes: tensors, dtypes and Python numbers, which are weak.

    Raises:
        DTypeError: there are no arguments, or their dtypes have no common type.

    >>> import tandem as td
    >>> td.result_type(td.int8, td.zeros(2), 1)
    tandem.float32
    """
    numbers = [value for value in arrays_and_dtypes if isinstance(value, SCALARS) and type(value) in SCALARS]
    dtypes = [_dtype_of(value) for value in arrays_and_dtypes if type(value) not in SCALARS]
    if not arrays_and_dtypes:
        raise DTypeError("result_type needs at least one tensor, dtype or number")
    if not dtypes:
        dtypes = [scalar_dtype(numbers.pop(0))]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype)
    for number in numbers:
        result = promote_scalar(result, number)
    return result


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The dtype to which two dtypes promote; see :func:`result_type`.

    Raises:
        DTypeError: the dtypes have no common type.

    >>> import tandem as td
    >>> td.promote_types(td.int8, td.uint8)
    tandem.int16
    """
    return promote(as_dtype(type1), as_dtype(type2))


def is_tensor(obj: object) -> bool:
    """Whether an object is a tensor.

    >>> import tandem as td
    >>> td.is_tensor(td.zeros(2)), td.is_tensor(2)
    (True, False)
    """
    return isinstance(obj, TensorBase)


def get_default_dtype() -> DType:
    """The default dtype: that of Python floats, and of float results of integers.

    >>> import tandem as td
    >>> td.get_default_dtype()
    tandem.float32
    """
    return default_float()


def set_default_dtype(dtype: DTypeLike) -> None:
    """Set the default dtype, that of Python floats, for the whole process, as in PyTorch.

    Args:
        dtype: a real floating dtype. Python complex numbers become complex128 with float64, else complex64.

    It is the dtype of ``td.zeros``, ``ones``, ``empty``, ``full``, ``eye``, ``linspace``, ``arange`` of floats,
    ``asarray`` of Python floats, windows, and ``td.random`` without ``dtype``; and of floats that are computed from
    integer tensors: ``x / 2``, ``x * 0.5``, ``td.sqrt(x)``, ``x.mean()``. Jitted functions are traced again where they
    are called with another default.

    Raises:
        DTypeError: the dtype is not a real floating one.

    >>> import tandem as td
    >>> td.set_default_dtype(td.float64)
    >>> td.asarray([1.0]).dtype, td.zeros(2).dtype
    (tandem.float64, tandem.float64)
    >>> (td.arange(3) * 0.5).dtype, td.sqrt(td.arange(3)).dtype
    (tandem.float64, tandem.float64)
    >>> td.set_default_dtype(td.float32)
    """
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise DTypeError(f"set_default_dtype takes a real floating dtype, not {wanted}")
    with lock:
        if wanted is default_float():
            return
        set_default_float(wanted)
        find_operator(
            "td::full"
        ).notify_listeners()  # native entries of `full`, `zeros`, `ones`, jitted functions
