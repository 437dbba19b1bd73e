"""Sink selects into updates: an array that is updated on a condition is updated with a chosen value instead.

``where(c, a.at[i].set(v), a)`` becomes ``a.at[i].set(where(c, v, a[i]))``, and so for additions and for several updates
one after the other. The update then stays in place, and no other element is read and written.

Source: sinking of selects into stores (``SimplifyCFG`` and ``InstCombine`` in LLVM).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...registry.operator import find_operator
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value
from .rewrite import Replacement, add_node, is_replaced, replace_each

READS = {"td::index_put": "td::index", "td::basic_put": "td::basic_index"}
"""By update: the operator that reads what it writes."""
VALUES = {"td::index_put": 2, "td::basic_put": 1}
"""By update: the position of the value among its arguments; the others but the array are those of the read."""
MAX_UPDATES = 8
"""Updates of one array."""
MIN_RATIO = 4
"""The array is at least this many times as large as what an update writes."""


def sink_updates(graph: Graph) -> Graph:
    """Sink the selects of arrays into the updates that make one of their operands."""
    return replace_each(graph, _sink)


def _sink(node: Node, out: Graph) -> Replacement:
    if node.op.name != "td::where" or node.kwargs or is_replaced(node.op):
        return None
    condition, *arms = node.args
    if not isinstance(condition, Value) or condition.shape != ():
        return None
    for at, updated in enumerate(arms):
        kept = arms[1 - at]
        if not isinstance(kept, Value) or kept.weak is not None or kept.spec != node.outputs[0].spec:
            continue
        updates = _find_updates(updated, kept)
        if updates:
            return (_write(node, out, updates, at == 0),)
    return None


def _find_updates(updated: object, kept: Value) -> list[Node]:
    """Find the updates between two values, the first one first; none if there are other operators between them."""
    updates: list[Node] = []
    while updated is not kept:
        node = updated.node if isinstance(updated, Value) else None
        if (
            node is None
            or node.op.name not in READS
            or len(updates) == MAX_UPDATES
            or not _is_small(node, kept)
        ):
            return []
        updates.append(node)
        updated = node.args[0]
    return updates[::-1]


def _is_small(update: Node, array: Value) -> bool:
    """Whether an update writes few elements of an array, numbers or elements of its dtype."""
    shape, value = _find_shape(update), update.args[VALUES[update.op.name]]
    if shape is None or not all(type(size) is int for size in (*shape, *array.shape)):
        return False
    if isinstance(value, Value) and (value.weak is not None or value.spec.dtype is not array.spec.dtype):
        return False
    if update.kwargs["accumulate"] and array.spec.dtype.kind not in "fiu":
        return False
    replaced = any(is_replaced(find_operator(name)) for name in (update.op.name, READS[update.op.name]))
    return not replaced and (not shape or MIN_RATIO * np.prod(shape) <= array.spec.size)


def _find_shape(update: Node) -> tuple[Any, ...] | None:
    """The shape of what an update writes; None if it adds axes."""
    shape = update.outputs[0].shape
    if update.op.name == "td::basic_put":
        plan = update.args[2]
        return None if None in plan else tuple(entry[1] for entry in plan if type(entry) is tuple)
    _, indices, _, axis = update.args
    if any(not isinstance(i, int) and i.spec.dtype.kind not in "iu" for i in indices):
        return None
    common = np.broadcast_shapes(*(i.shape for i in indices if isinstance(i, Value)))
    return (*shape[:axis], *common, *shape[axis + len(indices) :])


def _write(node: Node, out: Graph, updates: list[Node], is_first: bool) -> Value:
    """Write updates with chosen values; returns the array after them."""
    array: Value = updates[0].args[0]
    for update in updates:
        at, chosen = VALUES[update.op.name], _choose(node, out, update, array, is_first)
        args = (array, *update.args[1:at], chosen, *update.args[at + 1 :])
        array = add_node(out.nodes, update.op.name, args, array.spec, update.source, **update.kwargs)
    return array


def _choose(node: Node, out: Graph, update: Node, array: Value, is_first: bool) -> Value:
    """The value that an update writes into an array, or else what leaves the array as it is."""
    at = VALUES[update.op.name]
    value, position = update.args[at], (*update.args[1:at], *update.args[at + 1 :])
    if not isinstance(value, Value):
        value = _fill(out, value, array.spec, update.source)
    if update.kwargs["accumulate"]:
        spec = value.spec
        kept = _fill(out, -0.0 if spec.dtype.kind == "f" else 0, spec, update.source)
    else:
        spec = array.spec._replace(shape=_find_shape(update) or ())
        kept = add_node(out.nodes, READS[update.op.name], (array, *position), spec, update.source)
    arms = (value, kept) if is_first else (kept, value)
    return add_node(out.nodes, "td::where", (node.args[0], *arms), spec, update.source)


def _fill(out: Graph, number: object, like: TensorSpec, source: str) -> Value:
    """A tensor without axes that holds a number."""
    spec = like._replace(shape=())
    return add_node(out.nodes, "td::full", ((), number), spec, source, dtype=spec.dtype, device=spec.device)
