"""Split stacks: compute elementwise operators on the parts of a stack, and read parts where they were computed.

Programs stack the components of a state at the end of a step, add and scale the stack, and take its components apart in
the next stage. The components then need not go through memory. A stack whose components nothing else needs is not made.

Source: scalar replacement of aggregates in LLVM; sinking of concatenations in XLA's algebraic simplifier.
"""

from __future__ import annotations

from typing import Any

from ...named_tuple import NamedTuple
from ...tracer.graph import Graph, Node, Value
from ..kernel_selection import uniform_constant
from .rewrite import Replacement, add_node, add_slice, has_effects, new_node, replace_each

MOST_PARTS = 8
MOST_NODES = 256  # that are added to a graph


class Stack(NamedTuple):
    """A value that is concatenated of parts with one element along an axis."""

    axis: int
    parts: tuple[Value, ...]


def split_stacks(graph: Graph) -> Graph:
    """Compute elementwise operators on the parts of stacks, and replace reads of parts.

    For native code: interpreted kernels would run once for each part, and NumPy's functions round elements of arrays
    with strides differently.
    """
    if not any(map(find_stack, graph.nodes)):
        return graph
    return replace_each(graph, _Splitter().visit)


def find_stack(node: Node) -> Stack | None:
    """The parts of a node that stacks values; None for another node."""
    if node.op.name != "td::concat" or len(node.args) != 2 or node.kwargs:
        return None
    parts, axis = node.args
    if type(axis) is not int or not 1 < len(parts) <= MOST_PARTS:
        return None
    axis %= len(node.outputs[0].shape)
    spec = node.outputs[0].spec
    for part in parts:
        if not isinstance(part, Value) or part.weak is not None or part.spec.dtype is not spec.dtype:
            return None
        if not all(type(size) is int for size in part.shape) or part.shape[axis] != 1 or not part.spec.size:
            return None
    return Stack(axis, tuple(parts))


class _Splitter:
    """Splits the stacks of one graph.

    Attributes:
        stacks: the values that are stacks.
        slices: the elements of other values at positions of a stack, by value, axis and position.
        added: the number of nodes that were added.
    """

    def __init__(self) -> None:
        self.stacks: dict[Value, Stack] = {}
        self.slices: dict[tuple[Value, int, int], Value] = {}
        self.added = 0

    def visit(self, node: Node, out: Graph) -> Replacement:
        stack = find_stack(node)
        if stack is not None:
            self.stacks[node.outputs[0]] = stack
            return None
        if node.op.name == "td::basic_index":
            return self._read_part(node, out)
        return self._split(node, out)

    def _read_part(self, node: Node, out: Graph) -> Replacement:
        """The part that a node reads, with the node's shape; None if it reads several, or from another value."""
        source, plan = node.args
        stack = self.stacks.get(source)
        if stack is None or None in plan:
            return None
        entry = plan[stack.axis]
        start, length, _ = (entry, 1, 1) if type(entry) is int else entry
        if type(start) is not int or length != 1:
            return None
        part, spec = stack.parts[start], node.outputs[0].spec
        rest = 0 if type(entry) is int else (0, 1, 1)
        inner = (*plan[: stack.axis], rest, *plan[stack.axis + 1 :])
        whole = all(entry in (0, (0, size, 1)) for entry, size in zip(inner, part.shape))
        before = part.node.args[0] if part.node is not None and part.node.op.name == "td::reshape" else part
        if whole and before.weak is None and before.spec == spec:
            return (before,)
        return (self._call(out, node.op.name, (part, inner), spec.shape, node.outputs[0], node.source),)

    def _split(self, node: Node, out: Graph) -> Replacement:
        stack = self._find_split(node)
        if stack is None:
            return None
        result = node.outputs[0]
        shape = (*result.shape[: stack.axis], 1, *result.shape[stack.axis + 1 :])
        parts = []
        for number in range(len(stack.parts)):
            args = tuple(self._slice(arg, len(shape), stack, number, out) for arg in node.args)
            made = new_node(node.op, args, node.kwargs, result.spec._replace(shape=shape), node.source)
            out.nodes.append(made)
            parts.append(made.outputs[0])
        self.added += len(parts)
        value = self._call(out, "td::concat", (tuple(parts), stack.axis), result.shape, result, node.source)
        self.stacks[value] = Stack(stack.axis, tuple(parts))
        return (value,)

    def _find_split(self, node: Node) -> Stack | None:
        """The stack by whose parts an elementwise node is computed, its axis counted in the result."""
        decl = node.op.decl
        if decl is None or not decl.is_elementwise or has_effects(node) or len(node.outputs) != 1:
            return None
        result = node.outputs[0]
        if result.weak is not None or not all(type(size) is int for size in result.shape):
            return None
        if not all(isinstance(arg, (Value, bool, int, float, complex)) for arg in node.args):
            return None
        if any(isinstance(arg, Value) for arg in node.kwargs.values()):
            return None
        for arg in node.args:
            stack = self.stacks.get(arg) if isinstance(arg, Value) else None
            if stack is not None and self.added + len(stack.parts) <= MOST_NODES:
                axis = stack.axis + len(result.shape) - len(arg.shape)
                if result.shape[axis] == len(stack.parts):
                    return stack._replace(axis=axis)
        return None

    def _slice(self, arg: Any, rank: int, stack: Stack, number: int, out: Graph) -> Any:  # noqa: ANN401 - an argument
        """An argument of an elementwise node for one part of its result."""
        if not isinstance(arg, Value):
            return arg
        axis = stack.axis + len(arg.shape) - rank
        if axis < 0 or arg.shape[axis] == 1:
            return arg
        own = self.stacks.get(arg)
        if own is not None and own.axis == axis:
            return own.parts[number]
        known = self.slices.get((arg, axis, number))
        if known is None:
            known = self.slices[arg, axis, number] = self._make_slice(arg, axis, number, out)
        return known

    def _make_slice(self, arg: Value, axis: int, number: int, out: Graph) -> Value:
        if arg.node is not None and uniform_constant(arg.node) is not None:
            spec = arg.spec._replace(shape=(*arg.shape[:axis], 1, *arg.shape[axis + 1 :]))
            args = (spec.shape, *arg.node.args[1:])
            return add_node(out.nodes, arg.node.op.name, args, spec, arg.node.source, **arg.node.kwargs)
        self.added += 1
        return add_slice(out.nodes, arg, axis, number, "" if arg.node is None else arg.node.source)

    def _call(
        self, out: Graph, name: str, args: tuple[Any, ...], shape: tuple[Any, ...], like: Value, source: str
    ) -> Value:
        self.added += 1
        return add_node(out.nodes, name, args, like.spec._replace(shape=shape), source)
