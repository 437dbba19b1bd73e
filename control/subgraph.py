"""Bodies of loops and branches: trace functions to separate graphs, and run graphs by calling their operators.

The values that a body captures (tensors, traced values of an outer trace, values of outer levels) become inputs of its
graph, so that the node that holds the graph lists all its dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from ..eager.autograd.recompute import hide_from_policies
from ..eager.layers.levels import stack
from ..eager.tensor.construct import asarray
from ..eager.tensor.dunders import by_name
from ..eager.tensor.tensor import Tensor
from ..errors import UnsupportedError
from ..lowering.passes.rewrite import copy_node, has_effects
from ..named_tuple import NamedTuple
from ..registry.dispatch.keys import AUTOGRAD
from ..registry.dispatch.state import current_keys, set_keys, state
from ..registry.values import TensorSpec, describe
from ..tracer.aliases import Aliases
from ..tracer.graph import Graph, Node, Value, map_values, scalar_spec
from ..tracer.infer import EXAMPLES
from ..tracer.lifting import value_of
from ..tracer.scalar import TracerScalar
from ..tracer.tensor import TracerTensor, make_tracer
from ..tracer.trace import Trace, tracing
from .constants import CONSTANT, ArrayConstant

if TYPE_CHECKING:
    from ..registry.types import Number

    # An input of a body: a tensor, or a number in place of one.
    BodyInput: TypeAlias = Tensor | TracerScalar | Number


class ClosedGraph(NamedTuple):
    """A graph without captured tensors.

    Attributes:
        graph: its inputs are the declared ones, then the captured values.
        captures: the captured tensors and numbers.
    """

    graph: Graph
    captures: tuple[BodyInput, ...]


@contextmanager
def body_trace(name: str, is_replay: bool = False) -> Iterator[Trace]:
    """Trace a body in a ``with`` block, independently of levels and layers that are active around it.

    Args:
        name: the name of the body, for messages.
        is_replay: whether the operators have passed the layers before, and must skip the active layers (autocast,
            modes).
    """
    floor, stack.floor = stack.floor, len(stack.levels)
    in_body, stack.in_body = stack.in_body, True
    before = current_keys()
    try:
        set_keys(0 if is_replay else state.include, state.exclude | AUTOGRAD)
        with hide_from_policies(), tracing(name) as trace:
            yield trace
    finally:
        set_keys(*before)
        stack.floor, stack.in_body = floor, in_body


def new_input(
    trace: Trace, spec: TensorSpec, weak: type | None = None, is_own: bool = False
) -> TracerTensor | TracerScalar:
    """Add an input to a body: a traced tensor or a traced number.

    Args:
        trace: the trace of the body.
        spec: the input's spec.
        weak: the type of a number; None: a tensor.
        is_own: whether the body may write into it, because nothing outside has the same memory.
    """
    value = trace.graph.add_input(spec, weak)
    if weak is not None:
        return TracerScalar(trace, value, EXAMPLES[weak])
    tensor = make_tracer(trace, value)
    Aliases(value, "" if is_own else f"an argument of {trace.name}").add(tensor)
    return tensor


def new_number(trace: Trace, example: object) -> TracerScalar:
    """Add an input to a body: a traced number with an example value."""
    python_type = type(example)
    return TracerScalar(trace, trace.graph.add_input(scalar_spec(python_type), python_type), example)


def inputs_like(trace: Trace, values: Sequence[Value]) -> list[TracerTensor | TracerScalar]:
    """Add inputs with the specs of some Values."""
    return [new_input(trace, value.spec, value.weak) for value in values]


def close_trace(trace: Trace, results: Sequence[BodyInput]) -> ClosedGraph:
    """Make a closed graph of a trace: set its outputs, and turn captured values into inputs."""
    outputs = [value_of(trace, x if isinstance(x, TracerScalar) else asarray(x)) for x in results]
    traced, graph = trace.graph, Graph()
    graph.inputs = [*traced.inputs, *traced.captured]
    graph.nodes, graph.outputs = traced.nodes, list(outputs)
    return ClosedGraph(graph, tuple(traced.constants))


def trace_body(
    name: str, fn: Callable[..., Sequence[BodyInput]], specs: Sequence[TensorSpec], own: int = 0
) -> ClosedGraph:
    """Trace ``fn``, a function from tensors to a list of tensors, which may write into the first ``own`` ones."""
    with body_trace(name) as trace:
        inputs = [new_input(trace, spec, is_own=index < own) for index, spec in enumerate(specs)]
        return close_trace(trace, fn(*inputs))


def run_graph(graph: Graph, inputs: Sequence[BodyInput]) -> list[Tensor]:
    """Call the operators of a graph on any inputs: traced values, values of levels, tensors."""
    env: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        result = node.op(
            *map_values(env.__getitem__, node.args),
            **{name: map_values(env.__getitem__, value) for name, value in node.kwargs.items()},
        )
        env.update(zip(node.outputs, result if isinstance(result, (tuple, list)) else (result,)))
    return [env[output] for output in graph.outputs]


def retrace(
    name: str, values: Sequence[Value], fn: Callable[..., Sequence[BodyInput]], is_replay: bool = True
) -> ClosedGraph:
    """Trace a function of inputs with the specs of some Values, whose operators have been traced before."""
    with body_trace(name, is_replay) as trace:
        closed = close_trace(trace, fn(*inputs_like(trace, values)))
    if is_replay and closed.captures:
        return _replace_captures(name, values, closed)
    return closed


def _replace_captures(name: str, values: Sequence[Value], closed: ClosedGraph) -> ClosedGraph:
    """Retrace a graph with its captured tensors, created by a user's rule, as constants.

    Raises:
        UnsupportedError: the rule captures a value of a transform.
    """
    constants: list[Tensor] = []
    for tensor in closed.captures:
        if type(tensor) is not Tensor:
            raise UnsupportedError(
                f"{name}: a user-defined rule captures {describe(tensor)}; pass it as an argument"
            )
        constants.append(tensor)

    def run(*inputs: BodyInput) -> list[Tensor]:
        return run_graph(closed.graph, [*inputs, *map(_make_constant, constants)])

    return retrace(name, values, run)


def _make_constant(x: Tensor) -> Tensor:
    """Create a tensor with the elements of ``x`` by an operator without tensor arguments."""
    if x.size == 1:
        return by_name("full")(x.shape, x.item(), dtype=x.dtype)
    result: Tensor = CONSTANT(ArrayConstant(x.numpy()))
    return result


def copy_subgraph(
    graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value], effects: bool = False
) -> Graph:
    """Copy the part of a graph that computes ``outputs`` from ``inputs``.

    Args:
        graph: the graph.
        inputs: values of the graph that become inputs.
        outputs: values of the graph that become outputs.
        effects: whether to include all nodes with effects.
    """
    known = set(inputs)
    needed_values = {value for value in outputs if value not in known}
    needed_nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if any(output in needed_values for output in node.outputs) or (effects and has_effects(node)):
            needed_nodes.append(node)
            needed_values.update(value for value in node.inputs if value not in known)
    result = Graph()
    env = {value: result.add_input(value.spec, value.weak) for value in inputs}
    for node in reversed(needed_nodes):
        copy = copy_node(node, env.__getitem__)
        env.update({old: new for old, new in zip(node.outputs, copy.outputs) if old not in known})
        result.nodes.append(copy)
    result.outputs = [env[value] for value in outputs]
    return result
