"""Event: one call or span, with its parent."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..registry.source import is_package_file
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from ..registry.types import Tensor


class Event:
    """One call of an operator, or one span.

    Attributes:
        name: ``"td::add.Tensor"``, ``"jit step"``, or what the user called a span.
        kind: ``"operator"``, ``"jit"``, ``"kernel"``, ``"compile"``, ``"backward"`` or ``"user"``.
        start, end: nanoseconds of ``time.perf_counter_ns``.
        thread: the thread's identifier.
        parent: the event during which it ran, or None.
        inside: nanoseconds that its direct children took.
        shapes, dtypes: of its tensor arguments, where asked for.
        stack: the user's frames, innermost first, where asked for: ``file:line(function)``.
        allocated: bytes of memory that its results brought, where asked for; memory that children brought included.
        allocated_inside: what its direct children brought.
        failed: whether it ended with an exception.
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
        """Nanoseconds from start to end."""
        return self.end - self.start

    @property
    def own(self) -> int:
        """Nanoseconds without those of its children."""
        return self.total - self.inside

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.total / 1e3:.3f} us>"


def tensors_in(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among values, and those in lists of tensors."""
    result: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            result.append(value)
        elif type(value) in (tuple, list):
            result += [item for item in value if isinstance(item, TensorBase)]
    return result


def user_frames(limit: int = 64) -> tuple[str, ...]:
    """The frames of the user's code, innermost first."""
    items: list[str] = []
    frame = sys._getframe(1)
    while frame is not None and len(items) < limit:
        code = frame.f_code
        if not is_package_file(code.co_filename):
            items.append(f"{code.co_filename}:{frame.f_lineno}({code.co_name})")
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(items)
