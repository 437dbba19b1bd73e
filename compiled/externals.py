"""What a function reads besides its arguments: closure cells and globals that its code names, guarded by identity."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .. import pytree
from ..eager.record import eager_meta
from ..registry.values import TensorBase, describe


class _Absent:
    def __repr__(self) -> str:
        return "<not defined>"


ABSENT: Any = _Absent()


@dataclass(frozen=True, slots=True, eq=False)
class ExternalGuard:
    """One cell or global that must still hold the very object that it held when the function was traced.

    Attributes:
        kind: ``"cell"`` or ``"global"``.
        name: the variable.
        place: the cell, or the dict of globals.
        value: the object that it held; :data:`ABSENT` if the cell was empty.
    """

    kind: str
    name: str
    place: Any
    value: Any

    def now(self) -> Any:
        """What the variable holds at this moment."""
        if self.kind == "global":
            return self.place.get(self.name, ABSENT)
        try:
            return self.place.cell_contents
        except ValueError:
            return ABSENT

    def put(self, value: Any) -> None:
        """Have the variable hold something else."""
        if self.kind == "global":
            self.place[self.name] = value
        else:
            self.place.cell_contents = value

    def holds(self) -> bool:
        """Whether it is the same object."""
        return self.now() is self.value

    def __str__(self) -> str:
        return f"{'closure variable' if self.kind == 'cell' else 'global'} {self.name} = {_brief(self.value)}"


def _brief(value: Any) -> str:
    if isinstance(value, FunctionType | type):
        return getattr(value, "__qualname__", repr(value))
    text = describe(value) if isinstance(value, TensorBase) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def changed(guard: ExternalGuard) -> str:
    """Why a guard fails, in words."""
    kind = "closure variable" if guard.kind == "cell" else "global"
    was, now = _brief(guard.value), _brief(guard.now())
    return f"{kind} {guard.name} was {was}, now {'another ' if was == now else ''}{now}"


def externals_of(fn: Callable[..., Any]) -> tuple[ExternalGuard, ...]:
    """Guards for the variables that a function reads, and those read by functions of its module that it reaches.

    Modules and builtins are not guarded. What lies deeper, such as an attribute of a guarded object, is as it was when
    the function was traced. A function that stands for another names it in its attribute ``stands_for``, and the
    variables of that one that it fills itself in ``taken``.
    """
    found: dict[tuple[int, str], ExternalGuard] = {}
    taken: set[Any] = set()
    waiting, seen = [], set[Any]()
    inner: Any = fn
    while inner is not None:
        waiting.append(plain_function(inner))
        taken.update(getattr(inner, "taken", ()))
        inner = getattr(inner, "stands_for", None)
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        for guard in _guards(function):
            key = (id(guard.place), guard.name)
            if key not in found and key not in taken:
                found[key] = guard
                waiting.append(_helper(guard.value, function))
    return tuple(found.values())


def reaches_recorded(fn: Callable[..., Any]) -> bool:
    """Whether a variable that a function reads holds a tensor that requires gradients, itself or in a container."""
    return any(eager_meta(leaf) is not None for leaf in _leaves_held(fn))


def _leaves_held(fn: Callable[..., Any]) -> Iterator[Any]:
    return (leaf for guard in externals_of(fn) for leaf in pytree.leaves(guard.value))


def plain_function(fn: Any) -> FunctionType | None:
    """The Python function inside a callable: of a wrapper, a method, a partial, or an object with ``__call__``."""
    for _ in range(32):
        if isinstance(fn, FunctionType) or fn is None:
            return fn
        names = [name for name in ("__wrapped__", "__func__", "func") if hasattr(fn, name)]
        fn = getattr(fn, names[0]) if names else type(fn).__dict__.get("__call__")
    return None


def _helper(value: Any, function: FunctionType) -> FunctionType | None:
    """A function of the same module, whose own variables are guarded too."""
    inner = value if isinstance(value, FunctionType) else getattr(value, "__wrapped__", None)
    same = isinstance(inner, FunctionType) and inner.__globals__ is function.__globals__
    return inner if same else None


def _guards(function: FunctionType) -> Iterator[ExternalGuard]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        guard = ExternalGuard("cell", name, cell, None)
        yield ExternalGuard("cell", name, cell, guard.now())
    space = function.__globals__
    for name in sorted(_names(function.__code__)):
        value = space.get(name, ABSENT)
        if value is ABSENT and not hasattr(builtins, name):
            continue  # an attribute's name, most likely
        if value is not ABSENT and not isinstance(value, ModuleType):
            yield ExternalGuard("global", name, space, value)


def _names(code: CodeType) -> set[str]:
    """The global and attribute names in code and in the functions defined inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
