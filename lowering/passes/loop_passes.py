"""Tools for passes on scans, inlining of calls, and hoisting of accumulated matrix products out of scans.

In the backward scan of ``h = tanh(h @ W + x)`` the gradient of ``W`` is a carry, to which each step adds ``a.T @ b``.
That sum over the steps is the product of all rows of ``a`` with all rows of ``b``: ``b`` is stacked, and one large
matrix product after the loop replaces the many small ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...named_tuple import NamedTuple
from ...registry.dtypes import complex64, complex128, float32, float64
from ...registry.operator import find_operator
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value
from .rewrite import copy_node, empty_like, has_effects

HOISTED = (float32, float64, complex64, complex128)
"""Dtypes of products that are hoisted: those that are accumulated in their own dtype."""


class Scan(NamedTuple):
    """The arguments of a scan node: its body, and the operands of the body's inputs."""

    body: Graph
    carry: tuple[Any, ...]
    xs: tuple[Any, ...]
    consts: tuple[Any, ...]
    length: int
    reverse: bool
    flush: bool = False

    @property
    def given(self) -> tuple[Any, ...]:
        """The operands of the body's inputs, in order."""
        return (*self.carry, *self.xs, *self.consts)


def is_scan(node: Node) -> bool:
    """Whether a node is a scan."""
    return node.op.name == "control::scan"


def scan_of(node: Node) -> Scan:
    """A scan node's arguments."""
    return Scan(*node.args, **node.kwargs)


def scan_node(scan: Scan, source: str) -> Node:
    """The node of a scan."""
    body, count = scan.body, len(scan.carry)
    options = {"length": scan.length, "reverse": scan.reverse, "flush": scan.flush}
    node = Node(find_operator("control::scan"), (body, scan.carry, scan.xs, scan.consts), options, source)
    specs = [o.spec for o in body.outputs[:count]]
    specs += [TensorSpec((scan.length, *o.shape), o.spec.dtype, o.spec.device) for o in body.outputs[count:]]
    node.outputs = tuple(Value(spec, node, index) for index, spec in enumerate(specs))
    return node


