"""Hooks of :class:`tandem.Generator` for tracing and for drawing the same numbers a second time.

They are in their own module so that tracing a function does not load the samplers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...locks import ThreadLocal
from ...registry.dispatch.observers import draw_watches
from ...registry.dispatch.unwinding import register_thread_local
from ..layers.levels import stack

if TYPE_CHECKING:
    from ...eager.layers.level_stack import Level
    from ...registry.types import Tensor

# Each maps a generator's state to the tensor that a draw reads and writes; the tracer registers one.
state_lifters: list[Callable[[Tensor], Tensor]] = []


class _Replays(ThreadLocal):
    """The draws that this thread repeats.

    Attributes:
        states: by the id of a generator's state, that state and the copy that is drawn from in its place.
        levels: levels of ``vmap`` that the repeated function did not run under.
        mixed: whether the repeated function ran under some of the open levels.
    """

    def __init__(self) -> None:
        self.states: dict[int, tuple[Tensor, Tensor]] = {}
        self.levels: tuple[Level, ...] = ()
        self.mixed = False


replays = register_thread_local(_Replays())


@contextmanager
def replay_draws(
    states: Sequence[Tensor], copies: Sequence[Tensor], unbatched: bool, mixed: bool
) -> Iterator[None]:
    """Within a ``with`` block that runs a function a second time, draw the same numbers again.

    Args:
        states: the states of the generators that the function captures.
        copies: copies of these states as they were before the first run.
        unbatched: whether the function ran under none of the levels of ``vmap`` that are open now.
        mixed: whether it ran under some of them, so that numbers of each example cannot be drawn again.
    """
    before = replays.states, replays.levels, replays.mixed
    replays.states = {**before[0], **{id(x): (x, copy) for x, copy in zip(states, copies, strict=True)}}
    replays.levels, replays.mixed = tuple(stack.levels) if unbatched else before[1], mixed or before[2]
    draw_watches.add(1)
    try:
        yield
    finally:
        draw_watches.add(-1)
        replays.states, replays.levels, replays.mixed = before
