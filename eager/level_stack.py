"""The stack of levels: the transforms in progress in a thread, outermost first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..registry.keys import AUTOGRAD
from ..registry.operator import Operator
from ..registry.state import set_keys, state
from . import made

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
# What is wrong with an effect where the examples of a batch go different ways.
ALL_RUN = (
    "computes all examples, so that an io_callback inside would be called for those that do not come there; use "
    "td.map, or td.pure_callback or td.debug.callback"
)


class Level:
    """One transform in progress.

    Attributes:
        depth: place in the stack, from 1.
        name: what opened it, for messages: ``grad(loss)``.
        origin: ``file:line`` of the call that opened it.
        is_open: whether it still runs.
        outer_exclude: the autograd keys that were excluded when it was opened: they stay so for the levels below.
        batch_size: for a level of ``vmap`` the length of the batch axis; 0 for one of ``grad``.
        axis_name: for a level of ``vmap`` the name of the batch axis, or None.
        run: for a level of ``vmap`` the Batched key's kernel, ``run(level, op, args, kwargs)``; else None.
        forward: for a level of ``jvp`` its kernel, ``forward(level, op, args, kwargs)``; else None.
        prepared: for a level of ``vmap``, by operator, how it is run and what its rule is told.
    """

    __slots__ = (
        "axis_name",
        "batch_size",
        "depth",
        "forward",
        "is_open",
        "name",
        "origin",
        "outer_exclude",
        "prepared",
        "run",
    )

    def __init__(self, depth: int, name: str, origin: str, outer_exclude: int):
        self.depth, self.name, self.origin, self.outer_exclude = depth, name, origin, outer_exclude
        self.batch_size = 0
        self.axis_name: Any = None
        self.run: Callable[[Level, Operator, Args, Kwargs], Any] | None = None
        self.forward: Callable[[Level, Operator, Args, Kwargs], Any] | None = None
        self.prepared: dict[Operator, Any] = {}
        self.is_open = True


class _Stack(threading.local):
    """The levels open in this thread, outermost first."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.floor = 0  # while the body of a loop is traced: how many of the levels are around it
        self.in_body = False  # whether one is being traced
        self.masked = (
            ""  # what runs for examples too that do not take it: a loop as long as any of them goes on
        )


stack = _Stack()


@contextmanager
def masked(name: str) -> Iterator[None]:
    """Say for a ``with`` block what runs for examples too that do not take it."""
    before, stack.masked = stack.masked, name
    try:
        yield
    finally:
        stack.masked = before


def named_axes() -> tuple[tuple[Any, int], ...]:
    """The axes of ``vmap`` that have names now, and their sizes."""
    return tuple((x.axis_name, x.batch_size) for x in stack.levels if x.axis_name is not None)


@contextmanager
def open_level(
    name: str, origin: str, forward: Callable[[Level, Operator, Args, Kwargs], Any] | None = None
) -> Iterator[Level]:
    """Open a level for a ``with`` block; recording is on inside, whatever it was outside.

    Args:
        name: what opens it, for messages.
        origin: ``file:line`` of the call that opens it.
        forward: the kernel of a level of ``jvp``; None for one of ``grad``.
    """
    made_level = Level(len(stack.levels) + 1, name, origin, state.exclude & AUTOGRAD)
    made_level.forward = forward
    with pushed(made_level) as level:
        before = set_keys(state.include, state.exclude & ~AUTOGRAD)
        try:
            yield level
        finally:
            set_keys(*before)


@contextmanager
def pushed(level: Level) -> Iterator[Level]:
    """Have a level in the stack for a ``with`` block; its values are of no use after that."""
    stack.levels.append(level)
    made.opened()
    try:
        yield level
    finally:
        made.closed()
        stack.levels.remove(level)
        level.is_open = False


@contextmanager
def reopened(levels: list[Level], floor: int) -> Iterator[None]:
    """Have levels open that were open once, and may have ended."""
    closed = [level for level in levels if not level.is_open]
    before, stack.floor = stack.floor, floor
    for level in closed:
        stack.levels.append(level)
        level.is_open = True
        made.opened()
    try:
        yield
    finally:
        stack.floor = before
        for level in reversed(closed):
            made.closed()
            level.is_open = False
            stack.levels.remove(level)