def extract_subgraph(graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
    """Make the subgraph that computes some outputs (and all effects), with the given inputs; nodes are shared."""
    made = Graph()
    made.inputs, made.outputs = list(inputs), list(outputs)
    wanted, kept = set(outputs), []
    for node in reversed(graph.nodes):
        if has_effects(node) or any(output in wanted for output in node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
    made.nodes = kept[::-1]
    return made


def needed_inputs(graph: Graph, outputs: Sequence[Value]) -> set[Value]:
    """The inputs that some outputs, or nodes with effects, depend on."""
    wanted = set(outputs)
    for node in reversed(graph.nodes):
        if has_effects(node) or any(output in wanted for output in node.outputs):
            wanted.update(node.inputs)
    return wanted.intersection(graph.inputs)


def inline_calls(graph: Graph) -> Graph:
    """Inline the bodies of ``control::call`` nodes, whose custom derivatives are no longer needed."""
    if all(node.op.name != "control::call" for node in graph.nodes):
        return graph
    out = empty_like(graph)
    env: dict[Value, Any] = {}

    def add(nodes: Sequence[Node]) -> None:
        for node in nodes:
            copy = copy_node(node, lambda value: env.get(value, value))
            if node.op.name == "control::call":
                body: Graph = copy.args[0]
                env.update(zip(body.inputs, copy.args[2]))
                add(body.nodes)
                env.update(zip(node.outputs, [env.get(o, o) for o in body.outputs]))
                continue
            env.update(zip(node.outputs, copy.outputs))
            out.nodes.append(copy)

    add(graph.nodes)
    out.outputs = [env.get(o, o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


def substitute(graph: Graph, env: dict[Value, Value]) -> Graph:
    """Replace values of a graph by others; chains of replacements are followed."""

    def read(value: Value) -> Value:
        while value in env:
            value = env[value]
        return value

    out = empty_like(graph)
    for node in graph.nodes:
        if any(value in env for value in node.inputs):
            changed = copy_node(node, read)
            env.update(zip(node.outputs, changed.outputs))
            node = changed
        out.nodes.append(node)
    out.outputs = [read(o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


Rewritten = tuple[list[Node], dict[Value, Value]]


def replace_scans(graph: Graph, change: Callable[[Node], Rewritten | None]) -> Graph:
    """Replace scans by other nodes.

    Args:
        graph: the graph, which stays as it is.
        change: returns the nodes that replace a scan and the replacements of its results; None keeps the scan.
    """
    if not any(map(is_scan, graph.nodes)):
        return graph
    out, env = empty_like(graph), {}
    for node in graph.nodes:
        changed = change(node) if is_scan(node) else None
        out.nodes += [node] if changed is None else changed[0]
        env.update({} if changed is None else changed[1])
    out.outputs = list(graph.outputs)
    return substitute(out, env)


# -- carries that only accumulate --------------------------------------------------------------------------------------
class Accumulation(NamedTuple):
    """A carry to which each step adds a value and which is not used otherwise.

    Attributes:
        carry: the index of the carry.
        value: the value that is added.
        uses: the number of reads of each value of the body.
    """

    carry: int
    value: Value
    uses: dict[Value, int]

    def single_use_producer(self, value: Value) -> Node | None:
        """The node that computes a value, if the value is read once; else None."""
        return value.node if self.uses[value] == 1 else None


def find_accumulations(scan: Scan) -> Iterator[Accumulation]:
    """Find the carries that only accumulate a sum."""
    body = scan.body
    read = [v for node in body.nodes for v in node.inputs]
    uses = Counter([*read, *(o for o in body.outputs if isinstance(o, Value))])
    for j in range(len(scan.carry)):
        total, before = body.outputs[j], body.inputs[j]
        node = total.node
        if uses[before] != 1 or uses[total] != 1 or total.spec != before.spec or node is None:
            continue
        if node.op.name == "td::add.Tensor" and before in node.args:
            added = node.args[1] if node.args[0] is before else node.args[0]
            if isinstance(added, Value) and added.spec == total.spec:
                yield Accumulation(j, added, uses)


def remove_carries(
    node: Node, gone: set[int], extra: StackedValues
) -> tuple[Node, Sequence[Value], dict[Value, Value]]:
    """Make a scan without some carries but with extra stacked results.

    Returns:
        The scan, its stacked results, and the replacements of the results of the old scan.
    """
    scan = extra.scan
    body, count = scan.body, len(scan.carry)
    kept = [j for j in range(count) if j not in gone]
    inputs = [v for j, v in enumerate(body.inputs) if j not in gone]
    outputs = [*(body.outputs[j] for j in kept), *body.outputs[count:], *extra.outputs]
    made = scan._replace(
        body=extract_subgraph(body, inputs, outputs), carry=tuple(scan.carry[j] for j in kept)
    )
    result = scan_node(made, node.source)
    stacked = result.outputs[len(kept) :]
    replaced = dict(zip([node.outputs[j] for j in kept], result.outputs[: len(kept)]))
    return result, stacked, replaced | dict(zip(node.outputs[count:], stacked))


# -- products ----------------------------------------------------------------------------------------------------------
class Product(NamedTuple):
    """A carry that only accumulates matrix products.

    Attributes:
        carry: the index of the carry.
        left, right: the matrices whose product is added.
        turned: whether the product is transposed before it is added.
    """

    carry: int
    left: Value
    right: Value
    turned: bool


def hoist_products(graph: Graph) -> Graph:
    """Hoist matrix products that a scan only accumulates: one product of the stacked matrices after the loop."""
    return replace_scans(graph, _hoist_products_of)


def _match_product(added: Accumulation) -> Product | None:
    """Match an accumulated value that is a matrix product; else None."""
    maker = added.single_use_producer(added.value)
    turned = maker is not None and _is_transpose(maker)
    if maker is not None and turned:
        maker = added.single_use_producer(maker.args[0])
    if maker is None or maker.op.name != "td::matmul":
        return None
    a, b = maker.args
    dtypes = a.spec.dtype, b.spec.dtype, added.value.spec.dtype
    is_plain = len(a.shape) == len(b.shape) == 2 and len(set(dtypes)) == 1 and dtypes[0] in HOISTED
    return Product(added.carry, a, b, turned) if is_plain else None


def _is_transpose(node: Node) -> bool:
    return bool(node.op.name == "td::permute" and tuple(node.args[1]) == (1, 0))


def _hoist_products_of(node: Node) -> Rewritten | None:
    """Return the scan without products and the nodes after it, and the replacements of the scan's results."""
    scan = scan_of(node)
    products = [p for p in map(_match_product, find_accumulations(scan)) if p is not None]
    if not products:
        return None
    extra = StackedValues(scan)
    pairs = [
        (extra.stack_matrix(p.right), extra.stack_matrix(p.left, True))
        if p.turned
        else (extra.stack_matrix(p.left, True), extra.stack_matrix(p.right))
        for p in products
    ]
    value, stacked, replaced = remove_carries(node, {p.carry for p in products}, extra)
    after: list[Node] = []
    for product, (a, b) in zip(products, pairs):
        total, write = node.outputs[product.carry], Writer(after, node.source)
        rows, columns = (Side(x if isinstance(x, Value) else stacked[x], turned) for x, turned in (a, b))
        accumulated = scan.carry[product.carry]
        for one, two in _pair_sides(write, rows, columns):
            accumulated = write.call(
                "td::add.Tensor", (accumulated, write.product(one, two)), total.shape, total
            )
        replaced[total] = accumulated
    return [value, *after], replaced


class Side(NamedTuple):
    """One operand of the product, with the matrices of all steps.

    Attributes:
        value: the stacked matrices.
        turned: whether each matrix is to be transposed.
    """

    value: Value
    turned: bool


def _pair_sides(write: Writer, rows: Side, columns: Side) -> list[tuple[Side, Side]]:
    """Pair the stacked matrices to multiply.

    One pair for all steps; or, if one side stacks the input carry of another scan whose output carries are stacked too,
    the output carries shifted by one step, and the first step separately: no second stack is stored.
    """
    known = _match_stacked_carry(rows.value)
    if known is not None:
        return write.pair_shifted(Side(known[0], rows.turned), *known[1:], columns)
    known = _match_stacked_carry(columns.value)
    if known is not None:
        return [
            (two, one) for one, two in write.pair_shifted(Side(known[0], columns.turned), *known[1:], rows)
        ]
    return [(rows, columns)]


def _match_stacked_carry(stacked: Value) -> tuple[Value, Value, bool] | None:
    """Match a stack of the input carries of a scan.

    Returns:
        The stack of the output carries, the first carry, and whether the scan runs in reverse; None if the value is not
        such a stack, or the output carries are not stacked.
    """
    source = stacked.node
    if source is None or not is_scan(source) or stacked.shape[0] < 2:
        return None
    scan = scan_of(source)
    body, count = scan.body, len(scan.carry)
    given = body.outputs[stacked.index]
    carries = [j for j in range(count) if body.inputs[j] is given]
    for k in range(count, len(body.outputs)):
        if carries and body.outputs[k] is body.outputs[carries[0]]:
            return source.outputs[k], scan.carry[carries[0]], scan.reverse
    return None


class StackedValues:
    """The extra values that a scan must stack for nodes that run after it."""

    def __init__(self, scan: Scan):
        self.scan = scan
        self.stacked = list(scan.body.outputs[len(scan.carry) :])
        self.outputs: list[Value] = []

    def stack_matrix(self, matrix: Value, turned: bool = False) -> tuple[Any, bool]:
        """The stack of a matrix or its transpose (see :meth:`stack`), and whether it must still be transposed."""
        while matrix.node is not None and _is_transpose(matrix.node):
            matrix, turned = matrix.node.args[0], not turned
        return self.stack(matrix), turned

    def stack(self, value: Value) -> Value | int:
        """The stack of a value: one of ``xs``, or the index of a stacked result."""
        scan, first = self.scan, len(self.scan.carry)
        xs: Sequence[Value] = scan.xs
        for index, x in enumerate(xs):
            if scan.body.inputs[first + index] is value:
                return x
        if value not in self.stacked:
            self.stacked.append(value)
            self.outputs.append(value)
        return self.stacked.index(value)


class Writer:
    """Appends nodes to a list."""

    def __init__(self, nodes: list[Node], source: str):
        self.nodes, self.source = nodes, source

    def call(
        self, name: str, args: tuple[Any, ...], shape: Sequence[int], like_: Value, **options: object
    ) -> Value:
        """Append a node; its result has the given shape and the dtype and device of another value."""
        op = find_operator(name)
        args = (*args, *(argument.default for argument in op.schema.positional[len(args) :]))
        options = {a.name: a.default for a in op.schema.arguments if a.kwarg_only} | options
        node = Node(op, args, options, self.source)
        node.outputs = (Value(TensorSpec(tuple(shape), like_.spec.dtype, like_.spec.device), node, 0),)
        self.nodes.append(node)
        return node.outputs[0]

    def product(self, rows: Side, columns: Side) -> Value:
        """The sum over the steps of ``rows.T @ columns``."""
        a, b = self._orient(rows, not rows.turned), self._orient(columns, columns.turned)
        return self.call("control::sum_products", (a, b), (a.shape[1], b.shape[2]), b)

    def _orient(self, side: Side, turned: bool) -> Value:
        x = side.value
        if not turned:
            return x
        steps, rows, columns = x.shape
        return self.call("td::permute", (x, (0, 2, 1)), (steps, columns, rows), x)

    def pair_shifted(self, after: Side, init: Value, reverse: bool, other: Side) -> list[tuple[Side, Side]]:
        """The pairs for a side that equals ``after`` shifted by one step, with ``init`` for the first step."""
        count = after.value.shape[0] - 1
        earlier = after._replace(value=self.slice_steps(after.value, int(reverse), count))
        later = other._replace(value=self.slice_steps(other.value, 1 - reverse, count))
        start = other._replace(value=self.slice_steps(other.value, count * reverse, 1))
        begin = self.call("td::reshape", (init, (1, *init.shape)), (1, *init.shape), init)
        return [(earlier, later), (after._replace(value=begin), start)]

    def slice_steps(self, x: Value, first: int, count: int) -> Value:
        """Slice a range of steps from a stacked value."""
        plan = ((first, count, 1), *((0, size, 1) for size in x.shape[1:]))
        return self.call("td::basic_index", (x, plan), (count, *x.shape[1:]), x)
