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
from .rewrite import Replacement, is_replaced, new_node, replace_each

READS = {"td::index_put": "td::index", "td::basic_put": "td::basic_index"}
"""By update: the operator that reads what it writes."""
MAX_UPDATES, MAX_SHARE = (
    8,
    4,
)  # updates of one array; the array is this many times as large as what one writes


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
    shape, value = _find_shape(update), update.args[1 if update.op.name == "td::basic_put" else 2]
    if shape is None or not all(type(size) is int for size in (*shape, *array.shape)):
        return False
    if isinstance(value, Value) and (value.weak is not None or value.spec.dtype is not array.spec.dtype):
        return False
    if update.kwargs["accumulate"] and array.spec.dtype.kind not in "fiu":
        return False
    replaced = any(is_replaced(find_operator(name)) for name in (update.op.name, READS[update.op.name]))
    return not replaced and (not shape or MAX_SHARE * np.prod(shape) <= array.spec.size)


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
        chosen = _choose(node, out, update, array, is_first)
        is_basic = update.op.name == "td::basic_put"
        rest = (chosen, update.args[2]) if is_basic else (update.args[1], chosen, update.args[3])
        array = _add(out, update.op.name, (array, *rest), array.spec, update, update.kwargs)
    return array


def _choose(node: Node, out: Graph, update: Node, array: Value, is_first: bool) -> Value:
    """The value that an update writes into an array, or else what leaves the array as it is."""
    is_basic, shape = update.op.name == "td::basic_put", _find_shape(update) or ()
    value, other = update.args[1 if is_basic else 2], -0.0 if array.spec.dtype.kind == "f" else 0
    if not isinstance(value, Value):
        value = _fill(out, value, array.spec, update)
    spec = value.spec
    if not update.kwargs["accumulate"]:
        where = (update.args[2],) if is_basic else (update.args[1], update.args[3])
        spec = array.spec._replace(shape=shape)
        kept = _add(out, READS[update.op.name], (array, *where), spec, update, {})
    else:
        kept = _fill(out, other, array.spec, update)
    arms = (value, kept) if is_first else (kept, value)
    return _add(out, "td::where", (node.args[0], *arms), spec, update, {})


def _fill(out: Graph, number: object, spec: TensorSpec, like: Node) -> Value:
    options: dict[str, object] = {"dtype": spec.dtype, "device": spec.device}
    return _add(out, "td::full", ((), number), spec._replace(shape=()), like, options)


def _add(
    out: Graph, name: str, args: tuple[Any, ...], spec: TensorSpec, like: Node, kwargs: dict[str, Any]
) -> Value:
    made = new_node(find_operator(name), args, kwargs, spec, like.source)
    out.nodes.append(made)
    return made.outputs[0]
