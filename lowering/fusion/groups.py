"""Fusion groups: the nodes that one emitted kernel computes, and the mapping of their axes to its iteration space.

The nodes are taken in order. A node joins the group of one of its producers, or of a sibling that reads the same
tensor, if the iteration spaces agree and no path leaves the group and comes back; groups that a node connects are
merged under the same conditions. A group has one space; at most one set of its axes is reduced, and every value in it
is either *full* (varies over the whole space) or a *row* value (varies over the axes that are not reduced). Nodes that
do not fit this scheme form other groups and communicate through memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...tracer.graph import Graph, Node, Value
from ..cost_model import MAX_GROUP_NODES
from ..kernel_selection import FUSED, KernelSelection, reduced_axes
from ..layout import contiguous, map_axes, proves_equal
from ..passes.rewrite import has_effects
from .index_maps import aligned_inputs, unaligned_inputs

Dims = tuple[int | None, ...]
"""For each axis of a value, the axis of the iteration space; None for an axis of one element or a broadcast one."""


class Group:
    """Nodes that one kernel computes, or one node that is not fused.

    Attributes:
        nodes: in order.
        fused: whether an emitted loop computes the group.
        space: sizes of the iteration space's axes (none of them 1).
        reduced: the axes that are reduced; None if no node reduces.
        dims: the axes in the space of each value that the group computes or reads.
        placed: the axes in the space that each node iterates over.
        made: the results of its nodes.
        above: the bits of the groups that it depends on, transitively.
        bits: its bit, and those of the groups that were merged into it.
        users: groups that read its results; :meth:`current` returns what they were merged into.
        merged: the group that it was merged into.
    """

    def __init__(self, index: int, fused: bool):
        self.index, self.fused = index, fused
        self.nodes: list[Node] = []
        self.space: list[int] = []
        self.reduced: frozenset[int] | None = None
        self.dims: dict[Value, Dims] = {}
        self.placed: dict[Node, Dims] = {}
        self.made: set[Value] = set()
        self.above, self.bits = 0, 1 << index
        self.users: set[Group] = set()
        self.merged: Group | None = None

    def current(self) -> Group:
        """The group that it has become part of: itself unless it was merged."""
        group = self
        while group.merged is not None:
            group = group.merged
        return group

    def domain(self, dims: Iterable[int | None]) -> str | None:
        """Classify axes as ``"full"`` or ``"row"``; None if they are neither."""
        used = {axis for axis in dims if axis is not None}
        if len(used) == len(self.space):
            return "full"
        rest = set(range(len(self.space))) - (self.reduced or frozenset())
        return "row" if self.reduced and used == rest else None


class Placement:
    """A possible placement of a node in a group: its iteration axes, its result's axes, and the reduced axes."""

    def __init__(self, dims: Dims, out: Dims | None, reduced: frozenset[int] | None):
        self.dims, self.out, self.reduced = dims, out, reduced


def iteration_shape(node: Node, kind: str) -> tuple[int, ...]:
    """The iteration shape of a fused node: that of its result, or of the operand of a reduction or a copy."""
    value = node.args[0] if kind in ("reduction", "copy") else node.outputs[0]
    return tuple(value.shape)


