"""Whether the registry is still as it was when a function was traced."""

from __future__ import annotations

from typing import NamedTuple

from ..registry.keys import BACKENDS, DispatchKey, keyset
from ..registry.operator import Operator, change_listeners
from ..tracer.graph import Graph, all_nodes

# Where kernels run while a function is traced. What they call is recorded in their stead, so the graph does not name
# them: the layers, and the shape rules.
_WHILE_TRACING = ((1 << len(DispatchKey)) - 1) & ~BACKENDS | keyset(
    DispatchKey.Meta, DispatchKey.SparseMeta, DispatchKey.QuantizedMeta
)


class _Clock:
    """Counts changes of the registry: all of them, and those that tracing alone would notice.

    Both are written under the registry's lock. An operator whose table nobody has looked at is in no graph.
    """

    changes = 0
    composites = 0


def _on_change(op: Operator) -> None:
    _Clock.changes += 1
    if op.keys_only or not op.in_use:
        return
    if op.changed & _WHILE_TRACING or op.registered("CompositeImplicit") is not None:
        _Clock.composites += 1


change_listeners.append(_on_change)


class Versions(NamedTuple):
    """The registry as one graph depends on it.

    A recorded operator counts by its own version. A kernel that ran while tracing (a body that decomposes, a layer's)
    leaves no trace in the graph, so a change of any such kernel counts.

    Attributes:
        operators: the recorded operators and their versions.
        composites: the count of changes of kernels that run while tracing, before the function was traced.
    """

    operators: tuple[tuple[Operator, int], ...]
    composites: int

    def current(self) -> bool:
        """Whether nothing that the graph depends on has changed."""
        return self.composites == _Clock.composites and all(op.version == v for op, v in self.operators)


def moment() -> int:
    """What :func:`versions_of` takes: asked for before a function is traced, so that changes meanwhile count too."""
    return _Clock.composites


def versions_of(graph: Graph, before: int) -> Versions:
    """The versions that a graph depends on.

    Args:
        graph: a graph, not lowered yet.
        before: the :func:`moment` before it was traced.
    """
    used = dict.fromkeys(node.op for node in all_nodes(graph))
    return Versions(tuple((op, op.version) for op in used), before)


def changes() -> int:
    """The count of all changes so far: while it stays the same, nothing needs to be compared."""
    return _Clock.changes
