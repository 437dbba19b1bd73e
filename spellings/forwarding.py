"""Namespaces that define a few functions and forward all other names to ``tandem`` or one of its modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from ..eager.tensor.functions import FOREIGN_ATTRIBUTES
from ..errors import UnknownNameError
from . import synonyms

_TANDEM = __package__.rpartition(".")[0]


def forward_to_tandem(
    namespace: str,
    own: tuple[Callable[[str], Any], Callable[[], list[str]]] | None = None,
    adapt: Callable[[Any], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module that forwards the names that it lacks to ``tandem``.

    Args:
        namespace: the module's ``__name__``.
        own: the result of ``lazy.attach``, for names of the module that are imported at their first use.
        adapt: makes the module's function of that of ``tandem``; None: they are the same.

    >>> import tandem.numpy as np
    >>> np.linalg is np.linalg, "concatenate" in dir(np)
    (True, True)
    """
    return forward_to(namespace, "", own, adapt)


def forward_to(
    namespace: str,
    module: str,
    own: tuple[Callable[[str], Any], Callable[[], list[str]]] | None = None,
    adapt: Callable[[Any], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module that forwards the names that it lacks.

    Args:
        namespace: the module's ``__name__``.
        module: the module of tandem that has them, such as ``"random"``; empty: ``tandem`` itself.
        own: the result of ``lazy.attach``, for names of the module that are imported at their first use.
        adapt: makes the module's function of the other module's; None: they are the same.
    """
    owner, tandem = sys.modules[namespace], sys.modules[_TANDEM]
    get_own, list_own = own or (None, list[str])
    known = {*list_own()}

    def find_source() -> Any:  # noqa: ANN401
        return attrgetter(module)(tandem) if module else tandem

    def list_source() -> Iterable[str]:
        source = find_source()
        return dir(source) if not module else getattr(source, "__all__", dir(source))

    def get_attribute(name: str) -> Any:  # noqa: ANN401
        if get_own is not None and name in known:
            return get_own(name)
        if name.startswith("_") or name not in list_source():
            raise _unknown(namespace, name, list_names, f"td.{module}.".replace("..", "."))
        result: object = getattr(find_source(), name)
        result = getattr(result, "unchecked", result)  # under td.debug.strict_names
        if adapt is not None:
            result = adapt_function(result, adapt, namespace, name)
        setattr(owner, name, result)
        return result

    def list_names() -> list[str]:
        return sorted(name for name in {*known, *vars(owner), *list_source()} if not name.startswith("_"))

    return get_attribute, list_names


def add_in_place_functions(
    namespace: str, own: tuple[Callable[[str], Any], Callable[[], list[str]]], methods: type
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``own`` of :func:`forward_to` with the in-place methods of tensors: ``exp_(x)`` is ``x.exp_()``.

    Args:
        namespace: the module's ``__name__``.
        own: the result of ``lazy.attach``, whose names come first.
        methods: the class of tensors.

    >>> import tandem.torch as torch
    >>> torch.exp_(torch.zeros(2)).tolist()
    [1.0, 1.0]
    """
    get_own, list_own = own
    module = sys.modules[namespace]
    names = {name for name in dir(methods) if name.endswith("_") and not name.startswith("_")}
    added = names.difference(list_own(), FOREIGN_ATTRIBUTES)

    def get_attribute(name: str) -> Any:  # noqa: ANN401
        if name not in added:
            return get_own(name)
        result = getattr(methods, name)
        setattr(module, name, result)
        return result

    return get_attribute, lambda: sorted(added.union(list_own()))


def adapt_function(value: Any, adapt: Callable[[Any], Any], namespace: str, name: str) -> Any:  # noqa: ANN401
    """Adapt a function of ``tandem``; the result has the name of its place in the module, so that it can be pickled."""
    result = adapt(value)
    if result is not value:
        result.__module__, result.__qualname__ = namespace, name
    return result


def adapt_own(namespace: str, names: Iterable[str], adapt: Callable[[Any], Any]) -> None:
    """Replace functions of a module by adapted ones, as :func:`adapt_function` does."""
    own = vars(sys.modules[namespace])
    for name in names:
        own[name] = adapt_function(own[name], adapt, namespace, name)


def refuse_unknown(namespace: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module that forwards nothing: its error names the near function of ``tandem``."""
    own, tandem = sys.modules[namespace], sys.modules[_TANDEM]

    def get_attribute(name: str) -> Any:  # noqa: ANN401
        def find() -> str:
            if name in dir(tandem):
                return f"; did you mean td.{name}?"
            return synonyms.suggest(name, vars(own), namespace.replace(_TANDEM, "td", 1) + ".")

        raise UnknownNameError(
            f"module {namespace!r} has no attribute {name!r}", None if name.startswith("_") else find
        )

    return get_attribute


def _unknown(namespace: str, name: str, list_names: Callable[[], list[str]], prefix: str) -> UnknownNameError:
    return UnknownNameError(
        f"module {namespace!r} has no attribute {name!r}",
        None if name.startswith("_") else lambda: synonyms.suggest(name, list_names(), prefix),
    )
