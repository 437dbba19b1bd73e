"""Constant folding for CUDA: compute positions, masks and numbers that depend on no argument at lowering.

It saves a launch for each. Only operations with the same result on every device are folded: on integers and booleans,
and arithmetic that IEEE 754 rounds exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....eager.tensor.tensor import wrap
from ....errors import TandemError
from ....lowering.interpreter import call_kernel
from ....lowering.kernel_selection import uniform_constant
from ....lowering.layout import is_view
from ....lowering.passes.rewrite import copy_node, empty_like, has_effects, new_node
from ....registry.operator import find_operator
from ....tracer.graph import Graph, Node, Value, map_values
from .move_to_device import set_device

MAX_ELEMENTS = 1 << 16  # elements of a constant; what is larger costs more to read than to compute
EXACT = frozenset("add sub mul div neg abs sqrt maximum minimum where cast".split())
NOT_FOLDED = ("random", "custom", "control", "transfer")


def fold_constants(graph: Graph) -> Graph:
    """Replace nodes that depend on no argument by constants.

    Args:
        graph: an optimised graph.

    Returns:
        The new graph; the new constants follow its captured tensors, and are on the host.
    """
    result = _ConstantFolder(graph)
    for node in graph.nodes:
        result.fold_node(node)
    return result.finish(graph)


class _ConstantFolder:
    """The state of the pass.

    Attributes:
        out: the new graph.
        env: values of the old graph -> their replacements.
        known: values -> their elements, as tensors on the host.
        numbers: values whose elements are all equal -> that number.
        constants: the new constants.
    """

    def __init__(self, graph: Graph) -> None:
        self.out = empty_like(graph)
        self.env: dict[Value, Value] = {}
        self.known: dict[Value, Any] = {}
        self.numbers: dict[Value, Any] = {}
        self.constants: list[Value] = []

    def fold_node(self, node: Node) -> None:
        """Copy a node to the new graph, or replace it by a constant."""
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
        """If all elements of a node's result are one number: a ``full`` node with it."""
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
        result = _evaluate(small, given)
        if result is None:
            return None
        number = result._array.item()
        options = {"dtype": out.spec.dtype, "device": out.spec.device}
        filled = new_node(find_operator("td::full"), (out.shape, number), options, out.spec, node.source)
        self.numbers[filled.outputs[0]] = number
        return filled

    def _constant(self, node: Node, index: Value) -> bool:
        """Whether the node was replaced by a constant; the elements of a view of a constant are recorded too."""
        out, kind = node.outputs[0], getattr(node.op.decl, "kind", None)
        stays = out in self.numbers or out.spec.size > MAX_ELEMENTS or out.spec.dtype.kind not in "biu"
        if stays or kind is None or kind in NOT_FOLDED or not all(v in self.known for v in node.inputs):
            return False
        here = copy_node(node, lambda value: value)
        set_device(here, "cpu")
        result = _evaluate(here, self.known)
        if result is None:
            return False
        if is_view(node):
            self.known[out] = result
            return False
        constant = Value(out.spec)
        self.env[index] = constant
        self.known[constant] = result
        self.constants.append(constant)
        return True

    def finish(self, graph: Graph) -> Graph:
        """Finish the new graph with the constants that it reads."""
        out = self.out
        out.outputs = [self.env.get(o, o) if isinstance(o, Value) else o for o in graph.outputs]
        used = {value for node in out.nodes for value in node.inputs} | {
            o for o in out.outputs if isinstance(o, Value)
        }
        for value in self.constants:
            if value in used:
                value.index = len(out.captured)
                out.captured.append(value)
                out.constants.append(self.known[value])
        return out


def _evaluate(node: Node, given: dict[Value, Any]) -> Any:
    """The result of a node on the host; None if it raises: the call will raise the same error."""
    read = given.__getitem__
    try:
        (result,) = call_kernel(
            node, map_values(read, node.args), {n: map_values(read, a) for n, a in node.kwargs.items()}
        )
    except TandemError:
        return None
    return result
