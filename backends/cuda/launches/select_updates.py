"""Updates of a constant that write at most one element of each row are selections, which fuse with other kernels.

An update says which element each point writes. If the positions along all axes but one count these axes, each element
also knows the one point that may write it: the element at ``j`` of a row is the row's value if the row's position is
``j``. So the gradient of ``take_along_axis`` is computed where it is used, and is not stored.
"""

from __future__ import annotations

from ....eager.tensor.tensor import Tensor
from ....lowering.fusion.index_maps import IndexedAccess, find_indexed_access
from ....lowering.fusion.ranges import Range, match_constant_range
from ....lowering.interpreter import call_kernel
from ....lowering.kernel_selection import uniform_constant
from ....lowering.layout import is_view
from ....lowering.passes.loop_passes import Writer
from ....lowering.passes.rewrite import copy_node, replace_each
from ....registry.dtypes import bool_, int64
from ....registry.values import TensorSpec
from ....tracer.graph import Graph, Node, Value, map_values
from .move_to_device import set_device


def select_updates(graph: Graph) -> Graph:
    """Replace updates of constants that write at most one element of each row.

    Args:
        graph: a graph whose constants have been folded.
    """
    known = _find_constants(graph)

    def visit(node: Node, out: Graph) -> tuple[Value] | None:
        result = _select(node, known, Writer(out.nodes, node.source))
        return None if result is None else (result,)

    return replace_each(graph, visit)


def _find_constants(graph: Graph) -> dict[Value, Tensor]:
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


def _select(node: Node, known: dict[Value, Tensor], write: Writer) -> Value | None:
    """The result of an update as a selection; None for other nodes."""
    spec = getattr(node.op.decl, "index_spec", None)
    access = find_indexed_access(node) if spec is not None and spec.writes else None
    if access is None or access.combine not in ("", "add"):
        return None
    base, value = access.source, access.value
    fill = None if base.node is None else uniform_constant(base.node)
    if fill is None or (access.combine and fill != 0):
        return None
    if not isinstance(value, Value) or value.weak is not None or value.spec.dtype is not base.spec.dtype:
        return None
    free = _find_free_axis(access, known)
    if free is None:
        return None
    chosen = _write_mask(write, access, *free)
    shape = base.shape
    return write.call("td::where", (chosen, value, fill), shape, base)


def _find_free_axis(access: IndexedAccess, known: dict[Value, Tensor]) -> tuple[int, Value] | None:
    """The number of the only index that does not count its axis, and that index; None if there are others.

    It has one position for each row, so that one point may write an element.
    """
    sizes = access.source.shape[access.axis : access.stop]
    free = [
        n
        for n, (index, size) in enumerate(zip(access.indices, sizes, strict=True))
        if not (isinstance(index, Value) and index in known and _counts(known[index], n, len(sizes), size))
    ]
    if len(free) != 1:
        return None
    index = access.indices[free[0]]
    rows = tuple(1 if n == free[0] else size for n, size in enumerate(sizes))
    if not isinstance(index, Value) or index.weak is not None or not index.spec.dtype.is_integer:
        return None
    return (free[0], index) if tuple(index.shape) == rows else None


def _counts(tensor: Tensor, axis: int, rank: int, size: int) -> bool:
    """Whether an index tensor is 0, 1, 2, ... along an axis, and its other axes have size 1."""
    array = tensor._array
    if array.ndim != rank or array.shape[axis] != size or array.size != size:
        return False
    return bool(size == 1 and not array.any()) or match_constant_range(array) == Range(0, 1)


def _write_mask(write: Writer, access: IndexedAccess, along: int, labels: Value) -> Value:
    """Write the mask of the elements that are written; positions are checked by reading a range at them."""
    base = access.source
    axis = access.axis + along
    size, behind = base.shape[axis], len(base.shape) - access.stop
    like = Value(TensorSpec((), int64, base.spec.device))
    flag = Value(TensorSpec((), bool_, base.spec.device))
    # counted from 1: a position that is out of bounds reads 0, which no element has
    numbers = write.call("td::arange", (1, size + 1, 1), (size,), like, device=base.spec.device)
    lead = (1,) * axis
    table = write.call("td::reshape", (numbers, (*lead, size)), (*lead, size), like)
    picked = write.call("td::index", (table, (labels,), axis), (*lead, *labels.shape), like)
    rows = (*labels.shape, *(1,) * behind)
    position = write.call("td::reshape", (picked, rows), rows, like)
    turned = (size, *(1,) * (len(base.shape) - axis - 1))
    element = write.call("td::reshape", (numbers, turned), turned, like)
    return write.call("td::eq.Tensor", (element, position), base.shape[access.axis :], flag)
