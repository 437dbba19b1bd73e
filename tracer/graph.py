"""Graph: nodes in the order in which they were traced, and the values between them.

Nodes are a list in topological order, because every pass iterates over it; :mod:`.multigraph` converts a graph to a
networkx ``MultiDiGraph`` for graph algorithms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..named_tuple import NamedTuple
from ..registry.dtypes import bool_, complex128, float64, int64
from ..registry.operator import Operator
from ..registry.values import TensorSpec

SCALAR_DTYPES = {bool: bool_, int: int64, float: float64, complex: complex128}


def scalar_spec(weak: type) -> TensorSpec:
    """The spec of a Python scalar in a graph: 0-d, of the dtype that holds what Python computes with."""
    return TensorSpec((), SCALAR_DTYPES[weak])


class Value:
    """A value in a graph: an input, a captured tensor, or a result of a node.

    Attributes:
        spec: shape, dtype and device.
        node: the node that produces it, or None for a parameter.
        index: its index among the node's results, or among the inputs.
        weak: ``int``, ``float``, ``complex`` or ``bool`` for a Python scalar, which is weak in promotion; None for a
            tensor.
    """

    __slots__ = ("index", "node", "spec", "weak")

    def __init__(self, spec: TensorSpec, node: Node | None = None, index: int = 0, weak: type | None = None):
        self.spec, self.node, self.index, self.weak = spec, node, index, weak

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.spec.shape

    def __repr__(self) -> str:
        return f"<value {self.spec}{' weak' if self.weak else ''}>"


class Node:
    """A node of a graph: one call of an operator.

    Attributes:
        op: the operator.
        args: its positional arguments in schema order, with Values in place of tensors, also inside tuples.
        kwargs: its keyword-only arguments.
        outputs: its results.
        source: ``file:line`` of the user's code that called it.
    """

    __slots__ = ("_inputs", "args", "kwargs", "op", "outputs", "source")

    def __init__(self, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], source: str = ""):
        self.op, self.args, self.kwargs, self.source = op, args, kwargs, source
        self.outputs: tuple[Value, ...] = ()
        self._inputs: tuple[Value, ...] | None = None

    @property
    def inputs(self) -> list[Value]:
        """The Values among its arguments, in order, repeated where an argument is."""
        if self._inputs is None:  # passes ask many times
            self._inputs = tuple(values_in((self.args, tuple(self.kwargs.values()))))
        return list(self._inputs)

    def __repr__(self) -> str:
        return f"<node {self.op.name}>"


class Derived(NamedTuple):
    """A Python scalar that Python computes from other Python scalars before the nodes run.

    Attributes:
        value: its weak Value in the graph.
        function: name of a function of the module ``operator`` (``"add"``, ``"truediv"``, ``"lt"``, ...).
        operands: weak Values and Python scalars.
    """

    value: Value
    function: str
    operands: tuple[Any, ...]


class Graph:
    """A traced function.

    A run takes one number or array for each of ``inputs``, ``derived`` and ``captured``, in that order
    (:attr:`parameters`); the caller computes the derived scalars first, with :func:`compute_derived`.

    Attributes:
        inputs: one Value per leaf of the arguments that is passed at each call.
        derived: the scalars that follow from scalar inputs alone.
        captured: Values of the tensors that the function captured, read at each call; see ``constants``.
        constants: the captured tensors, in step with ``captured``.
        nodes: the calls, in an order in which they can run.
        outputs: the results: Values, or tensors and Python scalars that do not depend on the inputs.
        keeps_layout: whether the results are in row-major order; otherwise lowering may permute their axes in memory.
        memo: cached results computed from the graph, by name, if it is the body of a loop or a branch.
    """

    __slots__ = (
        "__weakref__",
        "_captured_by_id",
        "captured",
        "constants",
        "derived",
        "inputs",
        "keeps_layout",
        "memo",
        "nodes",
        "outputs",
    )

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.derived: list[Derived] = []
        self.captured: list[Value] = []
        self.constants: list[Any] = []
        self.nodes: list[Node] = []
        self.outputs: list[Any] = []
        self.keeps_layout = True
        self.memo: dict[str, Any] = {}
        self._captured_by_id: dict[int, Value] = {}

    @property
    def parameters(self) -> list[Value]:
        """The values that a run takes: inputs, derived scalars, captured tensors."""
        return [*self.inputs, *(item.value for item in self.derived), *self.captured]

    def add_input(self, spec: TensorSpec, weak: type | None = None) -> Value:
        """Add an input."""
        value = Value(spec, None, len(self.inputs), weak)
        self.inputs.append(value)
        return value

    def capture(self, tensor: Any, spec: TensorSpec, weak: type | None = None) -> Value:
        """Add a captured tensor, once for each tensor object; returns its Value."""
        value = self._captured_by_id.get(id(tensor))
        if value is None:
            value = self._captured_by_id[id(tensor)] = Value(spec, None, len(self.captured), weak)
            self.captured.append(value)
            self.constants.append(tensor)
        return value

    def captured_value(self, tensor: object) -> Value:
        """The Value of a captured tensor.

        Raises:
            KeyError: it is not captured.
        """
        return self._captured_by_id[id(tensor)]

    def add_derived(self, function: str, operands: tuple[object, ...], weak: type) -> Value:
        """Add the derived scalar ``operator.<function>(*operands)``, once for each such call; returns its Value."""
        for item in self.derived:
            if (
                item.function == function
                and item.value.weak is weak
                and _same_operands(item.operands, operands)
            ):
                return item.value
        value = Value(scalar_spec(weak), None, len(self.derived), weak)
        self.derived.append(Derived(value, function, operands))
        return value

    def add_node(
        self,
        op: Operator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        specs: tuple[TensorSpec, ...],
        source: str = "",
    ) -> Node:
        """Append a call of an operator whose results have the given specs."""
        node = Node(op, args, kwargs, source)
        node.outputs = tuple(Value(spec, node, index) for index, spec in enumerate(specs))
        self.nodes.append(node)
        return node


def _same_operands(one: tuple[object, ...], two: tuple[object, ...]) -> bool:
    """Whether operands are the same: Values by identity, numbers by type and representation (``-0.0``, ``nan``)."""
    return len(one) == len(two) and all(
        a is b or (not isinstance(a, Value) and type(a) is type(b) and repr(a) == repr(b))
        for a, b in zip(one, two)
    )


def compute_derived(graph: Graph, inputs: Sequence[object]) -> list[object]:
    """Compute the derived scalars of a graph, by Python's own arithmetic.

    Args:
        graph: a graph.
        inputs: a number or an array for each of ``graph.inputs``.

    Raises:
        Exception: any exception of the arithmetic, such as ZeroDivisionError.
    """
    if not graph.derived:
        return []
    env = dict(zip(graph.inputs, inputs))
    for value, function, operands in graph.derived:
        env[value] = getattr(operator, function)(*(env[o] if isinstance(o, Value) else o for o in operands))
    return [env[item.value] for item in graph.derived]


def values_in(tree: object) -> Iterator[Value]:
    """Iterate over the Values in nested tuples."""
    if isinstance(tree, Value):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            yield from values_in(item)


def map_values(fn: Callable[[Value], object], tree: object) -> Any:
    """Map a function over the Values in nested tuples."""
    if isinstance(tree, Value):
        return fn(tree)
    if isinstance(tree, (tuple, list)):
        return tuple(map_values(fn, item) for item in tree)
    return tree


def _argument_key(argument: object) -> object:
    """A key that distinguishes 1, 1.0 and True, and 0.0 from -0.0."""
    if isinstance(argument, (tuple, list)):
        return tuple(map(_argument_key, argument))
    return argument if isinstance(argument, Value) else (type(argument), repr(argument))


def call_key(node: Node) -> tuple[object, ...]:
    """A hashable key of a node's operator and arguments: nodes with equal keys, without effects, compute the same."""
    named = tuple((name, _argument_key(arg)) for name, arg in sorted(node.kwargs.items()))
    return node.op, _argument_key(node.args), named


