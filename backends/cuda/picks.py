"""One element of each row, picked by an index tensor (``take_along_axis(rows, labels[:, None], 1)``), and its gradient.

Where the rows are computed in the same graph, the element is the sum of a row that is zero but there, and becomes part
of the kernel that computes the row. The gradient, zeros but at one place of each row, becomes a choice by element.
Other rows that are added to zeros have an operator of their own, which need not be given the zeros.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...eager.tensor import Tensor
from ...lowering.evaluate import call
from ...lowering.layout import is_view
from ...lowering.loop_passes import Writer
from ...lowering.resolve import uniform_constant
from ...lowering.rewrite import copy_node, replace_each
from ...registry.dtypes import FLOATS, bool_, int64
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value, map_values
from .bring import move
from .lowered_ops import ADD_ROWS, CHECKED


class Pick(NamedTuple):
    """Index tensors for all axes of an array that give, but for one of them, the place itself.

    Attributes:
        axis: the one axis along which something is picked.
        labels: the positions along it; their shape is the array's with 1 there.
    """

    axis: int
    labels: Value


def pick(graph: Graph) -> Graph:
    """The graph with picked elements as parts of the kernels that compute the rows.

    Args:
        graph: a graph whose constants have been folded.
    """
    known = _constants(graph)
    return replace_each(graph, lambda node, out: _replaced(node, known, out))


def _constants(graph: Graph) -> dict[Value, Tensor]:
    """The elements of folded constants, which lie on the host, and of views of them."""
    pairs = zip(graph.captured, graph.constants)
    known = {
        value: tensor for value, tensor in pairs if type(tensor) is Tensor and value.spec.device != "cpu"
    }
    for node in graph.nodes:
        if is_view(node) and all(value in known for value in node.inputs):
            here = copy_node(node, lambda value: value)
            move(here, "cpu")
            (known[node.outputs[0]],) = call(here, map_values(known.__getitem__, node.args), here.kwargs)
    return known


def _replaced(node: Node, known: dict[Value, Tensor], out: Graph) -> Value | None:
    if node.op.name == "td::index":
        array, indices, axis = node.args
        found = _picked(array, indices, axis, known)
        if found is None or array.spec.dtype not in FLOATS or not _is_computed(array):
            return None
        write = Writer(out.nodes, node.source)
        chosen = _write_choice(write, found, array)
        kept = write.call("td::where", (chosen, array, 0.0), array.shape, array)
        shape = node.outputs[0].shape
        return write.call("td::sum", (kept, (found.axis,)), shape, array, keepdims=True)
    if node.op.name == "td::index_put":
        array, indices, value, axis = node.args
        base = None if array.node is None else uniform_constant(array.node)
        if base != 0 or not isinstance(value, Value) or value.spec.dtype is not array.spec.dtype:
            return None
        write = Writer(out.nodes, node.source)
        found = _picked(array, indices, axis, known)
        if found is None or array.spec.dtype not in FLOATS or value.shape != found.labels.shape:
            if not node.kwargs["accumulate"] or value.weak is not None:
                return None
            return write.call(ADD_ROWS, (indices, value, array.shape, axis), array.shape, array)
        chosen = _write_choice(write, found, array)
        return write.call("td::where", (chosen, value, 0.0), array.shape, array)
    return None


def _picked(array: Any, indices: Any, axis: int, known: dict[Value, Tensor]) -> Pick | None:
    """What index tensors pick, if it is one element of each row along some axis."""
    rank = len(array.shape)
    if axis not in (0, -rank) or len(indices) != rank or not all(_is_positions(one) for one in indices):
        return None
    others = [place for place, one in enumerate(indices) if one not in known]
    if len(others) != 1:
        return None
    (along,) = others
    labels = indices[along]
    shape = tuple(1 if d == along else size for d, size in enumerate(array.shape))
    if labels.shape != shape or not all(
        _counts(known[one]._array, d, array.shape[d]) for d, one in enumerate(indices) if d != along
    ):
        return None
    return Pick(along, labels)


def _is_positions(index: Any) -> bool:
    return isinstance(index, Value) and index.weak is None and index.spec.dtype.is_integer


def _counts(array: np.ndarray[Any, Any], axis: int, size: int) -> bool:
    """Whether an index tensor is 0, 1, 2, ... along one axis and has no other."""
    along = array.ndim > axis and array.shape[axis] == array.size == size
    return along and np.array_equal(array.reshape(-1), np.arange(size))


def _is_computed(array: Value) -> bool:
    """Whether the kernel of an elementwise operator makes an array, so that it need not be read for this."""
    return array.node is not None and bool(getattr(array.node.op.decl, "is_elementwise", False))


def _write_choice(write: Writer, found: Pick, array: Value) -> Value:
    """Whether each element is the one that its row's label names."""
    size, shape = array.shape[found.axis], found.labels.shape
    like_ = Value(TensorSpec((), int64, array.spec.device))
    labels = write.call(CHECKED, (found.labels, size, found.axis), shape, like_)
    counted = write.call("td::arange", (0, size, 1), (size,), like_, device=array.spec.device)
    turned = tuple(size if d == found.axis else 1 for d in range(len(array.shape)))
    places = write.call("td::reshape", (counted, turned), turned, like_)
    flag = Value(TensorSpec((), bool_, array.spec.device))
    return write.call("td::eq.Tensor", (places, labels), array.shape, flag)
