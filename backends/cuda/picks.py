"""One element of each row, picked by an index tensor: ``take_along_axis(rows, labels[:, None], 1)``, and its gradient.

Where the rows are computed in the same graph, the element is the sum of a row that is zero but there; it becomes part of
the kernel that computes the row. The gradient, zeros but at one place of each row, becomes a choice for each element.
So no kernel has to wait for the rows, and none has to fill memory with zeros first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...eager.tensor import Tensor
from ...lowering.evaluate import call
from ...lowering.layout import is_view
from ...lowering.loop_passes import Writer
from ...lowering.resolve import uniform_constant
from ...lowering.rewrite import copy_node, like
from ...operators.declare import Declaration
from ...operators.derivatives import NotDifferentiable
from ...registry.dtypes import FLOATS, bool_, int64
from ...registry.keys import DispatchKey
from ...registry.library import Library
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value, map_values
from . import faults
from .arrays import contiguous_layout, empty
from .bring import move
from .casting import contiguous
from .launching import launch_text
from .tensor import CudaTensor, cuda_tensor

CHECKED = "cuda::checked_index"
LIBRARY = Library("cuda", "DEF")
_SCHEMA = "checked_index(Tensor self, int size, int axis) -> Tensor"


def _checked_spec(self: Any, size: int, axis: int) -> TensorSpec:
    return TensorSpec(tuple(self.shape), int64, self.spec.device)


def _checked(self: CudaTensor, size: int, axis: int) -> CudaTensor:
    found = contiguous(self._data, int64)
    at = found.layout.index
    out = empty(contiguous_layout(found.shape, int64, at))
    if out.layout.size:
        call_number = faults.number(at, "index", axis, (size,))
        values = [out, found, faults.place(at), out.layout.size, size, call_number]
        launch_text("checked_index", out, out.layout.size, values, [found])
    return cuda_tensor(out)


LIBRARY.define(
    _SCHEMA,
    Declaration(
        _SCHEMA,
        "gather",
        "Positions counted from the start, -1 for one that is out of bounds, which is noted.",
        meta=_checked_spec,
        derivative=NotDifferentiable("positions are integers"),
        method=False,
    ),
)
LIBRARY.impl("checked_index", _checked, DispatchKey.CUDA)


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
    out = like(graph)
    env: dict[Value, Value] = {}
    for node in graph.nodes:
        now = copy_node(node, lambda v: env.get(v, v)) if any(v in env for v in node.inputs) else node
        result = _replaced(now, known, out)
        if result is None:
            out.nodes.append(now)
            env.update(zip(node.outputs, now.outputs) if now is not node else ())
        else:
            env[node.outputs[0]] = result
    out.outputs = [env.get(o, o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


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
        found = _picked(array, indices, axis, known)
        if found is None or base != 0 or array.spec.dtype not in FLOATS or not _is_like(value, found, array):
            return None
        write = Writer(out.nodes, node.source)
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


def _is_like(value: Any, found: Pick, array: Value) -> bool:
    """Whether there is one value for each row."""
    return (
        isinstance(value, Value)
        and value.shape == found.labels.shape
        and value.spec.dtype is array.spec.dtype
    )


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
