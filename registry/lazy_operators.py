"""Lazy operators, which are declared at the first lookup, and lazy fallbacks, to keep the import fast.

Call :func:`materialize` before looking up an operator by name, :func:`materialize_fallbacks` before computing a
dispatch table, and :func:`materialize_all` before iterating over all operators. Do not hold the registry's lock:
loading imports modules, and imports take locks too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType

from .. import lazy

# Full name of an operator, without overload -> the function that declares it.
_lazy_operators: dict[str, Callable[[], object]] = {}
# Functions that import the modules whose kernels serve all operators at a key.
_lazy_fallbacks: list[Callable[[], object]] = []


def register_lazy(namespace: str, names: Iterable[str], declare: Callable[[], object]) -> None:
    """Register operators that ``declare()`` will declare; repeated calls of ``declare`` must have no effect."""
    _lazy_operators.update({f"{namespace}::{name}": declare for name in names})


def materialize(full_name: str) -> None:
    """Declare the operator of a full name (``"td::sort"``, with or without overload) if it is still lazy."""
    stem = full_name.partition(".")[0]
    declare = _lazy_operators.get(stem)
    if declare is None and stem.endswith("_") and not stem.endswith(":_"):
        materialize(stem[:-1])  # an in-place operator is registered with its functional one
        declare = _lazy_operators.get(stem)
    while declare is not None:
        declared = declare()
        if isinstance(declared, ModuleType) and lazy.is_loading(declared):
            return  # this thread is importing the module; until it has, the operator is lazy for the others
        if _lazy_operators.get(stem) is declare:
            _lazy_operators.pop(stem, None)
        declare = _lazy_operators.get(stem)


def discard_lazy(namespace: str, names: Iterable[str]) -> None:
    """Remove operators from the table of lazy ones, because an imported module is declaring them."""
    for name in names:
        _lazy_operators.pop(f"{namespace}::{name}", None)


def register_lazy_fallbacks(load: Callable[[], object]) -> None:
    """Register fallbacks that ``load()`` will register; repeated calls of ``load`` must have no effect."""
    _lazy_fallbacks.append(load)


def materialize_fallbacks() -> None:
    """Register the fallbacks that are still lazy."""
    while _lazy_fallbacks:
        load = _lazy_fallbacks[0]
        load()
        if load in _lazy_fallbacks:  # not removed by another thread
            _lazy_fallbacks.remove(load)


def materialize_all() -> None:
    """Register every operator and fallback that is still lazy."""
    materialize_fallbacks()
    names: list[str] = []
    while names != list(_lazy_operators):  # a declaration may register a lazy in-place operator
        names = list(_lazy_operators)
        for full_name in names:
            materialize(full_name)


def find_lazy(full_name: str) -> Callable[[], object] | None:
    """The function that will declare an operator, named without overload; None if it is not lazy."""
    return _lazy_operators.get(full_name)


def is_lazy(full_name: str) -> bool:
    """Whether an operator, named without overload, is still lazy."""
    return full_name in _lazy_operators


def lazy_names(namespace: str) -> list[str]:
    """The names of the operators of a namespace that are still lazy."""
    start = f"{namespace}::"
    size = len(start)
    return [name[size:] for name in list(_lazy_operators) if name.startswith(start)]


def lazy_namespaces() -> set[str]:
    """The namespaces of all operators that are still lazy."""
    return {name.partition("::")[0] for name in list(_lazy_operators)}
