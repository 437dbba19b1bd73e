"""Decompositions on CUDA: matrices and joins become ranges and pieces, which their readers compute.

They are those that operators declare and the CPU uses too (:mod:`...cpu.native_kernels.decompose`).
"""

from __future__ import annotations

from typing import Any

from ....lowering.passes.rewrite import copy_node, replace_each
from ....registry.dispatch.keys import DispatchKey
from ....registry.dispatch.precedence import find_external_kernel
from ....tracer.graph import Graph, Node, Value
from ...cpu.native_kernels.decompose import find_decomposition, trace_decomposition
from .move_to_device import set_device

DECOMPOSED_KINDS = ("creation", "join")
"""The kinds of operators that ranges and pieces replace; others have kernels of their own."""


def decompose_on_device(graph: Graph, device: str) -> Graph:
    """Replace the nodes on a device that declare a decomposition into ranges and pieces.

    Args:
        graph: an optimised graph.
        device: the device that it runs on.
    """
    return replace_each(graph, lambda node, out: _decompose(node, out, device))


def _decompose(node: Node, out: Graph, device: str) -> tuple[Value, ...] | None:
    """Append the nodes of a decomposition; return their results, or None to leave the node as it is."""
    if getattr(node.op.decl, "kind", "") not in DECOMPOSED_KINDS or node.outputs[0].spec.device != device:
        return None
    if any(find_external_kernel(node.op, key) for key in (DispatchKey.CUDA, DispatchKey.Meta)):
        return None
    here = copy_node(node, lambda value: value)
    if not node.inputs:
        set_device(here, "cpu")  # a graph is also lowered where there is no device
    compose = find_decomposition(here)
    body = None if compose is None else trace_decomposition(here, compose)
    if body is None or len(body.outputs) != 1:
        return None
    env: dict[Value, Any] = dict(zip(body.inputs, node.inputs, strict=True))
    nodes: list[Node] = []
    for inner in body.nodes:
        copy = copy_node(inner, lambda value: env.get(value, value))
        set_device(copy, device)
        env.update(zip(inner.outputs, copy.outputs, strict=True))
        nodes.append(copy)
    results = tuple(env.get(value, value) for value in body.outputs)
    if [value.spec for value in results] != [value.spec for value in node.outputs]:
        return None
    out.nodes += nodes
    return results
