"""Run loops over large arrays tile by tile: 12 steps of ``s * x + c[i]`` read and write memory once, and not 12 times.

If each step computes each element of the carries from the same element of carries and constants, the elements are
independent. The loop over the steps then runs inside a loop over tiles that stay in the first cache.

Source: loop interchange and strip mining (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...named_tuple import NamedTuple
from ...registry.operator import find_operator
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value, map_values
from ..cost_model import count_instructions
from ..fusion.ranges import match_range
from ..kernel_selection import uniform_constant
from .loop_passes import Rewritten, Scan, replace_scans, scan_node, scan_of
from .rewrite import add_node, add_reshape, copy_node, empty_like, has_effects, is_array, new_node

TILE_BYTES = 16 * 1024
"""Bytes of the elements of one tile of all carries and constants."""
LEAST, LEAST_OF_LOOP = 256, 8  # elements of a tile, and of carries whose steps are taken together
MIN_TILES, MIN_STEPS = 4, 4
MOST_INSTRUCTIONS = 24  # of the steps that one kernel takes; longer chains leave fewer elements in flight
MIN_STEPS_OF_REST = 16  # where the tiles leave a rest, which is joined with their results
_POINTWISE = ("unary", "binary", "comparison", "ternary", "cast", "copy")
_OF_NUMBERS = frozenset((*_POINTWISE, "creation", "view", "gather"))


def tile_loops(graph: Graph) -> Graph:
    """Run scans whose steps are elementwise over tiles of their carries."""
    return replace_scans(graph, _tile)


def _tile(node: Node) -> Rewritten | None:
    scan = scan_of(node)
    tiling = _find_tiling(scan)
    if tiling is None:
        return None
    writer = _Writer(scan, tiling, node.source)
    results = writer.write()
    return writer.nodes, dict(zip(node.outputs, results, strict=True))


# -- which loops -------------------------------------------------------------------------------------------------------
class Tiling(NamedTuple):
    """The tiles of a scan.

    Attributes:
        shape: the shape of the carries that are tiled, and of all values of the body that have many elements.
        size: the number of elements of a tile.
    """

    shape: tuple[int, ...]
    size: int


def _find_tiling(scan: Scan) -> Tiling | None:
    """Find the tiling of a scan; None if its steps are not elementwise, or its carries are small."""
    body, count = scan.body, len(scan.carry)
    if len(body.outputs) != count or type(scan.length) is not int or scan.length < MIN_STEPS:
        return None
    values = (*scan.given, *body.outputs)
    if not all(map(is_array, values)):
        return None
    shape = max((value.shape for value in body.inputs[:count]), key=math.prod, default=())
    operands = [*body.inputs[:count], *body.inputs[count + len(scan.xs) :]]
    if math.prod(shape) < LEAST_OF_LOOP:
        return None
    large = [value for value in operands if value.shape == shape]
    most = TILE_BYTES // sum(value.spec.dtype.itemsize for value in large)
    if most < LEAST:
        return None
    items = body.inputs[count : count + len(scan.xs)]
    numbers = [*items, *(value for value in body.inputs[:count] if value.shape != shape)]
    if any(value.spec.size != 1 for value in numbers):
        return None
    is_tiled = all(_is_elementwise(inner, shape) for inner in body.nodes)
    if not is_tiled or large[0].spec.device != "cpu":
        return None
    total = math.prod(shape)
    size = _choose_size(total, most) if total >= MIN_TILES * most else total
    return Tiling(shape, size) if total % size == 0 or scan.length >= MIN_STEPS_OF_REST else None


def _choose_size(total: int, most: int) -> int:
    """The number of elements of a tile: one that leaves no rest, of whole vectors, if it is not much smaller."""
    sizes = range(most // 8 * 8, most // 4, -8)
    return next((size for size in sizes if total % size == 0), sizes[0])


def _is_elementwise(node: Node, shape: tuple[int, ...]) -> bool:
    """Whether a node computes elements of a shape from the same elements and numbers, or numbers alone."""
    if has_effects(node) or any(output.weak is not None for output in node.outputs):
        return False
    kind = getattr(node.op.decl, "kind", "")
    if all(output.shape != shape for output in node.outputs):
        is_number = all(output.spec.size == 1 for output in node.outputs)
        return is_number and kind in _OF_NUMBERS and all(value.shape != shape for value in node.inputs)
    if uniform_constant(node) is not None:
        return True
    return kind in _POINTWISE and all(value.shape in (shape, ()) for value in node.inputs)


# -- the loops ---------------------------------------------------------------------------------------------------------
class _Writer:
    """Writes the loop over the tiles, and the loop over the elements that are left.

    Attributes:
        nodes: the nodes that replace the scan.
    """

    def __init__(self, scan: Scan, tiling: Tiling, source: str):
        self.scan, self.shape, self.tile, self.source = scan, tiling.shape, tiling.size, source
        self.nodes: list[Node] = []
        self.total = math.prod(self.shape)
        self.whole = self.total - self.total % self.tile
        carries, items = len(scan.carry), len(scan.xs)
        self.is_tiled = [
            value.shape == tiling.shape and not carries <= number < carries + items
            for number, value in enumerate(scan.given)
        ]

    def write(self) -> list[Value]:
        """Write the nodes; returns the final carries."""
        given = [self._reshape(v, (self.total,)) if t else v for v, t in zip(self.scan.given, self.is_tiled)]
        if self.tile == self.total:
            results = list(self._write_steps(self.nodes, given, self.total))
        else:
            results = self._write_tiles(given)
        if self.whole < self.total:
            plan = ((self.whole, self.total - self.whole, 1),)
            rest = [self._slice(v, plan) if t else v for v, t in zip(given, self.is_tiled)]
            ends = self._write_steps(self.nodes, rest, self.total - self.whole)
            results = [
                self._add("td::concat", ((one, two), 0), (self.total,), one) if t else one
                for one, two, t in zip(results, ends, self.is_tiled)
            ]
        return [self._reshape(v, before.shape) for v, before in zip(results, self.scan.carry, strict=True)]

    def _write_tiles(self, given: list[Value]) -> list[Value]:
        """Write the loop over the tiles; returns the elements of the carries that belong to tiles."""
        tiles, body = self.whole // self.tile, Graph()
        rows, others, row_inputs, other_inputs = (list[Value]() for _ in range(4))
        inside: dict[tuple[Value, bool], Value] = {}
        for value, is_tiled in dict.fromkeys(zip(given, self.is_tiled, strict=True)):
            spec = value.spec._replace(shape=(self.tile,)) if is_tiled else value.spec
            copy = self._copy(value, spec, is_tiled)
            inside[value, is_tiled] = Value(spec) if copy is None else copy.outputs[0]
            if copy is not None:
                body.nodes.append(copy)
            elif is_tiled:
                row_inputs.append(inside[value, is_tiled])
                whole = value if self.whole == self.total else self._slice(value, ((0, self.whole, 1),))
                rows.append(self._reshape(whole, (tiles, self.tile)))
            else:
                other_inputs.append(inside[value, is_tiled])
                others.append(value)
        own = [inside[pair] for pair in zip(given, self.is_tiled, strict=True)]
        body.outputs = list(self._write_steps(body.nodes, own, self.tile))
        body.inputs = [*row_inputs, *other_inputs]
        loop = scan_node(Scan(body, (), tuple(rows), tuple(others), tiles, False), self.source)
        self.nodes.append(loop)
        return [
            self._reshape(value, (self.whole,)) if is_tiled else self._slice(value, (0,))
            for value, is_tiled in zip(loop.outputs, self.is_tiled)
        ]

    def _copy(self, value: Value, spec: TensorSpec, is_tiled: bool) -> Node | None:
        """A node that computes a value inside the loop over the tiles; None if it is read from memory there.

        Kernels know then that it is one number, or that it is counted.
        """
        number = _find_uniform(value) if is_tiled else None
        if number is not None:
            options: dict[str, object] = {"dtype": spec.dtype, "device": spec.device}
            return new_node(find_operator("td::full"), (spec.shape, number), options, spec, self.source)
        is_range = not is_tiled and value.node is not None and match_range(value.node) is not None
        return copy_node(value.node, lambda v: v) if is_range and value.node is not None else None

    def _write_steps(self, nodes: list[Node], given: list[Value], size: int) -> Sequence[Value]:
        """Write the loops over the steps for some of the elements; returns the final carries."""
        scan, carries, items = self.scan, len(self.scan.carry), len(self.scan.xs)
        body = _resize(scan.body, self.shape, (size,))
        instructions = sum(map(_count_arithmetic, body.nodes))
        times = next(k for k in (4, 2, 1) if k == 1 or instructions * k <= MOST_INSTRUCTIONS)
        even = scan.length - scan.length % times
        parts = [(0, even, times), (even, scan.length - even, scan.length - even)]
        state, xs, consts = given[:carries], given[carries : carries + items], given[carries + items :]
        for start, length, k in reversed(parts) if scan.reverse else parts:
            if length:
                made = scan._replace(
                    body=_repeat(body, k, carries, items),
                    carry=tuple(state),
                    xs=tuple(self._take_turns(nodes, xs, (start, length // k, k))),
                    consts=tuple(consts),
                    length=length // k,
                )
                nodes.append(scan_node(made, self.source))
                state = list(nodes[-1].outputs)
        return state

    def _take_turns(self, nodes: list[Node], xs: list[Value], turns: tuple[int, int, int]) -> list[Value]:
        """The stacked operands of a scan that takes several steps at once.

        Args:
            nodes: where nodes are added.
            xs: the stacked operands for single steps.
            turns: the first step, the number of turns, and the number of steps in each.
        """
        start, count, times = turns
        if (start, times, count) == (0, 1, self.scan.length):
            return xs
        order = range(times)[:: -1 if self.scan.reverse else 1]
        return [self._slice(x, ((start + k, count, times),), nodes) for k in order for x in xs]

    def _slice(self, value: Value, plan: tuple[Any, ...], nodes: list[Node] | None = None) -> Value:
        """The elements along the first axis that a plan names, one or some."""
        sizes = tuple(entry[1] for entry in plan if type(entry) is tuple)
        rest = tuple((0, size, 1) for size in value.shape[1:])
        shape = (*sizes, *value.shape[1:])
        return self._add("td::basic_index", (value, (*plan, *rest)), shape, value, nodes)

    def _reshape(self, value: Value, shape: tuple[Any, ...]) -> Value:
        return add_reshape(self.nodes, value, shape, self.source)

    def _add(
        self,
        name: str,
        args: tuple[Any, ...],
        shape: tuple[Any, ...],
        like: Value,
        nodes: list[Node] | None = None,
    ) -> Value:
        spec = like.spec._replace(shape=shape)
        return add_node(self.nodes if nodes is None else nodes, name, args, spec, self.source)


def _repeat(body: Graph, times: int, carries: int, items: int) -> Graph:
    """The body of a scan that takes several steps at once, so that carries stay in registers between them."""
    out = empty_like(body)
    state, consts = body.inputs[:carries], body.inputs[carries + items :]
    xs: list[Value] = []
    for _ in range(times):
        own = [Value(value.spec) for value in body.inputs[carries : carries + items]]
        known = dict(zip(body.inputs, (*state, *own, *consts), strict=True))
        for node in body.nodes:
            copy = copy_node(node, known.__getitem__)
            known.update(zip(node.outputs, copy.outputs, strict=True))
            out.nodes.append(copy)
        xs += own
        state = [known[value] for value in body.outputs]
    out.inputs = [*body.inputs[:carries], *xs, *consts]
    out.outputs = list(state)
    return out


def _count_arithmetic(node: Node) -> int:
    """The instructions per element of a node, without reads."""
    return (count_instructions(node) or 0) - len(node.inputs)


def _find_uniform(value: Value) -> bool | int | float | None:
    """The number that fills a value; None if it is not known to be filled with one."""
    while value.node is not None and value.node.op.name in ("td::reshape", "td::broadcast_to"):
        value = value.node.args[0]
    return None if value.node is None or value.weak is not None else uniform_constant(value.node)


def _resize(graph: Graph, before: tuple[int, ...], after: tuple[int, ...]) -> Graph:
    """A graph whose values of one shape have another."""
    known = {value: _with_shape(value, before, after) for value in graph.inputs}
    out = Graph()
    out.inputs = [known[value] for value in graph.inputs]
    for node in graph.nodes:
        args = map_values(known.__getitem__, node.args)
        if uniform_constant(node) is not None and node.outputs[0].shape == before:
            args = (after, *args[1:])
        made = Node(
            node.op, args, {k: map_values(known.__getitem__, v) for k, v in node.kwargs.items()}, node.source
        )
        made.outputs = tuple(
            Value(_with_shape(one, before, after).spec, made, one.index, one.weak) for one in node.outputs
        )
        known.update(zip(node.outputs, made.outputs, strict=True))
        out.nodes.append(made)
    out.outputs = [known[value] for value in graph.outputs]
    return out


def _with_shape(value: Value, before: tuple[int, ...], after: tuple[int, ...]) -> Value:
    return Value(value.spec._replace(shape=after) if value.shape == before else value.spec)
