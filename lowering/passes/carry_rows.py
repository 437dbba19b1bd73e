"""Carry one row in place of an array: ``acc.at[i].add(d)`` in a loop over ``j`` changes row ``i`` alone.

If the steps of a scan read and write a carry at one position that is the same in all of them, the scan carries the
element or the row at that position, in registers if it is short, and the array is written once after the loop.

Source: scalar replacement of array references (Carr and Kennedy, 1994).
"""

from __future__ import annotations

from ...named_tuple import NamedTuple
from ...registry.operator import find_operator
from ...registry.values import TensorSpec
from ...tracer.graph import Graph, Node, Value
from .loop_passes import Rewritten, Scan, replace_scans, scan_node, scan_of, substitute
from .rewrite import add_node, empty_like, is_replaced

_USED = ("td::index", "td::index_put", "td::add.Tensor")


def carry_rows(graph: Graph) -> Graph:
    """Carry the rows of scans in place of the arrays that they belong to."""
    return replace_scans(graph, _replace_carries)


class Row(NamedTuple):
    """A carry of which a scan uses one row.

    Attributes:
        carry: the number of the carry.
        write: the node that writes the row.
        reads: the nodes that read it.
        spec: the shape and dtype of the row.
    """

    carry: int
    write: Node
    reads: list[Node]
    spec: TensorSpec

    @property
    def indices(self) -> tuple[Value, ...]:
        """The position of the row, as inputs of the body."""
        return tuple(self.write.args[1])


def _replace_carries(node: Node) -> Rewritten | None:
    scan = scan_of(node)
    if (
        not isinstance(scan.length, int)
        or scan.length < 2
        or any(is_replaced(find_operator(n)) for n in _USED)
    ):
        return None
    rows = [row for number in range(len(scan.carry)) if (row := _find_row(scan, number)) is not None]
    return _rewrite(node, scan, rows) if rows else None


def _find_row(scan: Scan, number: int) -> Row | None:
    """Find the row of a carry that all steps read and write; None if they use others."""
    body, carry = scan.body, scan.body.inputs[number]
    write = body.outputs[number].node
    uses = [inner for inner in body.nodes if carry in inner.inputs]
    if write is None or write not in uses or write.op.name != "td::index_put" or write.args[0] is not carry:
        return None
    result = write.outputs[0]
    reads = [use for use in uses if use is not write]
    others = [value for inner in body.nodes for value in inner.inputs] + list(body.outputs)
    if others.count(result) != 1 or carry in body.outputs or write.inputs.count(carry) != 1:
        return None
    _, indices, value, axis = write.args
    consts = body.inputs[len(scan.carry) + len(scan.xs) :]
    if axis != 0 or not all(isinstance(i, Value) and not i.shape and i in consts for i in indices):
        return None
    is_read = all(read.op.name == "td::index" and read.args == (carry, indices, axis) for read in reads)
    spec = carry.spec._replace(shape=carry.shape[len(indices) :])
    is_row = isinstance(value, Value) and value.weak is None and value.spec == spec
    return Row(number, write, reads, spec) if is_read and is_row else None


def _rewrite(node: Node, scan: Scan, rows: list[Row]) -> Rewritten:
    """The scan that carries rows, with the nodes that read them before it and write them after it."""
    body, env = empty_like(scan.body), dict[Value, Value]()
    written = {row.write: row for row in rows}
    inputs, carry, before = list(scan.body.inputs), list(scan.carry), list[Node]()
    outside = dict(zip(scan.body.inputs, scan.given, strict=True))
    for row in rows:
        position = tuple(outside[value] for value in row.indices)
        args = (carry[row.carry], position, 0)
        inputs[row.carry] = Value(row.spec)
        carry[row.carry] = add_node(before, "td::index", args, row.spec, node.source)
        env.update((read.outputs[0], inputs[row.carry]) for read in row.reads)
    for inner in scan.body.nodes:
        if inner in written:
            row = written[inner]
            value = inner.args[2]
            if inner.kwargs["accumulate"]:
                operands = (inputs[row.carry], value)
                value = add_node(body.nodes, "td::add.Tensor", operands, row.spec, inner.source)
            env[inner.outputs[0]] = value
        elif not any(inner in row.reads for row in rows):
            body.nodes.append(inner)
    body.inputs, body.outputs = inputs, list(scan.body.outputs)
    made = scan_node(scan._replace(body=substitute(body, env), carry=tuple(carry)), node.source)
    replaced, after = dict(zip(node.outputs, made.outputs, strict=True)), list[Node]()
    for row in rows:
        position = tuple(outside[value] for value in row.indices)
        given = (scan.carry[row.carry], position, made.outputs[row.carry], 0)
        whole = node.outputs[row.carry]
        replaced[whole] = add_node(after, "td::index_put", given, whole.spec, node.source, accumulate=False)
    return [*before, made, *after], replaced
