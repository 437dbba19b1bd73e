"""Bodies of loops and branches: functions traced to graphs of their own, and graphs run again by calls.

What a body reaches by itself (tensors, traced values of what is being traced around it, values of levels around it)
becomes an input of its graph, so that whoever works on the node that holds the graph sees all that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..eager.construct import asarray
from ..eager.dunders import by_name
from ..eager.levels import stack
from ..eager.recompute import unwatched
from ..eager.tensor import Tensor
from ..errors import UnsupportedError
from ..lowering.rewrite import copy_node, has_effects
from ..registry.keys import AUTOGRAD
from ..registry.state import set_keys, state
from ..registry.values import TensorSpec, describe
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Value, map_values, scalar_spec
from ..tracer.infer import REPRESENTATIVE
from ..tracer.lifting import value_of
from ..tracer.scalar import TracerScalar
from ..tracer.tensor import make_tracer
from ..tracer.trace import Trace, tracing
from .constants import CONSTANT, Data


class Closed(NamedTuple):
    """A graph without captured tensors.

    Attributes:
        graph: its inputs are those that were asked for, then what the function reached by itself.
        reached: the tensors and numbers that it reached by itself.
    """

    graph: Graph
    reached: tuple[Any, ...]


@contextmanager
def body_trace(name: str, is_replay: bool = False) -> Iterator[Trace]:
    """Trace a body for a ``with`` block: what is recorded depends on nothing that is open around it.

    Args:
        name: what is traced, for messages.
        is_replay: whether operators are called that have been through the layers before, and must not go through
            those that are on now (autocast, modes).
    """
    floor, stack.floor = stack.floor, len(stack.levels)
    inside, stack.in_body = stack.in_body, True
    before = set_keys(0 if is_replay else state.include, state.exclude | AUTOGRAD)
    try:
        with unwatched(), tracing(name) as trace:
            yield trace
    finally:
        set_keys(*before)
        stack.floor, stack.in_body = floor, inside


def new_input(trace: Trace, spec: TensorSpec, weak: type | None = None) -> Any:
    """A new input of a body: a traced tensor, or a traced number."""
    value = trace.graph.add_input(spec, weak)
    if weak is not None:
        return TracerScalar(trace, value, REPRESENTATIVE[weak])
    tensor = make_tracer(trace, value)
    Aliases(value, f"an argument of {trace.name}").add(tensor)
    return tensor


def new_number(trace: Trace, example: Any) -> TracerScalar:
    """A new input of a body that is a number like one."""
    kind = type(example)
    return TracerScalar(trace, trace.graph.add_input(scalar_spec(kind), kind), example)


def inputs_like(trace: Trace, values: Sequence[Value]) -> list[Any]:
    """New inputs of the specs of some Values."""
    return [new_input(trace, value.spec, value.weak) for value in values]


def close(trace: Trace, results: Sequence[Any]) -> Closed:
    """The graph of a trace with some results, and with what it has captured as further inputs."""
    outputs = [value_of(trace, item if isinstance(item, TracerScalar) else asarray(item)) for item in results]
    traced, graph = trace.graph, Graph()
    graph.inputs = [*traced.inputs, *traced.captured]
    graph.nodes, graph.outputs = traced.nodes, list(outputs)
    return Closed(graph, tuple(traced.constants))


def trace_body(name: str, fn: Callable[..., Sequence[Any]], specs: Sequence[TensorSpec]) -> Closed:
    """Trace ``fn``, a function of tensors that gives a list of tensors."""
    with body_trace(name) as trace:
        return close(trace, fn(*[new_input(trace, spec) for spec in specs]))


def run_graph(graph: Graph, given: Sequence[Any]) -> list[Any]:
    """Call the operators of a graph on whatever is given for its inputs: traced values, values of levels, tensors."""
    env: dict[Value, Any] = dict(zip(graph.inputs, given, strict=True))
    for node in graph.nodes:
        found = node.op(
            *map_values(env.__getitem__, node.args),
            **{name: map_values(env.__getitem__, value) for name, value in node.kwargs.items()},
        )
        env.update(zip(node.outputs, found if isinstance(found, (tuple, list)) else (found,)))
    return [env[output] for output in graph.outputs]


def retraced(
    name: str, values: Sequence[Value], fn: Callable[..., Sequence[Any]], is_replay: bool = True
) -> Closed:
    """Trace a function of inputs like some Values, by calls of operators that have been traced before."""
    with body_trace(name, is_replay) as trace:
        closed = close(trace, fn(*inputs_like(trace, values)))
    if is_replay and closed.reached:
        return _with_numbers(name, values, closed)
    return closed


def _with_numbers(name: str, values: Sequence[Value], closed: Closed) -> Closed:
    """A graph that makes again what a rule written by hand has made from data.

    Raises:
        UnsupportedError: the rule reaches a value of a transform.
    """
    for tensor in closed.reached:
        if type(tensor) is not Tensor:
            raise UnsupportedError(
                f"{name}: a rule written by hand reaches {describe(tensor)} by itself; pass it as an argument"
            )

    def made(x: Any) -> Any:
        return by_name("full")(x.shape, x.item(), dtype=x.dtype) if x.size == 1 else CONSTANT(Data(x.numpy()))

    def run(*inputs: Any) -> list[Any]:
        return run_graph(closed.graph, [*inputs, *map(made, closed.reached)])

    return retraced(name, values, run)


def extract(graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value], effects: bool = False) -> Graph:
    """A part of a graph as a graph: what is needed for ``outputs`` when ``inputs`` are given.

    Args:
        graph: the graph.
        inputs: its values that are given.
        outputs: its values that are wanted.
        effects: whether nodes with effects belong to the part.
    """
    given = set(inputs)
    wanted, needed = {value for value in outputs if value not in given}, []
    for node in reversed(graph.nodes):
        if any(output in wanted for output in node.outputs) or (effects and has_effects(node)):
            needed.append(node)
            wanted.update(value for value in node.inputs if value not in given)
    made = Graph()
    env = {value: made.add_input(value.spec, value.weak) for value in inputs}
    for node in reversed(needed):
        copy = copy_node(node, env.__getitem__)
        env.update({old: new for old, new in zip(node.outputs, copy.outputs) if old not in given})
        made.nodes.append(copy)
    made.outputs = [env[value] for value in outputs]
    return made
