"""Fusion groups: which nodes one emitted kernel computes, and how their axes lie in its iteration space.

The nodes are taken in order. A node joins the group of one of its producers, or of a sibling that reads the same
tensor, if the iteration spaces agree and no path leaves the group and comes back; groups that a node connects are
merged under the same conditions. A group has one space; at most one set of its axes is reduced, and every value in it
is either *full* (varies over the whole space) or a *row* value (varies over the axes that are not reduced). What cannot
be said so stays in another group, and passes through memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap

from ..tracer.graph import Graph, Node, Value
from .layout import axis_map, contiguous
from .resolve import FUSED, Resolution, reduced_axes
from .rewrite import has_effects

Dims = tuple[int | None, ...]
"""For each axis of a value the axis of the space that it runs along; None where it has one element or repeats."""
MAX_NODES = 256


class Group:
    """Nodes that are computed together, or one node that has a kernel of its own.

    Attributes:
        nodes: in order.
        fused: whether an emitted loop computes it.
        space: sizes of the iteration space's axes (none of them 1).
        reduced: the axes that are reduced; None as long as no node reduces.
        dims: how the axes of each value lie in the space: those made here, and those read (at first).
        placed: for each node how the axes that it runs over lie in the space.
        made: the results of its nodes.
        above: the groups that it depends on, directly or not, as a set of bits.
    """

    def __init__(self, index: int, fused: bool):
        self.index, self.fused = index, fused
        self.nodes: list[Node] = []
        self.space: list[int] = []
        self.reduced: frozenset[int] | None = None
        self.dims: dict[Value, Dims] = {}
        self.placed: dict[Node, Dims] = {}
        self.made: set[Value] = set()
        self.above = 0

    @property
    def bit(self) -> int:
        """Its bit in sets of groups."""
        return 1 << self.index

    def domain(self, dims: Iterable[int | None]) -> str | None:
        """``"full"`` or ``"row"`` for a value with these axes; None if it is neither."""
        used = {axis for axis in dims if axis is not None}
        if len(used) == len(self.space):
            return "full"
        rest = set(range(len(self.space))) - (self.reduced or frozenset())
        return "row" if self.reduced and used == rest else None


class Placement:
    """Where a node would lie in a group: the axes of its iteration, those of its result, what it reduces."""

    def __init__(self, dims: Dims, out: Dims | None, reduced: frozenset[int] | None):
        self.dims, self.out, self.reduced = dims, out, reduced


def iteration_shape(node: Node, kind: str) -> tuple[int, ...]:
    """The shape that a fused node runs over: its result's, or what it reduces or copies."""
    value = node.args[0] if kind in ("reduction", "copy") else node.outputs[0]
    return tuple(value.shape)


