"""Operators that are declared when somebody first looks for one, so that the import need not wait for them.

Who looks for an operator by its name calls :func:`declare_promised` first, and who goes through all of them
:func:`declare_all`; neither under the registry's lock, since loading imports modules, and imports take locks too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

# Full name of an operator, without overload: what declares it.
_promises: dict[str, Callable[[], Any]] = {}


def promise(namespace: str, names: Iterable[str], declare: Callable[[], Any]) -> None:
    """Say that operators will be there when ``declare()`` has been called; calling it again does nothing."""
    _promises.update({f"{namespace}::{name}": declare for name in names})


def declare_promised(full_name: str) -> None:
    """Declare the operator of a full name (``"td::sort"``, with or without overload), if that is still to be done."""
    stem = full_name.partition(".")[0]
    declare = _promises.get(stem)
    if declare is not None:
        declare()
        _promises.pop(stem, None)


def declaring(namespace: str, names: Iterable[str]) -> None:
    """Operators are being declared by a module that somebody has imported, and need not be waited for."""
    for name in names:
        _promises.pop(f"{namespace}::{name}", None)


def declare_all() -> None:
    """Declare every operator that is still to be declared."""
    for full_name in list(_promises):
        declare_promised(full_name)


def promised(namespace: str) -> list[str]:
    """The names of a namespace's operators that are still to be declared."""
    start = f"{namespace}::"
    return [name[len(start) :] for name in _promises if name.startswith(start)]


def namespaces() -> set[str]:
    """The namespaces of all operators that are still to be declared."""
    return {name.partition("::")[0] for name in _promises}
