"""The graph that a recording scope leaves behind, detached from the scope's values, for ``vjp`` and ``linearize``.

The residuals of the graph become tensors without a graph of their own, as the payloads of a level are. So the graph may
be run any number of times, inside any transform, and the values of the scope may end.

A value of the scope may also depend on tensors that the caller has made leaves. The graph that leads to those stays as
it is, for the caller's ``backward()``. A copy of its nodes that lead to the inputs becomes the graph of the scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...registry.dispatch.keys import CPU_KEYS
from ..autograd.autograd_meta import AutogradMeta
from ..autograd.node import Node, sequence
from ..tensor.storage import Hold, Storage
from ..tensor.tensor import Tensor, require_grad, wrap_view
from .recording_scope import RecordingScope, find_leaves, is_of_caller, target_of, targets_of

Root = tuple[Any, int]
OWN, OTHERS = 1, 2  # whether a graph leads to inputs of the scope; to other leaves
_IGNORED = AutogradMeta()  # gets the gradients of other leaves


class RecordedGraph:
    """The graph of a scope whose function has returned.

    Args:
        scope: the scope.
        results: the results of the function that are differentiated.
        others: its other results.

    Attributes:
        inputs: the leaf and the spec of each input; None in place of the leaf of an integer.
        roots: for each result its node or leaf and its index there; None if it does not depend on the inputs.
        is_closed: whether the graph leads to inputs of the scope alone, so that none of its residuals is recorded.
    """

    def __init__(self, scope: RecordingScope, results: Sequence[Tensor], others: Iterable[object] = ()):
        self._scope = scope
        # By the id of their arrays; None after the end, when recomputed residuals are still detached.
        self._plain: dict[int, Any] | None = {id(source._array): source for source in scope.sources}
        self._kept: list[object] = []
        self._bits: dict[Any, int] = {}
        self.inputs = [(x._meta if x.dtype.is_inexact else None, x.spec) for x in scope.inputs]
        targets = [target_of(value) for value in results]
        given = [*targets, *map(target_of, others)]
        given = [x for x in given if x is not None]
        nodes, self._is_simple = scope.nodes_below(given)
        self._twins: dict[Any, Any] = {}
        if self._is_simple:
            self.is_closed = True
            wholes = [
                self._detach_residuals(node)
                if node.__class__ is Node and node.residuals.__class__ is tuple
                else node.change_residuals(self._detach)
                for node in nodes
            ]
        else:
            self.is_closed = not any(self._find_bits(target) & OTHERS for target in given)
            wholes = self._copy(nodes)
        if not all(wholes):  # a recomputation needs the values
            scope.is_kept = True
        self.roots = [self._root(value, target) for value, target in zip(results, targets)]

    def _root(self, value: Any, target: object) -> Root | None:
        if target is None:
            return None
        if self._is_simple or target in self._scope.metas:
            return target, value._meta.index
        twin = self._twins.get(target)
        return None if twin is None else (twin, value._meta.index)

    def strip(self, value: Any) -> Any:
        """Return what the caller gets for a value: the tensor without its graph, for an input the original tensor."""
        target = target_of(value)
        if target is None:
            return value
        bits = OWN if self._is_simple else self._find_bits(target)
        if bits == OWN:
            return self._to_plain(value)
        self._scope.is_kept |= bits == OWN | OTHERS
        return value

    # -- values without a graph ----------------------------------------------------------------------------------------
    def _to_plain(self, value: Any, storage: Storage | None = None) -> Any:
        """The tensor without a graph that shares memory with a value, the same for each use."""
        is_plain = type(value) is Tensor
        known, key = self._plain, id(value._array) if is_plain else id(value)
        plain = None if known is None else known.get(key)
        if plain is not None:
            return plain
        plain = wrap_view(value._array, value) if is_plain else value._alias()
        if storage is not None and is_plain:
            plain._storage = storage
        if known is not None:
            known[key] = plain
            if not is_plain:
                self._kept.append(value)  # so that its id remains its own
        return plain

    def end(self) -> None:
        """Release the values: no more results are stripped."""
        self._plain, self._kept = None, []

    def _detach(self, value: Any, version: Any, index: int | None) -> tuple[Any, Any]:
        """A residual without a graph, and its version."""
        if version.__class__ is Hold:
            return self._to_plain(value, version.storage), version.version
        meta = value._meta
        if meta is None or not meta.requires_grad:
            return value, version
        return self._to_plain(value), version

    def _detach_residuals(self, node: Node) -> bool:
        """:meth:`_detach` for the residuals of a common node, with few calls."""
        changed: list[Any] | None = None
        for index, (value, version) in enumerate(zip(node.residuals, node.versions)):
            if version is None:
                continue
            if (
                version.__class__ is not int or value.__class__ is not Tensor
            ):  # an alias of a result, or a list
                return node.change_residuals(self._detach)
            if value._keys == CPU_KEYS:
                continue
            if changed is None:
                changed = list(node.residuals)
            plain = self._plain.get(id(value._array))  # type: ignore[union-attr]
            changed[index] = self._to_plain(value) if plain is None else plain
        if changed is not None:
            node.residuals = tuple(changed)
        return True

    # -- graphs that lead to other leaves ------------------------------------------------------------------------------
    def _copy(self, nodes: list[Node]) -> list[bool]:
        """Copy the nodes that lead to inputs; returns whether each is known to refer to no other tensors."""
        wholes = []
        for node in sorted(nodes, key=_number):
            if self._find_bits(node) & OWN:
                twin = self._twins[node] = node.copy()
                twin.sequence = next(sequence)
                twin.edges = tuple([self._copy_edge(edge) for edge in node.edges])
                wholes.append(twin.change_residuals(_Change(self, node)))
        return wholes

    def _copy_edge(self, edge: Any) -> Any:
        if edge is None or not edge:
            return edge
        if edge[0] is None or edge[0].__class__ is tuple:
            return tuple([self._copy_edge(item) for item in edge])
        target = edge[0]
        if target not in self._scope.metas:
            target = self._twins.get(target, _IGNORED)
        return (target, *edge[1:])

    def _find_bits(self, target: Any) -> int:
        """The ends of the graph of a node or leaf: a combination of ``OWN`` and ``OTHERS``."""
        known = self._bits.get(target)
        if known is not None:
            return known
        scope = self._scope
        if target.__class__ is AutogradMeta:
            return OWN if target in scope.metas else OTHERS * is_of_caller(target)
        nodes = scope.nodes_below([target])[0]
        if not nodes:  # it is from before the scope
            bits = self._bits[target] = OTHERS * any(map(is_of_caller, find_leaves([target])))
            return bits
        for node in sorted(nodes, key=_number):
            if node not in self._bits:
                bits = 0
                for below in targets_of(node.edges):
                    bits |= self._find_bits(below)
                # Inside no_grad, what depends on the inputs is recorded for them alone.
                self._bits[node] = OWN if bits & OWN and not scope.records_others else bits
        return self._bits[target]

    def change(self, node: Node, value: Any, version: Any, index: int | None) -> tuple[Any, Any]:
        """A residual of the copy of a node, without its graph if that leads to inputs alone, and its version."""
        is_result = version.__class__ is Hold
        target = node if is_result else target_of(value)
        bits = 0 if target is None else self._find_bits(target)
        if target is None or bits == OTHERS:
            return value, version
        if not bits & OTHERS:
            return self._detach(value, version, index)
        self._scope.is_kept = True
        if not is_result:
            return value, version
        alias = value._alias()
        alias._storage = version.storage
        is_recorded = value.dtype.is_inexact
        return require_grad(alias, AutogradMeta(node, index or 0)) if is_recorded else alias, version.version


class _Change:
    """:meth:`RecordedGraph.change` for the residuals of one node."""

    __slots__ = ("_graph", "_node")

    def __init__(self, graph: RecordedGraph, node: Node):
        self._graph, self._node = graph, node

    def __call__(self, value: Any, version: Any, index: int | None) -> tuple[Any, Any]:
        return self._graph.change(self._node, value, version, index)


def _number(node: Node) -> int:
    return node.sequence
