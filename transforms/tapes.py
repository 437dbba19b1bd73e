"""Tape: the recorded graph of a function that ran once, for reverse passes through it.

A function runs on values of a level, or, if its call is not nested in another transform, on leaves of autograd's graph,
on which operators have native entries (:mod:`..eager.layers.recording_scope`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import lazy, pytree
from ..eager.autograd import engine
from ..eager.autograd.autograd_meta import AutogradMeta
from ..eager.autograd.engine import Pass, ensure_own_memory
from ..eager.layers.levels import Level, LevelTensor, open_level, unwrap, wrap_level
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..registry.dispatch.keys import AUTOGRAD, CPU_KEYS
from ..registry.dispatch.state import current_keys, set_keys, state
from ..registry.source import source_line
from ..registry.values import TensorSpec
from .zeros import Tangents, zero_tangent

if TYPE_CHECKING:
    from ..eager.autograd.node import Node
    from ..registry.types import Pytree

recorded_graph = lazy.Module(".eager.layers.recorded_graph")  # for the first call of vjp
recording_scope = lazy.Module(".eager.layers.recording_scope")

Root = tuple[Any, int]
Leaves = list[Any]
Input = tuple[AutogradMeta | None, TensorSpec]
# Runs a function of tensors; returns the leaves of its result, and its auxiliary output.
Call = Callable[[list[Tensor]], tuple[Leaves, "Pytree"]]


class Tape:
    """The recorded graph of a function; :meth:`pull` runs it backward.

    Args:
        inputs: the leaf of the graph and the spec of each input; None in place of the leaf of an integer.
        roots: for each result its node or leaf and its index there; None if it does not depend on the inputs.
        is_closed: whether no residual of the graph is recorded by ``backward()``.
    """

    def __init__(self, inputs: Sequence[Input], roots: Sequence[Root | None], is_closed: bool):
        self._inputs, self._roots, self._is_closed = inputs, roots, is_closed

    def pull(self, cotangents: Tangents) -> list[Tensor]:
        """Map the cotangents of the results (None: zero) to the cotangents of the inputs."""
        pairs = zip(self._roots, cotangents)
        roots = [(*root, g) for root, g in pairs if root is not None and g is not None]
        gradients = self._run(roots) if roots else {}
        for _, _, g in roots:  # a cotangent that is passed through unchanged belongs to the caller: copy it
            for meta, gradient in gradients.items():
                if gradient is g:
                    gradients[meta] = by_name("clone")(g)
        return [gradients[meta] if meta in gradients else zero_tangent(spec) for meta, spec in self._inputs]

    def _run(self, roots: list[engine.Root]) -> dict[Any, Tensor]:
        """The gradients of the leaves; a pass that has nothing to record runs without recording."""
        if not self._is_closed or any(type(g) is not Tensor or g._keys != CPU_KEYS for _, _, g in roots):
            return ensure_own_memory(Pass(keep=True).run(roots))
        before = current_keys()
        try:
            set_keys(state.include, state.exclude | AUTOGRAD)
            return ensure_own_memory(Pass(keep=True).run(roots))
        finally:
            set_keys(*before)


def record(name: str, tensors: list[Tensor], call: Call) -> tuple[Leaves, Pytree, Tape]:
    """Run a function on tensors that are differentiated by; return the leaves of its result, the rest, and the tape.

    Args:
        name: the transform, for messages.
        tensors: the inputs of the function.
        call: runs it.
    """
    run = _record_in_scope if recording_scope.is_available(tensors) else _record_at_level
    return run(name, tensors, call)


def _record_in_scope(name: str, tensors: list[Tensor], call: Call) -> tuple[Leaves, Pytree, Tape]:
    scope = recording_scope.RecordingScope(name, tensors)
    leaves: Leaves | None = None
    aux: Any = None
    try:
        with scope:
            leaves, aux = call(scope.inputs)
        graph = recorded_graph.RecordedGraph(scope, leaves, () if aux is None else pytree.leaves(aux))
        values = [graph.strip(leaf) for leaf in leaves]
        stripped = None if aux is None else pytree.map_tree(graph.strip, aux)
        graph.end()
        tape = Tape(graph.inputs, graph.roots, graph.is_closed)
    finally:
        leaves = aux = None  # what is alive after this has been leaked
        scope.close()
    return values, stripped, tape


def _record_at_level(name: str, tensors: list[Tensor], call: Call) -> tuple[Leaves, Pytree, Tape]:
    with open_level(name, source_line()) as level:
        inputs = [wrap_input(level, tensor) for tensor in tensors]
        leaves, aux = call(inputs)
    tape = tape_at(level, inputs, leaves)
    return [unwrap(level, leaf) for leaf in leaves], unwrap_tree(level, aux), tape


def tape_at(level: Level, inputs: Sequence[Tensor], results: Sequence[object]) -> Tape:
    """The tape of a function that ran on values of a level.

    Args:
        level: the level.
        inputs: the inputs to differentiate with respect to.
        results: the results: values of the level, and other values, which do not depend on the inputs.
    """
    return Tape([(meta_at(level, x), x.spec) for x in inputs], [root_at(level, x) for x in results], False)


# -- values of a level -------------------------------------------------------------------------------------------------
def wrap_input(level: Level, tensor: Tensor) -> Tensor:
    """Wrap an input to differentiate with respect to as a value of the level; return integers unchanged."""
    return wrap_level(level, tensor, AutogradMeta()) if tensor.dtype.is_inexact else tensor


def unwrap_tree(level: Level, tree: Pytree) -> Pytree:
    """Replace the values of a level in a tree by their payloads."""
    return pytree.map_tree(lambda leaf: unwrap(level, leaf), tree)


def meta_at(level: Level, value: object) -> AutogradMeta | None:
    """The AutogradMeta of an input at a level; None for integers."""
    return value._meta if isinstance(value, LevelTensor) and value._level is level else None


def root_at(level: Level, value: object) -> tuple[Node | AutogradMeta, int] | None:
    """The node or leaf of a value at a level and its result index, from which a reverse pass starts.

    None for a value that does not depend on the inputs of the level.
    """
    if isinstance(value, LevelTensor) and value._level is level and value._meta is not None:
        meta: AutogradMeta = value._meta
        return ((meta.node or meta), meta.index) if meta.requires_grad else None
    return None
