"""Deprecated aliases of public names that have changed; ``CONTRIBUTING.md`` has the policy.

>>> import warnings
>>> from tandem.deprecated_names import deprecated_attribute
>>> class Box:
...     size = property(lambda self: 3)
...     length = deprecated_attribute("length", "size", removed_in="0.4")
>>> with warnings.catch_warnings(record=True) as caught:
...     warnings.simplefilter("always")
...     Box().length
3
>>> str(caught[0].message)
'Box.length is deprecated: use Box.size; version 0.4 removes the old name'
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .errors import ArgumentError


def _warn(old: str, new: str, removed_in: str, stacklevel: int = 3) -> None:
    message = f"{old} is deprecated: use {new}; version {removed_in} removes the old name"
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel)


def module_getattr(module: str, renamed: Mapping[str, str], *, removed_in: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module that has deprecated aliases.

    Args:
        module: the module's ``__name__``.
        renamed: old name to new name, both in this module.
        removed_in: the version that removes the aliases.

    Returns:
        A function to assign to ``__getattr__`` in the module.
    """

    def get_alias(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", f"{module}.{renamed[name]}", removed_in)
        return getattr(sys.modules[module], renamed[name])

    return get_alias


def deprecated_attribute(old: str, new: str, *, removed_in: str) -> Any:
    """Return a read-only property, the deprecated alias of an attribute or a method."""

    def get_alias(self: Any) -> Any:
        owner = type(self).__name__
        _warn(f"{owner}.{old}", f"{owner}.{new}", removed_in)
        return getattr(self, new)

    return property(get_alias, doc=f"Deprecated alias of ``{new}``.")


def renamed_argument(old: str, new: str, *, removed_in: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that lets a function take a keyword argument by its old name too.

    Raises:
        ArgumentError: from the decorated function, if a call gives both names.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                if new in kwargs:
                    raise ArgumentError(
                        f"{function.__name__}: {old}= is the old name of {new}=; give one of them"
                    )
                _warn(f"{function.__name__}({old}=)", f"{new}=", removed_in)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return wrapper

    return decorate