class Partition:
    """The partition of a graph into fusion groups.

    Attributes:
        groups: in execution order.
        of: the group of each node that is not a view.
        maker: the group that computes each value.
    """

    def __init__(self, graph: Graph, resolution: KernelSelection):
        self.resolution = resolution
        self.all: list[Group] = []
        self.of: dict[Node, Group] = {}
        self.maker: dict[Value, Group] = {}
        self.readers: dict[Value, list[Group]] = {}
        self._positions: dict[Node, int] = {}
        self._last_effect: Group | None = None  # nodes with effects run in the order of the program
        for node in graph.nodes:
            kind = resolution.choices[node].kind
            if kind != "view":
                self._assign_group(node, kind)
        self.groups = sorted((g for g in self.all if g.nodes), key=lambda g: (g.above.bit_count(), g.index))

    # -- where a node goes -----------------------------------------------------------------------------------------
    def _assign_group(self, node: Node, kind: str) -> None:
        group = self._find_group(node, kind) if kind in FUSED and kind != "constant" else None
        if group is None:
            group = Group(len(self.all), kind in FUSED)
            self.all.append(group)
            if group.fused:
                self._open_group(group, node, kind)
        self._add_node(group, node)
        if group.fused and kind != "constant":
            for other in self._producers(node):
                if other is not group:
                    self._try_merge(other, group, node)

    def _producers(self, node: Node) -> list[Group]:
        """The fused groups that compute a node's operands, the newest first."""
        mapping = {self.maker[r].index: self.maker[r] for r in self._operand_roots(node) if r in self.maker}
        return [mapping[i] for i in sorted(mapping, reverse=True) if mapping[i].fused]

    def _siblings(self, node: Node) -> list[Group]:
        """The fused groups that share a non-scalar operand with a node, the newest first."""
        last = (self.readers.get(r, ())[-4:] for r in self._operand_roots(node) if r.shape)
        groups = [group.current() for readers in last for group in readers]
        return [g for g in reversed(groups) if g.fused]

    def _operand_roots(self, node: Node) -> list[Value]:
        return [self.resolution.root(value)[0] for value in node.inputs]

    def _find_group(self, node: Node, kind: str) -> Group | None:
        siblings = self._siblings(node)
        if kind == "gather":
            siblings = [group for group in siblings if self._has_same_dependencies(group, node)]
        for group in [*self._producers(node), *siblings]:
            placement = self._find_placement(group, node, kind)
            if placement is not None and not self._creates_cycle(group, node):
                self._apply_placement(group, node, placement)
                return group
        return None

    def _has_same_dependencies(self, group: Group, node: Node) -> bool:
        """Whether neither a group nor a node waits for a kernel that the other does not need.

        Elements that are read at positions would otherwise keep all kernels that use the same positions apart from the
        kernel that computes the elements.
        """
        makers = [maker for root in self._operand_roots(node) if (maker := self.maker.get(root)) is not None]
        above = group.bits
        for maker in makers:
            above |= maker.above | maker.bits
        return above == group.above | group.bits

    def _creates_cycle(self, group: Group, node: Node) -> bool:
        """Whether adding the node creates a cycle: it reads a value outside of the group that depends on the group."""
        makers = (self.maker.get(root) for root in self._operand_roots(node))
        return any(m is not None and m is not group and m.above & group.bits for m in makers)

    # -- axes ------------------------------------------------------------------------------------------------------
    def axes_of_value(self, group: Group, value: Value) -> Dims | None:
        """The axes in a group's space of a value that it computes or reads; None if they are not whole axes."""
        known = group.dims.get(value)
        if known is not None:
            return known
        root, layout = self.resolution.root(value)
        within = group.dims.get(root) if root is not value else None
        axes = map_axes(layout, contiguous(root.shape)) if within is not None else None
        if within is None or axes is None:
            return None
        return tuple(None if axis is None else within[axis] for axis in axes)

    def _find_placement(self, group: Group, node: Node, kind: str) -> Placement | None:
        if len(group.nodes) >= MAX_GROUP_NODES or kind == "constant":
            return None
        if any(self.resolution.root(value)[0] in group.made for value in unaligned_inputs(node)):
            return None
        dims = self._iteration_dims(group, node, iteration_shape(node, kind))
        if dims is None or group.domain(dims) is None:
            return None
        return self._make_placement(group, node, kind, dims)

    def _make_placement(self, group: Group, node: Node, kind: str, dims: Dims) -> Placement | None:
        if kind == "copy":
            return Placement(dims, None, group.reduced)
        if kind != "reduction":
            return Placement(dims, dims, group.reduced)
        axes = reduced_axes(node)
        over = frozenset(a for a in (dims[i] for i in axes) if a is not None)
        agrees = group.reduced is None or over == group.reduced
        if over and (not agrees or len({a for a in dims if a is not None}) != len(group.space)):
            return None
        if not _keeps_fold_order(node, dims, len(group.space)):
            return None
        return Placement(dims, _reduced_dims(node, dims, axes), over or group.reduced)

    def _iteration_dims(self, group: Group, node: Node, shape: tuple[int, ...]) -> Dims | None:
        """Map each axis of ``shape`` to an axis of the group's space, consistently with the node's arguments."""
        current: list[int | None] = [None] * len(shape)
        inner = [
            (v, first, self.resolution.root(v)[0] in group.made)
            for v, first in aligned_inputs(node, len(shape))
        ]
        for value, first, inside in sorted(inner, key=lambda item: not item[2]):
            dims = self.axes_of_value(group, value)
            if dims is None and inside:
                return None
            for axis, dim in enumerate(dims or (), first):
                if dim is not None and current[axis] is None:
                    current[axis] = dim
                elif dim is not None and current[axis] != dim and inside:
                    return None
        return _complete_axes(current, shape, group.space)

    # -- changing groups -------------------------------------------------------------------------------------------
    def _open_group(self, group: Group, node: Node, kind: str) -> None:
        """Initialize the space of an empty group from its first node."""
        shape = iteration_shape(node, kind)
        axes = [i for i, size in enumerate(shape) if size != 1]
        group.space = [shape[i] for i in axes]
        dims = tuple(axes.index(i) if size != 1 else None for i, size in enumerate(shape))
        placement = self._make_placement(group, node, kind, dims)
        if placement is not None:
            self._apply_placement(group, node, placement)

    def _apply_placement(self, group: Group, node: Node, placement: Placement) -> None:
        group.reduced, group.placed[node] = placement.reduced, placement.dims
        for value, first in aligned_inputs(node, len(placement.dims)):
            group.dims.setdefault(value, _broadcast_dims(value, placement.dims, first))
        if placement.out is not None:
            group.dims[node.outputs[0]] = placement.out

    def _add_node(self, group: Group, node: Node) -> None:
        group.nodes.append(node)
        self.of[node] = group
        self._positions[node] = len(self._positions)
        group.made.update(node.outputs)
        for value in node.outputs:
            self.maker[value] = group
        before = group.above
        for root in self._operand_roots(node):
            maker = self.maker.get(root)
            if maker is not None and maker is not group:
                group.above |= maker.above | maker.bits
                maker.users.add(group)
            self.readers.setdefault(root, []).append(group)
        if has_effects(node):
            if self._last_effect is not None and self._last_effect.current() is not group:
                before_it = self._last_effect.current()
                group.above |= before_it.above | before_it.bits
                before_it.users.add(group)
            self._last_effect = group
        if group.above != before:
            self._propagate_dependencies(group)

    def _propagate_dependencies(self, group: Group) -> None:
        """Add the dependencies of a group to all groups that depend on it."""
        changed = [group]
        while changed:
            source = changed.pop()
            for user in {user.current() for user in source.users} - {source}:
                above = user.above | source.above | source.bits
                if above != user.above:
                    user.above = above
                    changed.append(user)

    def _try_merge(self, source: Group, target: Group, node: Node) -> None:
        """Merge a producer's group into its reader's group if their iteration spaces agree and no cycle results."""
        if source.above & target.bits or self._is_between(source, target):
            return
        axes = self._match_axes(source, target, node)
        if axes is None or len(source.nodes) + len(target.nodes) > MAX_GROUP_NODES:
            return
        reduced = None if source.reduced is None else frozenset(axes[a] for a in source.reduced)
        if reduced and target.reduced and reduced != target.reduced:
            return
        if not self._map_axes(source, target, axes):
            return
        target.reduced = target.reduced or reduced
        self._move_nodes(source, target)

    def _is_between(self, source: Group, target: Group) -> bool:
        """Whether a group depends on ``source`` that ``target`` depends on."""
        users = {user.current() for user in source.users} - {source, target}
        return any(target.above & user.bits for user in users)

    def _map_axes(self, source: Group, target: Group, axes: list[int]) -> bool:
        """Map the axes of the source's values and nodes into the target; False if the two disagree on a value."""
        moved = {v: tuple(None if a is None else axes[a] for a in dims) for v, dims in source.dims.items()}
        made = source.made | target.made
        if any(v in target.dims and target.dims[v] != dims for v, dims in moved.items() if v in made):
            return False
        placed = {n: tuple(None if a is None else axes[a] for a in dims) for n, dims in source.placed.items()}
        if not self._reads_match(source, target, axes) or not all(
            _keeps_fold_order(node, dims, len(target.space)) for node, dims in placed.items()
        ):
            return False
        target.dims = {**moved, **target.dims}
        target.placed.update(placed)
        return True

    def _reads_match(self, source: Group, target: Group, axes: list[int]) -> bool:
        """Whether the target reads each value of the source at the point that computes it (not, say, reversed)."""
        for node, placed in target.placed.items():
            if any(self.resolution.root(value)[0] in source.made for value in unaligned_inputs(node)):
                return False
            for value, first in aligned_inputs(node, len(placed)):
                if self.resolution.root(value)[0] in source.made:
                    dims = self.axes_of_value(source, value)
                    if dims is None or _broadcast_dims(value, placed, first) != tuple(
                        None if axis is None else axes[axis] for axis in dims
                    ):
                        return False
        return True

    def _move_nodes(self, source: Group, target: Group) -> None:
        target.nodes = sorted([*source.nodes, *target.nodes], key=self._positions.__getitem__)
        target.made |= source.made
        for node in source.nodes:
            self.of[node] = target
        for value in source.made:
            self.maker[value] = target
        target.bits |= source.bits
        target.above = (target.above | source.above) & ~target.bits
        target.users |= source.users
        source.nodes, source.made, source.merged = [], set(), target
        self._propagate_dependencies(target)

    def _match_axes(self, source: Group, target: Group, node: Node) -> list[int] | None:
        """Map each axis of the source's space to the target's, as the node reads its values; None if that fails."""
        if Counter(source.space) != Counter(target.space):
            return None
        mapping: dict[int, int] = {}
        for value in node.inputs:
            if self.resolution.root(value)[0] in source.made:
                here, there = self.axes_of_value(source, value), target.dims.get(value)
                if here is None or there is None:
                    return None
                pairs = [(a, b) for a, b in zip(here, there, strict=True) if a is not None or b is not None]
                if any(a is None or b is None or mapping.setdefault(a, b) != b for a, b in pairs):
                    return None
        return _complete_axis_map(mapping, source.space, target.space)


