"""The objects that functions capture: what of them a trace depends on, and copies of them for the trace.

An instance of a class that is written in Python counts by the attributes that the functions name, since functions with
dynamic reads, such as ``getattr``, have no key. Of an instance of a class of this package, such as a module of
:mod:`tandem.nn`, all attributes count, for its methods read them. Copies that hold other tensors stand for the objects
in a trace.
"""

from __future__ import annotations

import abc
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Set
from types import FunctionType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, Generic, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from ..pytree.nodes import node_of
from .code_facts import TEXT_METHODS, passes_first_argument

_ABSTRACT = (object, abc.ABC, Generic, Protocol)
# Methods that decide about attributes, or that run when a copy goes.
_UNKNOWN_METHODS = frozenset(("__getattr__", "__getattribute__", "__del__"))
# Methods that make and copy objects, which functions without effects do not call. Those that make texts are named by
# functions that ask for them (:func:`.code_facts.read_code`).
_UNUSED_METHODS = TEXT_METHODS | frozenset(
    "__new__ __init__ __post_init__ __init_subclass__ __class_getitem__ __subclasshook__ __set_name__ __setattr__ "
    "__delattr__ __dir__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs__ __copy__ "
    "__deepcopy__ __replace__ __annotate__ __annotate_func__".split()
)
_COMPARISONS = frozenset("__eq__ __lt__ __le__ __gt__ __ge__ __hash__".split())  # which dataclasses generate
_METHODS_IN_C = (MethodDescriptorType, WrapperDescriptorType)
_MOST_VERSIONS = 256  # classes whose versions are known
_ARRAY_METHODS = frozenset(dir(np.ndarray))
_UNKNOWN_CODE = (lambda cls: cls).__code__

# Whether a class belongs to a part of this package whose functions only compute.
IsOwn = Callable[[type], bool]


