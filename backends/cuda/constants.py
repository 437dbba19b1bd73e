"""What a graph for CUDA computes of no argument is computed when it is lowered: positions, masks, numbers.

A device would spend a launch on each. Only what has one result on every device is computed: integers, truth values,
and arithmetic that IEEE rounds exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...eager.tensor import wrap
from ...errors import TandemError
from ...lowering.evaluate import call
from ...lowering.layout import is_view
from ...lowering.resolve import uniform_constant
from ...lowering.rewrite import copy_node, has_effects, like, new_node
from ...registry.operator import find
from ...tracer.graph import Graph, Node, Value, map_values
from .bring import move

LARGEST = 1 << 16  # elements of a constant; what is larger costs more to read than to compute
EXACT = frozenset("add sub mul div neg abs sqrt maximum minimum where cast".split())
LEFT = ("random", "custom", "control", "transfer")


def fold(graph: Graph) -> Graph:
    """The graph with constants in the place of what depends on no argument.

    Args:
        graph: an optimised graph.

    Returns:
        The graph; its captured tensors are followed by the new constants, which lie on the host.
    """
    found = _Folding(graph)
    for node in graph.nodes:
        found.take(node)
    return found.finished(graph)


class _Folding:
    """The walk: what has taken the place of each value, and what is known of values.

    Attributes:
        out: the new graph.
        env: values of the old graph, and what stands for them.
        known: the elements of values, as tensors on the host.
        numbers: the values that are one number everywhere.
        made: the new constants.
    """

    def __init__(self, graph: Graph) -> None:
        self.out = like(graph)
        self.env: dict[Value, Value] = {}
        self.known: dict[Value, Any] = {}
        self.numbers: dict[Value, Any] = {}
        self.made: list[Value] = []

    def take(self, node: Node) -> None:
        """Take over a node, or put a constant in its place."""
        before = node
        if any(value in self.env for value in node.inputs):
            node = copy_node(node, lambda value: self.env.get(value, value))
        if len(node.outputs) == 1 and node.outputs[0].weak is None and not has_effects(node):
            node = self._number(node) or node
            if self._constant(node, before.outputs[0]):
                return
        self.out.nodes.append(node)
        if node is not before:
            self.env.update(zip(before.outputs, node.outputs))

    def _number(self, node: Node) -> Node | None:
        """If a node has one number everywhere: a node that fills with it."""
        out, number = node.outputs[0], uniform_constant(node)
        if number is not None:
            self.numbers[out] = number
            return None
        args = [a for a in node.args if isinstance(a, Value)]
        if node.op.schema.name not in EXACT or not args or not all(a in self.numbers for a in node.inputs):
            return None
        small = copy_node(node, lambda value: value)
        small.outputs[0].spec = out.spec._replace(shape=(), device="cpu")
        given = {a: wrap(np.asarray(self.numbers[a]).astype(a.spec.dtype.np)) for a in node.inputs}
        result = _run(small, given)
        if result is None:
            return None
        number = result._array.item()
        options = {"dtype": out.spec.dtype, "device": out.spec.device}
        filled = new_node(find("td::full"), (out.shape, number), options, out.spec, node.source)
        self.numbers[filled.outputs[0]] = number
        return filled

    def _constant(self, node: Node, place: Value) -> bool:
        """Whether a node has been replaced by a constant; the elements of a view of one are noted."""
        out, kind = node.outputs[0], getattr(node.op.decl, "kind", None)
        stays = out in self.numbers or out.spec.size > LARGEST or out.spec.dtype.kind not in "biu"
        if stays or kind is None or kind in LEFT or not all(v in self.known for v in node.inputs):
            return False
        here = copy_node(node, lambda value: value)
        move(here, "cpu")
        result = _run(here, self.known)
        if result is None:
            return False
        if is_view(node):
            self.known[out] = result
            return False
        constant = Value(out.spec)
        self.env[place] = constant
        self.known[constant] = result
        self.made.append(constant)
        return True

    def finished(self, graph: Graph) -> Graph:
        """The new graph, with the constants that it reads."""
        out = self.out
        out.outputs = [self.env.get(o, o) if isinstance(o, Value) else o for o in graph.outputs]
        used = {value for node in out.nodes for value in node.inputs} | {
            o for o in out.outputs if isinstance(o, Value)
        }
        for value in self.made:
            if value in used:
                value.index = len(out.captured)
                out.captured.append(value)
                out.constants.append(self.known[value])
        return out


def _run(node: Node, given: dict[Value, Any]) -> Any:
    """The result of a node on the host; None where it raises, as it then does where it is called."""
    read = given.__getitem__
    try:
        (result,) = call(
            node, map_values(read, node.args), {n: map_values(read, a) for n, a in node.kwargs.items()}
        )
    except TandemError:
        return None
    return result