def _broadcast_dims(value: Value, dims: Dims, first: int) -> Dims:
    """The axes of a value that is broadcast to a node's iteration axes ``dims``, from axis ``first`` on."""
    return tuple(None if size == 1 else dims[axis] for axis, size in enumerate(value.shape, first))


def _keeps_fold_order(node: Node, dims: Dims, rank: int) -> bool:
    """Whether a reduction folds in the order that follows from its operand's shape, in a space of ``rank`` axes.

    A reduction to an index returns the first of equal elements. One that rounds has other bits where columns become
    rows, as eager calls fold them in another order (backends/cpu/codegen/folds/order.py).
    """
    fold = node.op.decl.fold
    if fold is None or not (fold.returns_index or fold.rounds(node.outputs[0].spec.dtype)):
        return True
    axes = [axis for i in reduced_axes(node) if (axis := dims[i]) is not None]
    if axes != sorted(axes):
        return False
    last = next((axis for axis in reversed(dims) if axis is not None), None)
    return fold.returns_index or (last in axes) == (rank - 1 in axes)


def _reduced_dims(node: Node, dims: Dims, axes: tuple[int, ...]) -> Dims:
    """The axes of a reduction's result."""
    keepdims = len(node.outputs[0].shape) == len(dims)
    if keepdims:
        return tuple(None if i in axes else a for i, a in enumerate(dims))
    return tuple(a for i, a in enumerate(dims) if i not in axes)


