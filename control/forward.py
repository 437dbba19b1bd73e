"""Forward-mode rules of loops and branches: their bodies also carry the tangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..eager.autograd.forward_mode import (
    ForwardMeta,
    Source,
    attach_tangents,
    forward,
    run_at_outer,
    tangent_at,
)
from ..eager.autograd.node import zeros_of
from ..eager.layers.levels import Level, open_level, run_below, unwrap, unwrap_deep, wrap_level
from ..registry.operator import Operator
from ..tracer.graph import Graph, Value
from .reverse import is_inexact
from .subgraph import retrace, run_graph


def push_forward(
    graph: Graph, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Run a graph on dual values; returns the results and their tangents (None for non-differentiable results)."""
    with open_level("the tangent of a loop's body", "", forward) as level:
        given = [
            x if t is None else wrap_level(level, x, ForwardMeta(t))
            for x, t in zip(primals, tangents, strict=True)
        ]
        result = run_graph(graph, given)
    results: list[Any] = []
    moved: list[Any] = []
    for item in result:
        tangent = tangent_at(level, item)
        results.append(unwrap(level, item))
        if is_inexact(item):
            moved.append(zeros_of(item.spec) if tangent is None else tangent)
        else:
            moved.append(None)
    return results, moved


class TangentBody:
    """A body that also computes tangents.

    Args:
        graph: the body.
        groups: the sizes of the groups of inputs; each group is followed by the tangents of its inputs.
        has: for each input, whether it has a tangent.
        results: the sizes of the groups of outputs, likewise.
    """

    def __init__(self, graph: Graph, groups: Sequence[int], has: Sequence[bool], results: Sequence[int]):
        self.graph, self.groups, self.has, self.results = graph, groups, has, results

    def mixed(self, values: Sequence[Any], tangents: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Interleave groups of values with their tangents."""
        result: list[Any] = []
        at = 0
        for size in sizes:
            result += values[at : at + size]
            result += [t for t in tangents[at : at + size] if t is not None]
            at += size
        return result

    def make(self) -> Graph:
        """Trace the graph of the body."""
        values = self.graph.inputs
        like = [value if has else None for value, has in zip(values, self.has)]

        def run(*inputs: Any) -> list[Any]:
            given = iter(inputs)
            primals: list[Any] = []
            tangents: list[Any] = []
            for size in self.groups:
                at = len(primals)
                primals += [next(given) for _ in range(size)]
                tangents += [next(given) if has else None for has in self.has[at : at + size]]
            current, moved = push_forward(self.graph, primals, tangents)
            return self.mixed(current, moved, self.results)

        return retrace("the tangent of a loop", self.mixed(values, like, self.groups), run).graph


def _deinterleave(
    found: Sequence[Any], outputs: Sequence[Value], sizes: Sequence[int]
) -> tuple[list[Any], list[Any]]:
    """Separate results and tangents that are interleaved by groups."""
    rest, results, tangents = iter(found), [], []
    at = 0
    for size in sizes:
        results += [next(rest) for _ in range(size)]
        tangents += [next(rest) if is_inexact(o) else None for o in outputs[at : at + size]]
        at += size
    return results, tangents


def _tangent_or_zeros(x: Any, tangent: Any) -> Any:
    return zeros_of(x.spec) if tangent is None and is_inexact(x) else tangent


def run_forward(op: Operator, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a loop or a branch with tangents, below a level of ``jvp``."""
    raw = tuple([unwrap_deep(level, arg) for arg in args])
    forms = {"scan": _scan, "while_loop": _while, "switch": _switch}
    value, tangents = run_at_outer(level, lambda: forms[op.schema.name](op, level, args, raw, kwargs))
    return attach_tangents(level, Source(op), tuple(raw), tuple(value), tuple(tangents))


def _read_tangents(level: Level, values: Sequence[Any]) -> list[Any]:
    return [tangent_at(level, x) for x in values]


def _scan(op: Operator, level: Level, args: Any, raw: Any, kwargs: Any) -> Any:
    body, carry, xs, consts = raw
    by_carry = [_tangent_or_zeros(x, t) for x, t in zip(carry, _read_tangents(level, args[1]))]
    by_xs, by_consts = _read_tangents(level, args[2]), _read_tangents(level, args[3])
    sizes = (len(carry), len(xs), len(consts))
    has = [t is not None for t in (*by_carry, *by_xs, *by_consts)]
    results = (len(carry), len(body.outputs) - len(carry))
    graph = TangentBody(body, sizes, has, results).make()
    groups = zip((carry, xs, consts), (by_carry, by_xs, by_consts))
    given = [(*group, *(t for t in tangents if t is not None)) for group, tangents in groups]
    result = run_below(op, level, (graph, *given), kwargs)
    return _deinterleave(result, body.outputs, results)


def _while(op: Operator, level: Level, args: Any, raw: Any, kwargs: Any) -> Any:
    condition, body, carry, consts = raw
    by_carry = [_tangent_or_zeros(x, t) for x, t in zip(carry, _read_tangents(level, args[2]))]
    by_consts = _read_tangents(level, args[3])
    sizes = (len(carry), len(consts))
    has = [t is not None for t in (*by_carry, *by_consts)]
    widened = TangentBody(body, sizes, has, (len(carry),))
    graph = widened.make()
    asks = Graph()
    asks.nodes, asks.outputs = condition.nodes, condition.outputs
    extra = iter(graph.inputs)
    own = iter(condition.inputs)
    for size, at in zip(sizes, (0, len(carry))):
        for _ in range(size):
            next(extra)
            asks.inputs.append(next(own))
        for there in has[at : at + size]:
            if there:
                value = next(extra)
                asks.add_input(value.spec, value.weak)
    given = [
        (*group, *(t for t in tangents if t is not None))
        for group, tangents in zip((carry, consts), (by_carry, by_consts))
    ]
    result = run_below(op, level, (asks, graph, *given), kwargs)
    return _deinterleave(result, body.outputs, (len(carry),))


def _switch(op: Operator, level: Level, args: Any, raw: Any, kwargs: Any) -> Any:
    branches, index, operands = raw
    tangents = _read_tangents(level, args[2])
    has = [t is not None for t in tangents]
    results = (len(branches[0].outputs),)
    graphs = tuple([TangentBody(branch, (len(operands),), has, results).make() for branch in branches])
    given = (*operands, *(t for t in tangents if t is not None))
    result = run_below(op, level, (graphs, index, given), kwargs)
    return _deinterleave(result, branches[0].outputs, results)
