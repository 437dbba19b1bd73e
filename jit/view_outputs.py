"""Copy results that are views of intermediates, so that native entries can return them.

Nothing else refers to the memory of an intermediate, so a copy behaves as the view does.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..lowering.layout import Layout, contiguous, is_view, view_layout
from ..lowering.passes.rewrite import new_node
from ..registry.operator import find_operator
from ..tracer.graph import Graph, Value

MOST_COPIED = (
    1 << 16
)  # elements of a gradient that is a view: writing them costs less than a call from Python


def copy_contiguous_views(graph: Graph) -> None:
    """Replace outputs that are contiguous views of intermediates by copies."""
    inputs = set(graph.parameters)
    for index, output in enumerate(graph.outputs):
        if isinstance(output, Value) and _is_contiguous_view(output, inputs):
            graph.outputs[index] = _append_copy(graph, output)


def copy_small_views(graph: Graph) -> None:
    """Replace outputs that are small views, such as the gradient of a mean, by copies."""
    for index, output in enumerate(graph.outputs):
        is_result = isinstance(output, Value) and output.node is not None and output.spec.device == "cpu"
        if is_result and is_view(output.node) and output.spec.size <= MOST_COPIED:
            graph.outputs[index] = _append_copy(graph, output)


def own_results(graph: Graph, orders: Sequence[tuple[int, ...] | None]) -> bool:
    """Lay out the outputs of a graph as given, each in memory of its own.

    Args:
        graph: the graph.
        orders: for each output the order of its axes in memory, or None for that of the shape; the output becomes the
            value with its axes in this order.

    Returns:
        Whether that is done: not if an output shares memory with an input, unless it is the input, or with another.
    """
    inputs = set(graph.inputs)
    results = [x for x in graph.outputs if isinstance(x, Value) and x not in inputs]
    roots = {*map(_find_root, results)}
    if len(roots) < len(results) or roots & inputs or None in roots:
        return False
    for index, (output, order) in enumerate(zip(graph.outputs, orders)):
        if not isinstance(output, Value) or output in inputs:
            continue
        if order is not None:
            spec = output.spec._replace(shape=tuple([output.shape[axis] for axis in order]))
            node = new_node(find_operator("td::permute"), (output, order), {}, spec, "")
            graph.nodes.append(node)
            output = node.outputs[0]
        if _is_aliasing(output):
            graph.outputs[index] = _append_copy(graph, output)
    return True


def _find_root(value: Value) -> Value | None:
    """The value whose memory a view has; None if it cannot be known."""
    while _is_aliasing(value):
        source = value.node.args[0]  # type: ignore[union-attr]
        if not isinstance(source, Value):
            return None
        value = source
    return value


def _is_aliasing(value: Value) -> bool:
    """Whether the operator of a value may return memory of its arguments."""
    node = value.node
    if node is None:
        return False
    has_view_rule = getattr(node.op.decl, "view", None) is not None
    return has_view_rule or any(result.type.aliases() for result in node.op.schema.returns)


def _append_copy(graph: Graph, value: Value) -> Value:
    node = new_node(find_operator("td::clone"), (value,), {}, value.spec, "")
    graph.nodes.append(node)
    return node.outputs[0]


def _is_contiguous_view(value: Value, inputs: set[Value]) -> bool:
    views = []
    while value.node is not None and is_view(value.node) and isinstance(value.node.args[0], Value):
        views.append(value.node)
        value = value.node.args[0]
    layout: Layout | None = contiguous(value.shape)
    for node in reversed(views):
        layout = None if layout is None else view_layout(node, layout)
    is_dense = layout is not None and layout._replace(offset=0).is_contiguous
    return bool(views) and value not in inputs and is_dense
