"""Snapshots of what functions capture: whether a later call captures the same, without making its key again.

A function has a key if :class:`.captured_values.Captures` makes one. If everything that it reads is an object that
cannot change, another function with the same code has the same key where it reads the same objects, and tensors of the
same shapes and dtypes. To compare them takes a fraction of the time of a key.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.layers.vmap.strategies import StrategyCache
from ..eager.tensor.tensor import Tensor
from ..named_tuple import NamedTuple
from ..pytree import TreeDef
from .captured_objects import find_value, is_plain_object, list_slots, read_version
from .captured_values import (
    CONSTANTS,
    NUMBERS,
    describe_number,
    find_function,
    has_old_gradient,
    is_own_type,
    is_plain_named_tuple,
    is_pure_class,
    is_pure_part,
)
from .code_facts import read_code

if TYPE_CHECKING:
    from ..registry.types import Array
    from .captured_objects import ObjectReads
    from .captured_values import Captures

_MISSING = object()
_CHANGING = (tuple, list, dict, functools.partial, Tensor, np.ndarray, MethodType)


class Seen:
    """The tensors that a check has met, in order, and the numbers of tensors, functions and objects, by their ids."""

    __slots__ = ("functions", "numbers", "objects", "tensors")

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.numbers: dict[int, int] = {}
        self.functions: dict[int, int] = {}
        self.objects: dict[int, int] = {}


# Whether a value is as it was; adds what is in it to what was seen.
Check = Callable[[Any, Seen], bool]


class NoSnapshot(Exception):
    """A function reads an object that may change, such as a list."""


class Snapshot(NamedTuple):
    """Recognizes functions that capture the same.

    Attributes:
        check: compares another function with it.
        classes: compares the classes of captured objects with what they were.
        order: the numbers of the captured tensors among those that the check meets.
    """

    check: Check
    classes: Sequence[Callable[[], bool]]
    order: tuple[int, ...]

    def find_tensors(self, function: object) -> list[Tensor] | None:
        """The tensors that a function captures if it captures the same otherwise, else None."""
        seen = Seen()
        for is_same in self.classes:
            if not is_same():
                return None
        return [seen.tensors[number] for number in self.order] if self.check(function, seen) else None


def make_snapshot(function: object, keys: Collection[int], captures: Captures) -> Snapshot | None:
    """Make the snapshot of a function that has a key; None if it reads objects that may change.

    Args:
        function: the function.
        keys: the key sets that captured tensors may have.
        captures: what it captures.
    """
    maker = _Maker(keys, captures.objects)
    try:
        check = maker.of_value(function)
    except (NoSnapshot, RecursionError):
        return None
    seen = Seen()
    if not check(function, seen):
        return None
    numbers = {id(x): number for number, x in enumerate(seen.tensors)}
    if numbers.keys() != {*map(id, captures.tensors)}:
        return None
    return Snapshot(check, maker.make_class_checks(), tuple(numbers[id(x)] for x in captures.tensors))


class _Global(NamedTuple):
    """A variable of a module, or an attribute of a module that it names."""

    name: str
    attributes: tuple[str, ...]
    modules: tuple[Any, ...]
    check: Check

    def is_same(self, value: object, seen: Seen) -> bool:
        """Whether the variable, which has this value now, leads to what it did."""
        for attribute, module in zip(self.attributes, self.modules):
            if value is not module:
                return False
            value = getattr(value, attribute, None)
        return self.check(value, seen)


class _Maker:
    """Makes the checks of one snapshot.

    Args:
        keys: the key sets that captured tensors may have.
        objects: what is read of captured objects, by their ids.
    """

    def __init__(self, keys: Collection[int], objects: Mapping[int, ObjectReads]):
        self._keys, self._reads = keys, objects
        self._classes: dict[type, None] = {}
        self._objects: dict[int, int] = {}
        self._tensors: dict[int, int] = {}
        self._functions: dict[int, int] = {}

    def make_class_checks(self) -> list[Callable[[], bool]]:
        """Make the checks of the classes of the objects of which checks have been made, and of their bases."""
        bases = dict.fromkeys(base for kind in self._classes for base in kind.__mro__ if base is not object)
        return [*map(_check_of_bases, self._classes), *map(_check_of_members, bases)]

    def of_value(self, value: object) -> Check:
        """Make the check of a value; raises NoSnapshot if it may change."""
        if type(value) is Tensor:
            return self._of_tensor(value)
        if type(value) is FunctionType:
            return self._of_function(value)
        if isinstance(value, tuple) and (type(value) is tuple or is_own_type(type(value), tuple)):
            return self._of_tuple(value)
        if type(value) is StrategyCache:
            return lambda other, seen: type(other) is StrategyCache
        if type(value) is np.ndarray:
            return _check_of_array(value)
        if type(value) is MethodType:
            return self._of_method(value)
        if id(value) in self._reads:
            return self._of_object(value)
        if (
            isinstance(value, _CHANGING)
            or is_plain_named_tuple(value)
            or is_plain_object(value, is_pure_class)
        ):
            raise NoSnapshot
        if type(value) in NUMBERS:
            return _check_of_number(value)
        if type(value) in CONSTANTS or type(value) is TreeDef:
            return lambda other, seen: other is value or (type(other) is type(value) and other == value)
        inner = find_function(value)
        if inner is None:
            return lambda other, seen: other is value
        check = self._of_function(inner)
        return lambda other, seen: check(find_function(other), seen)

    def _of_tensor(self, x: Tensor) -> Check:
        keys, shape, dtype = self._keys, x._array.shape, x._array.dtype
        number = self._tensors.setdefault(id(x), len(self._tensors))

        def check(other: object, seen: Seen) -> bool:
            if type(other) is not Tensor or other._keys not in keys or has_old_gradient(other):
                return False
            array = other._array
            if array.shape != shape or array.dtype is not dtype or not array.flags.c_contiguous:
                return False
            if not _is_numbered(other, number, seen.numbers):
                return False
            if number == len(seen.tensors):
                seen.tensors.append(other)
            return True

        return check

    def _of_tuple(self, values: tuple[Any, ...]) -> Check:
        kind, checks = type(values), [self.of_value(value) for value in values]

        def check(other: object, seen: Seen) -> bool:
            return (
                type(other) is kind
                and len(other) == len(checks)
                and all(one(value, seen) for one, value in zip(checks, other))
            )

        return check

    def _of_method(self, method: MethodType) -> Check:
        function, owner = self.of_value(method.__func__), self.of_value(method.__self__)

        def check(other: object, seen: Seen) -> bool:
            return (
                type(other) is MethodType and function(other.__func__, seen) and owner(other.__self__, seen)
            )

        return check

    def _of_object(self, value: object) -> Check:
        known = self._objects.get(id(value))
        if known is not None:
            return lambda other, seen: seen.objects.get(id(other)) == known
        kind, reads = type(value), self._reads[id(value)]
        if list_slots(kind):
            raise NoSnapshot
        self._classes[kind] = None
        number = self._objects[id(value)] = len(self._objects)
        own = [(name, self.of_value(item)) for name, item in reads.own.items()]
        count, absent = (
            len(own) if reads.bases else None,
            [*reads.absent, *(reads.members.keys() - reads.own)],
        )
        lines = [vars(base) for base in kind.__mro__ if not (is_pure_class(base) or base is object)]
        names = {*reads.own, *absent} if lines else ()
        members = [(name, _find_member(lines, name)) for name in names]
        checks = [self.of_value(find_value(member)) for _, member in members if member is not _MISSING]

        def check(other: Any, seen: Seen) -> bool:  # noqa: ANN401 - a value of any kind
            if type(other) is not kind or not _is_numbered(other, number, seen.objects):
                return False
            variables = vars(other)
            if count is not None and len(variables) != count:
                return False
            for name, one in own:
                if name not in variables or not one(variables[name], seen):
                    return False
            if any(name in variables for name in absent):
                return False
            present = [member for name, member in members if _find_member(lines, name) is member]
            if len(present) != len(members):
                return False
            known = [find_value(member) for member in present if member is not _MISSING]
            return all(one(value, seen) for one, value in zip(checks, known))

        return check

    def _of_function(self, function: FunctionType) -> Check:
        known = self._functions.get(id(function))
        if known is not None:
            return lambda other, seen: seen.functions.get(id(other)) == known
        number = self._functions[id(function)] = len(self._functions)
        code, names = function.__code__, function.__globals__
        cells = dict(zip(code.co_freevars, enumerate(function.__closure__ or ())))
        if is_pure_part(function):
            own = [(at, self.of_value(_contents(cell))) for at, cell in cells.values()]
            return _check_of(function, number, own, [], None)
        own, globals_, facts = [], [], read_code(code)
        if facts.compares_objects:
            raise NoSnapshot
        for read in facts.reads:
            if read.is_global:
                globals_.append(self._of_global(names, read.name, read.attributes))
            else:
                at, cell = cells[read.name]
                value = _contents(cell)
                if isinstance(value, ModuleType):
                    own.append((at, self._of_module(value, read.attributes)))
                else:
                    own.append((at, self.of_value(value)))
        if function.__kwdefaults__:
            raise NoSnapshot
        defaults = None if function.__defaults__ is None else self._of_tuple(function.__defaults__)
        return _check_of(function, number, own, globals_, defaults)

    def _of_module(self, module: ModuleType, attributes: tuple[str, ...]) -> Check:
        """Make the check of a module that a variable holds, and of the attribute that is read of it."""
        part = self._of_global({"": module}, "", attributes)

        def check(other: object, seen: Seen) -> bool:
            return part.is_same(other, seen)

        return check

    def _of_global(self, names: dict[str, Any], name: str, attributes: tuple[str, ...]) -> _Global:
        value, modules = names.get(name, _MISSING), []
        if value is _MISSING:
            value = getattr(builtins, name)
        used = []
        for attribute in attributes:
            if not isinstance(value, ModuleType):
                break
            modules.append(value)
            used.append(attribute)
            value = getattr(value, attribute, None)
        if isinstance(value, ModuleType) or (modules and type(value) is Tensor):
            raise NoSnapshot
        return _Global(name, tuple(used), tuple(modules), self.of_value(value))


def _find_member(lines: Sequence[Mapping[str, object]], name: str) -> object:
    """The member of a class with a name, among the members of it and its bases."""
    for members in lines:
        if name in members:
            return members[name]
    return _MISSING


def _check_of_bases(kind: type) -> Callable[[], bool]:
    """The check of the bases of a class."""
    bases = kind.__mro__
    return lambda: kind.__mro__ is bases


def _check_of_members(kind: type) -> Callable[[], bool]:
    """The check of the names of the members of a class, and of its methods and properties."""
    if is_pure_class(kind):
        version = read_version(kind)
        return lambda: read_version(kind) == version
    members = vars(kind)
    names = frozenset(members)
    methods = {name: member for name, member in members.items() if hasattr(type(member), "__get__")}
    known = [*methods.values()]
    return lambda: members.keys() == names and all(map(operator.is_, map(members.get, methods), known))


def _check_of_array(array: Array) -> Check:
    """The check of an array of NumPy: of the same layout, and with the same content."""
    dtype, layout, content = array.dtype, (array.shape, array.strides), array.tobytes("K")

    def check(other: object, seen: Seen) -> bool:
        return (
            type(other) is np.ndarray
            and other.dtype == dtype
            and (other.shape, other.strides) == layout
            and other.tobytes("K") == content
        )

    return check


def _is_numbered(value: object, number: int, numbers: dict[int, int]) -> bool:
    """Whether a value has a number; one that is met first has the next one."""
    return numbers.setdefault(id(value), len(numbers)) == number


def _check_of_number(value: object) -> Check:
    """The check of a Python number: of the same type, and with the same bits."""
    key = describe_number(value)

    def check(other: object, seen: Seen) -> bool:
        return other is value or (type(other) is type(value) and describe_number(other) == key)

    return check


def _contents(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        raise NoSnapshot from None


def _check_of(
    function: FunctionType,
    number: int,
    cells: list[tuple[int, Check]],
    globals_: list[_Global],
    defaults: Check | None,
) -> Check:
    """The check of a function, from the checks of what it reads."""
    code, names, is_user = function.__code__, function.__globals__, not is_pure_part(function)

    def check(other: object, seen: Seen) -> bool:
        if type(other) is not FunctionType or other.__code__ is not code or other.__globals__ is not names:
            return False
        if not _is_numbered(other, number, seen.functions):
            return False
        closure = other.__closure__
        for at, one in cells:
            if not one(closure[at].cell_contents, seen):  # type: ignore[index]
                return False
        if not is_user:
            return True
        for part in globals_:
            value = names.get(part.name, _MISSING)
            if not part.is_same(getattr(builtins, part.name, None) if value is _MISSING else value, seen):
                return False
        given = other.__defaults__
        if given is not None and (defaults is None or not defaults(given, seen)):
            return False
        return (
            (given is None) is (defaults is None)
            and not other.__kwdefaults__
            and other.__dict__.keys() <= {"__wrapped__"}
        )

    return check
