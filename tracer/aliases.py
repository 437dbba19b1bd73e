"""Which traced values share memory, so that a write through one of them is seen through the others.

A write into a view is recorded the way functionalization does it: the root's new value is computed from the view's, and
the other views are taken from it again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..eager.storage import Storage
from ..eager.views import Step
from ..registry.operator import Operator, operators
from .graph import Value

Call = Callable[[Operator, tuple[Any, ...]], Value]


class Aliases:
    """The tensors of a trace that are views of one memory.

    Attributes:
        root: the Value of the whole memory.
        origin: what the memory belongs to if it is not the trace's own (``"an argument"``), else empty.
        is_written_back: whether memory that is not the trace's own may be written: whoever runs the graph copies the
            root's last value there.
        views: the tensors, as long as somebody holds them, and how each follows from the root.
    """

    __slots__ = ("is_written_back", "origin", "root", "views")

    def __init__(self, root: Value, origin: str = "", is_written_back: bool = False):
        self.root, self.origin, self.is_written_back = root, origin, is_written_back
        self.views: list[tuple[weakref.ref[Any], tuple[Step, ...]]] = []

    def add(self, tensor: Any, path: tuple[Step, ...] = ()) -> None:
        """Enter a tensor."""
        self.views.append((weakref.ref(tensor), path))
        tensor._aliases = self

    def replace(self, tensor: Any, by: Any) -> None:
        """Let another object take the place of a tensor."""
        self.views = [(weakref.ref(by) if ref() is tensor else ref, path) for ref, path in self.views]
        tensor._aliases, by._aliases = None, self

    def path_of(self, tensor: Any) -> tuple[Step, ...]:
        """How a tensor follows from the root."""
        return next((path for ref, path in self.views if ref() is tensor), ())

    def others(self, tensor: Any) -> list[tuple[Any, tuple[Step, ...]]]:
        """The other tensors of the memory that somebody holds."""
        held = [(ref(), path) for ref, path in self.views]
        return [(other, path) for other, path in held if other is not None and other is not tensor]


def share(source: Any, result: Any, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note that a traced tensor is a view of another, made by a call on Values; ``source`` may be from outside."""
    aliases, is_traced = getattr(source, "_aliases", None), hasattr(source, "_aliases")
    if aliases is None:
        aliases = Aliases(args[0], "" if is_traced else "a tensor from outside of the jitted function")
        if is_traced:
            aliases.add(source)
    aliases.add(result, (*aliases.path_of(source), Step(op, args[1:], kwargs)))


# How the memory behind a view follows from the view's new value. A reshape is not here: eagerly it may be a copy.
_PUT_BACK: dict[str, Callable[[Call, Value, Value, Step], Value]] = {
    "td::basic_index": lambda call, whole, new, step: call(
        operators["td::basic_put"], (whole, new, step.args[0])
    ),
    "td::permute": lambda call, whole, new, step: call(step.op, (new, _inverse(step.args[0]))),
}


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(axes)
    places = [axis % rank for axis in axes]
    return tuple(places.index(axis) for axis in range(rank))


def can_write(tensor: Any) -> bool:
    """Whether a write into a tensor can be recorded so that every other view of its memory sees it."""
    aliases = tensor._aliases
    if aliases is None or not (aliases.origin or aliases.others(tensor)):
        return True
    paths = [aliases.path_of(tensor), *(path for _, path in aliases.others(tensor))]
    return all(step.op.name in _PUT_BACK for path in paths for step in path)


def write(tensor: Any, value: Value, call: Call) -> None:
    """Let a tensor stand for a new value, and with it every view of the same memory.

    Args:
        tensor: what was written; :func:`can_write` holds.
        value: its new value.
        call: records a call on Values and gives the Value of the result.
    """
    tensor._value = value
    _count_write(tensor)
    aliases = tensor._aliases
    if aliases is None:
        return
    path, others = aliases.path_of(tensor), aliases.others(tensor)
    if not (others or aliases.origin):
        aliases.root, aliases.views = value, []
        aliases.add(tensor)
        return
    aliases.root = _put_back(aliases.root, path, value, call)
    for other, steps in others:
        other._value = _follow(aliases.root, steps, call)[-1]
        _count_write(other)


def _count_write(tensor: Any) -> None:
    """Raise the version of a tensor, so that a backward pass that has saved it notices."""
    if tensor._storage is None:
        tensor._storage = Storage(None)
    tensor._storage.version += 1


def _follow(root: Value, path: tuple[Step, ...], call: Call) -> list[Value]:
    """The root and what each step of a path makes of it."""
    values = [root]
    for step in path:
        values.append(call(step.op, (values[-1], *step.args)))
    return values


def _put_back(root: Value, path: tuple[Step, ...], value: Value, call: Call) -> Value:
    """The root's value after a view of it got a new one."""
    for whole, step in zip(_follow(root, path[:-1], call)[::-1], path[::-1]):
        value = _PUT_BACK[step.op.name](call, whole, value, step)
    return value
