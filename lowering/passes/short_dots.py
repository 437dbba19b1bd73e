"""Write the dot product of two short vectors as the sum of their products, which fuses with what is around it.

``h @ x[i : i + 7]`` in a loop is then a fold of one window, which LLVM vectorizes over the windows; a call of the dot
product would store the window first. As many products as the dot product has partial sums are added in the same order.
"""

from __future__ import annotations

from ...registry.dtypes import float32, float64
from ...registry.operator import find_operator
from ...tracer.graph import Graph, Node, Value
from .rewrite import Replacement, is_replaced, new_node, replace_each

BYTES = 256
"""Bytes of the partial sums of a dot product: `backends/cpu/codegen/vector_product.py`."""


def write_short_dots(graph: Graph) -> Graph:
    """Write dot products of at most 32 float64 or 64 float32 as sums of products."""
    return replace_each(graph, _write)


def _is_short_dot(node: Node) -> bool:
    if node.op.name != "td::matmul" or node.kwargs:
        return False
    values = (*node.args, *node.outputs)
    if not all(isinstance(value, Value) and value.weak is None for value in values):
        return False
    one, two, result = (value.spec for value in values)
    if any(len(spec.shape) != 1 or type(spec.shape[0]) is not int for spec in (one, two)):
        return False
    dtypes = {one.dtype, two.dtype, result.dtype}
    is_short = 0 < one.shape[0] * one.dtype.itemsize <= BYTES
    fits = is_short and one == two and dtypes in ({float32}, {float64}) and one.device == "cpu"
    operators = (node.op, find_operator("td::mul.Tensor"), find_operator("td::sum"))
    return fits and not any(map(is_replaced, operators))


def _write(node: Node, out: Graph) -> Replacement:
    if not _is_short_dot(node):
        return None
    product = new_node(find_operator("td::mul.Tensor"), node.args, {}, node.args[0].spec, node.source)
    options: dict[str, object] = {"dtype": None, "keepdims": False}
    total = new_node(
        find_operator("td::sum"), (product.outputs[0], None), options, node.outputs[0].spec, node.source
    )
    out.nodes += [product, total]
    return total.outputs
