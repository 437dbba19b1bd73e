"""A graph as a callable with a native entry: the forward or backward pass of a differentiated call."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from .. import lazy, locks, pytree
from ..eager.tensor.tensor import Tensor, wrap
from ..registry.dispatch.keys import BACKEND_OF_DEVICE
from ..registry.dispatch.observers import kernel_watch
from ..registry.native_type import NativeCallable, accept_entries
from ..tracer.graph import Graph, Value
from .arguments import Arguments
from .execute import make_executable, run
from .guards.leaves import LeafGuard, Strides
from .guards.versions import read_registry_time, read_versions
from .native_entry import NativeEntry
from .outputs import Output, OutputTree
from .specialization import Specialization

_strided_parameters = lazy.Module(".jit.strided_parameters")
_lock = locks.make_lock("jit")


@accept_entries
class GraphFunction(NativeCallable):  # type: ignore[misc]
    """A callable from an array or a number for each of a graph's parameters to a tuple of result tensors.

    The graph is lowered at the first call.

    Args:
        graph: the graph.
        name: its name in messages.
        strided: the parameters that are not contiguous, and their strides in bytes.
    """

    def __init__(self, graph: Graph, name: str, strided: tuple[tuple[int, Strides], ...] = ()):
        whole = Graph()
        whole.inputs, whole.nodes, whole.outputs = graph.parameters, graph.nodes, graph.outputs
        layouts = dict(strided)
        self._guards = tuple(_make_guard(value, layouts.get(n)) for n, value in enumerate(whole.inputs))
        self.graph = _strided_parameters.read_by_strides(whole, strided) if strided else whole
        self._strided = strided
        self.__name__ = self.__qualname__ = name
        self._arguments = _make_positional_arguments(name, len(self.graph.inputs))
        self._moment = read_registry_time()
        self._native = NativeEntry(self, functools.partial(type(self).__call__, self))
        self._cached: Specialization | None = None

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        """Run the graph; it is compiled at the first call."""
        value = self._cached or self._compile()
        value.hits += 1
        self._native.link(value, self._arguments, (len(given), ()))
        if value.executable is None:
            return tuple([_copy_argument(given[self.graph.inputs.index(o)]) for o in self.graph.outputs])
        bases = _strided_parameters.take_bases(given, self._strided, self.graph) if self._strided else given
        return tuple(run(value.executable, self.graph, bases))

    def run(self, *given: object) -> tuple[Any, ...]:
        """Call the function; in Python while a profiler records kernels, which native entries do not report."""
        result: tuple[Any, ...] = (
            self(*given) if kernel_watch.note is None else type(self).__call__(self, *given)
        )
        return result

    @property
    def specialization(self) -> Specialization | None:
        """The specialization of its calls; None before the first call."""
        return self._cached

    @property
    def executable(self) -> Any:
        """The executable of the graph; None for a graph without nodes."""
        return (self._cached or self._compile()).executable

    def _compile(self) -> Specialization:
        result = self._make_specialization()  # several threads may make one; all use the first
        with _lock:
            self._cached = self._cached or result
        return self._cached

    def _make_specialization(self) -> Specialization:
        graph = self.graph
        count, results = len(graph.inputs), len(graph.outputs)
        leaves = tuple(Output("result", index) for index in range(results))
        return Specialization(
            treedef=make_tuple_treedef(count),
            guards=self._guards,
            paths=tuple(self._arguments.dynamic),
            statics=(),
            static_values=(),
            include=0,
            exclude=0,
            externals=(),
            captured=(),
            versions=read_versions(graph, self._moment),
            scalar_types=(),
            graph=graph,
            program=graph,
            dynamic=tuple(range(count)),
            outputs=OutputTree(leaves, make_tuple_treedef(results), tuple(graph.outputs)),
            ranges=(),
            executable=make_executable(graph),
        )


def _copy_argument(given: object) -> Tensor:
    """A new tensor with the elements of an argument."""
    return given.clone() if isinstance(given, Tensor) else wrap(np.array(given))


def make_tuple_treedef(count: int) -> pytree.TreeDef:
    """The treedef of a tuple of ``count`` leaves."""
    return pytree.flatten((0,) * count)[1]


def _make_positional_arguments(name: str, count: int) -> Arguments:
    """Make the argument binder of a function with ``count`` positional parameters."""

    def function() -> None: ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"x{index}", kind) for index in range(count)]
    function.__name__, function.__signature__ = name, inspect.Signature(parameters)  # type: ignore[attr-defined]
    return Arguments(function, (), ())


def _make_guard(value: Value, strides: Strides | None) -> LeafGuard:
    if value.weak is not None:
        return LeafGuard("scalar", value.weak)
    spec = value.spec
    if spec.device != "cpu":
        keys = 1 << BACKEND_OF_DEVICE[spec.device.partition(":")[0]]
        return LeafGuard("tensor", Tensor, spec.dtype.np, spec.shape, None, keys, None, spec.device)
    return LeafGuard("array", np.ndarray, spec.dtype.np, spec.shape, strides)
