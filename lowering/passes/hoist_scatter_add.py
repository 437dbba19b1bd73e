"""Hoist scatter-adds out of scans: rows that steps only add into a carry are added after the loop, all at once.

This is the gradient of a table from which each step reads some rows; inside the loop, each step would add a whole table
that is zero except for these rows.
"""

from __future__ import annotations

from ...named_tuple import NamedTuple
from ...tracer.graph import Graph, Node, Value
from ..kernel_selection import uniform_constant
from .loop_passes import (
    Accumulation,
    Rewritten,
    StackedValues,
    Writer,
    find_accumulations,
    remove_carries,
    replace_scans,
    scan_of,
)


class Scatter(NamedTuple):
    """A carry into which rows are added: its index, the row indices, and the rows."""

    carry: int
    indices: Value
    rows: Value


def hoist_scatters(graph: Graph) -> Graph:
    """Hoist the scatter-adds of scans whose carries only accumulate them."""
    return replace_scans(graph, _hoist_from_scan)


def _match_scatter(added: Accumulation) -> Scatter | None:
    """Match an accumulated value that is a scatter-add into zeros; else None."""
    node = added.single_use_producer(added.value)
    if node is None or node.op.name != "td::index_put" or not node.kwargs["accumulate"]:
        return None
    zeros, indices, rows, axis = node.args
    is_zero = zeros.node is not None and uniform_constant(zeros.node) == 0
    if not is_zero or len(indices) != 1 or axis != 0 or not _are_arrays(indices[0], rows):
        return None
    is_whole = rows.shape == (*indices[0].shape, *zeros.shape[1:])
    return Scatter(added.carry, indices[0], rows) if is_whole else None


def _are_arrays(*values: object) -> bool:
    return all(isinstance(value, Value) and value.weak is None for value in values)


def _hoist_from_scan(node: Node) -> Rewritten | None:
    scan = scan_of(node)
    scatters = [value for value in map(_match_scatter, find_accumulations(scan)) if value is not None]
    if not scatters:
        return None
    extra = StackedValues(scan)
    sources = [(extra.stack(scatter.indices), extra.stack(scatter.rows)) for scatter in scatters]
    value, stacked, replaced = remove_carries(node, {s.carry for s in scatters}, extra)
    write = Writer([value], node.source)
    for scatter, pair in zip(scatters, sources):
        total, init = node.outputs[scatter.carry], scan.carry[scatter.carry]
        indices, rows = (x if isinstance(x, Value) else stacked[x] for x in pair)
        args = (init, (indices,), rows, 0)
        replaced[total] = write.call("td::index_put", args, total.shape, total, accumulate=True)
    return write.nodes, replaced
