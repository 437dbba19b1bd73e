"""Write a graph for fewer rows, if each row of its results depends on the same row of its inputs alone.

A row is a slice along the first axis of the values that have as many rows: so are graphs that ``vmap`` has made for a
batch. In the copy the rows are the last axis, so that vectors hold elements of several rows, whatever the shape of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from ...registry.dtypes import float32, float64
from ...tracer.graph import Graph, Node, Value, map_values
from ..fusion.ranges import match_range
from ..kernel_selection import reduced_axes, uniform_constant
from .rewrite import add_node, add_reshape, has_effects
from .sink_permutes import EXACT, SELECTING

MOST_REPEATED = 64
"""Elements of a value without rows, which is computed again for each slice."""
MOST_ADDED = 8
"""Elements of a float sum, which are added one by one in the order of a short row."""
_ADDED = ({float32}, {float64})
_POINTWISE = frozenset(("unary", "binary", "comparison", "ternary", "cast", "copy"))
_OF_NUMBERS = _POINTWISE | {"creation", "view", "gather", "reduction"}


class MixedRows(Exception):
    """A row depends on other rows, or a graph has an operator that is not known.

    Attributes:
        value: the value whose first axis is indexed, where that is the reason; else None.
    """

    def __init__(self, value: Value | None = None):
        super().__init__()
        self.value = value


def rotate(items: Sequence[Any]) -> tuple[Any, ...]:
    """The items that belong to the axes of a value, in the order of its axes in the copy."""
    return (*items[1:], *items[:1])


def _drop(items: Sequence[Any], number: int) -> tuple[Any, ...]:
    """The items without one."""
    return (*items[:number], *items[number + 1 :])


class RowSlice:
    """Copies graphs for some of their rows.

    Args:
        rows: the number of rows of the graphs.
        size: the number of rows of the copies.
        sliced: the values of the outermost graph's inputs that have rows.
        numbers: those that hold the number of each row.
        turned: those whose rows are the second axis.
    """

    def __init__(
        self,
        rows: int,
        size: int,
        sliced: Sequence[Value],
        numbers: Sequence[Value] = (),
        turned: Sequence[Value] = (),
    ):
        self.rows, self.size = rows, size
        self.sliced, self.numbers = set(sliced), set(numbers)
        self.turned = dict.fromkeys(turned, 1)  # by value: which axis the rows are, if not the first
        self.known: dict[Value, Value] = {}

    def copy(self, graph: Graph, given: Sequence[Value] = ()) -> Graph:
        """Copy a graph.

        Args:
            graph: the graph.
            given: what takes the place of its inputs; none: new values.

        Raises:
            MixedRows: its rows cannot be computed apart.
        """
        out = Graph()
        self.known.update(zip(graph.inputs, given))
        out.inputs = [self.known.get(value) or self._copy_value(value) for value in graph.inputs]
        for node in graph.nodes:
            self._copy_node(node, out.nodes)
        if any(value in self.numbers or value in self.turned for value in graph.outputs):
            raise MixedRows
        out.outputs = [self.known[value] for value in graph.outputs]
        return out

    def _copy_value(self, value: Value, node: Node | None = None) -> Value:
        shape = self._slice_shape(value.shape) if self._has_rows(value) else value.shape
        if value in self.turned:
            shape = (*_drop(value.shape, self.turned[value]), self.size)
        self.known[value] = Value(value.spec._replace(shape=shape), node, value.index, value.weak)
        return self.known[value]

    def _copy_node(self, node: Node, nodes: list[Node]) -> None:
        if has_effects(node) or any(value.weak is not None for value in node.outputs):
            raise MixedRows
        args = self._slice_arguments(node, nodes)
        if args is None:  # it is in `known`
            return
        kwargs = {name: map_values(self.known.__getitem__, arg) for name, arg in node.kwargs.items()}
        made = Node(node.op, args, kwargs, node.source)
        made.outputs = tuple(self._copy_value(value, made) for value in node.outputs)
        nodes.append(made)

    def _has_rows(self, value: object) -> bool:
        return value in self.sliced or value in self.numbers

    def _slice_shape(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        return (*shape[1:], self.size)

    # -- operators -----------------------------------------------------------------------------------------------------
    def _slice_arguments(self, node: Node, nodes: list[Node]) -> tuple[Any, ...] | None:
        """Find which results of a node have rows; returns the arguments of its copy, None if `nodes` has its result.

        Raises:
            MixedRows: a row of a result depends on other rows.
        """
        kind, (out, *others) = getattr(node.op.decl, "kind", ""), node.outputs
        if kind == "control":
            return self._slice_control(node)
        is_turned = not self.turned.keys().isdisjoint(node.inputs)
        if others or (is_turned and node.op.name not in ("td::permute", "td::basic_index")):
            raise MixedRows
        if not any(map(self._has_rows, node.inputs)) and not is_turned and not self._makes_rows(node):
            size = sum(value.spec.size for value in (out, *node.inputs))
            if kind not in _OF_NUMBERS or (size > MOST_REPEATED and match_range(node) is None):
                raise MixedRows
            same: tuple[Any, ...] = self._read(node.args)
            return same
        rule = _RULES.get(kind)
        if rule is None:
            raise MixedRows
        args: tuple[Any, ...] | None = rule(self, node, nodes)
        if not self._has_rows(out) and out not in self.turned:
            self.sliced.add(out)
        return args

    def _mark(self, value: Value, axis: int) -> None:
        """Note which axis of a value the rows are."""
        if axis:
            self.turned[value] = axis
        else:
            self.sliced.add(value)

    def _read(self, tree: object) -> Any:  # noqa: ANN401 - a part of the arguments
        return map_values(self.known.__getitem__, tree)

    def _makes_rows(self, node: Node) -> bool:
        """Whether a node without operands that have rows makes rows: all the same, or their numbers."""
        is_filled = node.op.name in ("td::arange", "td::broadcast_to") or uniform_constant(node) is not None
        return is_filled and node.outputs[0].shape[:1] == (self.rows,)

    def _align(self, value: object, rank: int, nodes: list[Node]) -> Any:  # noqa: ANN401 - an argument
        """An operand that broadcasts to a result of some axes: with the rows of the result, or the same for all."""
        if not isinstance(value, Value):
            return value
        missing = rank - len(value.shape)
        if value in self.numbers or (
            missing if value in self.sliced else not missing and value.shape[0] != 1
        ):
            raise MixedRows
        known = self.known[value]
        if value in self.sliced or value.spec.size == 1:
            return (
                known if len(value.shape) < 2 or value in self.sliced else add_reshape(nodes, known, (), "")
            )
        return add_reshape(nodes, known, (*(value.shape[1:] if not missing else value.shape), 1), "")

    def _slice_pointwise(self, node: Node, nodes: list[Node]) -> tuple[Any, ...]:
        rank = len(node.outputs[0].shape)
        return tuple(self._align(arg, rank, nodes) for arg in node.args)

    def _slice_creation(self, node: Node, nodes: list[Node]) -> tuple[Any, ...]:
        if node.op.name != "td::arange":
            return (self._slice_shape(node.args[0]), *node.args[1:])
        if match_range(node) != (0, 1) or node.args[:2] != (self.rows, None):
            raise MixedRows
        self.numbers.add(node.outputs[0])
        return (self.size, *node.args[1:])

    def _slice_view(self, node: Node, nodes: list[Node]) -> tuple[Any, ...]:
        name, out, value = node.op.name, node.outputs[0], node.args[0]
        if value in self.numbers:
            self.numbers.add(out)
        if name in ("td::basic_index", "td::permute"):
            return self._read(value), self._select(node, self.turned.get(value, 0))
        if name == "td::broadcast_to":
            return self._align(value, len(out.shape), nodes), self._slice_shape(out.shape)
        if name != "td::reshape" or out.shape[:1] != (self.rows,):
            raise MixedRows
        return self._read(value), self._slice_shape(out.shape)

    def _select(self, node: Node, axis: int) -> tuple[Any, ...]:
        """The plan or the axes for a copy of a read or a permute of a value, whose rows are an axis."""
        entries, out = tuple(node.args[1]), node.outputs[0]
        if node.op.name == "td::permute":
            rest = [entry - (entry > axis) for entry in entries if entry != axis]
            moved, plan = entries.index(axis), (*rest, len(rest))
        else:
            at = [n for n, entry in enumerate(entries) if entry is not None][axis]
            if entries[at] != (0, self.rows, 1):
                raise MixedRows
            moved = sum(type(entry) is not int for entry in entries[:at])
            plan = (*_drop(entries, at), (0, self.size, 1))
        if node.args[0] not in self.numbers:
            self._mark(out, moved)
        elif moved:
            raise MixedRows
        return plan

    def _slice_fold(self, node: Node, nodes: list[Node]) -> tuple[Any, ...] | None:
        axes, value, name = reduced_axes(node), node.args[0], node.op.schema.name
        if value not in self.sliced or len(node.args) < 2 or not axes or 0 in axes:
            raise MixedRows
        dtypes = {value.spec.dtype, node.outputs[0].spec.dtype}
        if name not in SELECTING and not (name in EXACT and not any(d.is_inexact for d in dtypes)):
            self._write_sum(node, axes, nodes)
            return None
        moved = tuple(axis - 1 for axis in axes)
        return self._read(value), moved[0] if isinstance(node.args[1], int) else moved

    def _write_sum(self, node: Node, axes: tuple[int, ...], nodes: list[Node]) -> None:
        """Write a float sum along the last axis as additions, in the order of a row."""
        value, out = self.known[node.args[0]], node.outputs[0]
        *lead, count, size = value.shape
        is_short = axes == (len(value.shape) - 1,) and 0 < count <= MOST_ADDED
        if node.op.name != "td::sum" or not is_short or {value.spec.dtype, out.spec.dtype} not in _ADDED:
            raise MixedRows
        total = self._add_up(value, nodes, node.source)
        if node.kwargs.get("keepdims"):
            total = add_reshape(nodes, total, (*lead, 1, size), node.source)
        self.known[out] = total

    def _add_up(self, value: Value, nodes: list[Node], source: str) -> Value:
        """Add the elements along the axis before the rows; halves of lanes are joined, as for a row."""
        *lead, count, size = value.shape
        spec = value.spec._replace(shape=(*lead, size))

        def add(one: object, two: object) -> Value:
            return add_node(nodes, "td::add.Tensor", (one, two), spec, source)

        def fold(first: int, step: int) -> Value | None:
            if first >= count:
                return None
            if step < lanes:
                one, two = fold(first, 2 * step), fold(first + step, 2 * step)
                return one if two is None or one is None else add(one, two)
            plan = (*((0, n, 1) for n in lead), first, (0, size, 1))
            return add_node(nodes, "td::basic_index", (value, plan), spec, source)

        lanes = 1 << (count - 1).bit_length()
        return add(fold(0, 1), 0.0)  # a sum of -0.0 is 0.0

    def _slice_product(self, node: Node, nodes: list[Node]) -> None:
        """Write a product of a matrix and a vector of each row, whose partial sums are products, as a sum of these."""
        one, two = node.args[:2]
        out = node.outputs[0]
        is_matmul = node.op.name == "td::matmul" and not any(node.kwargs.values())
        if not is_matmul or not {one, two} <= self.sliced or {len(one.shape), len(two.shape)} != {3}:
            raise MixedRows
        (_, m, k), n = one.shape, two.shape[2]
        dtypes = {one.spec.dtype, two.spec.dtype, out.spec.dtype}
        if (m > 1 and n > 1) or not 0 < k <= MOST_ADDED or dtypes not in _ADDED:
            raise MixedRows
        matrix, vector = self.known[one], self.known[two]
        if n > 1:
            spec = vector.spec._replace(shape=(n, k, self.size))
            matrix, vector = add_node(nodes, "td::permute", (vector, (1, 0, 2)), spec, node.source), matrix
        factor = add_reshape(nodes, vector, (k, self.size), node.source)
        product = add_node(nodes, "td::mul.Tensor", (matrix, factor), matrix.spec, node.source)
        total = self._add_up(product, nodes, node.source)
        self.known[out] = add_reshape(nodes, total, (m, n, self.size), node.source)

    def _slice_join(self, node: Node, nodes: list[Node]) -> tuple[Any, ...]:
        parts, axis = node.args[:2]
        is_along_rows = node.op.name != "td::concat" or type(axis) is not int or axis < 1
        if is_along_rows or not all(part in self.sliced for part in parts):
            raise MixedRows
        return self._read(parts), axis - 1

    # -- positions -----------------------------------------------------------------------------------------------------
    def _slice_gather(self, node: Node, nodes: list[Node]) -> tuple[Any, ...]:
        if node.op.name != "td::index":
            raise MixedRows
        value, indices, axis = node.args
        is_table = not self._has_rows(value) and 0 < axis == len(value.shape) - len(indices)
        if is_table and all(one in self.sliced and len(one.shape) == 1 for one in indices):
            self._mark(node.outputs[0], axis)
            whole: tuple[Any, ...] = self._read(node.args)
            return whole
        return self._read(value), *self._slice_positions(value, indices, axis, nodes)

    def _slice_scatter(self, node: Node, nodes: list[Node]) -> tuple[Any, ...]:
        value = node.args[0]
        if value not in self.sliced:
            raise MixedRows
        if node.op.name == "td::index_put":
            _, indices, new, axis = node.args
            rank = len(value.shape) - len(indices) + max(len(one.shape) for one in indices)
            positions = self._slice_positions(value, indices, axis, nodes)
            return self._read(value), positions[0], self._align(new, rank, nodes), positions[1]
        _, new, plan = node.args
        if node.op.name != "td::basic_put" or plan[:1] != ((0, self.rows, 1),) or None in plan:
            raise MixedRows
        rank = sum(type(entry) is tuple for entry in plan)
        return self._read(value), self._align(new, rank, nodes), (*plan[1:], (0, self.size, 1))

    def _slice_positions(
        self, value: Value, indices: Sequence[Any], axis: int, nodes: list[Node]
    ) -> tuple[tuple[Value, ...], int]:
        """Positions: the same for all rows, or in the same row of a value, or in a table; and their axis."""
        if not all(isinstance(one, Value) for one in indices) or value in self.numbers:
            raise MixedRows
        if value in self.sliced and axis > 0:
            if any(map(self._has_rows, indices)):
                raise MixedRows
            return self._read(tuple(indices)), axis - 1
        rank, others = max(len(one.shape) for one in indices), indices
        if value in self.sliced:
            if indices[0] not in self.numbers:
                raise MixedRows(value)
            first, *others = indices
            if len(first.shape) != rank:
                raise MixedRows
        if axis > 0 or len(indices) != len(value.shape):  # the rows would not be the last axis
            raise MixedRows
        moved = tuple(self._align(one, rank, nodes) for one in others)
        return ((*moved, self.known[indices[0]]) if value in self.sliced else moved), 0

    # -- loops and branches --------------------------------------------------------------------------------------------
    def _slice_control(self, node: Node) -> tuple[Any, ...]:
        if node.op.name == "control::switch":
            return self._slice_switch(node)
        bodies = [x for x in node.args if type(x) is Graph]
        carry, *others = [x for x in node.args if type(x) is tuple]
        if any(value in self.numbers or value in self.turned for value in carry):
            raise MixedRows  # the body may replace it by a value of another kind
        given = [value for values in (carry, *others) for value in values]
        items = range(len(carry), len(carry) + len(others[0]) * (node.op.name == "control::scan"))
        copies = [self._copy_body(body, given, items) for body in bodies]
        before, *marks = [
            [x in self.sliced for x in values] for values in (carry, *(b.outputs for b in bodies))
        ]
        if marks[-1][: len(before)] != before or any(map(any, marks[:-1])):
            raise MixedRows
        for number, (value, has_rows) in enumerate(zip(node.outputs, marks[-1], strict=True)):
            if has_rows:
                self._mark(value, int(number >= len(carry)))
        return (*copies, self._read(carry), *self._read(tuple(others)))

    def _slice_switch(self, node: Node) -> tuple[Any, ...]:
        branches, index, operands = node.args
        copies = tuple(self._copy_body(branch, operands) for branch in branches)
        marks = {tuple(value in self.sliced for value in branch.outputs) for branch in branches}
        if self._has_rows(index) or len(marks) != 1:
            raise MixedRows
        self.sliced.update(compress(node.outputs, marks.pop()))
        return copies, self._read(index), self._read(operands)

    def _copy_body(self, body: Graph, given: Sequence[Value], items: Sequence[int] = ()) -> Graph:
        """Copy a body whose inputs are some values, or for some numbers the items of these."""
        for number, (inner, value) in enumerate(zip(body.inputs, given, strict=True)):
            if value in self.numbers or value in self.sliced:
                if number in items:
                    raise MixedRows  # the loop is over the rows
                (self.numbers if value in self.numbers else self.sliced).add(inner)
            elif value in self.turned:
                self._mark(inner, self.turned[value] - (number in items))
        return self.copy(body)


_RULES = {
    **dict.fromkeys(_POINTWISE, RowSlice._slice_pointwise),
    "creation": RowSlice._slice_creation,
    "view": RowSlice._slice_view,
    "reduction": RowSlice._slice_fold,
    "gather": RowSlice._slice_gather,
    "scatter": RowSlice._slice_scatter,
    "join": RowSlice._slice_join,
    "contraction": RowSlice._slice_product,
}
"""By the kind of an operator: checks a node, and returns the arguments of its copy."""
