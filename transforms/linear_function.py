"""What ``vjp`` and ``linearize`` give: linear functions, which are containers of what they have saved.

As a container such a function is the graph of itself, and its leaves are the tensors that the graph reaches. So it goes
into jitted functions and out of them, through ``vmap``, and into the closures that transforms look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import lazy, pytree
from ..eager.level_stack import reopened, stack
from ..eager.node import zeros_of
from ..errors import ArgumentError
from ..registry.values import TensorSpec
from .arguments import matching
from .zeros import zero_tangent

Leaves = list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What does not vary of a linear function.

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
    graph: Any = None


class LinearFunction:
    """A linear function of trees that a transform has made; a container whose leaves are the tensors that it needs.

    Args:
        form: what does not vary.
        run: the function, on a leaf for each that it takes (None: zero, or an integer's), to a leaf for each that it
            gives.
    """

    __slots__ = ("__weakref__", "_form", "_levels", "_reached", "_run")

    def __init__(self, form: Form, run: Callable[[Leaves], Leaves]):
        self._form, self._run = form, run
        self._levels = list(stack.levels), stack.floor
        self._reached: Sequence[Any] = ()

    def __call__(self, /, *trees: Any) -> Any:
        """The cotangents of the arguments from those of the value, or the tangent of the value in a direction."""
        form, given = self._form, list(trees)
        if form.is_reverse and len(trees) != 1:
            raise ArgumentError(f"{form.name}: one tree of cotangents is taken, not {len(trees)}")
        what = "cotangent" if form.is_reverse else "tangent"
        leaves = matching(form.name, what, given[0] if form.is_reverse else given, form.treedef, form.specs)
        found = form.outdef.unflatten(self._run(leaves))
        return tuple(found) if form.is_reverse else found

    def __repr__(self) -> str:
        return f"<linear function of {self._form.name}>"

    def _close(self) -> None:
        """Have a graph in the place of what has been recorded."""
        form, run = self._form, self._run
        places = _varying(form.specs)

        def on_tensors(*tensors: Any) -> Leaves:
            given: Leaves = [None] * len(form.specs)
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            found = run(given)
            return [found[place] for place in _varying(form.results)]

        machinery = lazy.control_machinery("subgraph")
        with reopened(*self._levels):  # who takes results apart does so when their transform has just ended
            closed = machinery.trace_body(form.name, on_tensors, [form.specs[place] for place in places])
        self._set(replace(form, graph=closed.graph), closed.reached)

    def _set(self, form: Form, reached: Sequence[Any]) -> None:
        self._form, self._reached, self._run = form, reached, self._run_graph

    def _run_graph(self, leaves: Leaves) -> Leaves:
        form = self._form
        given = [
            zeros_of(form.specs[place]) if leaves[place] is None else leaves[place]
            for place in _varying(form.specs)
        ]
        numbers = iter(lazy.control_machinery("subgraph").run_graph(form.graph, [*given, *self._reached]))
        return [next(numbers) if spec.dtype.is_inexact else zero_tangent(spec) for spec in form.results]


def _varying(specs: Sequence[TensorSpec]) -> list[int]:
    """The places of what is not an integer."""
    return [place for place, spec in enumerate(specs) if spec.dtype.is_inexact]


def _flatten(function: LinearFunction) -> tuple[Sequence[Any], Form]:
    if function._form.graph is None:
        function._close()
    return function._reached, function._form


def _unflatten(form: Form, reached: Any) -> LinearFunction:
    made = object.__new__(LinearFunction)
    made._set(form, tuple(reached))
    return made


pytree.register_pytree_node(LinearFunction, _flatten, _unflatten)