class Partition:
    """The groups of a graph.

    Attributes:
        groups: in an order in which they can run.
        of: the group of each node that is no view.
        maker: the group that makes each value.
    """

    def __init__(self, graph: Graph, resolution: Resolution):
        self.resolution = resolution
        self.all: list[Group] = []
        self.of: dict[Node, Group] = {}
        self.maker: dict[Value, Group] = {}
        self.readers: dict[Value, list[Group]] = {}
        self._last_effect: Group | None = None  # nodes with effects run in the order of the program
        for node in graph.nodes:
            kind = resolution.choices[node].kind
            if kind != "view":
                self._place(node, kind)
        self.groups = sorted((g for g in self.all if g.nodes), key=lambda g: (g.above.bit_count(), g.index))

    # -- where a node goes -----------------------------------------------------------------------------------------
    def _place(self, node: Node, kind: str) -> None:
        group = self._join(node, kind) if kind in FUSED and kind != "constant" else None
        if group is None:
            group = Group(len(self.all), kind in FUSED)
            self.all.append(group)
            if group.fused:
                self._start(group, node, kind)
        self._add(group, node)
        if group.fused and kind != "constant":
            for other in self._producers(node):
                if other is not group:
                    self._merge(other, group, node)

    def _producers(self, node: Node) -> list[Group]:
        """The fused groups that make what a node reads, the newest first."""
        found = {self.maker[r].index: self.maker[r] for r in self._roots(node) if r in self.maker}
        return [found[i] for i in sorted(found, reverse=True) if found[i].fused]

    def _siblings(self, node: Node) -> list[Group]:
        """The fused groups that read what a node reads, the newest first; scalars connect nothing."""
        groups = [g for r in self._roots(node) for g in self.readers.get(r, ())[-4:] if r.shape]
        return [g for g in reversed(groups) if g.fused]

    def _roots(self, node: Node) -> list[Value]:
        return [self.resolution.root(value)[0] for value in node.inputs]

    def _join(self, node: Node, kind: str) -> Group | None:
        for group in [*self._producers(node), *self._siblings(node)]:
            place = self._fits(group, node, kind)
            if place is not None and not self._cycle(group, node):
                self._enter(group, node, place)
                return group
        return None

    def _cycle(self, group: Group, node: Node) -> bool:
        """Whether something that the node reads from outside of the group depends on the group."""
        makers = (self.maker.get(root) for root in self._roots(node))
        return any(m is not None and m is not group and m.above & group.bit for m in makers)

    # -- axes ------------------------------------------------------------------------------------------------------
    def dims_of(self, group: Group, value: Value) -> Dims | None:
        """How a value made or read by a group lies in its space; None if it does not, or only through memory."""
        known = group.dims.get(value)
        if known is not None:
            return known
        root, layout = self.resolution.root(value)
        within = group.dims.get(root) if root is not value else None
        axes = axis_map(layout, contiguous(root.shape)) if within is not None else None
        if within is None or axes is None:
            return None
        return tuple(None if axis is None else within[axis] for axis in axes)

    def _fits(self, group: Group, node: Node, kind: str) -> Placement | None:
        if len(group.nodes) >= MAX_NODES or kind == "constant":
            return None
        dims = self._iteration_dims(group, node, iteration_shape(node, kind))
        if dims is None or group.domain(dims) is None:
            return None
        return self._placed(group, node, kind, dims)

    def _placed(self, group: Group, node: Node, kind: str, dims: Dims) -> Placement | None:
        if kind == "copy":
            return Placement(dims, None, group.reduced)
        if kind != "reduction":
            return Placement(dims, dims, group.reduced)
        axes = reduced_axes(node)
        over = frozenset(a for a in (dims[i] for i in axes) if a is not None)
        agrees = group.reduced is None or over == group.reduced
        if over and (not agrees or len({a for a in dims if a is not None}) != len(group.space)):
            return None
        if not _counts_right(node, dims):
            return None
        return Placement(dims, _after(node, dims, axes), over or group.reduced)

    def _iteration_dims(self, group: Group, node: Node, shape: tuple[int, ...]) -> Dims | None:
        """An axis of the group's space for each axis of ``shape``, as the node's arguments have them there."""
        found: list[int | None] = [None] * len(shape)
        inner = [(v, self.resolution.root(v)[0] in group.made) for v in node.inputs]
        for value, inside in sorted(inner, key=lambda item: not item[1]):
            dims = self.dims_of(group, value)
            if dims is None and inside:
                return None
            for axis, place in enumerate(dims or (), len(shape) - len(value.shape)):
                if place is not None and found[axis] is None:
                    found[axis] = place
                elif place is not None and found[axis] != place and inside:
                    return None
        return _completed(found, shape, group.space)

    # -- changing groups -------------------------------------------------------------------------------------------
    def _start(self, group: Group, node: Node, kind: str) -> None:
        """Give an empty group the space of its first node."""
        shape = iteration_shape(node, kind)
        axes = [i for i, size in enumerate(shape) if size != 1]
        group.space = [shape[i] for i in axes]
        dims = tuple(axes.index(i) if size != 1 else None for i, size in enumerate(shape))
        place = self._placed(group, node, kind, dims)
        if place is not None:
            self._enter(group, node, place)

    def _enter(self, group: Group, node: Node, place: Placement) -> None:
        group.reduced, group.placed[node] = place.reduced, place.dims
        for value in node.inputs:
            group.dims.setdefault(value, _as_read(value, place.dims))
        if place.out is not None:
            group.dims[node.outputs[0]] = place.out

    def _add(self, group: Group, node: Node) -> None:
        group.nodes.append(node)
        self.of[node] = group
        group.made.update(node.outputs)
        for value in node.outputs:
            self.maker[value] = group
        before = group.above
        for root in self._roots(node):
            maker = self.maker.get(root)
            if maker is not None and maker is not group:
                group.above |= maker.above | maker.bit
            self.readers.setdefault(root, []).append(group)
        if has_effects(node):
            if self._last_effect is not None:
                group.above |= self._last_effect.above | self._last_effect.bit
            self._last_effect = group
        if group.above != before:
            self._spread(group)

    def _spread(self, group: Group) -> None:
        """What depends on a group depends on what is above it."""
        for other in self.all:
            if other.above & group.bit:
                other.above |= group.above

    def _merge(self, source: Group, target: Group, node: Node) -> None:
        """Move a producer's nodes into the group of the node that reads them, if their spaces are one space."""
        between = [g for g in self.all if g.above & source.bit and target.above & g.bit]
        if any(g is not source for g in between) or source.above & target.bit:
            return
        axes = self._shared_axes(source, target, node)
        if axes is None or len(source.nodes) + len(target.nodes) > MAX_NODES:
            return
        reduced = None if source.reduced is None else frozenset(axes[a] for a in source.reduced)
        if reduced and target.reduced and reduced != target.reduced:
            return
        if not self._moves(source, target, axes):
            return
        target.reduced = target.reduced or reduced
        self._absorb(source, target)

    def _moves(self, source: Group, target: Group, axes: list[int]) -> bool:
        """Take over the axes of the source's values; a value that both have in different ways keeps them apart."""
        moved = {v: tuple(None if a is None else axes[a] for a in dims) for v, dims in source.dims.items()}
        made = source.made | target.made
        if any(v in target.dims and target.dims[v] != dims for v, dims in moved.items() if v in made):
            return False
        placed = {n: tuple(None if a is None else axes[a] for a in dims) for n, dims in source.placed.items()}
        if not self._read_alike(source, target, axes) or not all(starmap(_counts_right, placed.items())):
            return False
        target.dims = {**moved, **target.dims}
        target.placed.update(placed)
        return True

    def _read_alike(self, source: Group, target: Group, axes: list[int]) -> bool:
        """Whether whatever the target reads of the source's is read where it is made, not, say, in reverse order."""
        for node, place in target.placed.items():
            for value in node.inputs:
                if self.resolution.root(value)[0] in source.made:
                    dims = self.dims_of(source, value)
                    if dims is None or _as_read(value, place) != tuple(
                        None if axis is None else axes[axis] for axis in dims
                    ):
                        return False
        return True

    def _absorb(self, source: Group, target: Group) -> None:
        order = {node: place for place, node in enumerate(self.of)}
        target.nodes = sorted([*source.nodes, *target.nodes], key=order.__getitem__)
        target.made |= source.made
        for node in source.nodes:
            self.of[node] = target
        for value in source.made:
            self.maker[value] = target
        for group in self.all:
            if group.above & source.bit:
                group.above = (group.above & ~source.bit) | target.bit
        target.above = (target.above | source.above) & ~target.bit & ~source.bit
        for readers in self.readers.values():
            readers[:] = [target if g is source else g for g in readers]
        source.nodes, source.made = [], set()
        self._spread(target)

    def _shared_axes(self, source: Group, target: Group, node: Node) -> list[int] | None:
        """For each axis of the source's space that of the target's, as the node reads them; None if they differ."""
        if sorted(source.space) != sorted(target.space):
            return None
        found: dict[int, int] = {}
        for value in node.inputs:
            if self.resolution.root(value)[0] in source.made:
                here, there = self.dims_of(source, value), target.dims.get(value)
                if here is None or there is None:
                    return None
                pairs = [(a, b) for a, b in zip(here, there, strict=True) if a is not None or b is not None]
                if any(a is None or b is None or found.setdefault(a, b) != b for a, b in pairs):
                    return None
        return _bijection(found, source.space, target.space)


