"""The interpreter: runs nodes with a backend's eager kernels; constant folding and callbacks use it too."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.tensor import Tensor, wrap
from ..errors import LoweringError
from ..locks import ThreadLocal
from ..registry.dispatch.keys import AUTOGRAD, BACKEND_OF_DEVICE, KEY_COUNT
from ..registry.dispatch.observers import Note
from ..registry.dispatch.state import current_keys, set_keys
from ..registry.dispatch.unwinding import restore_guards_on_error
from ..registry.schemas.binding import WEAK
from ..registry.values import TensorSpec
from ..tracer.graph import Graph, Node, Value, map_values
from .passes.rewrite import has_effects

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs

LAYERS = (1 << KEY_COUNT) - 1 & ~WEAK  # a kernel may compute with weak scalars

CHECK_OP = "debug::check"  # its only effect is to raise, so running it again is harmless


class _Effects(ThreadLocal):
    """Per thread: results of the callbacks with effects that have run, if they are being collected; else None."""

    results: list[tuple[Any, ...]] | None = None


effects = _Effects()


def is_control(node: Node) -> bool:
    """Whether a node is a loop or a branch."""
    return getattr(node.op.decl, "kind", "") == "control"


def call_kernel(node: Node, args: Args, kwargs: Kwargs) -> tuple[Any, ...]:
    """Run a node's operator on tensors and scalars with its backend's kernel, below all dispatch layers.

    Raises:
        LoweringError: the results do not match the operator's shape rule.
    """
    backend = 1 << BACKEND_OF_DEVICE[_device_of(node).partition(":")[0]]
    before = current_keys()
    try:
        used = backend | 1 << BACKEND_OF_DEVICE["cpu"] if is_control(node) else backend
        set_keys(0, LAYERS & ~used)  # a loop on another device may carry numbers, which are on the CPU
        result = node.op.dispatch(backend, args, kwargs)
    finally:
        set_keys(*before)
    results = tuple(result) if isinstance(result, (tuple, list)) else () if result is None else (result,)
    check_results(node, results)
    if (
        effects.results is not None
        and not is_control(node)
        and node.op.name != CHECK_OP
        and has_effects(node)
    ):
        effects.results.append(results)
    return results


def _device_of(node: Node) -> str:
    """The device that computes a node: that of its results; for transfers and nodes without results, of its inputs.

    A loop or a branch with values on several devices runs on the one that is not the CPU.
    """
    if is_control(node):
        devices = (value.spec.device for value in (*node.outputs, *node.inputs) if value.weak is None)
        return next((device for device in devices if device != "cpu"), "cpu")
    if node.outputs and getattr(node.op.decl, "kind", "") != "transfer":
        return node.outputs[0].spec.device
    return next((value.spec.device for value in node.inputs if value.weak is None), "cpu")


def check_results(node: Node, results: tuple[object, ...]) -> None:
    """Raise LoweringError if results do not have the specs of the node."""
    wanted = [o.spec for o in node.outputs]
    seen = [TensorSpec(r.shape, r.dtype, r.device) if isinstance(r, Tensor) else type(r) for r in results]
    if seen != wanted:
        raise LoweringError(
            f"{node.op.name}: its shape rule promises {', '.join(map(str, wanted))}; "
            f"its kernel returned {', '.join(map(str, seen))} ({node.source or 'unknown line'})"
        )


def to_argument(value: Value, given: object) -> object:
    """Convert an input to a kernel's argument: a Python scalar if the value is weak, else a tensor.

    Compiled code that calls a loop may have computed a number of the host on the device.
    """
    if value.weak is not None:
        return value.weak(given.item() if isinstance(given, (np.ndarray, np.generic)) else given)
    if not isinstance(given, Tensor):
        return wrap(np.asarray(given))
    is_moved = value.spec.device == "cpu" and given.device != "cpu"
    return given.to("cpu") if is_moved else given


def to_payload(item: object) -> object:
    """Convert to what executables take: the ndarray of a CPU tensor, else the tensor without its autograd graph."""
    if type(item) is Tensor:
        return item._array
    return item._without_history() if isinstance(item, Tensor) and item._keys & AUTOGRAD else item


def last_uses(graph: Graph) -> list[list[Value]]:
    """For each node, the values whose last use it is."""
    kept = {o for o in graph.outputs if isinstance(o, Value)}
    items: list[list[Value]] = []
    for node in reversed(graph.nodes):
        dying = {value for value in (*node.inputs, *node.outputs) if value not in kept}
        kept |= dying
        items.append(list(dying))
    return items[::-1]


@restore_guards_on_error
def interpret(graph: Graph, given: list[object], note: Note | None = None) -> list[object]:
    """Run a graph node by node with the eager kernels.

    Args:
        graph: the graph.
        given: for each of ``graph.parameters`` an array (a tensor if not on the CPU) or a Python scalar.
        note: called for each node.

    Returns:
        One array or tensor per output; outputs that are not Values are returned as they are.
    """
    env: dict[Value, Any] = {v: to_argument(v, a) for v, a in zip(graph.parameters, given, strict=True)}
    for node, dying in zip(graph.nodes, last_uses(graph), strict=True):
        args = map_values(env.__getitem__, node.args)
        kwargs = {name: map_values(env.__getitem__, arg) for name, arg in node.kwargs.items()}
        start = time.perf_counter_ns() if note is not None else 0
        env.update(zip(node.outputs, call_kernel(node, args, kwargs), strict=True))
        if note is not None:
            note("kernel", f"interpreted: {node.op.name}", start, time.perf_counter_ns())
        for value in dying:
            del env[value]
    return [_result(env[o]) if isinstance(o, Value) else o for o in graph.outputs]


def _result(value: object) -> object:
    return to_payload(value) if isinstance(value, Tensor) else np.asarray(value)
