"""Structs of the native language: typed fields at fixed offsets of a block of memory.

    class LoopState(Struct):
        timed: i64
        interval: i64

In native code `state.interval` compiles to the load, `state.interval = n` to the store, `LoopState(address).interval`
reads an address as a struct, and `LoopState.interval` is the field's offset, a constant. In Python the same expressions
read and write the memory with ctypes, so that the entries and the code that fills their structs share one declaration.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from .....named_tuple import NamedTuple
from .dsl import TYPES

_WIDTHS = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4}  # bytes; all others have 8


class Field(NamedTuple):
    """A field of a struct: where it is, its type as declared, and the class that declares it.

    Attributes:
        offset: in bytes; as a declaration, -1 for the first free one.
        length: the number of elements.
        is_array: whether reading the field returns the address of the first element.
    """

    offset: int
    length: int = 1
    is_array: bool = False
    kind: str = ""
    owner: Any = None

    def struct(self) -> Any:
        """Return the struct that the field points to, such as `Descr` or `capi.Descr`; None if it is not declared."""
        if self.kind in TYPES:
            return None
        return functools.reduce(getattr, self.kind.split("."), sys.modules[self.owner.__module__])


def at(offset: int, count: int = 0) -> Any:
    """Declare the offset of a field, and the number of its elements if it is an array."""
    return Field(offset, max(count, 1), count > 0)


def array(count: int) -> Any:
    """Declare a field of consecutive elements; reading it returns the address of the first."""
    return Field(-1, count, True)


class StructMeta(type):
    """The class of structs: an attribute of the class is the offset of the field."""

    declared: dict[str, Field]  # the fields that `at` and `array` declare

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> StructMeta:
        fields = namespace.get("__annotations__", {}) if bases else {}
        declared = {key: namespace.pop(key) for key in fields if key in namespace}
        result = super().__new__(cls, name, bases, namespace)
        result.declared = declared
        return result

    def __getattr__(cls, name: str) -> int:
        known = None if name.startswith("__") else fields_of(cls).get(name)
        if known is None:
            raise AttributeError(f"struct {cls.__name__} has no field {name!r}")
        return known.offset


class Struct(metaclass=StructMeta):
    """A view of memory with typed fields. Subclasses annotate their fields, which follow those of the base class.

    Args:
        address: of the first byte.
    """

    slot_prefix: ClassVar[str] = ""  # not empty: the fields are slots of a Python class, at offsets named so

    def __init__(self, address: Any) -> None:
        object.__setattr__(self, "address", int(address))

    def __getattr__(self, name: str) -> Any:
        known = fields_of(type(self)).get(name)
        if known is None:
            raise AttributeError(f"struct {type(self).__name__} has no field {name!r}")
        where = self.__dict__["address"] + known.offset
        if known.is_array:
            return where
        value, kind = read(known.kind, where), known.struct()
        return value if kind is None else kind(value)

    def __setattr__(self, name: str, value: Any) -> None:
        known = fields_of(type(self)).get(name)
        if known is None:
            object.__setattr__(self, name, value)
        else:
            write(known.kind, self.__dict__["address"] + known.offset, value)

    def __index__(self) -> int:
        return int(self.__dict__["address"])

    __int__ = __index__

    def __add__(self, step: int) -> Any:
        return int(self) + step

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Struct, int)) and int(self) == int(other)

    def __hash__(self) -> int:
        return hash(int(self))

    def __bool__(self) -> bool:
        return int(self) != 0


@functools.cache
def c_type(name: str) -> Any:
    """Return the ctypes class of a machine type; a field of a struct type holds an address."""
    kind = TYPES.get(name)
    if kind is None or kind.kind == "p":
        return ctypes.c_int64
    if kind.kind == "f":
        return ctypes.c_float if kind.bits == 32 else ctypes.c_double
    return getattr(ctypes, f"c_{'u' if kind.kind == 'u' else ''}int{kind.bits}")


def read(name: str, address: int) -> Any:
    """Return a value of a type in memory."""
    return c_type(name).from_address(int(address)).value


def write(name: str, address: int, value: Any) -> None:
    """Store a value of a type in memory."""
    kind = c_type(name)
    kind.from_address(int(address)).value = value if name in ("f32", "f64") else int(value)


_PLAIN = Field(-1)
slot_offsets: dict[str, int] = {}  # offsets of the fields that are slots, by the names of their constants


def fields_of(cls: type) -> Mapping[str, Field]:
    """Return the fields of a struct by their names."""
    return _layout(cls)[0]


def sizeof(cls: type) -> int:
    """Return the size of a struct in bytes; in native code a constant."""
    return -(-_layout(cls)[1] // 8) * 8


@functools.cache
def _layout(cls: Any) -> tuple[dict[str, Field], int]:
    """Return the fields of a struct and its size, laid out as a C compiler does.

    Raises:
        KeyError: the offset of a slot is not known yet.
    """
    if cls is Struct:
        return {}, 0
    fields, size = _layout(cls.__base__)
    fields, end, prefix = dict(fields), size, vars(cls).get("slot_prefix")
    for name, kind in vars(cls).get("__annotations__", {}).items():
        if type(kind) is not str:
            raise TypeError(f"struct {cls.__name__}: its module needs `from __future__ import annotations`")
        width, declared = _WIDTHS.get(kind, 8), cls.declared.get(name, _PLAIN)
        offset = slot_offsets[prefix + name.upper()] if prefix else declared.offset
        if offset < 0:
            offset = end if declared.is_array else -(-end // width) * width
        fields[name] = Field(offset, declared.length, declared.is_array, kind, cls)
        if not prefix:
            end = offset + width * declared.length
            size = max(size, end)  # `at` may go back
    return fields, size
