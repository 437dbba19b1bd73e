"""LinearFunction: the result of ``vjp`` and ``linearize``, a pytree of its residuals.

As a pytree it consists of its graph (static) and the tensors that the graph captures (leaves). So it can be passed to
and returned from jitted functions, through ``vmap``, and captured by closures that transforms inspect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import lazy, pytree
from ..eager.autograd.node import zeros_of
from ..eager.layers.level_stack import reopen_levels, stack
from ..errors import ArgumentError
from ..registry.dispatch.unwinding import restore_state_on_error
from ..registry.values import TensorSpec
from .arguments import match_leaves
from .zeros import Tangents, zero_tangent

if TYPE_CHECKING:
    from ..registry.types import Pytree, Tensor
    from ..tracer.graph import Graph

subgraph = lazy.Module(".control.subgraph")


@dataclass(frozen=True, slots=True, eq=False)
class LinearFunctionSpec:
    """The static part of a linear function.

    Attributes:
        name: the name of the transformed function, for messages.
        is_reverse: whether it takes one tree of cotangents and returns a tuple; otherwise it takes tangents.
        treedef, specs: the TreeDef and the specs of the arguments.
        outdef, results: the TreeDef and the specs of the results.
        graph: the traced graph of the function, or None before tracing. Its inputs are the arguments that are not
            integers and the captured tensors; its outputs are the results that are not integers.
    """

    name: str
    is_reverse: bool
    treedef: pytree.TreeDef
    specs: Sequence[TensorSpec]
    outdef: pytree.TreeDef
    results: Sequence[TensorSpec]
    graph: Graph | None = None


class LinearFunction:
    """A linear function of trees: the ``vjp_fn`` of ``vjp`` or the ``jvp_fn`` of ``linearize``; a pytree of residuals.

    Args:
        spec: the static part.
        run: the function from a leaf for each argument (None for zero and for integers) to a leaf for each result.
    """

    __slots__ = ("__weakref__", "_captures", "_levels", "_run", "_spec")

    def __init__(self, spec: LinearFunctionSpec, run: Callable[[Tangents], list[Tensor]]):
        self._spec, self._run = spec, run
        self._levels = list(stack.levels), stack.floor
        self._captures: Sequence[Tensor] = ()

    @restore_state_on_error
    def __call__(self, /, *trees: Pytree) -> Any:
        """Map a cotangent of the value to cotangents of the arguments, or tangents of these to one of the value."""
        spec, arguments = self._spec, list(trees)
        if spec.is_reverse and len(trees) != 1:
            raise ArgumentError(f"{spec.name}: one tree of cotangents is taken, not {len(trees)}")
        what = "cotangent" if spec.is_reverse else "tangent"
        leaves = match_leaves(
            spec.name, what, arguments[0] if spec.is_reverse else arguments, spec.treedef, spec.specs
        )
        result = spec.outdef.unflatten(self._run(leaves))
        return tuple(result) if spec.is_reverse else result

    def __repr__(self) -> str:
        return f"<linear function of {self._spec.name}>"

    def _trace_graph(self) -> None:
        """Replace the recorded function by a traced graph."""
        spec, run = self._spec, self._run
        positions = _inexact_positions(spec.specs)

        def on_tensors(*tensors: Tensor) -> list[Tensor]:
            leaves: list[Tensor | None] = [None] * len(spec.specs)
            for position, tensor in zip(positions, tensors):
                leaves[position] = tensor
            results = run(leaves)
            return [results[position] for position in _inexact_positions(spec.results)]

        with reopen_levels(*self._levels):  # the transform may have ended when the result is flattened
            closed = subgraph.trace_body(
                spec.name, on_tensors, [spec.specs[position] for position in positions]
            )
        self._set(replace(spec, graph=closed.graph), closed.captures)

    def _set(self, spec: LinearFunctionSpec, captures: Sequence[Tensor]) -> None:
        self._spec, self._captures, self._run = spec, captures, self._run_graph

    def _run_graph(self, leaves: Tangents) -> list[Tensor]:
        spec = self._spec
        inputs = [
            zeros_of(spec.specs[position]) if leaves[position] is None else leaves[position]
            for position in _inexact_positions(spec.specs)
        ]
        results = iter(subgraph.run_graph(spec.graph, [*inputs, *self._captures]))
        return [next(results) if item.dtype.is_inexact else zero_tangent(item) for item in spec.results]


def _inexact_positions(specs: Sequence[TensorSpec]) -> list[int]:
    """The positions of specs that are not integers."""
    return [position for position, spec in enumerate(specs) if spec.dtype.is_inexact]


def _flatten(function: LinearFunction) -> tuple[Sequence[Tensor], LinearFunctionSpec]:
    if function._spec.graph is None:
        function._trace_graph()
    return function._captures, function._spec


def _unflatten(spec: LinearFunctionSpec, captures: Iterable[Tensor]) -> LinearFunction:
    function = object.__new__(LinearFunction)
    function._set(spec, tuple(captures))
    return function


pytree.register_pytree_node(LinearFunction, _flatten, _unflatten)
