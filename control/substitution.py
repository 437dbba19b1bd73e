"""Copies of functions and of what they capture, with other tensors, for a trace."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.tensor import Tensor
from .captured_objects import ObjectReads, has_changed, write_attribute
from .captured_values import find_function, is_own
from .code_facts import read_code

if TYPE_CHECKING:
    from ..registry.types import Array


class Substitution:
    """Makes copies of functions that capture other tensors.

    Functions and containers that lead to no tensor, object or array are not copied: a function may be compared with the
    same one that a module has.

    Args:
        tensors: a substitute for each captured tensor, by its id.
        objects: what is read of the captured objects, by their ids; their copies have these attributes.
    """

    def __init__(self, tensors: Mapping[int, Tensor], objects: Mapping[int, ObjectReads]):
        self._tensors, self._objects = tensors, objects
        self._functions: dict[int, FunctionType] = {}
        self._arrays: list[tuple[Array, Array]] = []
        self._copies: dict[int, tuple[object, dict[str, object]]] = {}

    def has_changed_copies(self) -> bool:
        """Whether an attribute of a copy of an object has been set, or a copy of an array written to."""
        if any(copy.tobytes() != array.tobytes() for copy, array in self._arrays):
            return True  # as `np.add.at` does, though it is read-only
        return any(has_changed(copy, own) for copy, own in self._copies.values())

    def apply(self, value: Any) -> Any:  # noqa: ANN401 - of the same type
        """The value with the captured tensors replaced, in containers and functions too."""
        kind = type(value)
        if kind is Tensor:
            return self._tensors[id(value)]
        if kind is FunctionType:
            return self._copy_function(value)
        if kind is list or kind is tuple:
            return kind(map(self.apply, value))
        if isinstance(value, tuple):
            return kind(*map(self.apply, value))
        if kind is dict:
            return {name: self.apply(item) for name, item in value.items()}
        if kind is functools.partial:
            return functools.partial(*self.apply((value.func, *value.args)), **self.apply(value.keywords))
        if kind is np.ndarray:
            copy = value.copy("K")
            copy.flags.writeable = False
            self._arrays.append((copy, value))
            return copy
        if kind is MethodType:
            return MethodType(value.__func__, self.apply(value.__self__))
        if id(value) in self._objects:
            return self._copy_object(value)
        inner = find_function(value)
        if inner is None:
            return value
        copy = self._copy_function(inner)
        return value if copy is inner else copy

    def _copy_object(self, value: object) -> object:
        if id(value) in self._copies:
            return self._copies[id(value)][0]
        copy: object = object.__new__(type(value))
        own = self._copies.setdefault(id(value), (copy, {}))[1]  # before its attributes, which may hold it
        for name, item in self._objects[id(value)].own.items():
            own[name] = self.apply(item)
            write_attribute(copy, name, own[name])
        return copy

    def _leads_to_replaced(self, value: object, seen: set[int]) -> bool:
        """Whether a tensor, an object or an array can be reached from a value; ``seen`` are the functions before it."""
        if isinstance(value, (Tensor, np.ndarray)) or id(value) in self._objects:
            return True
        function = value if type(value) is FunctionType else find_function(value)
        if function is not None:
            if id(function) in seen:
                return False
            seen.add(id(function))
        return any(
            self._leads_to_replaced(item, seen)
            for item in _list_parts(value if function is None else function)
        )

    def _copy_function(self, function: FunctionType) -> FunctionType:
        known = self._functions.get(id(function))
        if known is not None:
            return known
        if not self._leads_to_replaced(function, set()):
            self._functions[id(function)] = function
            return function
        names = function.__globals__ if is_own(function) else dict(function.__globals__)
        cells = None if function.__closure__ is None else tuple(CellType() for _ in function.__closure__)
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells)
        self._functions[id(function)] = copy  # before its variables, which may hold it
        copy.__defaults__ = self.apply(function.__defaults__)
        copy.__kwdefaults__ = self.apply(function.__kwdefaults__)
        for cell, own in zip(cells or (), function.__closure__ or ()):
            cell.cell_contents = self.apply(own.cell_contents)
        if not is_own(function):
            for read in read_code(function.__code__).reads:
                if read.is_global and read.name in names:
                    names[read.name] = self.apply(names[read.name])
        return copy


def _list_parts(value: Any) -> Iterator[Any]:  # noqa: ANN401 - of any type
    """The values that a function, a method or a container holds."""
    if isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield value.__self__
    elif isinstance(value, FunctionType):
        yield from (cell.cell_contents for cell in value.__closure__ or ())
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        if not is_own(value):
            reads = [read for read in read_code(value.__code__).reads if read.is_global]
            yield from (value.__globals__[read.name] for read in reads if read.name in value.__globals__)