def are_computed_alike(one: Value, two: Value) -> bool:
    """Whether two Values have the same elements because the same calls compute them from the same Values."""
    pairs, proven = [(one, two)], set[tuple[Value, Value]]()
    while pairs:
        x, y = pairs.pop()
        if x is y or (x, y) in proven:
            continue
        a, b = x.node, y.node
        if a is None or b is None or a.op is not b.op or x.index != y.index or a.op.schema.is_mutable:
            return False
        if getattr(a.op.decl, "effects", None) or bodies_of(a) or len(a.inputs) != len(b.inputs):
            return False
        numbers = [{value: number for number, value in enumerate(dict.fromkeys(n.inputs))} for n in (a, b)]
        keys = []
        for node, known in zip((a, b), numbers, strict=True):
            args = [map_values(known.__getitem__, arg) for arg in (*node.args, *node.kwargs.values())]
            keys.append((_argument_key(args), tuple(node.kwargs)))
        if keys[0] != keys[1]:
            return False
        proven.add((x, y))
        pairs += zip(a.inputs, b.inputs, strict=True)
    return True


def bodies_of(node: Node) -> list[Graph]:
    """The graphs among a node's arguments: the bodies of a loop, or branches."""
    args = [item for arg in node.args for item in (arg if type(arg) is tuple else (arg,))]
    return [item for item in args if type(item) is Graph]


def body_inputs(node: Node) -> list[tuple[Value, Any]]:
    """Pairs of each input of a node's bodies and the node's argument that is its (initial) value."""
    if node.op.schema.name == "switch":
        operands = node.args[2]
    else:
        lists = [arg for arg in node.args if type(arg) is tuple]
        operands = tuple(item for arg in lists for item in arg)
    return [pair for body in bodies_of(node) for pair in zip(body.inputs, operands)]


def all_nodes(graph: Graph) -> Iterator[Node]:
    """Iterate over the nodes of a graph and of all bodies in it."""
    for node in graph.nodes:
        yield node
        for body in bodies_of(node):
            yield from all_nodes(body)
