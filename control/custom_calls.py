"""Calls of functions with custom derivatives inside loop bodies: one operator that holds the function's graph.

The body of a loop is differentiated from its graph, so the user's rule has to be part of the graph. Backends run the
graph of the call; autograd and batching call the function with its rule instead. Checkpointed functions use the same
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..eager.autograd.recompute import RematFrame
from ..eager.layers.levels import LevelTensor
from ..eager.layers.vmap.mapping import make_batch_function
from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from ..operators.declare.batching import BatchInfo
from ..operators.declare.declaration import Declaration
from ..registry.operator import Operator, find_operator
from ..registry.values import TensorSpec, describe
from ..tracer.graph import Graph
from ..tracer.trace import list_substituted, substitute_captures
from .batching import batch_graph
from .ops import LIBRARY, ON_DEVICE, run_body, to_array, wrap_arrays
from .structure import to_tensor
from .subgraph import run_graph, trace_body

if TYPE_CHECKING:
    from ..eager.autograd.recompute import Policy
    from ..registry.types import Args, Function, Kwargs, Pytree
    from .batching import Dims
    from .subgraph import BodyInput

    # A function of the leaves of its arguments.
    LeafFunction = Callable[[list[object]], Pytree]
    # Makes a context manager in which captured tensors of a rule are replaced by arguments of the call.
    Substitution = Callable[[], AbstractContextManager[None]]


def call(
    name: str,
    run: LeafFunction,
    run_with_rule: Callable[[list[object], Substitution], Pytree],
    leaves: list[object],
    rule: LeafFunction | None = None,
) -> Pytree:
    """Append a call of a function with a custom derivative to the trace.

    Args:
        name: the name of the function, for messages.
        run: the function of the leaves without its rule; returns any tree.
        run_with_rule: the function with its rule; also takes a function that returns a context manager for the part of
            the rule that runs later.
        leaves: its arguments; leaves that are not tensors are static.
        rule: the rule alone, of the leaves; it is traced to find the values that it captures.

    Raises:
        UnsupportedError: the function or the rule captures a value that is being differentiated.
    """
    function = _TracedFunction(name, run, leaves)
    if rule is not None:
        function.add_captures(name, rule)
    originals = [list_substituted(x) for x in function.captures]

    def call_rule(*tensors: Tensor) -> list[Tensor]:
        count = len(function.tensors)

        def substitute() -> AbstractContextManager[None]:
            return substitute_captures(originals, tensors[count:])

        with substitute():
            result = run_with_rule(function.fill(tensors[:count]), substitute)
        return [to_tensor(leaf) for leaf in pytree.flatten(result)[0]]

    return function.append_call(call_rule)


def call_checkpointed(fun: Function, args: Args, kwargs: Kwargs, policy: Policy | None) -> Pytree:
    """Append a call of a checkpointed function to the trace; its derivative recomputes the graph."""
    leaves, treedef = pytree.flatten((args, kwargs))

    def run(given: list[object]) -> Pytree:
        given_args, given_kwargs = treedef.unflatten(given)
        return fun(*given_args, **given_kwargs)

    function = _TracedFunction(f"checkpoint({getattr(fun, '__name__', fun)})", run, leaves)

    def run_closed(*tensors: BodyInput) -> tuple[Tensor, ...]:
        return tuple(run_graph(function.closed.graph, tensors))

    return function.append_call(lambda *tensors: RematFrame(run_closed, tensors, {}, policy).run())


class _TracedFunction:
    """A function traced to a graph.

    Attributes:
        tensors: the tensors among its arguments.
        closed: its graph.
        captures: the tensors that the function and its rule capture.
    """

    def __init__(self, name: str, run: LeafFunction, leaves: list[object]):
        tensors = {index: leaf for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        self._indices, self.tensors = list(tensors), list(tensors.values())
        self._leaves, self._run = leaves, run
        self._structure = pytree.flatten(None)[1]
        self.closed = trace_body(name, self._run_on_tensors, [x.spec for x in self.tensors])
        self.captures = list(self.closed.captures)

    def fill(self, tensors: Sequence[Tensor]) -> list[object]:
        """The arguments with other tensors."""
        result = list(self._leaves)
        for index, tensor in zip(self._indices, tensors):
            result[index] = tensor
        return result

    def _run_on_tensors(self, *tensors: Tensor) -> list[Tensor]:
        leaves, self._structure = pytree.flatten(self._run(self.fill(tensors)))
        return [to_tensor(leaf) for leaf in leaves]

    def add_captures(self, name: str, rule: LeafFunction) -> None:
        """Add the captured tensors of a rule as further, unused inputs of the graph."""

        def run_rule(*tensors: Tensor) -> list[Tensor]:
            rule(self.fill(tensors))
            return []

        captures: tuple[BodyInput, ...]
        try:
            captures = trace_body(name, run_rule, [x.spec for x in self.tensors]).captures
        except Exception:  # a rule that raises here raises again if it is needed
            captures = ()
        known = {id(x) for x in self.captures}
        for x in captures:
            if id(x) not in known and isinstance(x, Tensor):
                self.captures.append(x)
                self.closed.graph.add_input(x.spec, None)
        for x in self.captures:
            if isinstance(x, LevelTensor) and x.requires_grad and x._level.run is None:
                raise UnsupportedError(
                    f"{name} has a custom derivative and captures {describe(x)}, a value of {x._level.name}, which "
                    "is not an argument; pass that value as an argument"
                )

    def append_call(self, rule: Function) -> Pytree:
        """Append the node that holds the graph and the rule; returns its results."""
        results = CALL(self.closed.graph, rule, [*self.tensors, *self.captures])
        return self._structure.unflatten(results)


def _specs(body: Graph, rule: object, operands: object) -> tuple[TensorSpec, ...]:
    return tuple(output.spec for output in body.outputs)


def _kernel(body: Graph, rule: object, operands: Sequence[BodyInput]) -> tuple[Tensor, ...]:
    return wrap_arrays(run_body(body, [to_array(x) for x in operands]))


def _batch_call(
    info: BatchInfo,
    in_dims: tuple[None, None, Dims],
    body: Graph,
    rule: Function,
    operands: Sequence[BodyInput],
) -> tuple[tuple[Tensor, ...], Dims]:
    """Batching rule: the graph for whole batches, with the rule mapped over the examples."""
    flags = [dim is not None for dim in in_dims[2]]
    graph, batched = batch_graph(body, info, flags, [True] * len(body.outputs))
    batch_rule = make_batch_function(rule, tuple(in_dims[2]), 0, axis_size=info.batch_size, axis_name=None)
    return tuple(info.call(graph, batch_rule, operands)), tuple(0 if flag else None for flag in batched)


def _call_rule(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: Kwargs) -> tuple[Tensor, ...]:
    _, rule, operands = args
    return tuple(rule(*operands))


SCHEMA = "call(GraphModule body, Any rule, Tensor[] operands) -> Tensor[]"
DOC = "Call a function that has a custom derivative."
LIBRARY.define(
    SCHEMA, Declaration(SCHEMA, "control", DOC, shape_rule=_specs, method=False, batching=_batch_call)
)
LIBRARY.impl("call", _kernel, "CPU")
LIBRARY.impl("call", ON_DEVICE.call, "CUDA")
LIBRARY.impl("call", _call_rule, "Autograd", boxed=True)
CALL = find_operator("control::call")
