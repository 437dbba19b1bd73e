"""``NamedTuple`` as in :mod:`typing`, without the compilation of each annotation.

``typing.NamedTuple`` compiles every annotation to check it, which takes most of the time of creating a class: the
import of the package creates about forty.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    _INHERITED = frozenset(("__annotations__", "__module__", "__qualname__", "__slots__", "__classcell__"))

    class _NamedTupleMeta(type):
        """Creates a subclass of tuple from the annotated names of a class body, with its methods and docstring."""

        def __new__(meta, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(meta, name, bases, namespace)
            fields = namespace["__annotations__"]
            defaults = [namespace[field] for field in fields if field in namespace]
            required = [field for field in fields if field not in namespace]
            if required != list(fields)[: len(required)]:
                raise TypeError(f"{name}: a field without a default follows one with a default")
            result = collections.namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])
            result.__annotations__ = result.__new__.__annotations__ = dict(fields)
            result.__qualname__ = namespace["__qualname__"]
            for key, value in namespace.items():
                if key not in _INHERITED and key not in fields:
                    setattr(result, key, value)
            return result

    class NamedTuple(metaclass=_NamedTupleMeta):
        """Base of tuples with named fields."""

        __slots__ = ()
