"""A graph as a function of arrays and numbers, called natively where it can be: one half of a differentiated call."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any

import numpy as np

from .. import pytree
from ..eager.tensor import Tensor, wrap
from ..registry.keys import BACKEND_OF_DEVICE
from ..registry.native_type import NativeCallable, accept_entries
from ..tracer.graph import Graph, Value
from .arguments import Arguments
from .execute import make_executable, run
from .leaves import LeafGuard
from .native import NativeEntry
from .outputs import Output, OutputPlan
from .specialization import Specialization
from .versions import moment, versions_of


@accept_entries
class GraphFunction(NativeCallable):  # type: ignore[misc]
    """Takes an array or a number for each of a graph's parameters and gives its results: a tuple of tensors.

    It is lowered at the first call.

    Args:
        graph: the graph.
        name: what it is called in messages.
    """

    def __init__(self, graph: Graph, name: str):
        self.graph = Graph()
        self.graph.inputs, self.graph.nodes, self.graph.outputs = graph.parameters, graph.nodes, graph.outputs
        self.__name__ = self.__qualname__ = name
        self._arguments = _positional(name, len(self.graph.inputs))
        self._moment = moment()
        self._lock = threading.Lock()
        self._native = NativeEntry(self, functools.partial(type(self).__call__, self))
        self._found: Specialization | None = None

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        found = self._found or self._compiled()
        found.hits += 1
        self._native.link(found, self._arguments, (len(given), ()))
        if found.executable is None:
            return tuple([_copied(given[self.graph.inputs.index(o)]) for o in self.graph.outputs])
        return tuple(run(found.executable, self.graph, given))

    @property
    def specialization(self) -> Specialization | None:
        """What answers its calls; None before the first of them."""
        return self._found

    @property
    def executable(self) -> Any:
        """What runs the graph; None for one without nodes."""
        return (self._found or self._compiled()).executable

    def _compiled(self) -> Specialization:
        with self._lock:
            if self._found is None:
                self._found = self._specialization()
            return self._found

    def _specialization(self) -> Specialization:
        graph = self.graph
        count, results = len(graph.inputs), len(graph.outputs)
        leaves = tuple(Output("result", place) for place in range(results))
        return Specialization(
            treedef=tuple_of(count),
            guards=tuple(map(_guard, graph.inputs)),
            paths=tuple(self._arguments.dynamic),
            statics=(),
            static_values=(),
            include=0,
            exclude=0,
            externals=(),
            captured=(),
            versions=versions_of(graph, self._moment),
            scalar_types=(),
            graph=graph,
            program=graph,
            moving=tuple(range(count)),
            outputs=OutputPlan(leaves, tuple_of(results), tuple(graph.outputs)),
            ranges=(),
            executable=make_executable(graph),
        )


def _copied(given: Any) -> Tensor:
    """A new tensor with the elements of an argument."""
    return given.clone() if isinstance(given, Tensor) else wrap(np.array(given))


def tuple_of(count: int) -> pytree.TreeDef:
    """The structure of a tuple of so many leaves."""
    return pytree.flatten((0,) * count)[1]


def _positional(name: str, count: int) -> Arguments:
    """The arguments of a function of so many positional parameters."""

    def function() -> None: ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"x{place}", kind) for place in range(count)]
    function.__name__, function.__signature__ = name, inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Arguments(function, (), ())


def _guard(value: Value) -> LeafGuard:
    if value.weak is not None:
        return LeafGuard("scalar", value.weak)
    spec = value.spec
    if spec.device != "cpu":
        keys = 1 << BACKEND_OF_DEVICE[spec.device.partition(":")[0]]
        return LeafGuard("tensor", Tensor, spec.dtype.np, spec.shape, True, keys, None, spec.device)
    return LeafGuard("array", np.ndarray, spec.dtype.np, spec.shape)
