"""The stack of levels: the transforms in progress in a thread, outermost first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import ArgumentError
from ...locks import ThreadLocal
from ...registry.dispatch import unwinding
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import current_keys, set_keys
from ...registry.operator import Operator
from . import level_allocations

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

    LevelKernel = Callable[["Level", Operator, Args, Kwargs], object]

# The reason why an effect is refused if the condition differs between the examples of a batch.
ALL_RUN = (
    "computes all examples, so an io_callback inside would also be called for examples that do not take this branch; "
    "use td.map, or td.pure_callback or td.debug.callback"
)


class Level:
    """One transform in progress.

    Attributes:
        depth: position in the stack, from 1.
        name: the transform that opened it, for messages: ``grad(loss)``.
        origin: ``file:line`` of the call that opened it.
        is_open: whether the transform is still running.
        outer_exclude: the autograd keys that were excluded when it was opened; they stay excluded for the levels below.
        batch_size: for a level of ``vmap`` the length of the batch axis; 0 for one of ``grad``.
        axis_name: for a level of ``vmap`` the name of the batch axis, or None.
        run: for a level of ``vmap`` the Batched key's kernel, ``run(level, op, args, kwargs)``; else None.
        scope: the index of its scope of allocations (:mod:`.level_allocations`).
        forward: for a level of ``jvp`` its kernel, ``forward(level, op, args, kwargs)``; else None.
        prepared: for a level of ``vmap``, by operator, its strategy and batch info.
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
        "scope",
    )

    def __init__(self, depth: int, name: str, origin: str, outer_exclude: int):
        self.depth, self.name, self.origin, self.outer_exclude = depth, name, origin, outer_exclude
        self.batch_size = 0
        self.axis_name: Hashable = None
        self.run: LevelKernel | None = None
        self.forward: LevelKernel | None = None
        self.prepared: dict[Operator, Any] = {}
        self.is_open, self.scope = True, 0


class _Stack(ThreadLocal):
    """The levels open in this thread, outermost first."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.recording: Any = None  # the open RecordingScope (:mod:`.recording_scope`), or None
        self.floor = 0  # while the body of a loop is traced: the number of levels outside it
        self.in_body = False  # whether the body of a loop is being traced
        self.masked = (
            ""  # the construct that also runs for examples that do not take it, such as a batched loop
        )


stack = unwinding.register_thread_local(_Stack())


def _close_levels(before: list[Level]) -> None:
    """Close the levels that were opened since ``before`` was taken."""
    for level in stack.levels:
        level.is_open = level in before


def refuse_numpy(value: object) -> NoReturn:
    """Raise the error for a conversion of a tensor that requires gradients to an ndarray."""
    if stack.recording is not None:
        stack.recording.refuse_numpy(value)
    raise ArgumentError(
        "NumPy does not record gradients, and this tensor requires them; use x.detach().numpy()"
    )


unwinding.parts.append(unwinding.Part(lambda: stack.levels, _close_levels))


@contextmanager
def mark_masked(name: str) -> Iterator[None]:
    """Context manager: name the construct that also runs for examples that do not take it."""
    before, stack.masked = stack.masked, name
    try:
        yield
    finally:
        stack.masked = before


def named_axes() -> tuple[tuple[Hashable, int], ...]:
    """The named axes of the open levels of ``vmap``, and their sizes."""
    return tuple((x.axis_name, x.batch_size) for x in stack.levels if x.axis_name is not None)


class push_level:
    """Context manager: push a level onto the stack; its values are invalid after the block."""

    __slots__ = ("_level",)

    def __init__(self, level: Level):
        self._level = level

    def __enter__(self) -> Level:
        level = self._level
        stack.levels = [*stack.levels, level]
        level.scope = level_allocations.scope_count()
        level_allocations.open_scope()
        return level

    def __exit__(self, *exception: object) -> None:
        level = self._level
        level_allocations.close_scope()
        stack.levels = [other for other in stack.levels if other is not level]
        level.is_open = False


class open_level(push_level):
    """Context manager: open a level; recording is on inside, even within ``no_grad``.

    Args:
        name: what opens it, for messages.
        origin: ``file:line`` of the call that opens it.
        forward: the kernel of a level of ``jvp``; None for one of ``grad``.
    """

    __slots__ = ("_before",)

    def __init__(self, name: str, origin: str, forward: LevelKernel | None = None):
        self._before = current_keys()
        level = Level(len(stack.levels) + 1, name, origin, self._before[1] & AUTOGRAD)
        level.forward = forward
        super().__init__(level)

    def __enter__(self) -> Level:
        level = super().__enter__()
        include, exclude = self._before = current_keys()
        if exclude & AUTOGRAD:
            set_keys(include, exclude & ~AUTOGRAD)
        return level

    def __exit__(self, *exception: object) -> None:
        set_keys(*self._before)
        super().__exit__(*exception)


@contextmanager
def reopen_levels(levels: list[Level], floor: int) -> Iterator[None]:
    """Context manager: reopen levels that may have ended."""
    closed = [level for level in levels if not level.is_open]
    before, stack.floor = stack.floor, floor
    for level in closed:
        stack.levels = [*stack.levels, level]
        level.is_open = True
        level.scope = level_allocations.scope_count()
        level_allocations.open_scope()
    try:
        yield
    finally:
        stack.floor = before
        for level in reversed(closed):
            level_allocations.close_scope()
            level.is_open = False
            stack.levels = [other for other in stack.levels if other is not level]


def name_function(fun: object) -> str:
    """The name of a function in messages; that of ``functools.partial`` is the name of its function."""
    while isinstance(fun, partial):
        fun = fun.func
    return str(fun.__qualname__ if hasattr(fun, "__qualname__") else repr(fun))
