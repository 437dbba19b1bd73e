"""Data types and type promotion.

Promotion follows the Array API standard (2024.12): two types of one kind promote to the wider one, an integer and a
float to the float; Python scalars are weak. Pairs that the standard leaves undefined and that would lose values raise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from .. import config, lazy
from ..errors import DTypeError, ScalarOverflowError
from .formatting import short_repr

NumpyDType = np.dtype[Any]

# Dtypes that other packages add to NumPy, and the package of each.
_EXTENSION_DTYPES = {"bfloat16": "ml_dtypes"}
_load_actions: dict[str, list[Callable[[DType], None]]] = {}
tensor_makers: list[Callable[[Any, DType], Any]] = []  # `asarray`, once the eager tensors are defined


class DType:
    """A data type; one object per type. It equals the names and types of NumPy that mean it: ``x.dtype == float``.

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

    name: str
    np: NumpyDType

    def __new__(cls, name: Any, kind: str = "", itemsize: int = 0) -> DType:
        """A new data type; of one argument, the data type that it names: ``np.dtype("f8")``."""
        return object.__new__(cls) if kind else as_dtype(name)

    def __init__(self, name: Any, kind: str = "", itemsize: int = 0):
        if not kind:
            return
        self.name, self.kind, self.itemsize = name, kind, itemsize
        self.bits = 1 if kind == "b" else 8 * itemsize
        if name not in _EXTENSION_DTYPES:
            self.np = np.dtype(name)

    def __call__(self, value: Any = 0) -> Any:
        """A tensor of this data type, as of NumPy's and JAX's scalar types: ``td.float64(2)``.

        >>> import tandem as td
        >>> td.float64(2), td.int8([1, 2]).dtype
        (tensor(2., dtype=float64), tandem.int8)
        """
        return tensor_makers[0](value, self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is DType:
            return False
        if other is float or other is complex:  # NumPy's dtype, and the default one that functions make of it
            return self is as_dtype(other) or self.name == ("complex128" if other is complex else "float64")
        return find_meant(other) is self

    __hash__ = object.__hash__

    def __getattr__(self, attribute: str) -> Any:
        """Load the package that defines the NumPy dtype, at the first access of ``np``; other attributes are its own.

        Libraries read them from the dtype of any array: ``char``, ``str``, ``byteorder``, ``num``.
        """
        if attribute != "np":
            if attribute.startswith("_") or not hasattr(self.np, attribute):
                raise AttributeError(f"a dtype has no attribute {attribute!r}")
            return getattr(self.np, attribute)
        self.np = np.dtype(getattr(lazy.module(_EXTENSION_DTYPES[self.name]), self.name))
        for action in _load_actions.get(self.name, ()):
            action(self)
        return self.np

    def call_when_loaded(self, action: Callable[[DType], None]) -> None:
        """Call ``action(dtype)`` once the NumPy dtype exists: now, or after the package that defines it was loaded."""
        package = _EXTENSION_DTYPES.get(self.name)
        if package is None or sys.modules.get(package) is not None:
            action(self)
        else:
            _load_actions.setdefault(self.name, []).append(action)

    @property
    def is_installed(self) -> bool:
        """Whether NumPy has the type, or the package that adds it is installed."""
        return self.name not in _EXTENSION_DTYPES or lazy.is_installed(_EXTENSION_DTYPES[self.name])

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """``numpy.dtype``, so that ``isinstance(x.dtype, np.dtype)`` holds, which libraries check before they use it.

        ``type(dtype)`` is still :class:`DType`.
        """
        return np.dtype

    @property
    def dtype(self) -> NumpyDType:
        """The NumPy dtype, as the attribute that NumPy reads: ``np.zeros(3, td.float32)``."""
        return self.np

    @property
    def type(self) -> Any:
        """The NumPy scalar class of this type, as in ``x.dtype.type(0)``."""
        return self.np.type

    @property
    def is_floating(self) -> bool:
        """Whether values are real floating-point numbers."""
        return self.kind == "f"

    @property
    def is_floating_point(self) -> bool:
        """:attr:`is_floating`, as PyTorch calls it."""
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Whether values are complex numbers."""
        return self.kind == "c"

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return self.kind not in "bu"

    @property
    def is_integer(self) -> bool:
        """Whether values are integers (bool excluded)."""
        return self.kind in "iu"

    @property
    def is_inexact(self) -> bool:
        """Whether values are floating-point numbers, real or complex, so that gradients exist."""
        return self.kind in "fc"

    def __repr__(self) -> str:
        return f"tandem.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))


bool_ = DType("bool", "b", 1)
int8 = DType("int8", "i", 1)
int16 = DType("int16", "i", 2)
int32 = DType("int32", "i", 4)
int64 = DType("int64", "i", 8)
uint8 = DType("uint8", "u", 1)
uint16 = DType("uint16", "u", 2)
uint32 = DType("uint32", "u", 4)
uint64 = DType("uint64", "u", 8)
float16 = DType("float16", "f", 2)
bfloat16 = DType("bfloat16", "f", 2)
float32 = DType("float32", "f", 4)
float64 = DType("float64", "f", 8)
complex64 = DType("complex64", "c", 8)
complex128 = DType("complex128", "c", 16)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
HALVES = (float16, bfloat16)
FLOATS = (*HALVES, float32, float64)
COMPLEX = (complex64, complex128)
NUMERIC = INTEGERS + FLOATS + COMPLEX
REAL = INTEGERS + FLOATS
ALL = (bool_, *NUMERIC)

DEFAULT_INT = int64
default_listeners: list[Callable[[], object]] = []  # called after a change of the default dtypes
_default_changes = [0]  # how many there have been

_BY_NAME = {dtype.name: dtype for dtype in ALL} | {"bool_": bool_}
_BY_NUMPY = {dtype.np: dtype for dtype in ALL if dtype.name not in _EXTENSION_DTYPES}
# The dtypes of Python's types; `set_default_float` changes those of float and complex.
_BY_PYTHON: dict[Any, DType] = {bool: bool_, int: DEFAULT_INT, float: float32, complex: complex64}
_BY_SCALAR_TYPE: dict[Any, DType] = {native.type: dtype for native, dtype in _BY_NUMPY.items()}
_BY_CODE = {native.str[1:]: dtype for native, dtype in _BY_NUMPY.items()}  # "f8"
_TABLES: tuple[tuple[type, dict[Any, DType]], ...] = (
    (np.dtype, _BY_NUMPY),
    (str, _BY_NAME),
    (str, _BY_CODE),
)


def find_meant(value: object) -> DType | None:
    """The data type that a type or name of NumPy means; None for anything else."""
    kind = type(value)
    if kind is str:
        return _find_named(str(value))
    if kind is type:  # a class of a user has another meaning, even with an attribute `dtype`
        is_scalar = value is bool or value is int or issubclass(cast(type, value), np.generic)
        return _BY_NAME.get(np.dtype(cast(type, value)).name) if is_scalar else None
    if issubclass(kind, np.dtype):
        dtype = cast("NumpyDType", value)
        return _BY_NAME.get(dtype.name) if dtype.isnative else None
    return None


def _find_named(name: str) -> DType | None:
    """The data type of a name, such as ``"float32"``, or of a code, such as ``"f4"``."""
    if name in _BY_NAME or not name.isascii() or not (name.isalnum() or name == "?"):
        return _BY_NAME.get(name)
    try:
        return _BY_NAME.get(np.dtype(name).name)
    except TypeError:
        return None


def as_dtype(value: Any) -> DType:
    """Convert ``value`` to a data type.

    Native twin: backends/cpu/fastpath/runtime/rt_arguments.py:dtype_code

    Args:
        value: a DType, its name, a NumPy dtype or scalar type, or ``bool``, ``int``, ``float``, ``complex``
            (the default type of that kind).

    Raises:
        DTypeError: the type does not exist, or tandem does not support it (object, string, datetime, ...).

    >>> from tandem.registry.dtypes import as_dtype
    >>> as_dtype("int8"), as_dtype(float)
    (tandem.int8, tandem.float32)
    """
    if type(value) is DType:
        return value
    if isinstance(value, type):
        known = _BY_PYTHON.get(value) or _BY_SCALAR_TYPE.get(value)
        if known is not None:
            return known
    for cls, table in _TABLES:
        if isinstance(value, cls):
            result = table.get(value)
            if result is not None:
                return result
    try:
        native = np.dtype(value).newbyteorder("=")
    except (TypeError, ValueError):
        native = None
    if native is not None and native.name in _EXTENSION_DTYPES:
        return _BY_NAME[native.name]
    if value is None or native not in _BY_NUMPY:
        raise DTypeError(
            f"{short_repr(value)} is not a dtype of tandem; the dtypes are {', '.join(d.name for d in ALL)}"
        )
    return _BY_NUMPY[native]


def is_half(native: Any) -> bool:
    """Whether a NumPy dtype is one of the 16-bit floats."""
    return native.itemsize == 2 and native.name in ("float16", "bfloat16")


def _wider_of(one: DType, two: DType) -> DType:
    return one if one.itemsize >= two.itemsize else two


def _promote_signed_unsigned(signed: DType, unsigned: DType) -> DType:
    if unsigned is uint64:
        raise DTypeError(
            f"{signed.name} with uint64 has no common integer type (the Array API standard leaves the pair undefined); "
            "cast one side with astype"
        )
    return signed if signed.itemsize > unsigned.itemsize else SIGNED[UNSIGNED.index(unsigned) + 1]


def to_complex(dtype: DType) -> DType:
    """The complex dtype of a precision; the default one for integers."""
    if not dtype.is_inexact:
        return default_complex()
    return complex128 if dtype in (float64, complex128) else complex64


def _promote(one: DType, two: DType) -> DType:
    rank = "buifc"
    if rank.index(one.kind) > rank.index(two.kind):
        one, two = two, one
    if one is two or one.kind == "b":
        return two
    if two.kind == "c":
        return _wider_of(to_complex(one), two) if one.is_inexact else two
    if one.kind == two.kind:
        return float32 if one.itemsize == two.itemsize else _wider_of(one, two)
    return two if two.kind == "f" else _promote_signed_unsigned(two, one)


_promoted: dict[tuple[DType, DType], DType] = {}  # cache of ``_promote``


def promote(one: DType, two: DType) -> DType:
    """The result type of an operation on two types.

    Raises:
        DTypeError: one type is a signed integer and the other ``uint64``.

    >>> from tandem.registry import dtypes as dt
    >>> dt.promote(dt.int8, dt.uint8), dt.promote(dt.int64, dt.float32), dt.promote(dt.float16, dt.bfloat16)
    (tandem.int16, tandem.float32, tandem.float32)
    """
    result = _promoted.get((one, two))
    if result is None:
        result = _promoted[one, two] = _promote(one, two)
    return result


def scalar_dtype(value: object) -> DType:
    """The default type of a Python scalar.

    Raises:
        DTypeError: the value is not a Python scalar.
    """
    result = _BY_PYTHON.get(python_type(value))
    if result is None:
        raise DTypeError(f"{type(value).__name__} {short_repr(value)} is neither a tensor nor a number")
    return result


def default_float() -> DType:
    """The dtype of Python floats and of float results of integers, see :func:`.dtype_functions.set_default_dtype`."""
    return _BY_PYTHON[float]


def default_complex() -> DType:
    """The dtype of Python complex numbers, and of complex results of integers."""
    return _BY_PYTHON[complex]


def default_stamp() -> tuple[int, DType]:
    """Return what differs after any change of the default dtypes, even if they are the same again.

    What was computed while it changed may be of several defaults, and is not kept for later calls.
    """
    return _default_changes[0], default_float()


def set_default_float(dtype: DType) -> None:
    """Set the dtype of Python floats; complex128 goes with float64, else complex64."""
    _default_changes[0] += 1  # before the change: see default_stamp
    _BY_PYTHON.update({float: dtype, complex: complex128 if dtype is float64 else complex64})
    for listener in default_listeners:
        listener()


def python_type(value: object) -> type:
    """The type of a Python number, or of the number that a traced scalar represents."""
    return getattr(value, "python_type", None) or type(value)


def promote_scalar(dtype: DType, value: bool | int | float | complex) -> DType:
    """The result type of an operation on an array of ``dtype`` and a (weak) Python scalar.

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
        return dtype if dtype.is_inexact else default_float()
    return dtype if dtype.kind == "c" else to_complex(dtype)


def check_range(dtype: DType, value: Any) -> None:
    """Raise ScalarOverflowError if the integer ``value`` does not fit the integer type ``dtype``."""
    info = np.iinfo(dtype.np)
    if not info.min <= value <= info.max:
        number = value if value.bit_length() < 300 else f"of {value.bit_length()} bits"
        raise ScalarOverflowError(
            f"Python integer {number} does not fit {dtype.name} ({info.min} to {info.max})"
        )


if config.flags.default_dtype != float32.name:
    set_default_float(_BY_NAME[config.flags.default_dtype])
