"""Running nodes by the eager kernels of a backend: the interpreter, and what constant folding and callbacks call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..eager.tensor import Tensor, wrap
from ..errors import LoweringError
from ..registry.keys import AUTOGRAD, BACKEND_OF_DEVICE, KEY_COUNT
from ..registry.state import set_keys
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value, map_values

EVERY_KEY = (1 << KEY_COUNT) - 1


def call(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Run a node's operator on tensors and scalars by its backend's kernel, below every layer.

    Raises:
        LoweringError: the results are not what the operator's shape rule has promised.
    """
    backend = 1 << BACKEND_OF_DEVICE[_device_of(node).partition(":")[0]]
    before = set_keys(0, EVERY_KEY & ~backend)
    try:
        found = node.op.dispatch(backend, args, kwargs)
    finally:
        set_keys(*before)
    results = tuple(found) if isinstance(found, (tuple, list)) else () if found is None else (found,)
    check(node, results)
    return results


def _device_of(node: Node) -> str:
    """Where a node is computed: where its results lie, or what it takes if that is all or is moved from there."""
    if node.outputs and getattr(node.op.decl, "kind", "") != "transfer":
        return node.outputs[0].spec.device
    return next((value.spec.device for value in node.inputs if value.weak is None), "cpu")


def check(node: Node, results: tuple[Any, ...]) -> None:
    """Compare results with the specs of the node before anything relies on them."""
    wanted = [o.spec for o in node.outputs]
    seen = [TensorSpec(r.shape, r.dtype, r.device) if isinstance(r, Tensor) else type(r) for r in results]
    if seen != wanted:
        raise LoweringError(
            f"{node.op.name}: its shape rule promises {', '.join(map(str, wanted))}; "
            f"its kernel gave {', '.join(map(str, seen))} ({node.source or 'unknown line'})"
        )


def as_argument(value: Value, given: Any) -> Any:
    """What a kernel takes for an input: a Python scalar where the value is weak, else a tensor."""
    if value.weak is not None:
        return value.weak(given.item() if isinstance(given, (np.ndarray, np.generic)) else given)
    return given if isinstance(given, Tensor) else wrap(np.asarray(given))


def payload(item: Any) -> Any:
    """What executables take and give for a tensor: the ndarray of one on the CPU; one on another device itself, without
    its history."""
    if type(item) is Tensor:
        return item._array
    return item._without_history() if isinstance(item, Tensor) and item._keys & AUTOGRAD else item


def last_uses(graph: Graph) -> list[list[Value]]:
    """For each node the values that nothing reads after it."""
    kept = {o for o in graph.outputs if isinstance(o, Value)}
    found: list[list[Value]] = []
    for node in reversed(graph.nodes):
        dying = {value for value in (*node.inputs, *node.outputs) if value not in kept}
        kept |= dying
        found.append(list(dying))
    return found[::-1]


def interpret(graph: Graph, given: list[Any]) -> list[Any]:
    """Run a graph node by node on the eager kernels.

    Args:
        graph: the graph.
        given: an array (a tensor where it lies on another device) or a Python scalar for each of ``graph.parameters``.

    Returns:
        one array or tensor per output; outputs that are no values come as they are.
    """
    env: dict[Value, Any] = {v: as_argument(v, a) for v, a in zip(graph.parameters, given, strict=True)}
    for node, dying in zip(graph.nodes, last_uses(graph), strict=True):
        args = map_values(env.__getitem__, node.args)
        kwargs = {name: map_values(env.__getitem__, arg) for name, arg in node.kwargs.items()}
        env.update(zip(node.outputs, call(node, args, kwargs), strict=True))
        for value in dying:
            del env[value]
    return [_result(env[o]) if isinstance(o, Value) else o for o in graph.outputs]


def _result(value: Any) -> Any:
    return payload(value) if isinstance(value, Tensor) else np.asarray(value)
