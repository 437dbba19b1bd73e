"""From a fusion group to a kernel of the loop IR: which stage computes what, what is kept in between, where it lies.

A value's *level* is the number of reductions that have to be complete before it can be computed. Stage ``k`` computes
the full values of level ``k``: those that are reduced next, those that leave the group, and those that a later stage
needs and that cost too much to compute twice; they are kept in a buffer private to the row, which stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..operators.expr import Expr, cast
from ..registry.dtypes import DType
from ..tracer.graph import Node, Value
from .bodies import (
    CHEAP,
    cost,
    folded_dtype,
    node_expr,
    number,
    operand_types,
    operands_of,
    reduction_operand,
    unreduced_expr,
)
from .fusion import Dims, Group
from .layout import Layout, contiguous
from .loops import Buffer, FusedKernel, Reduce, Stage, Store, load, row, scalar
from .resolve import Resolution

SCRATCH_BYTES = 64 * 1024  # a kept row beyond this lies in the workspace instead of on the stack


@dataclass
class Scheduled:
    """A kernel and the values whose buffers are its parameters, in the order of the parameters."""

    kernel: FusedKernel
    params: list[Value]
    temporaries: list[Value]


@dataclass(frozen=True)
class Surroundings:
    """What a group has to know of the graph around it.

    Attributes:
        resolution: where views lie.
        escaping: the values that need a buffer.
        slots: of weak values, in the table of run-time scalars.
        constants: the number that a value is filled with, if it is one.
        copies: for views that were copied, to lie as a library wants them, the copies.
    """

    resolution: Resolution
    escaping: set[Value]
    slots: dict[Value, int]
    constants: dict[Value, bool | int | float]
    copies: dict[tuple[Value, Layout], Value] = field(default_factory=dict)


def schedule(name: str, group: Group, around: Surroundings) -> Scheduled:
    """The kernel that computes a group.

    Args:
        name: what to call the function.
        group: the nodes.
        around: the graph around them.

    Returns:
        The kernel, with the values that its parameters stand for.
    """
    return Scheduler(name, group, around).run()


class Scheduler:
    """The state of scheduling one group."""

    def __init__(self, name: str, group: Group, around: Surroundings):
        self.name, self.group, self.around = name, group, around
        self._lay_out_axes()
        self.buffers: dict[tuple[Value, tuple[int, ...], int], Buffer] = {}
        self.params: list[Value] = []
        self.temporaries: list[Value] = []
        self.level: dict[Value, int] = {}
        self.kept: dict[Value, Buffer] = {}  # full values that later stages load, and reduced ones in buffers
        self.exprs: dict[tuple[Value, int], Expr] = {}
        self.row_dtype: dict[Value, DType] = {}
        self.makers = {o: node for node in group.nodes for o in node.outputs}
        self.reductions = {n for n in group.nodes if self._reduces(n)}
        self.reduced_values = {n.outputs[0] for n in self.reductions}
        for node in group.nodes:
            self._find_level(node)

    # -- the iteration space ---------------------------------------------------------------------------------------
    def _lay_out_axes(self) -> None:
        """Rows run over the axes before the last reduced one; within a row: the reduced axes, then those after."""
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
        """The strides of a layout along the kernel's dimensions, when its axes lie along ``dims`` of the space."""
        along = {a: s for a, s in zip(dims, layout.strides, strict=True) if a is not None}
        return tuple(along.get(axis, 0) for axis in self.axes)

    def _param(self, value: Value, strides: tuple[int, ...], offset: int = 0) -> Buffer:
        """The buffer of a value that lies in memory, read or written with these strides."""
        found = self.buffers.get((value, strides, offset))
        if found is None:
            if value not in self.params:
                self.params.append(value)
            place, name = self.params.index(value), f"b{len(self.buffers)}"
            found = Buffer(name, value.spec.dtype, strides, place, offset)
            self.buffers[value, strides, offset] = found
        return found

    def _own(self, value: Value) -> Buffer:
        """The whole buffer of a value that the group makes."""
        dims = self.group.dims[value]
        return self._param(value, self._strides(dims, contiguous(value.shape)))

    # -- levels ----------------------------------------------------------------------------------------------------
    def _reduces(self, node: Node) -> bool:
        """Whether a node reduces axes that have more than one element."""
        if self.around.resolution.choices[node].kind != "reduction":
            return False
        out = {a for a in self.group.dims.get(node.outputs[0], ()) if a is not None}
        return bool({a for a in self.group.placed[node] if a is not None} - out)

    def inside(self, value: Value) -> Value | None:
        """The value of this group that an argument is, or is a view of."""
        root = self.around.resolution.root(value)[0]
        return root if root in self.group.made else None

    def _find_level(self, node: Node) -> None:
        above = [self.level[v] for v in map(self.inside, node.inputs) if v is not None]
        self.level[node.outputs[0]] = max(above, default=0) + (node in self.reductions)

    def is_full(self, value: Value) -> bool:
        """Whether a value of the group varies along the reduced axes (or nothing is reduced)."""
        dims = self.group.dims.get(value)
        return not self.group.reduced or dims is None or self.group.domain(dims) == "full"

    # -- expressions -----------------------------------------------------------------------------------------------
    def expr(self, value: Value, stage: int) -> Expr:
        """A value made here, as ``stage`` sees it: loaded if it has been kept before, else computed."""
        if self._is_kept(value, stage):
            return cast(load(self.kept[value]), value.spec.dtype)
        known = self.exprs.get((value, stage))
        return known if known is not None else self._compute(value, stage)

    def _is_kept(self, value: Value, stage: int) -> bool:
        return value in self.kept and (value in self.reduced_values or self.level[value] < stage)

    def _compute(self, value: Value, stage: int) -> Expr:
        """The expression of a value and, first, of those that it needs (no recursion: chains may be long)."""
        stack = [value]
        while stack:
            current = stack[-1]
            node = self.makers[current]
            missing = [
                v for v in map(self.inside, node.inputs) if v is not None and not self._known(v, stage)
            ]
            if missing and node not in self.reductions:
                stack.extend(missing)
                continue
            stack.pop()
            if (current, stage) not in self.exprs:
                self.exprs[current, stage] = self._node_expr(node, stage)
        return self.exprs[value, stage]

    def _known(self, value: Value, stage: int) -> bool:
        return self._is_kept(value, stage) or (value, stage) in self.exprs

    def _node_expr(self, node: Node, stage: int) -> Expr:
        out = node.outputs[0]
        if node in self.reductions:
            return cast(row(self.row_name(out), self.row_dtype[out]), out.spec.dtype)
        types = operand_types(node)
        operands = [self.operand(node, a, t, stage) for a, t in zip(operands_of(node), types, strict=True)]
        kind = self.around.resolution.choices[node].kind
        if kind == "reduction":
            return unreduced_expr(node, operands[0])
        return operands[0] if kind == "copy" else node_expr(node, operands)

    def row_name(self, value: Value) -> str:
        """What the row value of a reduction is called."""
        return f"r{self.group.nodes.index(self.makers[value])}"

    def operand(self, node: Node, argument: Any, dtype: DType, stage: int) -> Expr:
        """An argument of a node as an expression."""
        if not isinstance(argument, Value):
            return number(argument, dtype)
        slot = self.around.slots.get(argument)
        if slot is not None:
            return scalar(slot, argument.spec.dtype)
        made = self.inside(argument)
        if made is not None:
            return self.expr(made, stage)
        root, layout = self.around.resolution.root(argument)
        if root in self.around.constants:
            return number(self.around.constants[root], argument.spec.dtype)
        dims = self.group.placed[node]
        aligned = dims[len(dims) - len(argument.shape) :]
        known = tuple(None if n == 1 else a for n, a in zip(argument.shape, aligned, strict=True))
        return load(self._param(root, self._strides(known, layout), layout.offset))

    # -- stages ----------------------------------------------------------------------------------------------------
    def run(self) -> Scheduled:
        """Schedule the group."""
        last = max(self.level.values(), default=0)
        self.wanted = self._wanted(last)
        stages: list[Stage] = []
        for level in range(last + 1):
            stages += self._row_stage(level)
            stages += self._full_stage(level)
        kernel = FusedKernel(self.name, self.outer, self.inner, self._all_buffers(), tuple(stages))
        return Scheduled(kernel, self.params, self.temporaries)

    def _all_buffers(self) -> tuple[Buffer, ...]:
        private = [b for b in self.kept.values() if b.param is None]
        return (*self.buffers.values(), *private)

    def _wanted(self, last: int) -> list[list[Value]]:
        """For each stage the full values that it stores; decided from the last stage to the first."""
        wanted: list[list[Value]] = [[] for _ in range(last + 1)]
        for node in self.group.nodes:
            out = node.outputs[0]
            if out in self.around.escaping and self.is_full(out) and node not in self.reductions:
                wanted[self.level[out]].append(out)
        self.keep: set[Value] = set()
        for level in range(last, -1, -1):
            for value in self._needed_below(level, wanted[level]):
                self.keep.add(value)
                if value not in wanted[self.level[value]]:
                    wanted[self.level[value]].append(value)
        return wanted

    def _needed_below(self, level: int, stored: list[Value]) -> list[Value]:
        """The full values of lower levels that this stage reads and that are worth keeping."""
        roots = [*stored, *self._reduced_at(level)]
        found: dict[Value, None] = {}
        seen: set[Value] = set()
        while roots:
            value = roots.pop()
            if value in seen or value in self.reduced_values or not self.is_full(value):
                continue
            seen.add(value)
            if self.level[value] < level and self._weight(value) > CHEAP:
                found[value] = None
            else:
                roots += [v for v in map(self.inside, self.makers[value].inputs) if v is not None]
        return list(found)

    def _reduced_at(self, level: int) -> list[Value]:
        """The values of the group that reductions of a stage fold."""
        nodes = [
            n for n in self.group.nodes if n in self.reductions and self.level[n.outputs[0]] == level + 1
        ]
        return [v for v in (self.inside(n.args[0]) for n in nodes) if v is not None]

    def _weight(self, value: Value) -> int:
        """What a full value costs per element, from loads on; row values are found outside of the loop."""
        total, stack, seen = 0, [value], {value}
        while stack and total <= CHEAP:
            node = self.makers[stack.pop()]
            total += cost(node_expr(node, [Expr("row", (), t) for t in operand_types(node)]))
            inner = [v for v in map(self.inside, node.inputs) if v is not None]
            stack += [v for v in inner if v not in seen and self.is_full(v) and v not in self.reduced_values]
            seen.update(inner)
        return total

    def _row_stage(self, level: int) -> list[Stage]:
        """Store the row values of a level that leave the group."""
        body: list[Store | Reduce] = []
        for node in self.group.nodes:
            out = node.outputs[0]
            stays = out not in self.around.escaping or (self.is_full(out) and out not in self.reduced_values)
            if stays or self.level[out] != level or (out in self.kept and self.kept[out].param is not None):
                continue
            body.append(Store(self._own(out).name, self.expr(out, level)))
        return [Stage(self.column_dims, tuple(body))] if body else []

    def _full_stage(self, level: int) -> list[Stage]:
        body: list[Store | Reduce] = []
        for value in self.wanted[level]:
            expr = self.expr(value, level)
            body.append(Store(self._target(value).name, expr))
        for node in self.group.nodes:
            if node in self.reductions and self.level[node.outputs[0]] == level + 1:
                body.append(self._reduce(node, level))
        return [Stage(tuple(range(len(self.inner))), tuple(body))] if body else []

    def _target(self, value: Value) -> Buffer:
        """Where a full value is stored: its own buffer if it leaves the group, else one private to the row."""
        node = self.makers[value]
        if self.around.resolution.choices[node].kind == "copy":
            layout = contiguous(node.args[0].shape)
            return self._param(value, self._strides(self.group.placed[node], layout))
        if value in self.around.escaping:
            found = self._own(value)
        else:
            found = self._scratch(value, range(len(self.inner)))
        if value in self.keep:
            self.kept[value] = found
        return found

    def _scratch(self, value: Value, dims: Iterable[int], dtype: DType | None = None) -> Buffer:
        """A buffer of a row's elements along some inner dimensions; in the workspace if it is large."""
        dtype = dtype or value.spec.dtype
        sizes = tuple(self.inner[d] for d in dims)
        if math.prod(sizes) * dtype.itemsize > SCRATCH_BYTES and dtype is value.spec.dtype:
            self.temporaries.append(value)
            return self._own(value)
        along = dict(zip(dims, contiguous(sizes).strides, strict=True))
        strides = (*([0] * len(self.outer)), *(along.get(d, 0) for d in range(len(self.inner))))
        return Buffer(f"s{self.group.nodes.index(self.makers[value])}", dtype, strides)

    def _reduce(self, node: Node, level: int) -> Reduce:
        out, argument = node.outputs[0], node.args[0]
        operand = reduction_operand(node, self.operand(node, argument, argument.spec.dtype, level))
        self.row_dtype[out] = folded_dtype(node, operand)
        fold = node.op.decl.reduce
        if not self.columns:
            return Reduce(fold, operand, self.row_name(out))
        escapes = out in self.around.escaping
        self.kept[out] = (
            self._own(out) if escapes else self._scratch(out, self.column_dims, self.row_dtype[out])
        )
        return Reduce(fold, operand, self.kept[out].name)
