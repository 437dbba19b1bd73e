"""Write sorts along axes of at most 8 elements as comparisons of neighbours, which fuse with what is around them.

``sort(x[i : i + 5])[2]`` in a loop is then a chain of selections between registers, and the sorts of many rows are
computed by vectors. A call of a loop that sorts costs more than the comparisons.

Source: odd-even transposition sort (Habermann, 1972). It exchanges neighbours only if they are not in order, so that
equal elements keep their order.
"""

from __future__ import annotations

from typing import Any

from ...named_tuple import NamedTuple
from ...registry.dtypes import bool_
from ...registry.operator import find_operator
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value
from .pipeline import SORTS
from .rewrite import Replacement, add_node, add_slice, is_replaced, replace_each

LONGEST = 8
_USED = ("td::le.Tensor", "td::ge.Tensor", "td::isnan", "td::bitwise_or.Tensor", "td::where", "td::concat")


def write_short_sorts(graph: Graph) -> Graph:
    """Write sorts along axes of at most 8 elements as comparisons and selections."""
    return replace_each(graph, _write)


def _write(node: Node, out: Graph) -> Replacement:
    if not _is_short(node):
        return None
    source, result = node.args[0], node.outputs[0]
    axis = node.kwargs["axis"] % len(source.shape)
    with_positions = node.op.name != "td::sort_values"
    network = _Network(out, source, axis, node)
    elements: list[Any] = [network.read(number) for number in range(source.shape[axis])]
    positions: list[Any] = list(range(len(elements)))
    for turn in range(len(elements)):
        for one in range(turn % 2, len(elements) - 1, 2):
            ordered = network.compare(elements[one], elements[one + 1], bool(node.kwargs["descending"]))
            network.exchange(ordered, elements, one, source)
            if with_positions:
                network.exchange(ordered, positions, one, result)
    items = positions if with_positions else elements
    return (network.join(items[: result.shape[axis]], result),)


def _is_short(node: Node) -> bool:
    if node.op.name not in SORTS or not isinstance(node.args[0], Value):
        return False
    source, axis = node.args[0], node.kwargs["axis"]
    shape = source.shape
    is_known = source.weak is None and all(type(size) is int for size in shape)
    if not is_known or not 1 < shape[axis] <= LONGEST or source.spec.dtype is bool_:
        return False
    if not node.outputs[0].spec.size:
        return False
    return not any(map(is_replaced, (node.op, *map(find_operator, _USED))))


class _Network(NamedTuple):
    """Adds the nodes of one sort to a graph.

    Attributes:
        out: the graph.
        source: the tensor that is sorted.
        axis: the axis along which it is sorted.
        node: the node that sorts.
    """

    out: Graph
    source: Value
    axis: int
    node: Node

    def read(self, number: int) -> Value:
        """The elements at a position along the axis."""
        return add_slice(self.out.nodes, self.source, self.axis, number, self.node.source)

    def compare(self, one: Value, two: Value, descending: bool) -> Value:
        """Whether two elements are in order; NaN is the largest number."""
        spec = one.spec._replace(dtype=bool_)
        ordered = self._add("td::ge.Tensor" if descending else "td::le.Tensor", (one, two), spec)
        if not one.spec.dtype.is_inexact:
            return ordered
        nan = self._add("td::isnan", (one if descending else two,), spec)
        return self._add("td::bitwise_or.Tensor", (ordered, nan), spec)

    def exchange(self, ordered: Value, items: list[Any], one: int, like: Value) -> None:
        """Exchange two items, which have the dtype of a value, where they are not in order."""
        first, second = items[one], items[one + 1]
        spec = like.spec._replace(shape=ordered.shape)
        items[one] = self._add("td::where", (ordered, first, second), spec)
        items[one + 1] = self._add("td::where", (ordered, second, first), spec)

    def join(self, items: list[Any], result: Value) -> Value:
        return self._add("td::concat", (tuple(items), self.axis), result.spec)

    def _add(self, name: str, args: tuple[Any, ...], spec: TensorSpec) -> Value:
        return add_node(self.out.nodes, name, args, spec, self.node.source)
