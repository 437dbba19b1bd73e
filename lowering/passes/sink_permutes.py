"""Sink permutes: what is computed from transposed tensors is computed in the order of their memory.

``permute(x, p) * 2`` becomes ``permute(x * 2, p)``, and a reduction or a scan of a permuted tensor along one axis that
of the tensor itself, so that kernels read and write rows. A node moves only where all that read its result move along,
but reductions always do: their results are short. The results of a graph may be permuted where their layout is free:
elementwise functions of NumPy keep the layout of their operands too.

Source: XLA, which moves transposes behind elementwise operators in its algebraic simplifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operators.shape.views import inverse_permutation, normalize_permutation
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value, values_in
from ..kernel_selection import reduced_axes
from ..layout import proves_equal
from .rewrite import Replacement, add_node, is_replaced, replace_each

if TYPE_CHECKING:
    from ...registry.dims import Dim

Axes = tuple[int, ...]
Orders = dict[Value, Axes]
"""By value: ``permute(base, axes)`` is the value, where the base is in the order of the memory."""

SELECTING = frozenset(("max", "min", "any", "all", "argmax", "argmin"))
"""The folds along one axis that select an element wherever it is in memory, of equal zeros any; sums round."""
EXACT = SELECTING - {"argmax", "argmin"} | {"sum", "prod"}
"""The folds of integers and bools that may read elements in another order of the axes, and those of scans."""


def sink_permutes(graph: Graph) -> Graph:
    """Sink the permutes of a graph; returns the graph itself if none sinks."""
    moved, orders = _find_moved(graph)
    return _Sinking(moved, orders).run(graph) if moved else graph


# -- which nodes move --------------------------------------------------------------------------------------------------
def _find_moved(graph: Graph) -> tuple[dict[Node, Axes], Orders]:
    """The nodes that move, with the order of the result of each, and the orders of all permuted values."""
    refused: set[Node] = set()
    while True:
        moved: dict[Node, Axes] = {}
        orders: Orders = {}
        for node in graph.nodes:
            order = _find_permute(node, orders)
            if order is None and node not in refused:
                order = _find_order(node, orders)
                if order is not None:
                    moved[node] = order
            if order is not None and not _is_identity(order):
                orders[node.outputs[0]] = order
        kept = _find_kept(graph, orders, moved)
        if not kept:
            return moved, orders
        refused |= kept


def _find_kept(graph: Graph, orders: Orders, moved: dict[Node, Axes]) -> set[Node]:
    """The nodes among those that move whose results are read in their own order."""
    long = {node.outputs[0]: node for node in moved if node.op.decl.kind != "reduction"}
    read = [output for output in graph.outputs if graph.keeps_layout and isinstance(output, Value)]
    for node in graph.nodes:
        if node not in moved and _find_permute(node, orders) is None:
            read += node.inputs
    return {long[value] for value in read if value in long}


def _find_permute(node: Node, orders: Orders) -> Axes | None:
    """The order of the result of a permute."""
    if node.op.name != "td::permute" or not isinstance(node.args[0], Value) or is_replaced(node.op):
        return None
    axes = normalize_permutation("permute", node.args[1], len(node.outputs[0].shape))
    inner = orders.get(node.args[0])
    return axes if inner is None else tuple(inner[axis] for axis in axes)


def _find_order(node: Node, orders: Orders) -> Axes | None:
    """The order of the result of a node that can move; None if it cannot."""
    decl = node.op.decl
    if decl is None or len(node.outputs) != 1 or node.outputs[0].weak is not None:
        return None
    if any(values_in(tuple(node.kwargs.values()))) or is_replaced(node.op):
        return None
    if decl.is_elementwise or decl.kind == "cast":
        return _find_elementwise_order(node, orders)
    order = orders.get(node.args[0]) if decl.kind in ("reduction", "scan") else None
    if order is None or proves_equal(node.args[0].spec.size, 0):  # eager folds of no elements are row-major
        return None
    if decl.kind == "scan":
        return order if type(_axis_of(node)) is int and decl.fold.name in EXACT else None
    if not _is_order_free(node):
        return None
    return order if node.kwargs.get("keepdims", False) else _drop_axes(order, reduced_axes(node))


def _find_elementwise_order(node: Node, orders: Orders) -> Axes | None:
    """The common order of the operands that have all elements; the others are short, and are permuted."""
    out = node.outputs[0].spec
    tensors = [arg for arg in node.args if isinstance(arg, Value) and arg.weak is None and arg.shape]
    long = [value for value in tensors if not _is_short(value.spec.size, out.size)]
    common = {orders.get(value) for value in long if len(value.shape) == len(out.shape)}
    if len(common) != 1 or not all(len(value.shape) == len(out.shape) for value in long):
        return None
    return common.pop()


def _is_short(size: Dim, whole: Dim) -> bool:
    """Whether an operand broadcasts, so that to read it in another order costs little."""
    return isinstance(size, int) and isinstance(whole, int) and 2 * size <= whole


def _is_order_free(node: Node) -> bool:
    """Whether a reduction has the same result in another order of the axes."""
    name = node.op.decl.fold.name
    is_exact = name in EXACT and {node.args[0].spec.dtype.kind, node.outputs[0].spec.dtype.kind} <= set("biu")
    return is_exact or (name in SELECTING and len(reduced_axes(node)) == 1)


def _axis_of(node: Node) -> object:
    return node.args[1] if len(node.args) > 1 else node.kwargs.get("axis")


def _is_identity(order: Axes) -> bool:
    return order == tuple(range(len(order)))


def _drop_axes(order: Axes, dropped: Axes) -> Axes:
    """The order of the axes that a reduction keeps."""
    kept = [axis for number, axis in enumerate(order) if number not in dropped]
    return tuple(sorted(kept).index(axis) for axis in kept)


# -- moving them -------------------------------------------------------------------------------------------------------
class _Sinking:
    """Computes the nodes that move in the order of the memory, and permutes their results.

    Args:
        moved, orders: what :func:`_find_moved` returns.
    """

    def __init__(self, moved: dict[Node, Axes], orders: Orders):
        self.moved, self.orders = moved, orders
        self.bases: dict[Value, Value] = {}  # by permuted value of the new graph

    def run(self, graph: Graph) -> Graph:
        """Return the new graph."""
        originals = iter(graph.nodes)
        return replace_each(graph, lambda node, out: self._visit(next(originals), node, out))

    def _visit(self, original: Node, node: Node, out: Graph) -> Replacement:
        order = self.moved.get(original)
        if order is not None:
            base = self._compute(original, node, order, out)
        else:
            order = _find_permute(original, self.orders)
            if order is None:
                return None
            base = self.bases.get(node.args[0], node.args[0])
        if _is_identity(order):
            return (base,)
        result = add_node(out.nodes, "td::permute", (base, order), node.outputs[0].spec, node.source)
        self.bases[result] = base
        return (result,)

    def _compute(self, original: Node, node: Node, order: Axes, out: Graph) -> Value:
        """Append the computation of a node's result in the order of the memory."""
        spec = node.outputs[0].spec
        args, kwargs = list(node.args), dict(node.kwargs)
        if node.op.decl.kind in ("reduction", "scan"):
            inner = self.orders[original.args[0]]
            axes = tuple(sorted(inner[axis] for axis in reduced_axes(node)))
            kwargs.pop("axis", None)
            args[:2] = self.bases[args[0]], axes[0] if type(_axis_of(node)) is int else axes
        else:
            for number, argument in enumerate(original.args):
                if isinstance(argument, Value) and argument.weak is None and argument.shape:
                    is_like = self.orders.get(argument) == order
                    value = args[number]
                    args[number] = self.bases[value] if is_like else _to_order(value, order, out, node)
        made = _restore_order(spec, order)
        return add_node(out.nodes, node.op.name, tuple(args), made, node.source, **kwargs)


def _restore_order(spec: TensorSpec, order: Axes) -> TensorSpec:
    """The spec of what is permuted to a tensor of a spec."""
    return spec._replace(shape=tuple(spec.shape[axis] for axis in inverse_permutation(order)))


def _to_order(value: Value, order: Axes, out: Graph, node: Node) -> Value:
    """Append views of a short operand, which broadcasts, with axes in the order of the memory."""
    spec = value.spec._replace(shape=(1,) * (len(order) - len(value.shape)) + value.shape)
    if spec.shape != value.shape:
        value = add_node(out.nodes, "td::reshape", (value, spec.shape), spec, node.source)
    made = _restore_order(spec, order)
    return add_node(out.nodes, "td::permute", (value, inverse_permutation(order)), made, node.source)
