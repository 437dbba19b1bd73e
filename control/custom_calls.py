"""Functions with derivatives of their own inside the bodies of loops: one operator that holds the function's graph.

The body of a loop is differentiated from its graph, so a rule that the user has written has to be in the graph. Below
the layers the call is its graph; a level that differentiates, and a batch, call the function with its rule instead.
So it is with what is to be computed again for its derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import pytree
from ..eager.batched.mapping import mapped
from ..eager.levels import LevelTensor
from ..eager.recompute import Frame
from ..eager.tensor import Tensor
from ..errors import UnsupportedError
from ..operators.batching import Batched, BatchInfo
from ..operators.declare import Declaration
from ..registry.operator import Operator, find
from ..registry.values import describe
from ..tracer.graph import Graph
from ..tracer.trace import standing_in, stood_for
from .batching import batched_graph
from .ops import LIBRARY, ON_DEVICE, run_body, wrapped
from .structure import as_tensor
from .subgraph import run_graph, trace_body

Function = Callable[..., Any]


def call(name: str, run: Function, again: Function, leaves: list[Any], rule: Function | None = None) -> Any:
    """Record a call of a function that has a derivative of its own.

    Args:
        name: what is called, for messages.
        run: the function, of the leaves, without its rule; gives any tree.
        again: the same with its rule; gets a context besides, for what of the rule runs later.
        leaves: its arguments; what is no tensor is fixed.
        rule: the rule alone, of the leaves; gives any tree. It shows what the rule reaches by itself.

    Raises:
        UnsupportedError: the function or the rule reaches a value that is differentiated by itself.
    """
    made = _Call(name, run, leaves)
    if rule is not None:
        made.reach(name, rule)
    origins = [stood_for(x) for x in made.reached]

    def with_rule(*tensors: Any) -> list[Any]:
        count = len(made.tensors)

        def inside() -> Any:
            return standing_in(origins, tensors[count:])

        with inside():
            found = again(made.filled(tensors[:count]), inside)
        return [as_tensor(leaf) for leaf in pytree.flatten(found)[0]]

    return made.recorded(with_rule)


def checkpointed(fun: Function, args: Any, kwargs: Any, policy: Any) -> Any:
    """Record a call of a function whose derivative computes it again; its graph is what is computed again."""
    leaves, treedef = pytree.flatten((args, kwargs))

    def run(given: list[Any]) -> Any:
        given_args, given_kwargs = treedef.unflatten(given)
        return fun(*given_args, **given_kwargs)

    made = _Call(f"checkpoint({getattr(fun, '__name__', fun)})", run, leaves)

    def of_graph(*tensors: Any) -> tuple[Any, ...]:
        return tuple(run_graph(made.closed.graph, tensors))

    return made.recorded(lambda *tensors: Frame(of_graph, tensors, {}, policy).run())


class _Call:
    """A function traced to a graph.

    Attributes:
        tensors: those of its arguments that are tensors.
        closed: its graph.
        reached: the tensors that it reaches by itself, and those that its rule reaches.
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
        found = list(self._leaves)
        for place, tensor in zip(self._places, tensors):
            found[place] = tensor
        return found

    def _traced(self, *tensors: Any) -> list[Any]:
        found, self._structure = pytree.flatten(self._run(self.filled(tensors)))
        return [as_tensor(leaf) for leaf in found]

    def reach(self, name: str, rule: Function) -> None:
        """Take what a rule reaches by itself for further inputs of the graph, which it does not use."""

        def traced(*tensors: Any) -> list[Any]:
            rule(self.filled(tensors))
            return []

        try:
            found = trace_body(name, traced, [x.spec for x in self.tensors]).reached
        except Exception:  # a rule that raises: it will where it is needed, if ever
            found = ()
        known = {id(x) for x in self.reached}
        for x in found:
            if id(x) not in known and isinstance(x, Tensor):
                self.reached.append(x)
                self.closed.graph.add_input(x.spec, None)
        for x in self.reached:
            if isinstance(x, LevelTensor) and x.requires_grad and x._level.run is None:
                raise UnsupportedError(
                    f"{name} has a derivative of its own, and reaches {describe(x)}, a value of {x._level.name}, that "
                    "is no argument of it; pass that value as an argument"
                )

    def recorded(self, rule: Function) -> Any:
        """The results of a node that holds the graph, and the rule."""
        found = CALL(self.closed.graph, rule, [*self.tensors, *self.reached])
        return self._structure.unflatten(found)


def _specs(body: Graph, again: Any, operands: Any) -> tuple[Any, ...]:
    return tuple(output.spec for output in body.outputs)


def _kernel(body: Graph, again: Any, operands: Any) -> tuple[Any, ...]:
    return wrapped(run_body(body, [x._array if isinstance(x, Tensor) else x for x in operands]))


def _batched(info: BatchInfo, in_dims: Any, body: Graph, again: Function, operands: Any) -> Batched:
    """The call for whole batches; its rule is that of the function mapped over the examples."""
    flags = [dim is not None for dim in in_dims[2]]
    graph, found = batched_graph(body, info, flags, [True] * len(body.outputs))
    whole = mapped(again, tuple(in_dims[2]), 0, axis_size=info.batch_size, axis_name=None)
    return tuple(info.call(graph, whole, operands)), tuple(0 if flag else None for flag in found)


def _with_rule(op: Operator, keyset: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _, again, operands = args
    return tuple(again(*operands))


SCHEMA = "call(GraphModule body, Any rule, Tensor[] operands) -> Tensor[]"
DOC = "Call a function that has a derivative of its own."
LIBRARY.define(SCHEMA, Declaration(SCHEMA, "control", DOC, meta=_specs, method=False, batching=_batched))
LIBRARY.impl("call", _kernel, "CPU")
LIBRARY.impl("call", ON_DEVICE.call, "CUDA")
LIBRARY.impl("call", _with_rule, "Autograd", boxed=True)
CALL = find("control::call")
