"""Forward mode through loops and branches: the tangents are carried along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..eager.forward import ForwardMeta, Source, at_outer, attach, forward, tangent_at
from ..eager.levels import Level, open_level, run_below, unwrap, unwrap_deep, wrap_level
from ..eager.node import zeros_of
from ..registry.operator import Operator
from ..tracer.graph import Graph, Value
from .reverse import is_inexact
from .subgraph import retraced, run_graph


def pushed_forward(
    graph: Graph, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The results of a graph and their tangents: zeros where there is none, None for what is not differentiable."""
    with open_level("the tangent of a loop's body", "", forward) as level:
        given = [
            x if t is None else wrap_level(level, x, ForwardMeta(t))
            for x, t in zip(primals, tangents, strict=True)
        ]
        found = run_graph(graph, given)
    results, moved = [], []
    for item in found:
        tangent = tangent_at(level, item)
        results.append(unwrap(level, item))
        if is_inexact(item):
            moved.append(zeros_of(item.spec) if tangent is None else tangent)
        else:
            moved.append(None)
    return results, moved


class Widened:
    """A body that carries tangents along.

    Args:
        graph: the body.
        groups: how many of its inputs belong together; behind each group come the tangents of those that have one.
        has: for each input whether it has a tangent.
        results: how many of the outputs belong together, likewise.
    """

    def __init__(self, graph: Graph, groups: Sequence[int], has: Sequence[bool], results: Sequence[int]):
        self.graph, self.groups, self.has, self.results = graph, groups, has, results

    def mixed(self, values: Sequence[Any], tangents: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Groups of values, each with its tangents behind it."""
        found: list[Any] = []
        at = 0
        for size in sizes:
            found += values[at : at + size]
            found += [t for t in tangents[at : at + size] if t is not None]
            at += size
        return found

    def make(self) -> Graph:
        """The graph."""
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
            found, moved = pushed_forward(self.graph, primals, tangents)
            return self.mixed(found, moved, self.results)

        return retraced("the tangent of a loop", self.mixed(values, like, self.groups), run).graph


def _unmixed(
    found: Sequence[Any], outputs: Sequence[Value], sizes: Sequence[int]
) -> tuple[list[Any], list[Any]]:
    """Results and their tangents out of groups of both."""
    rest, results, tangents = iter(found), [], []
    at = 0
    for size in sizes:
        results += [next(rest) for _ in range(size)]
        tangents += [next(rest) if is_inexact(o) else None for o in outputs[at : at + size]]
        at += size
    return results, tangents


def _or_zeros(x: Any, tangent: Any) -> Any:
    return zeros_of(x.spec) if tangent is None and is_inexact(x) else tangent


def run_forward(op: Operator, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a loop or a branch below a level of ``jvp``, with the tangents of its results."""
    raw = tuple([unwrap_deep(level, arg) for arg in args])
    forms = {"scan": _scan, "while_loop": _while, "switch": _switch}
    found, tangents = at_outer(level, lambda: forms[op.schema.name](op, level, args, raw, kwargs))
    return attach(level, Source(op), tuple(raw), tuple(found), tuple(tangents))


def _tangents(level: Level, values: Sequence[Any]) -> list[Any]:
    return [tangent_at(level, x) for x in values]


def _scan(op: Operator, level: Level, args: Any, raw: Any, kwargs: Any) -> Any:
    body, carry, xs, consts = raw
    by_carry = [_or_zeros(x, t) for x, t in zip(carry, _tangents(level, args[1]))]
    by_xs, by_consts = _tangents(level, args[2]), _tangents(level, args[3])
    sizes = (len(carry), len(xs), len(consts))
    has = [t is not None for t in (*by_carry, *by_xs, *by_consts)]
    results = (len(carry), len(body.outputs) - len(carry))
    graph = Widened(body, sizes, has, results).make()
    groups = zip((carry, xs, consts), (by_carry, by_xs, by_consts))
    given = [(*group, *(t for t in tangents if t is not None)) for group, tangents in groups]
    found = run_below(op, level, (graph, *given), kwargs)
    return _unmixed(found, body.outputs, results)


def _while(op: Operator, level: Level, args: Any, raw: Any, kwargs: Any) -> Any:
    condition, body, carry, consts = raw
    by_carry = [_or_zeros(x, t) for x, t in zip(carry, _tangents(level, args[2]))]
    by_consts = _tangents(level, args[3])
    sizes = (len(carry), len(consts))
    has = [t is not None for t in (*by_carry, *by_consts)]
    widened = Widened(body, sizes, has, (len(carry),))
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
    found = run_below(op, level, (asks, graph, *given), kwargs)
    return _unmixed(found, body.outputs, (len(carry),))


def _switch(op: Operator, level: Level, args: Any, raw: Any, kwargs: Any) -> Any:
    branches, index, operands = raw
    tangents = _tangents(level, args[2])
    has = [t is not None for t in tangents]
    results = (len(branches[0].outputs),)
    graphs = tuple([Widened(branch, (len(operands),), has, results).make() for branch in branches])
    given = (*operands, *(t for t in tangents if t is not None))
    found = run_below(op, level, (graphs, index, given), kwargs)
    return _unmixed(found, branches[0].outputs, results)
