"""Passes on scans, and one of them: products that are only summed up become one product.

In the backward scan of ``h = tanh(h @ W + x)`` the gradient of ``W`` is a carry, to which each step adds ``a.T @ b``.
That sum over the steps is the product of all rows of ``a`` with all rows of ``b``: ``b`` is stacked, and one large
matrix product after the loop takes the place of the many small ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..registry.dtypes import complex64, complex128, float32, float64
from ..registry.operator import find
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value
from .rewrite import copy_node, has_effects, like

HOISTED = (float32, float64, complex64, complex128)
"""Types of products that leave a loop: they are summed up in the type that they have."""


class Scan(NamedTuple):
    """A scan taken apart: its body, and what is passed for the body's inputs."""

    body: Graph
    carry: tuple[Any, ...]
    xs: tuple[Any, ...]
    consts: tuple[Any, ...]
    length: int
    reverse: bool
    flush: bool = False

    @property
    def given(self) -> tuple[Any, ...]:
        """What stands for the body's inputs, in order."""
        return (*self.carry, *self.xs, *self.consts)


def is_scan(node: Node) -> bool:
    """Whether a node is a scan."""
    return node.op.name == "control::scan"


def taken_apart(node: Node) -> Scan:
    """A scan node's arguments."""
    return Scan(*node.args, **node.kwargs)


def scan_node(scan: Scan, source: str) -> Node:
    """The node of a scan."""
    body, count = scan.body, len(scan.carry)
    options = {"length": scan.length, "reverse": scan.reverse, "flush": scan.flush}
    node = Node(find("control::scan"), (body, scan.carry, scan.xs, scan.consts), options, source)
    specs = [o.spec for o in body.outputs[:count]]
    specs += [TensorSpec((scan.length, *o.shape), o.spec.dtype, o.spec.device) for o in body.outputs[count:]]
    node.outputs = tuple(Value(spec, node, index) for index, spec in enumerate(specs))
    return node