def _as_read(value: Value, place: Dims) -> Dims:
    """The axes along which a node that runs over ``place`` reads a value that broadcasts to it."""
    shift = len(place) - len(value.shape)
    return tuple(None if size == 1 else place[axis + shift] for axis, size in enumerate(value.shape))


def _counts_right(node: Node, dims: Dims) -> bool:
    """Whether the axes lie in their order, as argmax needs them: it counts points, and takes the first of equals."""
    if node.op.decl.reduce not in ("argmax", "argmin"):
        return True
    axes = [dims[axis] for axis in reduced_axes(node) if dims[axis] is not None]
    return axes == sorted(axes)  # type: ignore[type-var]


def _after(node: Node, dims: Dims, axes: tuple[int, ...]) -> Dims:
    """The axes of a reduction's result."""
    keepdims = len(node.outputs[0].shape) == len(dims)
    if keepdims:
        return tuple(None if i in axes else a for i, a in enumerate(dims))
    return tuple(a for i, a in enumerate(dims) if i not in axes)


def _completed(found: list[int | None], shape: tuple[int, ...], space: list[int]) -> Dims | None:
    """Give axes that no argument in the group has a free axis of their size; None if there is none."""
    taken = [axis for axis in found if axis is not None]
    if len(set(taken)) != len(taken):
        return None
    free = [axis for axis in range(len(space)) if axis not in taken]
    for i, size in enumerate(shape):
        if size == 1 or found[i] is not None:
            continue
        fit = next((axis for axis in free if space[axis] == size), None)
        if fit is None:
            return None
        free.remove(fit)
        found[i] = fit
    return tuple(found)


def _bijection(found: dict[int, int], source: list[int], target: list[int]) -> list[int] | None:
    """Complete a partial map of axes by sizes; None if sizes differ or two axes meet."""
    free = [axis for axis in range(len(target)) if axis not in found.values()]
    for axis, size in enumerate(source):
        if axis not in found:
            fit = next((other for other in free if target[other] == size), None)
            if fit is None:
                return None
            free.remove(fit)
            found[axis] = fit
    axes = [found[axis] for axis in range(len(source))]
    same = all(source[a] == target[b] for a, b in enumerate(axes))
    return axes if same and len(set(axes)) == len(axes) else None
