"""Rows that the steps of a scan only add into a carry are added after the loop, all at once.

That is the gradient of a table from which each step reads some rows: in the loop each step would add a whole table of
zeros but for these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tracer.graph import Graph, Node, Value
from .loop_passes import Added, Changed, Extra, Writer, replace_scans, sums, taken_apart, without_carries
from .resolve import uniform_constant


class Scatter(NamedTuple):
    """A carry into which rows are added: which, where the rows go, and the rows."""

    carry: int
    places: Value
    rows: Value


def hoist_scatters(graph: Graph) -> Graph:
    """Take rows that a scan only adds into a carry out of it."""
    return replace_scans(graph, _without_scatters)


def _scatter(added: Added) -> Scatter | None:
    """The rows that are added, if that is all that is."""
    node = added.maker(added.value)
    if node is None or node.op.name != "td::index_put" or not node.kwargs["accumulate"]:
        return None
    zeros, indices, rows, axis = node.args
    is_zero = zeros.node is not None and uniform_constant(zeros.node) == 0
    if not is_zero or len(indices) != 1 or axis != 0 or not _are_arrays(indices[0], rows):
        return None
    is_whole = rows.shape == (*indices[0].shape, *zeros.shape[1:])
    return Scatter(added.carry, indices[0], rows) if is_whole else None


def _are_arrays(*values: Any) -> bool:
    return all(isinstance(value, Value) and value.weak is None for value in values)


def _without_scatters(node: Node) -> Changed | None:
    scan = taken_apart(node)
    scatters = [found for found in map(_scatter, sums(scan)) if found is not None]
    if not scatters:
        return None
    extra = Extra(scan)
    sources = [(extra.place(scatter.places), extra.place(scatter.rows)) for scatter in scatters]
    found, stacked, replaced = without_carries(node, {s.carry for s in scatters}, extra)
    write = Writer([found], node.source)
    for scatter, pair in zip(scatters, sources):
        total, init = node.outputs[scatter.carry], scan.carry[scatter.carry]
        places, rows = (x if isinstance(x, Value) else stacked[x] for x in pair)
        args = (init, (places,), rows, 0)
        replaced[total] = write.call("td::index_put", args, total.shape, total, accumulate=True)
    return write.nodes, replaced
