"""The memory plan: where each buffer lies, and which intermediates share memory, one being dead before the other lives.

Arguments are the caller's and outputs are fresh; neither is ever reused. The rest lies in one workspace per call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..tracer.graph import Value
from .steps import Step, reads_and_writes

ALIGNMENT = 64


class Interval(NamedTuple):
    """An intermediate: the first and the last step that touch it, its size, and its offset in the workspace."""

    value: Value
    first: int
    last: int
    nbytes: int
    offset: int = 0


class MemoryPlan(NamedTuple):
    """Where intermediates lie.

    Attributes:
        intervals: one per intermediate.
        workspace: bytes that a call needs for them.
    """

    intervals: tuple[Interval, ...]
    workspace: int

    def offsets(self) -> dict[Value, int]:
        """The offset of each intermediate in the workspace."""
        return {interval.value: interval.offset for interval in self.intervals}


def aligned(nbytes: int) -> int:
    """The next multiple of the alignment; at least one, so that buffers are distinct."""
    return max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT


def nbytes_of(value: Value) -> int:
    """The bytes of a value's buffer."""
    return int(value.spec.size * value.spec.dtype.itemsize)


def lifetimes(steps: Sequence[Step], placed: set[Value]) -> list[Interval]:
    """The intermediates of some steps: what they write that is not placed elsewhere, from its first use to its last."""
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for time, step in enumerate(steps):
        reads, writes = reads_and_writes(step)
        for value in (*writes, *reads):
            if value not in placed and value.weak is None:
                first.setdefault(value, time)
                last[value] = time
    return [Interval(value, start, last[value], nbytes_of(value)) for value, start in first.items()]


def _overlap(one: Interval, two: Interval) -> bool:
    return one.first <= two.last and two.first <= one.last


def _lowest(interval: Interval, there: list[Interval]) -> int:
    """The lowest offset at which an interval fits between those that live at the same time."""
    size, offset = aligned(interval.nbytes), 0
    for other in sorted((o for o in there if _overlap(o, interval)), key=lambda o: o.offset):
        if offset + size <= other.offset:
            break
        offset = max(offset, other.offset + aligned(other.nbytes))
    return offset


def plan_memory(steps: Sequence[Step], placed: set[Value]) -> MemoryPlan:
    """Give each intermediate a place, the largest first.

    Args:
        steps: in order.
        placed: values that lie elsewhere: parameters, constants, outputs.
    """
    done: list[Interval] = []
    for interval in sorted(lifetimes(steps, placed), key=lambda i: (-i.nbytes, i.first)):
        done.append(interval._replace(offset=_lowest(interval, done)))
    size = max((i.offset + aligned(i.nbytes) for i in done), default=0)
    return MemoryPlan(tuple(done), size)
