"""Graph rewriting: walk the nodes in order, substitute replaced values, and let a pass keep or replace each node.

Unchanged nodes are shared between the graphs before and after a pass; nodes are immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...registry.dispatch.keys import DispatchKey
from ...registry.dispatch.precedence import find_external_kernel
from ...registry.operator import find_operator
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value, bodies_of, map_values
from ...tracer.kernel import traits_of

if TYPE_CHECKING:
    from ...registry.operator import Operator
    from ...registry.types import Args, Kwargs

Replacement = Sequence[Value] | None
Visit = Callable[[Node], Replacement]


def empty_like(graph: Graph) -> Graph:
    """Make an empty graph with the same inputs, derived scalars and captured tensors."""
    result = Graph()
    result.inputs, result.captured = list(graph.inputs), list(graph.captured)
    result.constants, result.derived = list(graph.constants), list(graph.derived)
    result.keeps_layout = graph.keeps_layout
    return result


def replace_arguments(node: Node, args: Args, kwargs: Kwargs) -> Node:
    """Copy a node with other arguments; its results have the same specs."""
    result = Node(node.op, args, kwargs, node.source)
    result.outputs = tuple(Value(o.spec, result, o.index, o.weak) for o in node.outputs)
    return result


def copy_node(node: Node, read: Callable[[Value], object]) -> Node:
    """Copy a node with the Values among its arguments replaced.

    Args:
        node: the node.
        read: returns the replacement of a Value.
    """
    kwargs = {name: map_values(read, arg) for name, arg in node.kwargs.items()}
    return replace_arguments(node, map_values(read, node.args), kwargs)


def new_node(op: Operator, args: Args, kwargs: Kwargs, spec: TensorSpec, source: str) -> Node:
    """Make a node with one result of the given spec."""
    node = Node(op, args, kwargs, source)
    node.outputs = (Value(spec, node, 0),)
    return node


def add_node(
    nodes: list[Node], name: str, args: Args, spec: TensorSpec, source: str, **options: object
) -> Value:
    """Append the call of an operator to nodes; returns its result, which has the given spec."""
    nodes.append(new_node(find_operator(name), args, options, spec, source))
    return nodes[-1].outputs[0]


def add_reshape(nodes: list[Node], value: Value, shape: tuple[int, ...], source: str) -> Value:
    """Append a reshape to nodes, if it changes the shape; returns the value in the shape."""
    spec = value.spec._replace(shape=shape)
    return value if value.shape == shape else add_node(nodes, "td::reshape", (value, shape), spec, source)


def add_slice(nodes: list[Node], value: Value, axis: int, start: int, source: str, length: int = 1) -> Value:
    """Append a read of the elements at some positions along an axis, which stays."""
    shape = value.shape
    plan = tuple((start, length, 1) if at == axis else (0, size, 1) for at, size in enumerate(shape))
    spec = value.spec._replace(shape=(*shape[:axis], length, *shape[axis + 1 :]))
    return add_node(nodes, "td::basic_index", (value, plan), spec, source)


def rewrite(graph: Graph, visit: Visit) -> Graph:
    """Walk the nodes in order; ``visit(node)`` returns None to keep a node, or the values that replace its results.

    Args:
        graph: what to rewrite; it stays as it is.
        visit: called with each node, whose arguments have been replaced already.

    Returns:
        The new graph.
    """
    return replace_each(graph, lambda node, out: visit(node))


def replace_each(
    graph: Graph,
    visit: Callable[[Node, Graph], Replacement],
    replaced: Mapping[Value, Value] = MappingProxyType({}),
) -> Graph:
    """Rewrite a graph node by node.

    ``visit(node, out)`` returns None to keep a node, or the values that replace its results, whose nodes it has
    appended to ``out``, the new graph.

    Args:
        graph: what to rewrite; it stays as it is.
        visit: called with each node, whose arguments have been replaced already.
        replaced: what replaces parameters.

    Returns:
        The new graph.
    """
    out = empty_like(graph)
    env = dict(replaced)

    def read(value: Value) -> Value:
        return env.get(value, value)

    for node in graph.nodes:
        current = node
        if env and any(value in env for value in node.inputs):
            current = copy_node(node, read)
        results = visit(current, out)
        if results is None:
            out.nodes.append(current)
            results = current.outputs
        if results is not node.outputs:
            env.update(zip(node.outputs, results, strict=True))
    out.outputs = [read(o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


def is_replaced(op: Operator) -> bool:
    """Whether other code has registered a kernel or a shape rule in the place of an operator's own."""
    keys = (DispatchKey.CPU, DispatchKey.CUDA, DispatchKey.Meta)
    return any(find_external_kernel(op, key) is not None for key in keys)


def is_array(value: object) -> bool:
    """Whether a value of a body is an array whose sizes are known: neither a Python number nor symbolic."""
    return isinstance(value, Value) and value.weak is None and all(type(size) is int for size in value.shape)


def has_effects(node: Node) -> bool:
    """Whether a node may not be merged, dropped or moved."""
    decl = node.op.decl
    if getattr(decl, "kind", "") == "control":
        return any(has_effects(inner) for body in bodies_of(node) for inner in body.nodes)
    return bool(getattr(decl, "effects", None)) or traits_of(node.op).is_mutable
