"""The compiled backward pass, and its graph for cotangents that are zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..lowering.interpreter import to_payload
from ..lowering.passes.pipeline import remove_dead_code
from ..lowering.passes.rewrite import copy_node, has_effects, new_node
from ..registry.operator import find_operator
from ..tracer.graph import Graph, Node, Value
from .graph_function import GraphFunction


class Backward:
    """Computes the gradients of a function's inputs.

    Args:
        graph: the backward graph; its outputs are Values, or None for zero gradients.
        name: the name of the function.
    """

    def __init__(self, graph: Graph, name: str):
        self._sources: list[
            tuple[bool, Any]
        ] = []  # for each gradient: whether it is computed, and which; or given
        computed: list[Value] = []
        for gradient in graph.outputs:
            if isinstance(gradient, Value) and gradient.node is not None:
                if gradient not in computed:
                    computed.append(gradient)
                self._sources.append((True, computed.index(gradient)))
            else:
                self._sources.append((False, None if gradient is None else graph.inputs.index(gradient)))
        own = Graph()
        own.inputs, own.nodes, own.outputs = graph.inputs, graph.nodes, list(computed)
        self.function = GraphFunction(own, name)
        self._runs = bool(computed) or any(map(has_effects, own.nodes))

    def __call__(self, given: Sequence[Any]) -> list[Any]:
        """Compute the gradients.

        Args:
            given: a tensor or a number for each of the graph's inputs.
        """
        arrays = [to_payload(item) for item in given]
        results = self.function.run(*arrays) if self._runs else ()
        return [
            results[which] if computed else None if which is None else given[which]
            for computed, which in self._sources
        ]


def drop_cotangents(graph: Graph, cotangents: Sequence[Value], missing: set[Value]) -> Graph:
    """Specialize the backward graph for cotangents that are zero.

    Values that depend only on zero cotangents are zero too and are not computed: zero times an infinite derivative
    would be NaN.

    Args:
        graph: the backward graph, which is linear in the cotangents.
        cotangents: its inputs that are cotangents.
        missing: the cotangents that are zero.
    """
    out = Graph()
    out.inputs = [value for value in graph.inputs if value not in missing]
    flowing, zero = set(cotangents), set(missing)
    env = {value: value for value in out.inputs}
    for node in graph.nodes:
        carriers = [value for value in node.inputs if value in flowing]
        if carriers:
            flowing.update(node.outputs)
        gone = [value for value in carriers if value in zero]
        if carriers and len(gone) == len(carriers):
            zero.update(node.outputs)
            continue
        rest = _remaining_term(node, zero)
        if rest is not None:
            env[node.outputs[0]] = env[rest]
            continue
        for value in gone:
            if value not in env:
                env[value] = _append_zeros(out, value)
        new = copy_node(node, env.__getitem__)
        out.nodes.append(new)
        env.update(zip(node.outputs, new.outputs))
    out.outputs = [None if o is None or o in zero else env[o] for o in graph.outputs]
    return remove_dead_code(out)


def _remaining_term(node: Node, zero: set[Value]) -> Value | None:
    """The other operand of a sum with a zero; None for other nodes."""
    if node.op.name != "td::add.Tensor" or not all(isinstance(arg, Value) for arg in node.args):
        return None
    rest = [value for value in node.args if value not in zero]
    same = len(rest) == 1 and len(node.args) == 2 and rest[0].spec == node.outputs[0].spec
    return rest[0] if same else None


def _append_zeros(graph: Graph, value: Value) -> Value:
    spec = value.spec
    options = {"dtype": spec.dtype, "device": spec.device}
    node = new_node(find_operator("td::full"), (spec.shape, 0), options, spec, "")
    graph.nodes.append(node)
    return node.outputs[0]
