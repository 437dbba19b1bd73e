"""The objects that functions capture: what of them a trace depends on, and copies of them for the trace.

An instance of a class that is written in Python counts by the attributes that the functions name, since functions with
dynamic reads, such as ``getattr``, have no key. Of an instance of a class of this package, such as a module of
:mod:`tandem.nn`, all attributes count, for its methods read them. Copies that hold other tensors stand for the objects
in a trace.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Set
from types import FunctionType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Generic, Protocol
from weakref import WeakKeyDictionary

from ..pytree.nodes import node_of

_ABSTRACT = (object, abc.ABC, Generic, Protocol)
# Methods that decide about attributes, or that run when a copy goes.
_UNKNOWN_METHODS = frozenset(("__getattr__", "__getattribute__", "__del__"))
# Methods that make, copy and describe objects, which functions without effects do not call.
_UNUSED_METHODS = frozenset(
    "__new__ __init__ __post_init__ __init_subclass__ __class_getitem__ __subclasshook__ __set_name__ __setattr__ "
    "__delattr__ __dir__ __repr__ __str__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __copy__ "
    "__deepcopy__ __replace__ __annotate__ __annotate_func__".split()
)
_COMPARISONS = frozenset("__eq__ __lt__ __le__ __gt__ __ge__ __hash__".split())  # which dataclasses generate
_METHODS_IN_C = (MethodDescriptorType, WrapperDescriptorType)

# Whether a class belongs to a part of this package whose functions only compute.
IsOwn = Callable[[type], bool]


def is_plain_object(value: object, is_own: IsOwn) -> bool:
    """Whether an object is of a class written in Python, whose attributes are present in the usual way.

    It is not if it is a node of pytrees by functions of the user, which may read anything.
    """
    kind = type(value)
    if type(kind) not in (type, abc.ABCMeta):
        return False
    node = node_of(kind)
    if node is not None and node.attributes is None and not any(map(is_own, kind.__mro__)):
        return False
    return all(base in _ABSTRACT or is_own(base) or _is_plain_class(base) for base in kind.__mro__)


def _is_plain_class(kind: type) -> bool:
    members = vars(kind)
    return (
        kind.__module__.partition(".")[0] not in ("builtins", __name__.partition(".")[0])
        and _UNKNOWN_METHODS.isdisjoint(members)
        and not any(isinstance(member, _METHODS_IN_C) for member in members.values())
    )


class ObjectReads:
    """Notes what functions read of an object.

    Args:
        value: the object.
        is_own: whether a class belongs to a part of this package whose functions only compute.

    Attributes:
        own: the values of the attributes that are its own, by name.
        members: those of its class, by name, and the class that has them.
        absent: other names that are read, such as those of attributes of tensors.
        takes_all: whether all attributes of its own are read.
    """

    def __init__(self, value: object, is_own: IsOwn):
        kind = type(value)
        bases = [base for base in kind.__mro__ if is_own(base)]
        self._value = value
        self.own: dict[str, object] = {}
        self.members: dict[str, tuple[type, object]] = {}
        self.absent: set[str] = set()
        self.takes_all = bool(bases)
        self._first = set(_list_operators(kind, is_own))
        node = node_of(kind)
        if node is not None and node.attributes is not None:
            self._first.update(*node.attributes)
        if bases:
            self._first.update(read_attributes(value))
            self._first.update(_list_overrides(kind, bases))

    def read_new(self, names: Set[str]) -> Iterator[tuple[str, object, bool]]:
        """Read the attributes with the given names that have not been read.

        Returns:
            Names, values, and whether they are the object's own; for a method or a property its function.
        """
        for name in sorted((names | self._first) - self.own.keys() - self.members.keys() - self.absent):
            own = read_attributes(self._value, name)
            for value in own.values():
                self.own[name] = value
                yield name, value, True
            base = next((base for base in type(self._value).__mro__ if name in vars(base)), object)
            member = vars(base).get(name)
            if base is not object and type(member) is not MemberDescriptorType:
                self.members[name] = base, member
                yield name, find_value(member), False
            elif not own:
                self.absent.add(name)


def find_value(member: object) -> object:
    """The function of a method or a property, or another value in a class; a descriptor counts as unknown."""
    if type(member) is property:
        return member.fget
    if isinstance(member, (staticmethod, classmethod)):
        return member.__func__
    if type(member) is not FunctionType and hasattr(type(member), "__get__"):
        return object()
    return member


_slots: WeakKeyDictionary[type, dict[str, MemberDescriptorType]] = WeakKeyDictionary()


def read_slots(kind: type) -> dict[str, MemberDescriptorType]:
    """The slots of a class, by name."""
    known = _slots.get(kind)
    if known is None:
        members = [item for base in kind.__mro__ for item in vars(base).items()]
        known = {name: member for name, member in members if type(member) is MemberDescriptorType}
        _slots[kind] = known
    return known


def read_attributes(value: object, name: str | None = None) -> dict[str, object]:
    """The attributes in the ``__dict__`` and the slots of an object, or the one with the given name."""
    variables: Mapping[str, object] = getattr(value, "__dict__", {})
    slots = read_slots(type(value))
    if name is not None:
        if name in variables:
            return {name: variables[name]}
        slots = {name: slots[name]} if name in slots else {}
    present = {key: member.__get__(value) for key, member in slots.items() if hasattr(value, key)}
    return {**present, **variables} if name is None else present


def has_changed(copy: object, own: Mapping[str, object]) -> bool:
    """Whether a copy has other attributes than those that it was made with."""
    now = read_attributes(copy)
    return now.keys() != own.keys() or any(now[name] is not item for name, item in own.items())


def _list_operators(kind: type, is_own: IsOwn) -> Iterator[str]:
    """The methods outside of this package that functions may call without naming them."""
    for base in kind.__mro__:
        if base in _ABSTRACT or is_own(base):
            continue
        for name, member in vars(base).items():
            if name.startswith("__") and name not in _UNUSED_METHODS:
                is_generated = name in _COMPARISONS and "__dataclass_fields__" in vars(base)
                if callable(find_value(member)) and not is_generated:
                    yield name


def _list_overrides(kind: type, bases: list[type]) -> Iterator[str]:
    """The methods of classes of this package that other classes override."""
    for base in kind.__mro__:
        if base not in _ABSTRACT and base not in bases:
            for name in vars(base):
                if not name.startswith("__") and any(name in vars(own) for own in bases):
                    yield name
