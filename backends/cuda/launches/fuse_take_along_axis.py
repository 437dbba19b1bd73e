"""Fuse ``take_along_axis(rows, labels[:, None], 1)``, which selects one element of each row, and its gradient.

If the rows are computed in the same graph, the element becomes the sum of the row masked to that element, which fuses
with the kernel of the rows. The gradient, nonzero at one position of each row, becomes a ``where``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....eager.tensor.tensor import Tensor
from ....lowering.interpreter import call_kernel
from ....lowering.kernel_selection import uniform_constant
from ....lowering.layout import is_view
from ....lowering.passes.loop_passes import Writer
from ....lowering.passes.rewrite import copy_node, replace_each
from ....named_tuple import NamedTuple
from ....registry.dtypes import FLOATS, bool_, int64
from ....registry.values import TensorSpec
from ....tracer.graph import Graph, Node, Value, map_values
from .lowered_ops import CHECKED
from .move_to_device import set_device


class TakeAlongAxis(NamedTuple):
    """Index tensors for all axes of an array, which are the identity for all axes but one.

    Attributes:
        axis: the other axis.
        labels: the positions along ``axis``; their shape is the array's, with size 1 there.
    """

    axis: int
    labels: Value


def fuse_take_along_axis(graph: Graph) -> Graph:
    """Replace selections of one element of each row by masked sums, and their gradients by masks.

    Args:
        graph: a graph whose constants have been folded.
    """
    known = _constants(graph)

    def visit(node: Node, out: Graph) -> tuple[Value] | None:
        result = _rewrite(node, known, out)
        return None if result is None else (result,)

    return replace_each(graph, visit)


def _constants(graph: Graph) -> dict[Value, Tensor]:
    """The elements of folded constants, which are on the host, and of views of constants."""
    pairs = zip(graph.captured, graph.constants)
    known = {
        value: tensor for value, tensor in pairs if type(tensor) is Tensor and value.spec.device != "cpu"
    }
    for node in graph.nodes:
        if is_view(node) and all(value in known for value in node.inputs):
            here = copy_node(node, lambda value: value)
            set_device(here, "cpu")
            (known[node.outputs[0]],) = call_kernel(
                here, map_values(known.__getitem__, node.args), here.kwargs
            )
    return known


def _rewrite(node: Node, known: dict[Value, Tensor], out: Graph) -> Value | None:
    if node.op.name == "td::index":
        array, indices, axis = node.args
        result = _match(array, indices, axis, known)
        if result is None or array.spec.dtype not in FLOATS or not _is_computed(array):
            return None
        write = Writer(out.nodes, node.source)
        chosen = _write_mask(write, result, array)
        kept = write.call("td::where", (chosen, array, 0.0), array.shape, array)
        shape = node.outputs[0].shape
        return write.call("td::sum", (kept, (result.axis,)), shape, array, keepdims=True)
    if node.op.name == "td::index_put":
        array, indices, value, axis = node.args
        base = None if array.node is None else uniform_constant(array.node)
        if base != 0 or not isinstance(value, Value) or value.spec.dtype is not array.spec.dtype:
            return None
        write = Writer(out.nodes, node.source)
        result = _match(array, indices, axis, known)
        if result is None or array.spec.dtype not in FLOATS or value.shape != result.labels.shape:
            return None
        chosen = _write_mask(write, result, array)
        return write.call("td::where", (chosen, value, 0.0), array.shape, array)
    return None


def _match(array: Any, indices: Any, axis: int, known: dict[Value, Tensor]) -> TakeAlongAxis | None:
    """The axis and labels of index tensors that select one element of each row; None if they do not."""
    rank = len(array.shape)
    if axis not in (0, -rank) or len(indices) != rank or not all(_is_integer_tensor(one) for one in indices):
        return None
    others = [index for index, one in enumerate(indices) if one not in known]
    if len(others) != 1:
        return None
    (along,) = others
    labels = indices[along]
    shape = tuple(1 if d == along else size for d, size in enumerate(array.shape))
    if labels.shape != shape or not all(
        _is_arange(known[one]._array, d, array.shape[d]) for d, one in enumerate(indices) if d != along
    ):
        return None
    return TakeAlongAxis(along, labels)


def _is_integer_tensor(index: Any) -> bool:
    return isinstance(index, Value) and index.weak is None and index.spec.dtype.is_integer


def _is_arange(array: np.ndarray[Any, Any], axis: int, size: int) -> bool:
    """Whether an index tensor is 0, 1, 2, ... along one axis, and its other axes have size 1."""
    along = array.ndim > axis and array.shape[axis] == array.size == size
    return along and np.array_equal(array.reshape(-1), np.arange(size))


def _is_computed(array: Value) -> bool:
    """Whether an elementwise operator computes the array, so that the selection can be fused with it."""
    return array.node is not None and bool(getattr(array.node.op.decl, "is_elementwise", False))


def _write_mask(write: Writer, match: TakeAlongAxis, array: Value) -> Value:
    """Write the mask of the elements that the labels select."""
    size, shape = array.shape[match.axis], match.labels.shape
    like_ = Value(TensorSpec((), int64, array.spec.device))
    labels = write.call(CHECKED, (match.labels, size, match.axis), shape, like_)
    counted = write.call("td::arange", (0, size, 1), (size,), like_, device=array.spec.device)
    turned = tuple(size if d == match.axis else 1 for d in range(len(array.shape)))
    indices = write.call("td::reshape", (counted, turned), turned, like_)
    flag = Value(TensorSpec((), bool_, array.spec.device))
    return write.call("td::eq.Tensor", (indices, labels), array.shape, flag)
