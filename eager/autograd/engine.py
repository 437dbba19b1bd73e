"""The autograd engine: propagate gradients from results to leaves, newest node first.

A node is always newer than the nodes it depends on, so a heap by sequence number yields a topological order. Nothing
recurses: a graph may be as deep as memory allows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.observers import current_observer
from ...registry.dispatch.state import state
from ..tensor.dunders import by_name
from ..tensor.storage import owner_of
from ..tensor.tensor import Tensor
from . import anomaly, hooks
from .autograd_meta import AutogradMeta
from .node import Node, fit
from .node_sources import next_node, node_sources
from .view_writes import is_alone

if TYPE_CHECKING:
    from ...eager.autograd.node import Edge

K = TypeVar("K")
Root = tuple[Any, int, Tensor]


class Pass:
    """One backward pass.

    Args:
        keep: whether residuals are kept after the run.
    """

    def __init__(self, keep: bool):
        self.keep = bool(keep)
        self.leaves: dict[AutogradMeta, Tensor] = {}
        self._heap: list[tuple[int, Node]] = []
        self._pending: dict[Node, dict[int, Tensor]] = {}
        self._wanted: dict[tuple[Node, int], Tensor | None] = {}

    def run(
        self, roots: Iterable[Root], wanted: Iterable[tuple[Node, int]] = ()
    ) -> dict[AutogradMeta, Tensor]:
        """Run the pass and return the summed gradient of each leaf reached.

        Args:
            roots: ``(node or leaf, index, gradient)``.
            wanted: results of nodes whose gradients are also stored, in :attr:`wanted`.
        """
        self._wanted = dict.fromkeys(wanted)
        if not hooks.used[0]:
            return self._run(roots)
        with hooks.collect_multi_grads():
            return self._run(roots)

    def _run(self, roots: Iterable[Root]) -> dict[AutogradMeta, Tensor]:
        """Evaluate the nodes that the roots depend on, newest first."""
        for target, index, gradient in roots:
            self._deliver(target, index, gradient)
        heap, is_observed = self._heap, current_observer() is not None
        step = self._observed_step if is_observed else self._step
        is_watched = hooks.used[0] or self._wanted or is_observed or anomaly.checks[0]
        advance = next_node if is_watched else node_sources[-1]
        is_recorded = not state.exclude & AUTOGRAD
        while heap:
            node = advance(self._deliver, heap, self._pending, self.leaves, self.keep, is_recorded)
            if node is not None:
                step(node)
        if hooks.used[0]:
            self.leaves = {leaf: hooks.run(leaf, 0, gradient) for leaf, gradient in self.leaves.items()}
        return self.leaves

    @property
    def wanted(self) -> dict[tuple[Node, int], Tensor | None]:
        """The gradients of the requested results."""
        return self._wanted

    def _observed_step(self, node: Node) -> None:
        """Evaluate a node inside a profiler event."""
        observer = current_observer()
        if observer is None:
            return self._step(node)
        return observer.span(f"backward of {node.op.name}", "backward", lambda: self._step(node))  # type: ignore[no-any-return]

    def _step(self, node: Node) -> None:
        """Evaluate a node: compute the gradients of its inputs from those of its results, and deliver them.

        Native twin: backends/cpu/fastpath/runtime/rt_backward.py:step
        """
        cotangents = self._pending.pop(node)
        if hooks.used[0]:
            cotangents = {index: hooks.run(node, index, gradient) for index, gradient in cotangents.items()}
            cotangents = hooks.run_before(node, cotangents)
        if self._wanted:
            self._keep_wanted(node, cotangents)
        gradients = node.gradients(cotangents)
        if hooks.used[0]:
            gradients = hooks.run_after(node, gradients, cotangents)
        if anomaly.checks[0]:
            anomaly.check_gradients(node, cotangents.values(), gradients)
        if not self.keep:
            node.free()
        if node.active is None:
            return
        for rule, edge, gradient in zip(node.active.rules, node.edges, gradients):
            if gradient is None:
                continue
            if rule.is_list:
                self._deliver_list(edge, gradient)
                continue
            target, index, shape, dtype = edge
            if (
                gradient.__class__ is not Tensor
                or gradient._array.shape != shape
                or gradient._array.dtype is not dtype.np
            ):
                gradient = fit(gradient, shape, dtype)
            self._deliver(target, index, gradient)

    def _keep_wanted(self, node: Node, cotangents: dict[int, Tensor]) -> None:
        for index, gradient in cotangents.items():
            if (node, index) in self._wanted:
                self._wanted[node, index] = gradient

    def _deliver_list(self, edges: tuple[Edge | None, ...], gradients: Iterable[Tensor | None]) -> None:
        """Deliver the gradients of a list of tensors.

        Native twin: backends/cpu/fastpath/runtime/rt_backward.py:send_list
        """
        for edge, gradient in zip(edges, gradients):
            if edge is not None and gradient is not None:
                target, index, shape, dtype = edge
                self._deliver(target, index, fit(gradient, shape, dtype))

    def _deliver(self, target: Any, index: int, gradient: Tensor) -> None:
        """Add a gradient to that of a leaf, or of a result of a pending node.

        Native twin: backends/cpu/fastpath/runtime/rt_backward.py:deliver
        """
        if target.__class__ is AutogradMeta:
            total = self.leaves.get(target)
            self.leaves[target] = gradient if total is None else total + gradient
            return
        cotangents = self._pending.get(target)
        if cotangents is None:
            self._pending[target] = {index: gradient}
            heapq.heappush(self._heap, (-target.sequence, target))
        else:
            total = cotangents.get(index)
            cotangents[index] = gradient if total is None else total + gradient


def ensure_own_memory(gradients: dict[K, Tensor]) -> dict[K, Tensor]:
    """Clone gradients that share memory with each other, or that are read-only."""
    seen_owners = set[int]()
    for key, gradient in gradients.items():
        if type(gradient) is Tensor:
            array = gradient._array
            owner = array if array.base is None else owner_of(array)
            shared = gradient._storage is not None and not is_alone(gradient)
            if shared or id(owner) in seen_owners or not array.flags.writeable:
                gradient = gradients[key] = by_name("clone")(gradient)
                owner = owner_of(gradient._array)
            seen_owners.add(id(owner))
        elif id(gradient) in seen_owners:  # a traced value or a value of a level that two leaves would share
            gradients[key] = by_name("clone")(gradient)
        else:
            seen_owners.add(id(gradient))
    return gradients
