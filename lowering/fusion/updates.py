"""Kernels that write elements at integer positions of a buffer that holds the other elements already."""

from __future__ import annotations

from collections import Counter

from ...operators.declare.shape_rules import broadcast_shapes
from ...operators.scalar_ir.expr import Expr, cast
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...tracer.graph import Graph, Node, Value
from ..kernel_selection import KernelSelection
from ..layout import Layout
from .index_maps import IndexedAccess, indexed_access
from .loop_ir import Buffer, FusedKernel, Stage, Update, load, scalar
from .pieces import find_pieces, is_update
from .scalarize import number_expr
from .schedule import ScheduleContext, ScheduledKernel


def make_update_kernel(
    name: str, node: Node, around: ScheduleContext, out: Value, layout: Layout
) -> ScheduledKernel:
    """Make the kernel that writes the elements; its first parameter is the result.

    Args:
        name: the name of the kernel.
        node: a node whose operator writes at integer positions.
        around: properties of the whole graph.
        out: the result.
        layout: the layout in the result of what the node writes into.
    """
    return _UpdateScheduler(node, around).make(name, out, layout)


def find_slice_updates(graph: Graph, resolution: KernelSelection) -> dict[Node, Node]:
    """Find updates of slices that are written back, as in ``a.at[i, 1:-1].set(row)``: they can update the whole value.

    Returns:
        For each node that writes a slice back to the place that it was read from, the update of the slice.
    """
    choices = resolution.choices
    reads = Counter(value for node in graph.nodes for value in node.inputs)
    results = {output for output in graph.outputs if isinstance(output, Value)}
    updates = {}
    for node in graph.nodes:
        pieces = find_pieces(node) if choices[node].kind == "pieces" and is_update(node) else None
        if not pieces or len(pieces) != 2 or pieces[1].adds:
            continue
        written, target = pieces[1].source, pieces[1].target
        update = written.node if isinstance(written, Value) else None
        if update is None or choices[update].kind != "update" or reads[written] != 1 or written in results:
            continue
        whole, layout = resolution.root(node.args[0])
        part = Layout(target.sizes, target.strides, target.offset)
        is_whole = layout.is_contiguous and layout.size == whole.spec.size
        if is_whole and resolution.root(update.args[0]) == (whole, part):
            updates[node] = update
    return updates


class _UpdateScheduler:
    """The state of making one kernel: it runs over the axes of the selection."""

    def __init__(self, node: Node, around: ScheduleContext):
        access = indexed_access(node)
        self.node, self.access, self.around = node, access, around
        self.buffers: list[Buffer] = []
        self.params: list[Value] = []

    def make(self, name: str, out: Value, layout: Layout) -> ScheduledKernel:
        access, strides = self.access, layout.strides
        shape = _selection_shape(access)
        last = access.axis + access.rank
        kept = (*strides[: access.axis], *[0] * access.rank, *strides[access.stop :])
        target = self._add_buffer(out, Layout(shape, kept, layout.offset))
        indices = tuple(cast(self._operand(one, last, dt.int64), dt.int64) for one in access.indices)
        value = cast(self._operand(access.value, len(shape), out.spec.dtype), out.spec.dtype)
        index_map = access.index_map(target.name, layout, self.node.op.schema.name)
        stage = Stage(tuple(range(len(shape))), (Update(index_map, indices, value, access.combine),))
        kernel = FusedKernel(name, (), shape, tuple(self.buffers), (stage,))
        return ScheduledKernel(kernel, self.params, [])

    def _add_buffer(self, value: Value, layout: Layout) -> Buffer:
        if value not in self.params:
            self.params.append(value)
        name = f"b{len(self.buffers)}"
        strides = tuple(0 if n == 1 else s for n, s in zip(layout.shape, layout.strides, strict=True))
        result = Buffer(name, value.spec.dtype, strides, self.params.index(value), layout.offset)
        self.buffers.append(result)
        return result

    def _operand(self, argument: object, stop: int, dtype: DType) -> Expr:
        """An index or the value, whose axes are those of the selection before axis ``stop``."""
        if not isinstance(argument, Value):
            return number_expr(argument, dtype)  # type: ignore[arg-type]
        if argument in self.around.slots:
            return scalar(self.around.slots[argument], argument.spec.dtype)
        root, layout = self.around.resolution.root(argument)
        if root in self.around.constants:
            return number_expr(self.around.constants[root], argument.spec.dtype)
        shape = _selection_shape(self.access)
        before, after = stop - len(layout.shape), len(shape) - stop
        strides = (
            *[0] * before,
            *(0 if n == 1 else s for n, s in zip(layout.shape, layout.strides)),
            *[0] * after,
        )
        return load(self._add_buffer(root, Layout(shape, strides, layout.offset)))


def _selection_shape(access: IndexedAccess) -> tuple[int, ...]:
    """The shape of the selected elements."""
    shape = access.source.shape
    picked = broadcast_shapes("index_put", *(one.shape for one in access.indices if isinstance(one, Value)))
    return (*shape[: access.axis], *picked, *shape[access.stop :])
