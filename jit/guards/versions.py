"""Guards on the registry: versions of the operators that a traced graph depends on."""

from __future__ import annotations

from ...named_tuple import NamedTuple
from ...registry.dispatch.keys import BACKENDS, DispatchKey, keyset
from ...registry.operator import Operator, change_listeners
from ...tracer.graph import Graph, all_nodes

# Keys whose kernels run during tracing (layers and shape rules). The graph holds the operators that they call, not
# the kernels themselves.
_TRACING_KEYS = ((1 << len(DispatchKey)) - 1) & ~BACKENDS | keyset(
    DispatchKey.Meta, DispatchKey.SparseMeta, DispatchKey.QuantizedMeta
)


class _Clock:
    """Counts changes of the registry: all changes, and those of kernels that run only during tracing.

    Both counts are written under the registry's lock. Operators that were never dispatched, or are being declared, are
    not in any graph.
    """

    changes = 0
    composites = 0


def _count_change(op: Operator) -> None:
    _Clock.changes += 1
    if op.keys_only or not op.in_use or not op.is_complete:
        return
    if op.changed & _TRACING_KEYS or op.registered("CompositeImplicit") is not None:
        _Clock.composites += 1


change_listeners.append(_count_change)


class Versions(NamedTuple):
    """The state of the registry that one graph depends on.

    Operators in the graph are guarded by version. Kernels that ran only during tracing (decompositions, layers) are not
    in the graph, so a change of any such kernel invalidates it.

    Attributes:
        operators: the operators of the graph and their versions.
        composites: the count of changes of kernels that run while tracing, before the function was traced.
    """

    operators: tuple[tuple[Operator, int], ...]
    composites: int

    def is_current(self) -> bool:
        """Whether nothing that the graph depends on has changed."""
        return self.composites == _Clock.composites and all(op.version == v for op, v in self.operators)


def read_registry_time() -> int:
    """The count of relevant changes; read it before tracing, so that changes during the trace are noticed."""
    return _Clock.composites


def read_versions(graph: Graph, before: int) -> Versions:
    """Read the versions that a graph depends on.

    Args:
        graph: a graph, not lowered yet.
        before: :func:`read_registry_time` before it was traced.
    """
    used = dict.fromkeys(node.op for node in all_nodes(graph))
    return Versions(tuple((op, op.version) for op in used), before)


def count_changes() -> int:
    """The count of all changes of the registry; while it is constant, no versions need to be compared."""
    return _Clock.changes
