"""Scheduling: turn a fusion group into a loop-IR kernel (stages, buffers between them, strides).

A value's *level* is the number of reductions that have to be complete before it can be computed. Stage ``k`` computes
the full values of level ``k``: operands of the next reductions, values that escape the group, and values that a later
stage reads and that are too expensive to recompute; these are stored in a row buffer, which fits the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...named_tuple import NamedTuple
from ...operators.scalar_ir.cost import cost
from ...operators.scalar_ir.expr import Expr, Number, cast
from ...registry.dtypes import DType, int64
from ...tracer.graph import Node, Value
from ..cost_model import GATHER_COST, MAX_INLINED_COST, MAX_ROW_BUFFER_BYTES
from ..kernel_selection import KernelSelection
from ..layout import Layout, contiguous
from .groups import Dims, Group
from .index_maps import aligned_inputs, indexed_access
from .loop_ir import Buffer, FusedKernel, Reduce, Stage, Statement, Store, gather, load, row, scalar
from .scalarize import (
    node_expr,
    number_expr,
    operand_types,
    operands_of,
    reduction_operand,
    row_dtype,
    size_one_reduction_expr,
)


class ScheduledKernel(NamedTuple):
    """A kernel, the values of its parameters in order, and those that only it uses."""

    kernel: FusedKernel
    params: list[Value]
    temporaries: list[Value]


class ScheduleContext(NamedTuple):
    """Properties of the whole graph that scheduling a group needs.

    Attributes:
        resolution: the kernel choices and view layouts.
        escaping: the values that need a buffer.
        slots: the slot of each weak value in the table of run-time scalars.
        constants: the number that fills each uniform value.
        copies: the copies of views that were made for library kernels.
        slice_updates: for each node that writes an updated slice back, the update, which it does in place.
    """

    resolution: KernelSelection
    escaping: set[Value]
    slots: dict[Value, int]
    constants: dict[Value, bool | int | float]
    copies: dict[tuple[Value, Layout], Value]
    slice_updates: dict[Node, Node]


def schedule(name: str, group: Group, around: ScheduleContext) -> ScheduledKernel:
    """Schedule a fusion group.

    Args:
        name: the name of the kernel.
        group: the nodes.
        around: properties of the whole graph.

    Returns:
        The kernel, with the values of its parameters.
    """
    return Scheduler(name, group, around).run()


class Scheduler:
    """The state of scheduling one group."""

    def __init__(self, name: str, group: Group, around: ScheduleContext):
        self.name, self.group, self.around = name, group, around
        self._order_axes()
        self.buffers: dict[tuple[Value, tuple[int, ...], int], Buffer] = {}
        self.params: list[Value] = []
        self.temporaries: list[Value] = []
        self.level: dict[Value, int] = {}
        self.buffered: dict[
            Value, Buffer
        ] = {}  # full values that later stages load, and reduced ones in buffers
        self.exprs: dict[tuple[Value, int], Expr] = {}
        self.row_dtype: dict[Value, DType] = {}
        self.makers = {o: node for node in group.nodes for o in node.outputs}
        self.reductions = {n for n in group.nodes if self._is_reduction(n)}
        self.reduced_values = {n.outputs[0] for n in self.reductions}
        for node in group.nodes:
            self._assign_level(node)

    # -- the iteration space ---------------------------------------------------------------------------------------
    def _order_axes(self) -> None:
        """Order the axes: rows run over the axes before the last reduced one; a row over the reduced and later axes."""
        group = self.group
        reduced = sorted(group.reduced or ())
        last = reduced[-1] if reduced else -1
        outer = [a for a in range(len(group.space)) if a < last and a not in reduced]
        self.columns = [a for a in range(len(group.space)) if reduced and a > last]
        inner = [*reduced, *self.columns] if reduced else list(range(len(group.space)))
        self.axes = [*outer, *inner]
        self.outer = tuple(group.space[a] for a in outer)
        self.inner = tuple(group.space[a] for a in inner)
        self.column_dims = tuple(range(len(reduced), len(inner))) if reduced else ()

    def _strides(self, dims: Dims, layout: Layout) -> tuple[int, ...]:
        """The strides along the kernel's dimensions of a layout whose axes map to ``dims`` of the space."""
        along = {a: s for a, s in zip(dims, layout.strides, strict=True) if a is not None}
        return tuple(along.get(axis, 0) for axis in self.axes)

    def _access_buffer(self, value: Value, strides: tuple[int, ...], offset: int = 0) -> Buffer:
        """The buffer for accessing a value in memory with these strides; its value becomes a parameter."""
        result = self.buffers.get((value, strides, offset))
        if result is None:
            if value not in self.params:
                self.params.append(value)
            param, name = self.params.index(value), f"b{len(self.buffers)}"
            result = Buffer(name, value.spec.dtype, strides, param, offset)
            self.buffers[value, strides, offset] = result
        return result

    def _whole_buffer(self, value: Value) -> Buffer:
        """The contiguous buffer of a value that the group computes."""
        dims = self.group.dims[value]
        return self._access_buffer(value, self._strides(dims, contiguous(value.shape)))

    # -- levels ----------------------------------------------------------------------------------------------------
    def _is_reduction(self, node: Node) -> bool:
        """Whether a node reduces axes of more than one element."""
        if self.around.resolution.choices[node].kind != "reduction":
            return False
        out = {a for a in self.group.dims.get(node.outputs[0], ()) if a is not None}
        return bool({a for a in self.group.placed[node] if a is not None} - out)

    def root_in_group(self, value: Value) -> Value | None:
        """The root of an argument if this group computes it, else None."""
        root = self.around.resolution.root(value)[0]
        return root if root in self.group.made else None

    def _assign_level(self, node: Node) -> None:
        above = [self.level[v] for v in map(self.root_in_group, node.inputs) if v is not None]
        self.level[node.outputs[0]] = max(above, default=0) + (node in self.reductions)

    def is_full(self, value: Value) -> bool:
        """Whether a value of the group varies along the reduced axes (or the group reduces nothing)."""
        dims, node = self.group.dims.get(value), self.makers.get(value)
        if dims is None and node is not None and self.around.resolution.choices[node].kind == "copy":
            dims = self.group.placed[node]  # of its argument: those of the copy are other dimensions
        return not self.group.reduced or dims is None or self.group.domain(dims) == "full"

    # -- expressions -----------------------------------------------------------------------------------------------
    def expr(self, value: Value, stage: int) -> Expr:
        """The expression of a value in ``stage``: a load if an earlier stage stored it, else its computation."""
        if self._is_buffered(value, stage):
            return cast(load(self.buffered[value]), value.spec.dtype)
        known = self.exprs.get((value, stage))
        return known if known is not None else self._compute(value, stage)

    def _is_buffered(self, value: Value, stage: int) -> bool:
        return value in self.buffered and (value in self.reduced_values or self.level[value] < stage)

    def _compute(self, value: Value, stage: int) -> Expr:
        """Build the expression of a value after those of its operands (iteratively: chains may be long)."""
        stack = [value]
        while stack:
            current = stack[-1]
            node = self.makers[current]
            missing = [
                v
                for v in map(self.root_in_group, node.inputs)
                if v is not None and not self._is_available(v, stage)
            ]
            if missing and node not in self.reductions:
                stack.extend(missing)
                continue
            stack.pop()
            if (current, stage) not in self.exprs:
                self.exprs[current, stage] = self._node_expr(node, stage)
        return self.exprs[value, stage]

    def _is_available(self, value: Value, stage: int) -> bool:
        return self._is_buffered(value, stage) or (value, stage) in self.exprs

    def _node_expr(self, node: Node, stage: int) -> Expr:
        out = node.outputs[0]
        if node in self.reductions:
            return cast(row(self.row_name(out), self.row_dtype[out]), out.spec.dtype)
        if self.around.resolution.choices[node].kind == "gather":
            return self._gather_expr(node, stage)
        types = operand_types(node)
        operands = [self.operand(node, a, t, stage) for a, t in zip(operands_of(node), types, strict=True)]
        kind = self.around.resolution.choices[node].kind
        if kind == "reduction":
            return size_one_reduction_expr(node, operands[0])
        return operands[0] if kind == "copy" else node_expr(node, operands)

    def _gather_expr(self, node: Node, stage: int) -> Expr:
        """The element that a node reads at integer positions."""
        access = indexed_access(node)
        root, layout = self.around.resolution.root(access.source)
        placed = self.group.placed[node]
        dims = (
            *placed[: access.axis],
            *[None] * len(access.indices),
            *placed[access.axis + access.rank :],
        )
        known = tuple(None if n == 1 else a for n, a in zip(layout.shape, dims, strict=True))
        buffer = self._access_buffer(root, self._strides(known, layout), layout.offset)
        dtypes = [one.spec.dtype if isinstance(one, Value) else int64 for one in access.indices]
        indices = tuple(
            cast(self.operand(node, one, dtype, stage), int64)
            for one, dtype in zip(access.indices, dtypes, strict=True)
        )
        return gather(access.index_map(buffer.name, layout, node.op.schema.name), indices, buffer.dtype)

    def row_name(self, value: Value) -> str:
        """The name of a reduction's row value."""
        return f"r{self.group.nodes.index(self.makers[value])}"

    def operand(self, node: Node, argument: Value | Number, dtype: DType, stage: int) -> Expr:
        """An argument of a node as an expression."""
        if not isinstance(argument, Value):
            return number_expr(argument, dtype)
        slot = self.around.slots.get(argument)
        if slot is not None:
            return scalar(slot, argument.spec.dtype)
        made = self.root_in_group(argument)
        if made is not None:
            return self.expr(made, stage)
        root, layout = self.around.resolution.root(argument)
        if root in self.around.constants:
            return number_expr(self.around.constants[root], argument.spec.dtype)
        dims = self.group.placed[node]
        first = dict(aligned_inputs(node, len(dims)))[argument]
        aligned = dims[first : first + len(argument.shape)]
        known = tuple(None if n == 1 else a for n, a in zip(argument.shape, aligned, strict=True))
        return load(self._access_buffer(root, self._strides(known, layout), layout.offset))

    # -- stages ----------------------------------------------------------------------------------------------------
    def run(self) -> ScheduledKernel:
        """Schedule the group."""
        last = max(self.level.values(), default=0)
        self.stores = self._select_stores(last)
        stages: list[Stage] = []
        for level in range(last + 1):
            stages += self._row_stage(level)
            stages += self._full_stage(level)
        kernel = FusedKernel(self.name, self.outer, self.inner, self._list_buffers(), tuple(stages))
        return ScheduledKernel(kernel, self.params, self.temporaries)

    def _list_buffers(self) -> tuple[Buffer, ...]:
        private = [b for b in self.buffered.values() if b.param is None]
        return (*self.buffers.values(), *private)

    def _select_stores(self, last: int) -> list[list[Value]]:
        """For each stage, the full values that it stores; decided from the last stage to the first."""
        wanted: list[list[Value]] = [[] for _ in range(last + 1)]
        for node in self.group.nodes:
            out = node.outputs[0]
            if out in self.around.escaping and self.is_full(out) and node not in self.reductions:
                wanted[self.level[out]].append(out)
        self.to_buffer: set[Value] = set()
        for level in range(last, -1, -1):
            for value in self._find_values_to_buffer(level, wanted[level]):
                self.to_buffer.add(value)
                if value not in wanted[self.level[value]]:
                    wanted[self.level[value]].append(value)
        return wanted

    def _find_values_to_buffer(self, level: int, stored: list[Value]) -> list[Value]:
        """The full values of lower levels that this stage reads and that are too expensive to recompute."""
        roots = [*stored, *self._reduction_operands(level)]
        mapping: dict[Value, None] = {}
        seen: set[Value] = set()
        while roots:
            value = roots.pop()
            if value in seen or value in self.reduced_values or not self.is_full(value):
                continue
            seen.add(value)
            if self.level[value] < level and self._recompute_cost(value) > MAX_INLINED_COST:
                mapping[value] = None
            else:
                roots += [v for v in map(self.root_in_group, self.makers[value].inputs) if v is not None]
        return list(mapping)

    def _reduction_operands(self, level: int) -> list[Value]:
        """The values of the group that the reductions of a stage fold."""
        nodes = [
            n for n in self.group.nodes if n in self.reductions and self.level[n.outputs[0]] == level + 1
        ]
        return [v for v in (self.root_in_group(n.args[0]) for n in nodes) if v is not None]

    def _recompute_cost(self, value: Value) -> int:
        """The cost per element of computing a full value from loads; row values cost nothing inside the loop."""
        total, stack, seen = 0, [value], {value}
        while stack and total <= MAX_INLINED_COST:
            node = self.makers[stack.pop()]
            total += self._node_cost(node)
            inner = [v for v in map(self.root_in_group, node.inputs) if v is not None]
            stack += [v for v in inner if v not in seen and self.is_full(v) and v not in self.reduced_values]
            seen.update(inner)
        return total

    def _node_cost(self, node: Node) -> int:
        if self.around.resolution.choices[node].kind == "gather":
            return GATHER_COST
        return cost(node_expr(node, [Expr("row", (), t) for t in operand_types(node)]))

    def _row_stage(self, level: int) -> list[Stage]:
        """The stage that stores the escaping row values of a level."""
        body: list[Statement] = []
        for node in self.group.nodes:
            out = node.outputs[0]
            stays = out not in self.around.escaping or (self.is_full(out) and out not in self.reduced_values)
            if (
                stays
                or self.level[out] != level
                or (out in self.buffered and self.buffered[out].param is not None)
            ):
                continue
            body.append(Store(self._store_target(out).name, self.expr(out, level)))
        return [Stage(self.column_dims, tuple(body))] if body else []

    def _full_stage(self, level: int) -> list[Stage]:
        body: list[Statement] = []
        for value in self.stores[level]:
            expr = self.expr(value, level)
            body.append(Store(self._store_target(value).name, expr))
        for node in self.group.nodes:
            if node in self.reductions and self.level[node.outputs[0]] == level + 1:
                body.append(self._make_reduce(node, level))
        return [Stage(tuple(range(len(self.inner))), tuple(body))] if body else []

    def _store_target(self, value: Value) -> Buffer:
        """The buffer that a full value is stored to: its own if it escapes the group, else a row buffer."""
        node = self.makers[value]
        if self.around.resolution.choices[node].kind == "copy":
            layout = contiguous(node.args[0].shape)
            return self._access_buffer(value, self._strides(self.group.placed[node], layout))
        if value in self.around.escaping:
            result = self._whole_buffer(value)
        else:
            result = self._make_row_buffer(value, range(len(self.inner)))
        if value in self.to_buffer:
            self.buffered[value] = result
        return result

    def _make_row_buffer(self, value: Value, dims: Iterable[int], dtype: DType | None = None) -> Buffer:
        """Make a row buffer along some inner dimensions; a large one becomes an intermediate in the workspace."""
        dtype = dtype or value.spec.dtype
        sizes = tuple(self.inner[d] for d in dims)
        if math.prod(sizes) * dtype.itemsize > MAX_ROW_BUFFER_BYTES and dtype is value.spec.dtype:
            self.temporaries.append(value)
            return self._whole_buffer(value)
        along = dict(zip(dims, contiguous(sizes).strides, strict=True))
        strides = (*([0] * len(self.outer)), *(along.get(d, 0) for d in range(len(self.inner))))
        return Buffer(f"s{self.group.nodes.index(self.makers[value])}", dtype, strides)

    def _make_reduce(self, node: Node, level: int) -> Reduce:
        out, argument = node.outputs[0], node.args[0]
        operand = reduction_operand(node, self.operand(node, argument, argument.spec.dtype, level))
        self.row_dtype[out] = row_dtype(node, operand)
        fold = node.op.decl.fold
        if not self.columns:
            return Reduce(fold, operand, self.row_name(out))
        escapes = out in self.around.escaping
        self.buffered[out] = (
            self._whole_buffer(out)
            if escapes
            else self._make_row_buffer(out, self.column_dims, self.row_dtype[out])
        )
        return Reduce(fold, operand, self.buffered[out].name)