def part_of(graph: Graph, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
    """The nodes of a graph that some outputs need, with some of its inputs."""
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
    """The inputs that some outputs (and whatever has effects) depend on."""
    wanted = set(outputs)
    for node in reversed(graph.nodes):
        if has_effects(node) or any(output in wanted for output in node.outputs):
            wanted.update(node.inputs)
    return wanted.intersection(graph.inputs)


def inline_calls(graph: Graph) -> Graph:
    """Put the bodies of calls that keep a derivative in their place: derivatives have been taken by now."""
    if all(node.op.name != "control::call" for node in graph.nodes):
        return graph
    out = like(graph)
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


def substituted(graph: Graph, env: dict[Value, Value]) -> Graph:
    """The graph with values replaced by others, also where one replacement leads to the next."""

    def read(value: Value) -> Value:
        while value in env:
            value = env[value]
        return value

    out = like(graph)
    for node in graph.nodes:
        if any(value in env for value in node.inputs):
            changed = copy_node(node, read)
            env.update(zip(node.outputs, changed.outputs))
            node = changed
        out.nodes.append(node)
    out.outputs = [read(o) if isinstance(o, Value) else o for o in graph.outputs]
    return out


Changed = tuple[list[Node], dict[Value, Value]]


def replace_scans(graph: Graph, change: Callable[[Node], Changed | None]) -> Graph:
    """Put other nodes in place of scans.

    Args:
        graph: the graph, which stays as it is.
        change: from a scan to the nodes that take its place, and what stands for its results; None keeps it.
    """
    if not any(map(is_scan, graph.nodes)):
        return graph
    out, env = like(graph), {}
    for node in graph.nodes:
        changed = change(node) if is_scan(node) else None
        out.nodes += [node] if changed is None else changed[0]
        env.update({} if changed is None else changed[1])
    out.outputs = list(graph.outputs)
    return substituted(out, env)


# -- carries that only sum up ------------------------------------------------------------------------------------------
class Added(NamedTuple):
    """What each step adds to a carry that does nothing else.

    Attributes:
        carry: which.
        value: what is added.
        uses: how often each value of the body is read.
    """

    carry: int
    value: Value
    uses: dict[Value, int]

    def maker(self, value: Value) -> Node | None:
        """The node that has made a value, if nothing else reads that."""
        return value.node if self.uses[value] == 1 else None


def sums(scan: Scan) -> Iterator[Added]:
    """The carries that only sum up."""
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
                yield Added(j, added, uses)


def without_carries(
    node: Node, gone: set[int], extra: Extra
) -> tuple[Node, Sequence[Value], dict[Value, Value]]:
    """A scan without some carries, with further stacked results; these results, and what stands for the others."""
    scan = extra.scan
    body, count = scan.body, len(scan.carry)
    kept = [j for j in range(count) if j not in gone]
    inputs = [v for j, v in enumerate(body.inputs) if j not in gone]
    outputs = [*(body.outputs[j] for j in kept), *body.outputs[count:], *extra.outputs]
    made = scan._replace(body=part_of(body, inputs, outputs), carry=tuple(scan.carry[j] for j in kept))
    found = scan_node(made, node.source)
    stacked = found.outputs[len(kept) :]
    replaced = dict(zip([node.outputs[j] for j in kept], found.outputs[: len(kept)]))
    return found, stacked, replaced | dict(zip(node.outputs[count:], stacked))


# -- products ----------------------------------------------------------------------------------------------------------
class Product(NamedTuple):
    """A carry that only sums up products.

    Attributes:
        carry: which.
        left, right: the matrices whose product is added.
        turned: whether the product is transposed before it is added.
    """

    carry: int
    left: Value
    right: Value
    turned: bool


def hoist_products(graph: Graph) -> Graph:
    """Take products that a scan only sums up out of it: one product of all steps' matrices after the loop."""
    return replace_scans(graph, _without_products)


def _product(added: Added) -> Product | None:
    """The matrix product that is added, if it is one."""
    maker = added.maker(added.value)
    turned = maker is not None and _is_transpose(maker)
    if maker is not None and turned:
        maker = added.maker(maker.args[0])
    if maker is None or maker.op.name != "td::matmul":
        return None
    a, b = maker.args
    dtypes = a.spec.dtype, b.spec.dtype, added.value.spec.dtype
    is_plain = len(a.shape) == len(b.shape) == 2 and len(set(dtypes)) == 1 and dtypes[0] in HOISTED
    return Product(added.carry, a, b, turned) if is_plain else None


def _is_transpose(node: Node) -> bool:
    return bool(node.op.name == "td::permute" and tuple(node.args[1]) == (1, 0))


def _without_products(node: Node) -> Changed | None:
    """The scan without products, the nodes after it, and what stands for its results."""
    scan = taken_apart(node)
    products = [p for p in map(_product, sums(scan)) if p is not None]
    if not products:
        return None
    extra = Extra(scan)
    pairs = [
        (extra.side(p.right), extra.side(p.left, True))
        if p.turned
        else (extra.side(p.left, True), extra.side(p.right))
        for p in products
    ]
    found, stacked, replaced = without_carries(node, {p.carry for p in products}, extra)
    after: list[Node] = []
    for product, (a, b) in zip(products, pairs):
        total, write = node.outputs[product.carry], Writer(after, node.source)
        rows, columns = (Side(x if isinstance(x, Value) else stacked[x], turned) for x, turned in (a, b))
        found_sum = scan.carry[product.carry]
        for one, two in _pairs(write, rows, columns):
            found_sum = write.call("td::add.Tensor", (found_sum, write.product(one, two)), total.shape, total)
        replaced[total] = found_sum
    return [found, *after], replaced


class Side(NamedTuple):
    """The matrices of all steps that are one side of a product.

    Attributes:
        value: the matrices, stacked.
        turned: whether each is to be transposed.
    """

    value: Value
    turned: bool


def _pairs(write: Writer, rows: Side, columns: Side) -> list[tuple[Side, Side]]:
    """The matrices to multiply: all steps at once, or where one of them is the carry that each step of another scan was
    given, and what it gave is kept as well, that one by one step off, and the first step by itself."""
    known = _given_carry(rows.value)
    if known is not None:
        return write.one_off(Side(known[0], rows.turned), *known[1:], columns)
    known = _given_carry(columns.value)
    if known is not None:
        return [(two, one) for one, two in write.one_off(Side(known[0], columns.turned), *known[1:], rows)]
    return [(rows, columns)]


def _given_carry(stacked: Value) -> tuple[Value, Value, bool] | None:
    """Of the carries that the steps of a scan were given: the stack of those that they gave, the first carry, and
    whether the scan runs backward; None if something else is stacked, or what the steps gave is not kept."""
    source = stacked.node
    if source is None or not is_scan(source) or stacked.shape[0] < 2:
        return None
    scan = taken_apart(source)
    body, count = scan.body, len(scan.carry)
    given = body.outputs[stacked.index]
    carries = [j for j in range(count) if body.inputs[j] is given]
    for k in range(count, len(body.outputs)):
        if carries and body.outputs[k] is body.outputs[carries[0]]:
            return source.outputs[k], scan.carry[carries[0]], scan.reverse
    return None


class Extra:
    """What a scan has to stack besides, so that something can be computed after it."""

    def __init__(self, scan: Scan):
        self.scan = scan
        self.stacked = list(scan.body.outputs[len(scan.carry) :])
        self.outputs: list[Value] = []

    def side(self, matrix: Value, turned: bool = False) -> tuple[Any, bool]:
        """Where a matrix, or its transpose, is stacked (see :meth:`place`), and if it is still to be turned."""
        while matrix.node is not None and _is_transpose(matrix.node):
            matrix, turned = matrix.node.args[0], not turned
        return self.place(matrix), turned

    def place(self, value: Value) -> Any:
        """Where a value is stacked: one of xs, or the number of a stacked result."""
        scan, first = self.scan, len(self.scan.carry)
        for place, x in enumerate(scan.xs):
            if scan.body.inputs[first + place] is value:
                return x
        if value not in self.stacked:
            self.stacked.append(value)
            self.outputs.append(value)
        return self.stacked.index(value)


class Writer:
    """Appends calls of operators to a list of nodes."""

    def __init__(self, nodes: list[Node], source: str):
        self.nodes, self.source = nodes, source

    def call(
        self, name: str, args: tuple[Any, ...], shape: Sequence[int], like_: Value, **options: Any
    ) -> Value:
        """The result of an operator with the shape given and the dtype of another value."""
        op = find(name)
        args = (*args, *(argument.default for argument in op.schema.positional[len(args) :]))
        options = {a.name: a.default for a in op.schema.arguments if a.kwarg_only} | options
        node = Node(op, args, options, self.source)
        node.outputs = (Value(TensorSpec(tuple(shape), like_.spec.dtype, like_.spec.device), node, 0),)
        self.nodes.append(node)
        return node.outputs[0]

    def product(self, rows: Side, columns: Side) -> Value:
        """The sum over the steps of ``rows.T @ columns``."""
        a, b = self._as_asked(rows, not rows.turned), self._as_asked(columns, columns.turned)
        return self.call("control::sum_products", (a, b), (a.shape[1], b.shape[2]), b)

    def _as_asked(self, side: Side, turned: bool) -> Value:
        x = side.value
        if not turned:
            return x
        steps, rows, columns = x.shape
        return self.call("td::permute", (x, (0, 2, 1)), (steps, columns, rows), x)

    def one_off(self, after: Side, init: Value, reverse: bool, other: Side) -> list[tuple[Side, Side]]:
        """The pairs where one side is what the step before gave, in ``after``, and ``init`` for the first step."""
        count = after.value.shape[0] - 1
        earlier = after._replace(value=self.steps(after.value, int(reverse), count))
        later = other._replace(value=self.steps(other.value, 1 - reverse, count))
        start = other._replace(value=self.steps(other.value, count * reverse, 1))
        begin = self.call("td::reshape", (init, (1, *init.shape)), (1, *init.shape), init)
        return [(earlier, later), (after._replace(value=begin), start)]

    def steps(self, x: Value, first: int, count: int) -> Value:
        """Some steps of something stacked."""
        plan = ((first, count, 1), *((0, size, 1) for size in x.shape[1:]))
        return self.call("td::basic_index", (x, plan), (count, *x.shape[1:]), x)
