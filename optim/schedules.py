"""Learning rates as functions of the number of steps, for the optimizers of :mod:`.pure`; they can be jitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..eager.tensor.construct import asarray
from ..operators.elementwise.selection import clip, where
from ..operators.elementwise.trigonometry import cos
from ..registry.dtypes import float32

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike

    Schedule = Callable[[TensorLike], Tensor]


def constant_schedule(value: float) -> Schedule:
    """The same number for all steps."""
    return lambda count: asarray(value)


def _share(count: TensorLike, steps: int) -> Tensor:
    return clip(asarray(count).to(float32) / steps, 0.0, 1.0)


def linear_schedule(init_value: float, end_value: float, transition_steps: int) -> Schedule:
    """A line from one number to another, then the latter.

    >>> import tandem as td
    >>> schedule = td.optim.linear_schedule(1.0, 0.0, 10)
    >>> schedule(5).item(), schedule(20).item()
    (0.5, 0.0)
    """
    return lambda count: init_value + (end_value - init_value) * _share(count, transition_steps)


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0) -> Schedule:
    """Half a cosine from a number down to ``alpha`` times the number."""

    def schedule(count: TensorLike) -> Tensor:
        wave = (1 + cos(_share(count, decay_steps) * math.pi)) / 2
        return init_value * ((1 - alpha) * wave + alpha)

    return schedule


def exponential_decay(init_value: float, transition_steps: int, decay_rate: float) -> Schedule:
    """A number times ``decay_rate`` for each ``transition_steps`` steps, continuously."""
    return lambda count: init_value * decay_rate ** (asarray(count).to(float32) / transition_steps)


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Schedules one after the other; each counts its steps from its boundary."""

    def schedule(count: TensorLike) -> Tensor:
        steps = asarray(count)
        result = schedules[0](steps)
        for boundary, following in zip(boundaries, schedules[1:], strict=True):
            result = where(steps < boundary, result, following(steps - boundary))
        return result

    return schedule


def warmup_cosine_decay_schedule(
    init_value: float, peak_value: float, warmup_steps: int, decay_steps: int, end_value: float = 0.0
) -> Schedule:
    """A line up to the peak, then half a cosine down; ``decay_steps`` counts both."""
    warmup = linear_schedule(init_value, peak_value, warmup_steps)
    decay = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, end_value / peak_value)
    return join_schedules([warmup, decay], [warmup_steps])
