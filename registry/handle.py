"""Handles: what a registration returns, to take it back."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class Handle:
    """What a registration returns: ``remove()`` takes it back; as a context manager, at the end of the block.

    A handle that is dropped takes nothing back.
    """

    __slots__ = ("_kept", "_undo")

    def __init__(self, undo: Callable[[], None], kept: dict[Handle, None] | None = None):
        self._undo: Callable[[], None] | None = undo
        self._kept = kept
        if kept is not None:
            kept[self] = None

    def remove(self) -> None:
        """Take the registration back; a second call does nothing."""
        undo, self._undo = self._undo, None
        if self._kept is not None:
            self._kept.pop(self, None)
        if undo is not None:
            undo()

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.remove()


def remove_all(kept: dict[Handle, None]) -> None:
    """Take back what the handles stand for, newest first."""
    while kept:
        try:
            handle, _ = kept.popitem()
        except KeyError:  # another thread has taken the last one
            return
        handle.remove()
