"""Dispatch state: the keys included in and excluded from every call, and settings of layers.

The state is an immutable object in a ``ContextVar``. Each thread and each asyncio task has its own: a task starts with
the state of the code that created it, a new thread with the default. Native code reads the variable only while a
non-default state exists anywhere in the process.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any

from .keys import AUTOGRAD

# The meaning of a state for native entries: default, autograd excluded, or anything else.
PLAIN, NO_GRAD, ELSEWHERE = 0, 1, 2

# Every non-default state refers to this object, so its reference count says whether one exists, in whatever order and
# thread states are freed.
ACTIVE = object()


class Guards:
    """One dispatch state; immutable.

    Attributes:
        include: key set added to the keys of the arguments.
        exclude: key set removed from them (after ``include``).
        flags: its meaning for native entries: ``PLAIN``, ``NO_GRAD`` or ``ELSEWHERE``.
        parts: settings of layers by name: modes, autocast.
        blocks: a linked list of the open guards, newest first: ``(guard, undo, rest)``, or None.
        active: ``ACTIVE``, except in the default state.
    """

    __slots__ = ("active", "blocks", "exclude", "flags", "include", "parts")

    def __init__(
        self, include: int, exclude: int, parts: dict[str, Any], blocks: object, active: object = ACTIVE
    ):
        self.include, self.exclude, self.parts, self.blocks = include, exclude, parts, blocks
        self.flags = flags_of(include, exclude)
        self.active = active


def flags_of(include: int, exclude: int) -> int:
    """The meaning of included and excluded key sets for native entries.

    Native twin: backends/cpu/fastpath/runtime/rt_base.py:thread_flags
    """
    if include:
        return ELSEWHERE
    return NO_GRAD if exclude == AUTOGRAD else ELSEWHERE if exclude else PLAIN


IDLE_REFERENCES = sys.getrefcount(ACTIVE) - 1  # its references while every state is the default
NO_PARTS: dict[str, object] = {}
DEFAULT = Guards(0, 0, NO_PARTS, None, None)
variable: ContextVar[Guards] = ContextVar("tandem_dispatch_state", default=DEFAULT)
current, _set = variable.get, variable.set


class State:
    """The current dispatch state, as attributes."""

    __slots__ = ()

    @property
    def include(self) -> int:
        """See :class:`Guards`."""
        return current().include

    @property
    def exclude(self) -> int:
        """See :class:`Guards`."""
        return current().exclude


state = State()


def install(guards: Guards) -> None:
    """Make ``guards`` the current state."""
    try:
        _set(guards)
    except MemoryError:
        _set(guards)  # retry: the caller may be restoring an earlier state


def set_state(include: int, exclude: int, parts: dict[str, Any], blocks: object) -> None:
    """Create a state and make it the current one."""
    if include or exclude or parts or blocks is not None:
        install(Guards(include, exclude, parts, blocks))
    else:
        install(DEFAULT)


def current_keys() -> tuple[int, int]:
    """The included and excluded key sets.

    Code that changes them for a while calls this before its ``try`` statement and :func:`set_keys` inside it, so that
    an exception at any point restores them.
    """
    now = current()
    return now.include, now.exclude


def set_keys(include: int, exclude: int) -> None:
    """Set the included and excluded key sets."""
    now = current()
    if include != now.include or exclude != now.exclude:
        set_state(include, exclude, now.parts, now.blocks)


def replace_part(parts: dict[str, object], name: str, value: object) -> dict[str, object]:
    """A copy of ``parts`` with one part replaced; None removes it."""
    rest = {key: part for key, part in parts.items() if key != name}
    return rest if value is None else rest | {name: value}


def push_block(guard: object, undo: object, blocks: object) -> object:
    """Push a guard on the list of open guards."""
    return guard, undo, blocks


def pop_block(guard: Any, blocks: Any) -> tuple[Any, Any]:
    """The undo data of a guard's newest block, and the open guards without that block.

    The blocks of generators end in any order and in other contexts: a guard that is not open here returns None.
    """
    above: list[tuple[Any, Any]] = []
    while blocks is not None:
        owner, undo, rest = blocks
        if owner is guard:
            for block in reversed(above):
                rest = (*block, rest)
            return undo, rest
        above.append((owner, undo))
        blocks = rest
    return None, None
