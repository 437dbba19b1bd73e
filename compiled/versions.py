"""Whether the registry is still as it was when a function was traced."""

from __future__ import annotations

from typing import NamedTuple

from ..registry.operator import Operator, change_listeners
from ..tracer.graph import Graph


class _Clock:
    """Counts changes of the registry: all of them, and those of operators that decompose while tracing."""

    changes = 0
    composites = 0


def _on_change(op: Operator) -> None:
    _Clock.changes += 1
    if op.registered("CompositeImplicit") is not None:
        _Clock.composites += 1


change_listeners.append(_on_change)


class Versions(NamedTuple):
    """The registry as one graph depends on it.

    A recorded operator counts by its own version. One that decomposed leaves no trace in the graph, so a change of any
    such operator counts.

    Attributes:
        operators: the recorded operators and their versions.
        composites: the count of changes of decomposing operators.
    """

    operators: tuple[tuple[Operator, int], ...]
    composites: int

    def current(self) -> bool:
        """Whether nothing that the graph depends on has changed."""
        return self.composites == _Clock.composites and all(op.version == v for op, v in self.operators)


def versions_of(graph: Graph) -> Versions:
    """The versions that a graph depends on, now."""
    used = dict.fromkeys(node.op for node in graph.nodes)
    return Versions(tuple((op, op.version) for op in used), _Clock.composites)


def changes() -> int:
    """The count of all changes so far: while it stays the same, nothing needs to be compared."""
    return _Clock.changes
