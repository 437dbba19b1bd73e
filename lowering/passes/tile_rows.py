"""Run loops of many independent rows tile by tile: what ``vmap`` makes of a loop for a batch of 10^5.

The steps of such a loop read and write carries of 10^5 rows, and one column of the operands, from memory. If each row
depends on itself alone, the loop over the steps runs inside a loop over tiles of rows that stay in the first cache, and
the operands and the stacked results stay in the order of the rows.

Source: loop interchange and strip mining, as in :mod:`.tile_loops`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import lazy
from ...named_tuple import NamedTuple
from ...tracer.graph import Graph, Node, Value, bodies_of
from ..fusion.ranges import match_range
from ..kernel_selection import uniform_constant
from .loop_passes import Rewritten, Scan, is_scan, scan_node, scan_of, substitute
from .rewrite import add_node, add_reshape, add_slice, empty_like, is_array, replace_arguments
from .row_slices import MixedRows, RowSlice, rotate

_loop_dce = lazy.Module(".lowering.passes.loop_dce")
_pipeline = lazy.Module(".lowering.passes.pipeline")
TILE_BYTES = 16 * 1024
"""Bytes of the rows of one tile: carries, operands, and stacked results."""
MIN_BYTES, MIN_TILES, MIN_STEPS = 4 * 1024, 4, 2
LEAST_ROWS, MOST_BYTES, LANES = 24, 128 * 1024, 8
"""The least rows of a tile of long rows, and the bytes up to which there is one."""


def tile_rows(graph: Graph) -> Graph:
    """Run scans whose rows are independent over tiles of rows: the outermost ones of nested loops."""
    shown = {value for value in graph.outputs if isinstance(value, Value)}
    loops = [node for node in graph.nodes if getattr(node.op.decl, "kind", "") == "control"]
    for node in loops:
        shown.update(node.inputs)
    replaced: dict[Node, Rewritten] = {}
    for node in loops:
        rewritten = (_tile(shown, node) if is_scan(node) else None) or _tile_bodies(node)
        if rewritten is not None:
            replaced[node] = rewritten
    if not replaced:
        return graph
    out, env = empty_like(graph), dict[Value, Value]()
    for node in graph.nodes:
        nodes, values = replaced.get(node, ([node], {}))
        out.nodes += nodes
        env.update(values)
    out.outputs = list(graph.outputs)
    pruned: Graph = _loop_dce.prune_control(_pipeline.remove_dead_code(substitute(out, env)))
    return pruned  # tiles store what nothing reads


def _tile_bodies(node: Node) -> Rewritten | None:
    """Tile the scans in the bodies of a loop or a branch."""

    def tile(arg: object) -> object:
        if type(arg) is tuple:
            return tuple(map(tile, arg))
        return tile_rows(arg) if isinstance(arg, Graph) else arg

    args = tuple(map(tile, node.args))
    made = replace_arguments(node, args, node.kwargs)
    if all(one is other for one, other in zip(bodies_of(made), bodies_of(node), strict=True)):
        return None
    return [made], dict(zip(node.outputs, made.outputs, strict=True))


def _tile(shown: set[Value], node: Node) -> Rewritten | None:
    scan = scan_of(node)
    operands = _find_operands(scan)
    if operands is None or any(value in shown for value in node.outputs[len(scan.carry) :]):
        return None
    tile = _choose_rows(scan, operands)
    if not tile:
        return None
    writer = _Writer(scan, operands, tile, node.source)
    try:
        results = writer.write()
    except MixedRows:
        return None
    return writer.nodes, dict(zip(node.outputs, results, strict=True))


# -- which loops -------------------------------------------------------------------------------------------------------
class Operands(NamedTuple):
    """The operands of a scan that have rows.

    Attributes:
        rows: the number of rows.
        sliced: the inputs of the body that have rows.
        numbers: those that hold the number of each row.
        turned: those whose rows are the second axis.
        results: for each result of the body, whether it has rows.
    """

    rows: int
    sliced: list[Value]
    numbers: list[Value]
    turned: list[Value]
    results: tuple[bool, ...] = ()

    def slice(self, size: int) -> RowSlice:
        """Make what copies the body for some rows."""
        return RowSlice(self.rows, size, self.sliced, self.numbers, self.turned)


def _find_operands(scan: Scan) -> Operands | None:
    """Find the rows of a scan; None if it has none, or they depend on each other."""
    count, body = len(scan.carry), scan.body
    values = (*scan.given, *body.inputs, *body.outputs)
    if type(scan.length) is not int or scan.length < MIN_STEPS or not all(map(is_array, values)):
        return None
    rows = max((value.shape[0] for value in body.inputs[:count] if value.shape), default=0)
    if rows < LEAST_ROWS or body.inputs[0].spec.device != "cpu":
        return None
    sliced, numbers, turned = (list[Value]() for _ in range(3))
    for inner, value in zip(body.inputs, scan.given, strict=True):
        if inner.shape[:1] != (rows,):
            if inner.shape == value.shape and inner.shape[1:2] == (rows,) and _transposed(value):
                turned.append(inner)
            continue
        if inner in body.inputs[count : count + len(scan.xs)] and _transposed(value) is None:
            return None
        is_number = value.node is not None and match_range(value.node) == (0, 1)
        (numbers if is_number else sliced).append(inner)
    return _drop_tables(scan, Operands(rows, sliced, numbers, turned))


def _drop_tables(scan: Scan, operands: Operands) -> Operands | None:
    """Take the constants that all rows read as a table, with as many entries as there are rows, from those sliced."""
    consts = set(scan.body.inputs[len(scan.carry) + len(scan.xs) :])
    while True:
        try:
            copier = operands.slice(operands.rows)
            copier.copy(scan.body)
        except MixedRows as fault:
            if fault.value not in consts:
                return None
            consts.remove(fault.value)
            operands.sliced.remove(fault.value)
            continue
        carry = scan.body.inputs[: len(scan.carry)]
        if any(value in copier.numbers or value in copier.turned for value in carry):
            return None  # the body may replace it by a value of another kind
        before = tuple([value in copier.sliced for value in carry])
        results = tuple([value in copier.sliced for value in scan.body.outputs])
        is_kept = any(before) and before == results[: len(carry)]
        return operands._replace(results=results) if is_kept else None


def _transposed(value: Value) -> tuple[int, ...] | None:
    """The axes of a permute that takes the steps from behind the rows; None for other values."""
    node = value.node
    if node is None or node.op.name != "td::permute" or tuple(node.args[1])[1:2] != (0,):
        return None
    return tuple(node.args[1])


def _choose_rows(scan: Scan, operands: Operands) -> int:
    """The number of rows of a tile; 0 if tiles would not help."""
    count, items = len(scan.carry), len(scan.xs)
    carry, consts = scan.body.inputs[:count], scan.body.inputs[count + items :]
    stacked = [*scan.body.inputs[count : count + items], *scan.body.outputs[count:]]
    bytes_of = sum(_row_bytes(value, operands.rows) for value in (*operands.sliced, *operands.turned))
    bytes_of += (scan.length - 1) * sum(
        _row_bytes(value, operands.rows) for value in stacked if value in operands.sliced
    )
    bytes_of += scan.length * sum(_row_bytes(value, operands.rows) for value in scan.body.outputs[count:])
    if operands.rows * bytes_of < MIN_BYTES or bytes_of * LEAST_ROWS > MOST_BYTES:
        return 0
    most = max(LEAST_ROWS, TILE_BYTES // bytes_of // 8 * 8)
    if operands.rows >= MIN_TILES * most:
        return _choose_divisor(operands.rows, most)
    has_columns = any(value in operands.sliced and len(value.shape) > 1 for value in (*carry, *consts))
    return operands.rows if has_columns and operands.rows * bytes_of <= MOST_BYTES else 0


def _choose_divisor(rows: int, wanted: int) -> int:
    """The number of rows of a tile: about as wanted, of whole vectors, and one that leaves no rest, if possible."""
    sizes = [size for size in range(wanted // 2, 2 * wanted) if rows % size == 0] or [wanted]
    return min(sizes, key=lambda size: (size % LANES != 0, abs(math.log(size / wanted))))


def _row_bytes(value: Value, rows: int) -> int:
    return value.spec.dtype.itemsize * value.spec.size // rows if rows in value.shape[:2] else 0


# -- the operands ------------------------------------------------------------------------------------------------------
class Sources(NamedTuple):
    """The values that the operands of a scan are views of.

    Attributes:
        graph: computes the operands, in the order of the rows; its inputs are values of the graph around the scan.
        operands: the operands in that order.
    """

    graph: Graph
    operands: list[Value]


def _find_sources(scan: Scan, operands: Operands) -> Sources:
    """Find what the operands are views of: tiles are read from there, and the views are made inside the loop."""
    graph, ordered = Graph(), []
    items = range(len(scan.carry), len(scan.carry) + len(scan.xs))
    inputs: dict[Value, None] = {}
    made: set[Value] = set()

    def add(value: Value, has_rows: bool) -> None:
        node = value.node
        if value in made or value in inputs:
            return
        if node is None or not (_is_view_of_rows(node, operands.rows) if has_rows else match_range(node)):
            inputs[value] = None
            return
        for operand in node.inputs:
            add(operand, operand.shape[:1] == (operands.rows,))
        made.add(value)
        graph.nodes.append(node)

    for number, (inner, value) in enumerate(zip(scan.body.inputs, scan.given, strict=True)):
        has_rows = inner in (*operands.sliced, *operands.numbers, *operands.turned)
        is_turned = has_rows and (number in items or inner in operands.turned)
        ordered.append(value.node.args[0] if is_turned and value.node is not None else value)
        add(ordered[-1], has_rows)
    graph.inputs = list(inputs)
    return Sources(graph, ordered)


def _is_view_of_rows(node: Node, rows: int) -> bool:
    """Whether a node makes a view that has the rows of its operand, or rows that are known."""
    if not all(map(is_array, (*node.inputs, *node.outputs))):
        return False
    if match_range(node) is not None or uniform_constant(node) is not None:
        return True
    kind, name = getattr(node.op.decl, "kind", ""), node.op.name
    if kind != "view" or not isinstance(node.args[0], Value):
        return False
    if name == "td::basic_index":
        return bool(node.args[1][:1] == ((0, rows, 1),))
    if name == "td::permute":
        return bool(node.args[1][:1] == (0,))
    return bool(node.args[0].shape[:1] == (rows,)) if name == "td::reshape" else name == "td::broadcast_to"


# -- the loops ---------------------------------------------------------------------------------------------------------
class _Writer:
    """Writes the loop over the tiles, and the loop over the rows that are left.

    Attributes:
        nodes: the nodes that replace the scan.
    """

    def __init__(self, scan: Scan, operands: Operands, tile: int, source: str):
        self.scan, self.operands, self.tile, self.source = scan, operands, tile, source
        self.sources = _find_sources(scan, operands)
        self.nodes: list[Node] = []
        self.whole = operands.rows - operands.rows % tile
        self.leaves = self.sources.graph.inputs
        tables = self._find_tables()
        self.sliced = [v for v in self.leaves if v.shape[:1] == (operands.rows,) and v not in tables]
        self.has_rows, count = operands.results, len(scan.carry)
        self.is_stacked = [has_rows and number >= count for number, has_rows in enumerate(self.has_rows)]

    def _find_tables(self) -> set[Value]:
        """The operands without rows that have as many entries as there are rows."""
        known = {*self.operands.sliced, *self.operands.numbers, *self.operands.turned}
        pairs = zip(self.scan.body.inputs, self.sources.operands, strict=True)
        return {value for inner, value in pairs if inner not in known}

    def write(self) -> list[Value]:
        """Write the nodes; returns the results of the scan."""
        left = self.operands.rows - self.whole
        if self.tile == self.operands.rows:
            results = self._write_rows(self.nodes, self.tile, self.leaves)
        else:
            results = self._write_tiles()
        if left:
            given = [
                self._slice(value, self.whole, left) if value in self.sliced else value
                for value in self.leaves
            ]
            ends = self._write_rows(self.nodes, left, given)
            results = [
                self._join(one, two) if t else one for one, two, t in zip(results, ends, self.has_rows)
            ]
        return [
            self._permute(value, (1, 0, *range(2, len(value.shape))), self.nodes) if is_stacked else value
            for value, is_stacked in zip(results, self.is_stacked, strict=True)
        ]

    def _write_tiles(self) -> list[Value]:
        """Write the loop over the tiles; returns its results, with the rows first."""
        tiles, graph = self.whole // self.tile, Graph()
        sliced = [value for value in self.leaves if value in self.sliced]
        others = [value for value in self.leaves if value not in self.sliced]
        graph.inputs = [Value(v.spec._replace(shape=(self.tile, *v.shape[1:]))) for v in sliced]
        graph.inputs += [Value(value.spec) for value in others]
        known = dict(zip((*sliced, *others), graph.inputs, strict=True))
        graph.outputs = self._write_rows(graph.nodes, self.tile, [known[value] for value in self.leaves])
        xs = []
        for value in sliced:
            whole = value if self.whole == self.operands.rows else self._slice(value, 0, self.whole)
            xs.append(self._reshape(whole, (tiles, self.tile, *value.shape[1:])))
        loop = scan_node(Scan(graph, (), tuple(xs), tuple(others), tiles, False), self.source)
        self.nodes.append(loop)
        return [
            self._reshape(value, (self.whole, *value.shape[2:])) if has_rows else self._take_first(value)
            for value, has_rows in zip(loop.outputs, self.has_rows, strict=True)
        ]

    def _write_rows(self, nodes: list[Node], size: int, given: Sequence[Value]) -> list[Value]:
        """Write the loop over the steps for some rows; returns its results, with the rows first.

        Args:
            nodes: where nodes are added.
            size: the number of rows.
            given: these rows of the inputs of the sources.
        """
        operands, count, items = self.operands, len(self.scan.carry), len(self.scan.xs)
        copier, graph = RowSlice(operands.rows, size, self.sliced), self.sources.graph
        turned = [
            self._turn_over(value, nodes) if one in self.sliced else value
            for one, value in zip(graph.inputs, given, strict=True)
        ]
        nodes += copier.copy(graph, turned).nodes
        own = []
        for inner, value, outer in zip(
            self.scan.body.inputs, self.sources.operands, self.scan.given, strict=True
        ):
            has_rows = value in copier.sliced, value in copier.numbers
            if has_rows != (inner in (*operands.sliced, *operands.turned), inner in operands.numbers):
                raise MixedRows
            own.append(
                copier.known[value]
                if value is outer
                else self._order_steps(copier.known[value], outer, nodes)
            )
        body = _pipeline.optimize_body(operands.slice(size).copy(self.scan.body))
        carry, xs, consts = own[:count], own[count : count + items], own[count + items :]
        made = self.scan._replace(body=body, carry=tuple(carry), xs=tuple(xs), consts=tuple(consts))
        nodes.append(scan_node(made, self.source))
        return [
            self._permute(value, (len(value.shape) - 1, *range(len(value.shape) - 1)), nodes)
            if has_rows and len(value.shape) > 1
            else value
            for value, has_rows in zip(nodes[-1].outputs, self.has_rows, strict=True)
        ]

    def _turn_over(self, value: Value, nodes: list[Node]) -> Value:
        """A copy of rows with the axis of the rows last."""
        if len(value.shape) < 2:
            return value
        turned = self._permute(value, rotate(range(len(value.shape))), nodes)
        return add_node(nodes, "td::contiguous", (turned,), turned.spec, self.source)

    def _order_steps(self, value: Value, outer: Value, nodes: list[Node]) -> Value:
        """A stacked operand, whose rows are last, with the steps first."""
        steps, _, *rest = _transposed(outer) or ()
        axes = (*(axis - 1 for axis in (steps, *rest)), len(value.shape) - 1)
        return value if axes == tuple(range(len(axes))) else self._permute(value, axes, nodes)

    # -- movements -----------------------------------------------------------------------------------------------------
    def _join(self, one: Value, two: Value) -> Value:
        spec = one.spec._replace(shape=(self.operands.rows, *one.shape[1:]))
        return add_node(self.nodes, "td::concat", ((one, two), 0), spec, self.source)

    def _permute(self, value: Value, axes: tuple[int, ...], nodes: list[Node]) -> Value:
        spec = value.spec._replace(shape=tuple(value.shape[axis] for axis in axes))
        return add_node(nodes, "td::permute", (value, axes), spec, self.source)

    def _slice(self, value: Value, start: int, length: int) -> Value:
        return add_slice(self.nodes, value, 0, start, self.source, length)

    def _take_first(self, value: Value) -> Value:
        """The value of the first tile."""
        plan = (0, *((0, size, 1) for size in value.shape[1:]))
        spec = value.spec._replace(shape=value.shape[1:])
        return add_node(self.nodes, "td::basic_index", (value, plan), spec, self.source)

    def _reshape(self, value: Value, shape: tuple[int, ...]) -> Value:
        return add_reshape(self.nodes, value, shape, self.source)
