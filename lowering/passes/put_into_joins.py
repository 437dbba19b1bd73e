"""Write an update of a concatenation as the concatenation of what is left of its parts and of the new value.

``roll(x, -1).at[-1].set(v)`` is a step of a shift register: a loop then stores each element once, and need not load a
vector of which it has just stored one element.
"""

from __future__ import annotations

from itertools import accumulate

from ...registry.dtypes import DType
from ...registry.operator import find_operator
from ...tracer.graph import Graph, Node, Value
from .rewrite import Replacement, add_node, add_slice, is_replaced, new_node, replace_each

_OPERATORS = ("td::concat", "td::basic_put", "td::basic_index", "td::reshape", "td::full")


def put_into_joins(graph: Graph) -> Graph:
    """Rewrite the updates of concatenations that replace at least one part as a whole."""
    if any(is_replaced(find_operator(name)) for name in _OPERATORS):
        return graph
    return replace_each(graph, _visit)


def _visit(node: Node, out: Graph) -> Replacement:
    target = node.args[0] if node.op.name == "td::basic_put" else None
    join = target.node if isinstance(target, Value) else None
    if join is None or join.op.name != "td::concat" or node.kwargs.get("accumulate"):
        return None
    parts, axis = join.args
    if axis is None or not all(_is_joined(part, join.outputs[0].spec.dtype) for part in parts):
        return None
    axis %= len(join.outputs[0].shape)
    region = _find_region(node, axis)
    if region is None:
        return None
    start, stop = region
    ends = list(accumulate(part.shape[axis] for part in parts))
    before = [(p, 0, min(p.shape[axis], start - end + p.shape[axis])) for p, end in zip(parts, ends)]
    after = [(p, max(0, stop - end + p.shape[axis]), p.shape[axis]) for p, end in zip(parts, ends)]
    before, after = ([one for one in side if one[1] < one[2]] for side in (before, after))
    if len(before) + 1 + len(after) > len(parts):
        return None  # each of many updates would make it longer
    new = _make_part(node, out.nodes, axis, stop - start)
    if new is None:
        return None
    slices = [[_slice(out.nodes, node.source, axis, *one) for one in side] for side in (before, after)]
    values = (*slices[0], new, *slices[1])
    out.nodes.append(new_node(join.op, (values, axis), {}, node.outputs[0].spec, node.source))
    return out.nodes[-1].outputs


def _is_joined(part: object, dtype: DType) -> bool:
    """Whether a part is a tensor of known sizes, of the dtype of the whole."""
    return (
        isinstance(part, Value)
        and part.weak is None
        and part.spec.dtype is dtype
        and all(type(size) is int for size in part.shape)
    )


def _find_region(node: Node, axis: int) -> tuple[int, int] | None:
    """The positions along an axis that an update replaces; None unless it replaces all elements there."""
    plan, shape = node.args[2], node.args[0].shape
    if len(plan) != len(shape):
        return None
    for at, (entry, size) in enumerate(zip(plan, shape)):
        if at != axis and entry != (0, size, 1):
            return None
    entry = plan[axis]
    if type(entry) is int:
        return entry, entry + 1
    if type(entry) is tuple and entry[2] == 1 and all(type(n) is int for n in entry):
        return entry[0], entry[0] + entry[1]
    return None


def _make_part(node: Node, nodes: list[Node], axis: int, length: int) -> Value | None:
    """The value of an update as a part of a concatenation; None if it is to be cast or repeated."""
    value, whole = node.args[1], node.outputs[0].spec
    spec = whole._replace(shape=(*whole.shape[:axis], length, *whole.shape[axis + 1 :]))
    if not isinstance(value, Value) or value.weak is not None or value.spec.dtype is not whole.dtype:
        return None
    selected = (
        spec.shape if type(node.args[2][axis]) is tuple else (*spec.shape[:axis], *spec.shape[axis + 1 :])
    )
    if tuple(value.shape) != selected:
        return None
    return (
        value
        if selected == spec.shape
        else add_node(nodes, "td::reshape", (value, spec.shape), spec, node.source)
    )


def _slice(nodes: list[Node], source: str, axis: int, part: Value, first: int, last: int) -> Value:
    """The elements of a part from a position to another one."""
    if (first, last) == (0, part.shape[axis]):
        return part
    return add_slice(nodes, part, axis, first, source, last - first)
