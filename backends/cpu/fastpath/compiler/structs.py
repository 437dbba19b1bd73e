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

from .dsl import TYPES

_WIDTHS = {"i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4}  # bytes; all others have 8


Field = tuple[int, str, int, bool]  # offset, name of the type, number of elements, whether it is an array


class At:
    """The declared position of a field: an offset (-1: after the field before), and a number of elements."""

    def __init__(self, offset: int, length: int, is_array: bool) -> None:
        self.offset, self.length, self.is_array = offset, length, is_array
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return StructMeta.__getattr__(owner, self.name)
        return Struct.__getattr__(instance, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        Struct.__setattr__(instance, self.name, value)


def at(offset: int, count: int = 0) -> Any:
    """Declare the offset of a field, and the number of its elements if it is an array."""
    return At(offset, max(count, 1), count > 0)


def array(count: int) -> Any:
    """Declare a field of consecutive elements; reading it returns the address of the first."""
    return At(-1, count, True)


class StructMeta(type):
    """The class of structs: an attribute of the class is the offset of the field."""

    def __getattr__(cls, name: str) -> int:
        known = None if name.startswith("__") else fields_of(cls).get(name)
        if known is None:
            raise AttributeError(f"struct {cls.__name__} has no field {name!r}")
        return known[0]


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
        where = self.__dict__["address"] + known[0]
        if known[3]:
            return where
        value, kind = read(known[1], where), _struct_type(type(self), name, known[1])
        return value if kind is None else kind(value)

    def __setattr__(self, name: str, value: Any) -> None:
        known = fields_of(type(self)).get(name)
        if known is None:
            object.__setattr__(self, name, value)
        else:
            write(known[1], self.__dict__["address"] + known[0], value)

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


def _struct_type(cls: type, name: str, annotation: str) -> Any:
    """Return the struct that a field of a struct type points to, or None."""
    if annotation in TYPES:
        return None
    owner = next(base for base in cls.__mro__ if name in vars(base).get("__annotations__", {}))
    return annotated_struct(owner, annotation)


def annotated_struct(owner: type, annotation: str) -> Any:
    """Return the struct that an annotation in a struct names, such as `Descr` or `capi.Descr`."""
    return functools.reduce(getattr, annotation.split("."), sys.modules[owner.__module__])


def c_type(name: str) -> Any:
    """Return the ctypes class of a machine type; a field of a struct type holds an address."""
    kind = TYPES.get(name)
    if kind is None or kind.kind == "p":
        return ctypes.c_int64
    names = {
        "i": f"c_int{kind.bits}",
        "u": f"c_uint{kind.bits}",
        "f": "c_float" if kind.bits == 32 else "c_double",
    }
    return getattr(ctypes, names[kind.kind])


def read(name: str, address: int) -> Any:
    """Return a value of a type in memory."""
    return c_type(name).from_address(int(address)).value


def write(name: str, address: int, value: Any) -> None:
    """Store a value of a type in memory."""
    kind = c_type(name)
    kind.from_address(int(address)).value = value if name in ("f32", "f64") else int(value)


_layouts: dict[type, tuple[dict[str, Field], int]] = {}
slot_offsets: dict[str, int] = {}  # offsets of the fields that are slots, by the names of their constants


def fields_of(cls: type) -> Mapping[str, Field]:
    """Return the fields of a struct by their names."""
    return _layout(cls)[0]


def sizeof(cls: type) -> int:
    """Return the size of a struct in bytes; in native code a constant."""
    return -(-_layout(cls)[1] // 8) * 8


def _layout(cls: type) -> tuple[dict[str, Field], int]:
    """Return the fields of a struct and its size, laid out as a C compiler does."""
    known = _layouts.get(cls)
    if known is not None:
        return known
    base = cls.__base__
    fields, size = _layout(base) if base is not None and base is not Struct else ({}, 0)
    fields, own = dict(fields), vars(cls)
    prefix = own.get("slot_prefix")
    for name, annotation in own.get("__annotations__", {}).items():
        if prefix:
            fields[name] = slot_offsets.get(prefix + name.upper(), 0), annotation, 1, False
        elif name in own:
            declared = own[name]
            offset = size if declared.offset < 0 else declared.offset
            fields[name] = offset, annotation, declared.length, declared.is_array
            size = offset + _WIDTHS.get(annotation, 8) * declared.length
        else:
            width = _WIDTHS.get(annotation, 8)
            offset = (size + width - 1) // width * width
            fields[name] = offset, annotation, 1, False
            size = offset + width
    if not all(type(declared[1]) is str for declared in fields.values()):
        raise TypeError(f"struct {cls.__name__}: its module needs `from __future__ import annotations`")
    if not prefix:
        _layouts[cls] = fields, size
    return fields, size
