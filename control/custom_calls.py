"""Functions with derivatives of their own inside the bodies of loops: one operator that holds the function's graph.

The body of a loop is differentiated from its graph, so a rule that the user has written has to be in the graph. Below
the layers the call is its graph; a level that differentiates, and a batch, call the function with its rule instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.batched.mapping import mapped
from ..eager.tensor import Tensor
from ..operators.batching import Batched, BatchInfo
from ..operators.declare import Declaration
from ..registry.operator import Operator, find
from ..tracer.graph import Graph
from .batching import batched_graph
from .ops import LIBRARY, run_body, wrapped
from .structure import as_tensor
from .subgraph import trace_body

Function = Callable[..., Any]


def call(name: str, run: Function, again: Function, leaves: list[Any]) -> Any:
    """Record a call of a function that has a derivative of its own.

    Args:
        name: what is called, for messages.
        run: the function, of the leaves, without its rule; gives any tree.
        again: the same with its rule.
        leaves: its arguments; what is no tensor is fixed.
    """
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    fixed = list(leaves)
    structure = pytree.flatten(None)[1]

    def filled(tensors: Any) -> list[Any]:
        for place, tensor in zip(places, tensors):
            fixed[place] = tensor
        return list(fixed)

    def traced(*tensors: Any) -> list[Any]:
        nonlocal structure
        found, structure = pytree.flatten(run(filled(tensors)))
        return [as_tensor(leaf) for leaf in found]

    def with_rule(*tensors: Any) -> list[Any]:
        return [as_tensor(leaf) for leaf in pytree.flatten(again(filled(tensors[: len(places)])))[0]]

    tensors = [leaves[place] for place in places]
    closed = trace_body(name, traced, [x.spec for x in tensors])
    found = CALL(closed.graph, with_rule, [*tensors, *closed.reached])
    return structure.unflatten(found)


def _specs(body: Graph, again: Any, operands: Any) -> tuple[Any, ...]:
    return tuple(output.spec for output in body.outputs)


def _kernel(body: Graph, again: Any, operands: Any) -> tuple[Any, ...]:
    return wrapped(run_body(body, [x._array if isinstance(x, Tensor) else x for x in operands]))


def _batched(info: BatchInfo, in_dims: Any, body: Graph, again: Function, operands: Any) -> Batched:
    """The call for whole batches; its rule is that of the function mapped over the examples."""
    flags = [dim is not None for dim in in_dims[2]]
    graph, found = batched_graph(body, info.batch_size, flags, [True] * len(body.outputs))
    whole = mapped(again, tuple(in_dims[2]), 0, axis_size=info.batch_size, axis_name=None)
    return tuple(info.call(graph, whole, operands)), tuple(0 if flag else None for flag in found)


def _with_rule(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _, again, operands = args
    return tuple(again(*operands))


SCHEMA = "call(GraphModule body, Any rule, Tensor[] operands) -> Tensor[]"
DOC = "Call a function that has a derivative of its own."
LIBRARY.define(SCHEMA, Declaration(SCHEMA, "control", DOC, meta=_specs, method=False, batching=_batched))
LIBRARY.impl("call", _kernel, "CPU")
LIBRARY.impl("call", _with_rule, "Autograd", boxed=True)
CALL = find("control::call")
