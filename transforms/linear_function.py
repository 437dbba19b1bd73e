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


@dataclass(frozen=True, slots=True, eq=False)
class LinearFunctionSpec:
    """The static part of a linear function.

    Attributes:
        name: for messages.
        is_reverse: whether it takes one tree of cotangents and gives a tuple; else it takes tangents.
        treedef, specs: of what it takes.
        outdef, results: TreeDef and specs of what it gives.
        graph: that of the function, from and to what is not an integer, with what it reaches as further inputs.
    """

    name: str
    is_reverse: bool
    treedef: pytree.TreeDef
    specs: Sequence[TensorSpec]
    outdef: pytree.TreeDef
    results: Sequence[TensorSpec]
    graph: Graph | None = None


class LinearFunction:
    """A linear function of trees that a transform has made; a container whose leaves are the tensors that it needs.

    Args:
        form: what does not vary.
        run: the function, on a leaf for each that it takes (None: zero, or an integer's), to a leaf for each that it
            gives.
    """

    __slots__ = ("__weakref__", "_captures", "_levels", "_run", "_spec")

    def __init__(self, spec: LinearFunctionSpec, run: Callable[[Tangents], list[Tensor]]):
        self._spec, self._run = spec, run
        self._levels = list(stack.levels), stack.floor
        self._captures: Sequence[Tensor] = ()

    @restore_state_on_error
    def __call__(self, /, *trees: Pytree) -> Any:
        """The cotangents of the arguments from those of the value, or the tangent of the value in a direction."""
        spec, given = self._spec, list(trees)
        if spec.is_reverse and len(trees) != 1:
            raise ArgumentError(f"{spec.name}: one tree of cotangents is taken, not {len(trees)}")
        what = "cotangent" if spec.is_reverse else "tangent"
        leaves = match_leaves(
            spec.name, what, given[0] if spec.is_reverse else given, spec.treedef, spec.specs
        )
        result = spec.outdef.unflatten(self._run(leaves))
        return tuple(result) if spec.is_reverse else result

    def __repr__(self) -> str:
        return f"<linear function of {self._spec.name}>"

    def _trace_graph(self) -> None:
        """Replace the recorded function by a traced graph."""
        spec, run = self._spec, self._run
        places = _inexact_positions(spec.specs)

        def on_tensors(*tensors: Tensor) -> list[Tensor]:
            given: list[Tensor | None] = [None] * len(spec.specs)
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            result = run(given)
            return [result[place] for place in _inexact_positions(spec.results)]

        machinery = lazy.control_machinery("subgraph")
        with reopen_levels(
            *self._levels
        ):  # who takes results apart does so when their transform has just ended
            closed = machinery.trace_body(spec.name, on_tensors, [spec.specs[place] for place in places])
        self._set(replace(spec, graph=closed.graph), closed.reached)

    def _set(self, spec: LinearFunctionSpec, reached: Sequence[Tensor]) -> None:
        self._spec, self._captures, self._run = spec, reached, self._run_graph

    def _run_graph(self, leaves: Tangents) -> list[Tensor]:
        spec = self._spec
        given = [
            zeros_of(spec.specs[place]) if leaves[place] is None else leaves[place]
            for place in _inexact_positions(spec.specs)
        ]
        numbers = iter(lazy.control_machinery("subgraph").run_graph(spec.graph, [*given, *self._captures]))
        return [next(numbers) if item.dtype.is_inexact else zero_tangent(item) for item in spec.results]


def _inexact_positions(specs: Sequence[TensorSpec]) -> list[int]:
    """The positions of specs that are not integers."""
    return [place for place, spec in enumerate(specs) if spec.dtype.is_inexact]


def _flatten(function: LinearFunction) -> tuple[Sequence[Tensor], LinearFunctionSpec]:
    if function._spec.graph is None:
        function._trace_graph()
    return function._captures, function._spec


def _unflatten(spec: LinearFunctionSpec, reached: Iterable[Tensor]) -> LinearFunction:
    made = object.__new__(LinearFunction)
    made._set(spec, tuple(reached))
    return made


pytree.register_pytree_node(LinearFunction, _flatten, _unflatten)
