"""Calls of functions with custom derivatives inside loop bodies: one operator that holds the function's graph.

The body of a loop is differentiated from its graph, so the user's rule has to be part of the graph. Backends run the
graph of the call; autograd and batching call the function with its rule instead. Checkpointed functions use the same
operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.autograd.recompute import RematFrame
from ..eager.layers.levels import LevelTensor
from ..eager.layers.vmap.mapping import make_batch_function
from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from ..operators.declare.batching import Batched, BatchInfo
from ..operators.declare.declaration import Declaration
from ..registry.operator import Operator, find_operator
from ..registry.values import describe
from ..tracer.graph import Graph
from ..tracer.trace import list_substituted, substitute_captures
from .batching import batch_graph
from .ops import LIBRARY, ON_DEVICE, run_body, wrap_arrays
from .structure import to_tensor
from .subgraph import run_graph, trace_body

Function = Callable[..., Any]


def call(name: str, run: Function, again: Function, leaves: list[Any], rule: Function | None = None) -> Any:
    """Append a call of a function with a custom derivative to the trace.

    Args:
        name: the name of the function, for messages.
        run: the function of the leaves without its rule; returns any tree.
        again: the function with its rule; also takes a context manager for the part of the rule that runs later.
        leaves: its arguments; leaves that are not tensors are static.
        rule: the rule alone, of the leaves; it is traced to find the values that it captures.

    Raises:
        UnsupportedError: the function or the rule captures a value that is being differentiated.
    """
    made = _TracedFunction(name, run, leaves)
    if rule is not None:
        made.reach(name, rule)
    origins = [list_substituted(x) for x in made.reached]

    def with_rule(*tensors: Any) -> list[Any]:
        count = len(made.tensors)

        def inside() -> Any:
            return substitute_captures(origins, tensors[count:])

        with inside():
            result = again(made.filled(tensors[:count]), inside)
        return [to_tensor(leaf) for leaf in pytree.flatten(result)[0]]

    return made.recorded(with_rule)


def call_checkpointed(fun: Function, args: Any, kwargs: Any, policy: Any) -> Any:
    """Append a call of a checkpointed function to the trace; its derivative recomputes the graph."""
    leaves, treedef = pytree.flatten((args, kwargs))

    def run(given: list[Any]) -> Any:
        given_args, given_kwargs = treedef.unflatten(given)
        return fun(*given_args, **given_kwargs)

    made = _TracedFunction(f"checkpoint({getattr(fun, '__name__', fun)})", run, leaves)

    def of_graph(*tensors: Any) -> tuple[Any, ...]:
        return tuple(run_graph(made.closed.graph, tensors))

    return made.recorded(lambda *tensors: RematFrame(of_graph, tensors, {}, policy).run())


class _TracedFunction:
    """A function traced to a graph.

    Attributes:
        tensors: the tensors among its arguments.
        closed: its graph.
        reached: the tensors that the function and its rule capture.
    """

    def __init__(self, name: str, run: Function, leaves: list[Any]):
        self._places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self._leaves, self._run = leaves, run
        self.tensors = [leaves[place] for place in self._places]
        self._structure = pytree.flatten(None)[1]
        self.closed = trace_body(name, self._traced, [x.spec for x in self.tensors])
        self.reached = list(self.closed.reached)

    def filled(self, tensors: Any) -> list[Any]:
        """The arguments with other tensors."""
        result = list(self._leaves)
        for place, tensor in zip(self._places, tensors):
            result[place] = tensor
        return result

    def _traced(self, *tensors: Any) -> list[Any]:
        value, self._structure = pytree.flatten(self._run(self.filled(tensors)))
        return [to_tensor(leaf) for leaf in value]

    def reach(self, name: str, rule: Function) -> None:
        """Add the captured tensors of a rule as further, unused inputs of the graph."""

        def traced(*tensors: Any) -> list[Any]:
            rule(self.filled(tensors))
            return []

        try:
            value = trace_body(name, traced, [x.spec for x in self.tensors]).reached
        except Exception:  # a rule that raises here raises again if it is needed
            value = ()
        known = {id(x) for x in self.reached}
        for x in value:
            if id(x) not in known and isinstance(x, Tensor):
                self.reached.append(x)
                self.closed.graph.add_input(x.spec, None)
        for x in self.reached:
            if isinstance(x, LevelTensor) and x.requires_grad and x._level.run is None:
                raise UnsupportedError(
                    f"{name} has a custom derivative and captures {describe(x)}, a value of {x._level.name}, which "
                    "is not an argument; pass that value as an argument"
                )

    def recorded(self, rule: Function) -> Any:
        """Append the node that holds the graph and the rule; returns its results."""
        result = CALL(self.closed.graph, rule, [*self.tensors, *self.reached])
        return self._structure.unflatten(result)


def _specs(body: Graph, again: Any, operands: Any) -> tuple[Any, ...]:
    return tuple(output.spec for output in body.outputs)


def _kernel(body: Graph, again: Any, operands: Any) -> tuple[Any, ...]:
    return wrap_arrays(run_body(body, [x._array if isinstance(x, Tensor) else x for x in operands]))


def _batch_call(info: BatchInfo, in_dims: Any, body: Graph, again: Function, operands: Any) -> Batched:
    """Batching rule: the graph for whole batches, with the rule mapped over the examples."""
    flags = [dim is not None for dim in in_dims[2]]
    graph, value = batch_graph(body, info, flags, [True] * len(body.outputs))
    whole = make_batch_function(again, tuple(in_dims[2]), 0, axis_size=info.batch_size, axis_name=None)
    return tuple(info.call(graph, whole, operands)), tuple(0 if flag else None for flag in value)


def _call_rule(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _, again, operands = args
    return tuple(again(*operands))


SCHEMA = "call(GraphModule body, Any rule, Tensor[] operands) -> Tensor[]"
DOC = "Call a function that has a custom derivative."
LIBRARY.define(
    SCHEMA, Declaration(SCHEMA, "control", DOC, shape_rule=_specs, method=False, batching=_batch_call)
)
LIBRARY.impl("call", _kernel, "CPU")
LIBRARY.impl("call", ON_DEVICE.call, "CUDA")
LIBRARY.impl("call", _call_rule, "Autograd", boxed=True)
CALL = find_operator("control::call")