def is_plain_object(value: object, is_own: IsOwn) -> bool:
    """Whether an object is of a class written in Python, whose attributes are looked up in the usual way.

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
        str(kind.__module__).partition(".")[0] not in ("builtins", __name__.partition(".")[0])
        and _UNKNOWN_METHODS.isdisjoint(members)
        and not any(isinstance(member, _METHODS_IN_C) for member in members.values())
    )


class ObjectReads:
    """Notes what functions read of an object.

    Args:
        value: the object.
        is_own: whether a class belongs to a part of this package whose functions only compute.
        number: how many objects were captured before.

    Attributes:
        own: the values of the attributes that are its own, by name.
        members: those of its class, by name.
        absent: other names that are read, such as those of attributes of tensors.
        bases: the classes of this package among its bases; if there is one, all attributes are read.
        number: the same.
    """

    def __init__(self, value: object, is_own: IsOwn, number: int):
        self._value, self._is_own = value, is_own
        self.number = number
        self.own: dict[str, object] = {}
        self.members: dict[str, object] = {}
        self.absent: set[str] = set()
        self.bases = [base for base in type(value).__mro__ if is_own(base)]
        self._first: set[str] | None = None
        self._names: Set[str] = frozenset()

    def read_new(self, names: Set[str]) -> Iterator[tuple[str, object, type | None]]:
        """Read the attributes with the given names that have not been read.

        Returns:
            Names, values, and None if they are the object's own, else the type of the member of its class, which tells
            methods and properties apart; for a method or a property the value is its function.
        """
        if self._first is None:
            self._first = self._list_first()
            names |= self._first
        new, self._names = names - self._names, self._names | names
        for name in sorted(new):
            own = read_attributes(self._value, name)
            for value in own.values():
                self.own[name] = value
                yield name, value, None
            base = _find_base(type(self._value), name)
            member = vars(base).get(name)
            if base is not object and type(member) is not MemberDescriptorType:
                self.members[name] = member
                yield name, find_value(member), type(member)
            elif not own:
                self.absent.add(name)

    def list_array_methods(self) -> Set[str]:
        """The methods that functions of NumPy call by their names, such as ``max``."""
        users = [base for base in type(self._value).__mro__ if base not in (*_ABSTRACT, *self.bases)]
        return _ARRAY_METHODS.intersection(name for base in users for name in vars(base))

    def _list_first(self) -> set[str]:
        """The names that are read whether or not a function has them."""
        kind = type(self._value)
        names = set(_list_operators(kind, self._is_own))
        names.update(getattr(kind, "__dataclass_fields__", ()))  # which generated comparisons read
        node = node_of(kind)
        if node is not None and node.attributes is not None:
            names.update(*node.attributes)
        if self.bases:
            names.update(read_attributes(self._value))
            names.update(_list_overrides(kind, self.bases))
        return names


def find_value(member: object) -> object:
    """The function of a method or a property, or another value in a class.

    A descriptor counts as unknown, and so does a class method that may call its class, as the methods that make objects
    are not read.
    """
    if type(member) is property:
        return member.fget
    if isinstance(member, (staticmethod, classmethod)):
        function = member.__func__
        if type(member) is not staticmethod and passes_first_argument(
            getattr(function, "__code__", _UNKNOWN_CODE)
        ):
            return object()
        return function
    if type(member) is not FunctionType and hasattr(type(member), "__get__"):
        return object()
    return member


_slots: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def list_slots(kind: type) -> frozenset[str]:
    """The names of the slots of a class and its bases, some of which another member may hide."""
    known = _slots.get(kind)
    if known is None:
        members = [item for base in kind.__mro__ for item in vars(base).items()]
        known = frozenset(name for name, member in members if type(member) is MemberDescriptorType)
        _slots[kind] = known  # not the members, which refer to the class
    return known


def _find_base(kind: type, name: str) -> type:
    """The class that a member comes from; ``object`` if there is none."""
    return next((base for base in kind.__mro__ if name in vars(base)), object)


def _find_slot(kind: type, name: str) -> MemberDescriptorType | None:
    member = vars(_find_base(kind, name)).get(name)
    return member if type(member) is MemberDescriptorType else None


def read_attributes(value: object, name: str | None = None) -> dict[str, object]:
    """The attributes in the ``__dict__`` and the slots of an object, or the one with the given name."""
    variables: Mapping[str, object] = getattr(value, "__dict__", {})
    slots = list_slots(type(value))
    if name is not None:
        if name in variables:
            return {name: variables[name]}
        slots = slots & {name}
    present = {}
    for key in slots:
        slot = _find_slot(type(value), key)
        try:
            if slot is not None:
                present[key] = slot.__get__(value)
        except AttributeError:  # it is not set
            continue
    return {**present, **variables} if name is None else present


def write_attribute(value: Any, name: str, item: object) -> None:  # noqa: ANN401 - an object of any class
    """Set an attribute in the ``__dict__`` or a slot of an object."""
    slot = _find_slot(type(value), name)
    if slot is None:
        vars(value)[name] = item
    else:
        slot.__set__(value, item)


_versions: dict[type, tuple[int, tuple[object, ...]]] = {}
_numbers = itertools.count()


def read_version(kind: type) -> int:
    """The version of a class of this package: another one if one of its members has been replaced."""
    members, known = vars(kind).values(), _versions.get(kind)
    if known is not None and len(known[1]) == len(members) and all(map(operator.is_, members, known[1])):
        return known[0]
    if len(_versions) >= _MOST_VERSIONS:
        _versions.clear()
    number = next(_numbers)
    _versions[kind] = number, tuple(members)
    return number


def has_changed(copy: object, own: Mapping[str, object]) -> bool:
    """Whether a copy has other attributes than those that it was made with."""
    now = read_attributes(copy)
    return now.keys() != own.keys() or any(now[name] is not item for name, item in own.items())


def _list_operators(kind: type, is_own: IsOwn) -> Iterator[str]:
    """The methods outside of this package that functions may call without naming them, as ``**`` calls ``keys``."""
    for base in kind.__mro__:
        if base in _ABSTRACT or is_own(base):
            continue
        for name, member in vars(base).items():
            is_special = name == "keys" or (name.startswith("__") and name not in _UNUSED_METHODS)
            if (
                is_special
                and callable(find_value(member))
                and not (name in _COMPARISONS and _is_generated(member))
            ):
                yield name


def _is_generated(member: object) -> bool:
    """Whether a dataclass has generated a method, which reads its fields."""
    return type(member) is FunctionType and member.__code__.co_qualname.startswith("__create_fn__.")


def _list_overrides(kind: type, bases: list[type]) -> Iterator[str]:
    """The methods of classes of this package that other classes override."""
    for base in kind.__mro__:
        if base not in _ABSTRACT and base not in bases:
            for name in vars(base):
                if not name.startswith("__") and any(name in vars(own) for own in bases):
                    yield name