def _complete_axes(axes: list[int | None], shape: tuple[int, ...], space: list[int]) -> Dims | None:
    """Assign each unmapped axis a free axis of the same size; None if there is none."""
    taken = [axis for axis in axes if axis is not None]
    if len(set(taken)) != len(taken):
        return None
    free = [axis for axis in range(len(space)) if axis not in taken]
    for i, size in enumerate(shape):
        if size == 1 or axes[i] is not None:
            continue
        fit = next((axis for axis in free if proves_equal(space[axis], size)), None)
        if fit is None:
            return None
        free.remove(fit)
        axes[i] = fit
    return tuple(axes)


def _complete_axis_map(mapping: dict[int, int], source: list[int], target: list[int]) -> list[int] | None:
    """Complete a partial axis map to a bijection by matching sizes; None if that is not possible."""
    free = [axis for axis in range(len(target)) if axis not in mapping.values()]
    for axis, size in enumerate(source):
        if axis not in mapping:
            fit = next((other for other in free if proves_equal(target[other], size)), None)
            if fit is None:
                return None
            free.remove(fit)
            mapping[axis] = fit
    axes = [mapping[axis] for axis in range(len(source))]
    same = all(proves_equal(source[a], target[b]) for a, b in enumerate(axes))
    return axes if same and len(set(axes)) == len(axes) else None
