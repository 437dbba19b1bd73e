"""Guard: a condition under which a specialization is valid; its class says how it is checked, emitted and explained.

Guards on leaves of the arguments (:mod:`.leaves`) take the leaf's cache key; those on variables (:mod:`.externals`) and
captured tensors (:mod:`.captured`) find their subject themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..native_record import GuardBuilder


class Guard(Protocol):
    """A condition that does not concern the arguments."""

    def check(self) -> bool:
        """Whether the condition holds."""

    def explain(self) -> str:
        """Describe what has changed since the trace; return an empty text if the condition holds."""

    def emit(self, builder: GuardBuilder) -> None:
        """Add the condition to the guard program of a native entry.

        Raises:
            NotNative: machine code cannot check it.
        """
