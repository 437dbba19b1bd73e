"""The compiled backward pass, and its specialization for symbolic zeros: cotangents that are known to be zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lazy
from ...eager.tensor.tensor import Tensor
from ...lowering.interpreter import to_payload
from ...lowering.passes.pipeline import remove_dead_code
from ...lowering.passes.rewrite import copy_node, has_effects, new_node
from ...registry.operator import find_operator
from ...tracer.graph import Graph, Node, Value
from ..graph_function import GraphFunction

view_outputs = lazy.Module(".jit.view_outputs")


class Backward:
    """Computes the gradients of a function's inputs.

    Args:
        graph: the backward graph; its outputs are Values, or None for zero gradients.
        name: the name of the function.
    """

    def __init__(self, graph: Graph, name: str):
        # For each gradient: whether it is computed, and its index among the results or the inputs (None: zero).
        self._sources: list[tuple[bool, int | None]] = []
        computed: list[Value] = []
        for gradient in graph.outputs:
            if isinstance(gradient, Value) and gradient.node is not None:
                if gradient not in computed:
                    computed.append(gradient)
                self._sources.append((True, computed.index(gradient)))
            else:
                self._sources.append((False, None if gradient is None else graph.inputs.index(gradient)))
        own = Graph()
        own.inputs, own.nodes, own.outputs = graph.inputs, list(graph.nodes), list(computed)
        view_outputs.copy_small_views(own)
        self.function = GraphFunction(own, name)
        self._is_plain = self._sources == [(True, number) for number in range(len(computed))]
        self._runs = bool(computed) or any(map(has_effects, own.nodes))

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Compute the gradients; None for zero gradients.

        Args:
            inputs: a tensor or a number for each of the graph's inputs.
        """
        arrays = [
            _to_contiguous(item._array if item.__class__ is Tensor else to_payload(item)) for item in inputs
        ]
        results = self.function.run(*arrays) if self._runs else ()
        if self._is_plain:
            return list(results)
        return [
            None if index is None else results[index] if computed else inputs[index]
            for computed, index in self._sources
        ]


def _to_contiguous(item: Any) -> Any:
    """A C-contiguous array in place of another one, such as the gradient of a sum, whose elements are one number."""
    return (
        np.ascontiguousarray(item) if item.__class__ is np.ndarray and not item.flags.c_contiguous else item
    )


def specialize_for_zero_cotangents(graph: Graph, cotangents: Sequence[Value], zeros: set[Value]) -> Graph:
    """Specialize the backward graph for cotangents that are symbolic zeros.

    Values that depend only on zero cotangents are zero too and are not computed: zero times an infinite derivative
    would be NaN.

    Args:
        graph: the backward graph, which is linear in the cotangents.
        cotangents: its inputs that are cotangents.
        zeros: the cotangents that are zero.
    """
    out = Graph()
    out.inputs = [value for value in graph.inputs if value not in zeros]
    linear, zeros = set(cotangents), set(zeros)
    env = {value: value for value in out.inputs}
    for node in graph.nodes:
        operands = [value for value in node.inputs if value in linear]
        if operands:
            linear.update(node.outputs)
        zero_operands = [value for value in operands if value in zeros]
        if operands and len(zero_operands) == len(operands):
            zeros.update(node.outputs)
            continue
        term = _remaining_term(node, zeros)
        if term is not None:
            env[node.outputs[0]] = env[term]
            continue
        for value in zero_operands:
            if value not in env:
                env[value] = _append_zeros(out, value)
        new = copy_node(node, env.__getitem__)
        out.nodes.append(new)
        env.update(zip(node.outputs, new.outputs))
    out.outputs = [None if o is None or o in zeros else env[o] for o in graph.outputs]
    return remove_dead_code(out)


def _remaining_term(node: Node, zeros: set[Value]) -> Value | None:
    """The other operand of a sum with a zero; None for other nodes."""
    if node.op.name != "td::add.Tensor" or not all(isinstance(arg, Value) for arg in node.args):
        return None
    rest = [value for value in node.args if value not in zeros]
    same = len(rest) == 1 and len(node.args) == 2 and rest[0].spec == node.outputs[0].spec
    return rest[0] if same else None


def _append_zeros(graph: Graph, value: Value) -> Value:
    spec = value.spec
    options = {"dtype": spec.dtype, "device": spec.device}
    node = new_node(find_operator("td::full"), (spec.shape, 0), options, spec, "")
    graph.nodes.append(node)
    return node.outputs[0]
