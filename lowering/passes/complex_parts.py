"""Compute views of the parts of complex numbers by elementwise operators, which fuse with what is around them."""

from __future__ import annotations

from ...tracer.graph import Graph, Node
from .rewrite import Replacement, add_node, replace_each


def compute_parts(graph: Graph) -> Graph:
    """Replace each ``view_part`` by ``real`` or ``imag``: in a graph nothing is written through a view."""
    return replace_each(graph, _compute)


def _compute(node: Node, out: Graph) -> Replacement:
    if node.op.name != "td::view_part":
        return None
    value, imaginary = node.args
    name = "td::imag" if imaginary else "td::real"
    return (add_node(out.nodes, name, (value,), node.outputs[0].spec, node.source),)
