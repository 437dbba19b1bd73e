"""Buffer assignment: assign each intermediate an offset in the workspace; intermediates with disjoint lifetimes share.

Arguments belong to the caller and outputs are newly allocated; neither is ever reused. All other values, and the
scratch memory of kernels, are in one workspace per call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..named_tuple import NamedTuple
from ..registry.values import align_up
from ..tracer.graph import Value
from .thunks import Thunk, reads_and_writes

if TYPE_CHECKING:
    from ..registry.dims import Dim


class Interval(NamedTuple):
    """The lifetime of an intermediate: the first and the last step that use it, its size, its workspace offset."""

    value: Value
    first: int
    last: int
    nbytes: Dim
    offset: Dim = 0


class Aliases:
    """Values that are stored in the memory of another value, which they take over when its elements are dead."""

    def __init__(self) -> None:
        self._owners: dict[Value, Value] = {}

    def add(self, value: Value, owner: Value) -> None:
        """Store a value in the memory of ``owner``, or of the value that owns that memory."""
        self._owners[self.owner(value)] = self.owner(owner)

    def owner(self, value: Value) -> Value:
        """The value whose memory a value is stored in: itself unless it is an alias."""
        while value in self._owners:
            value = self._owners[value]
        return value


class BufferAssignment(NamedTuple):
    """The workspace offsets of all intermediates.

    Attributes:
        intervals: one per intermediate.
        workspace: bytes that a call needs for intermediates and kernel scratch memory.
        scratch: bytes of kernel scratch memory at the end of the workspace, which the steps use in turn.
    """

    intervals: tuple[Interval, ...]
    workspace: Dim
    scratch: Dim = 0

    def with_scratch(self, nbytes: Dim) -> BufferAssignment:
        """The same assignment with kernel scratch memory added."""
        return BufferAssignment(self.intervals, self.workspace + nbytes, nbytes)

    def offsets(self) -> dict[Value, Dim]:
        """The offset of each intermediate in the workspace."""
        return {interval.value: interval.offset for interval in self.intervals}


def nbytes_of(value: Value) -> Dim:
    """The size of a value's buffer in bytes."""
    return value.spec.size * value.spec.dtype.itemsize


def find_lifetimes(steps: Sequence[Thunk], placed: set[Value], aliases: Aliases) -> list[Interval]:
    """The lifetimes of the intermediates: values that steps use and that are not allocated elsewhere."""
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for time, step in enumerate(steps):
        reads, writes = reads_and_writes(step)
        for value in map(aliases.owner, (*writes, *reads)):
            if value not in placed and value.weak is None:
                first.setdefault(value, time)
                last[value] = time
    return [Interval(value, start, last[value], nbytes_of(value)) for value, start in first.items()]


class Assigned:
    """The intervals that have an offset, as columns of numbers: a lifetime is compared with all others at once.

    Args:
        lifetimes: the intervals to assign. The columns hold objects if a size is symbolic.
    """

    def __init__(self, lifetimes: Sequence[Interval]) -> None:
        self.intervals: list[Interval] = []
        is_specialised = all(isinstance(interval.nbytes, int) for interval in lifetimes)
        shape = (4, len(lifetimes))
        self._first, self._last, self._start, self._end = np.empty(
            shape, np.int64 if is_specialised else object
        )

    def assign(self, interval: Interval) -> None:
        """Assign the lowest offset at which an interval fits between those that overlap its lifetime.

        Raises:
            UndecidedError: that depends on symbolic sizes.
        """
        size, count = align_up(interval.nbytes), len(self.intervals)
        overlap = np.flatnonzero(
            (self._first[:count] <= interval.last) & (self._last[:count] >= interval.first)
        )
        overlap = overlap[np.argsort(self._start[overlap], kind="stable")]
        ends = np.maximum.accumulate(self._end[overlap])
        gaps = self._start[overlap[1:]] - ends[:-1]
        fits = np.flatnonzero(gaps >= size)
        if not overlap.size or self._start[overlap[0]] >= size:
            offset = 0
        else:
            offset = ends.item(fits[0] if fits.size else -1)
        numbers = (self._first, self._last, self._start, self._end)
        for column, number in zip(
            numbers, (interval.first, interval.last, offset, offset + size), strict=True
        ):
            column[count] = number
        self.intervals.append(interval._replace(offset=offset))


def assign_buffers(
    steps: Sequence[Thunk], placed: set[Value], aliases: Aliases | None = None
) -> BufferAssignment:
    """Assign an offset to each intermediate, the largest first.

    Args:
        steps: in order.
        placed: values with buffers elsewhere: parameters, constants, outputs.
        aliases: values that are stored in the memory of others.

    Raises:
        UndecidedError: which intermediates share memory depends on symbolic sizes.
    """
    lifetimes = find_lifetimes(steps, placed, aliases or Aliases())
    assigned = Assigned(lifetimes)
    for interval in sorted(lifetimes, key=lambda i: (i.nbytes, -i.first), reverse=True):
        assigned.assign(interval)
    done = assigned.intervals
    size = max((i.offset + align_up(i.nbytes) for i in done), default=0)
    return BufferAssignment(tuple(done), size)
