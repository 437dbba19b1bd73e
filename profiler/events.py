"""Events: calls and spans, with their parents."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..registry.source import is_package_file
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from ..registry.types import Tensor


class Event:
    """A call of an operator, or a span.

    Attributes:
        name: ``"td::add.Tensor"``, ``"jit step"``, or the user's name of a span.
        kind: ``"operator"``, ``"jit"``, ``"kernel"``, ``"compile"``, ``"backward"`` or ``"user"``.
        start, end: the start and end times, from ``time.perf_counter_ns``.
        thread: the identifier of the thread.
        parent: the enclosing event, or None.
        inside: the time of the direct children in nanoseconds.
        shapes, dtypes: the shapes and dtypes of the tensor arguments, if recorded.
        stack: the user's frames as ``file:line(function)``, innermost first, if recorded.
        allocated: the bytes that the results hold, including those of children, if recorded.
        allocated_inside: the bytes that the results of the direct children hold.
        failed: whether the call raised an exception.
    """

    __slots__ = (
        "allocated",
        "allocated_inside",
        "dtypes",
        "end",
        "failed",
        "inside",
        "kind",
        "name",
        "parent",
        "shapes",
        "stack",
        "start",
        "thread",
    )

    def __init__(self, name: str, kind: str, thread: int, parent: Event | None):
        self.name, self.kind, self.thread, self.parent = name, kind, thread, parent
        self.start = self.end = self.inside = 0
        self.allocated = self.allocated_inside = 0
        self.shapes: tuple[tuple[int, ...], ...] = ()
        self.dtypes: tuple[str, ...] = ()
        self.stack: tuple[str, ...] = ()
        self.failed = False

    @property
    def total(self) -> int:
        """The time from start to end in nanoseconds."""
        return self.end - self.start

    @property
    def own(self) -> int:
        """The time without that of the children, in nanoseconds."""
        return self.total - self.inside

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.total / 1e3:.3f} us>"


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """Return the tensors among the values, including those in tuples and lists."""
    result: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            result.append(value)
        elif type(value) in (tuple, list):
            result += [item for item in value if isinstance(item, TensorBase)]
    return result


def user_frames(limit: int = 64) -> tuple[str, ...]:
    """Return the frames of the user's code, innermost first."""
    items: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and len(items) < limit:
        code = frame.f_code
        if not is_package_file(code.co_filename):
            items.append(f"{code.co_filename}:{frame.f_lineno}({code.co_name})")
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(items)
