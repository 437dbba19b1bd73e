"""``NamedTuple`` as in :mod:`typing`, whose classes take a tenth of the time to create.

``typing.NamedTuple`` compiles every annotation, and ``collections.namedtuple`` the constructor of every class. The
import of the package and the first jitted call create about a hundred classes. Here constructors of as many fields
share their bytecode.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    try:
        from _collections import _tuplegetter  # CPython's descriptor of a field, which reads it in C
    except ImportError:

        def _tuplegetter(index: int, doc: str) -> property:
            return property(itemgetter(index), doc=doc)

    @cache
    def _compile_constructor(count: int) -> FunctionType:
        """Compile the constructor of tuples with a number of fields."""
        names = "".join(f"_{index}, " for index in range(count))
        constructor: FunctionType = eval(
            f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__}
        )
        return constructor

    def _make_constructor(name: str, fields: tuple[str, ...], defaults: tuple[object, ...]) -> FunctionType:
        """Return the ``__new__`` of a class: the shared bytecode with the names of the fields as parameters."""
        shared = _compile_constructor(len(fields))
        names = {"co_name": "__new__", "co_qualname": f"{name}.__new__", "co_varnames": ("_cls", *fields)}
        return FunctionType(shared.__code__.replace(**names), shared.__globals__, "__new__", defaults)

    @classmethod
    def _make(cls: type, values: Iterable[object]) -> object:
        """Make an instance from a value for each field."""
        result = tuple.__new__(cls, values)
        if len(result) != len(cls._fields):
            raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(result)}")
        return result

    def _replace(self, /, **changes: object) -> object:
        """Make an instance with other values of some fields."""
        result = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise TypeError(f"{type(self).__name__} has no fields {', '.join(changes)}")
        return result

    def _asdict(self) -> dict[str, object]:
        """Return a dict from the names of the fields to their values."""
        return dict(zip(self._fields, self))

    def _list_values(self) -> tuple[object, ...]:
        return tuple(self)

    def _describe(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"{type(self).__name__}({values})"

    _METHODS = {  # those of `collections.namedtuple`
        "__getnewargs__": _list_values,
        "__replace__": _replace,
        "__repr__": _describe,
        "__slots__": (),
        "_asdict": _asdict,
        "_make": _make,
        "_replace": _replace,
    }

    class _NamedTupleMeta(type):
        """Creates a subclass of tuple from the annotated names of a class body, with its methods and docstring."""

        def __new__(meta, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(meta, name, bases, namespace)
            annotations = namespace.get("__annotations__", {})
            fields = tuple(annotations)
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            constructor = _make_constructor(name, fields, tuple(defaults.values()))
            constructor.__annotations__ = dict(annotations)
            readers = {field: _tuplegetter(index, f"Field {index}") for index, field in enumerate(fields)}
            facts = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type(name, (tuple,), _METHODS | namespace | readers | facts | {"__new__": constructor})

    class NamedTuple(metaclass=_NamedTupleMeta):
        """Base of tuples with named fields."""

        __slots__ = ()
