"""Which Python integers a graph can take: an integer that meets an integer array must fit its dtype."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..errors import ScalarOverflowError, ValueArgumentError
from ..registry.dtypes import INTEGERS
from ..tracer.graph import Graph, Node, Value, bodies_of, body_inputs, map_values
from ..tracer.infer import infer, stand_in

_TOO_LARGE = 2**70
_LIMITS = [(int(np.iinfo(d.np).min), int(np.iinfo(d.np).max), d.name) for d in INTEGERS]


@dataclass(frozen=True, slots=True)
class Range:
    """A bound on one parameter of a graph.

    Attributes:
        index: which of ``graph.parameters``.
        low, high: the smallest and the largest integer that fits.
        operator, source: what would refuse another, and where.
        rule: the operator's own rule as a function of the integer; it raises what the operator says.
    """

    index: int
    low: int
    high: int
    operator: str
    source: str
    rule: Callable[[int], Any] = field(compare=False, repr=False)

    def check(self, parameters: Sequence[Any]) -> None:
        """Raise ScalarOverflowError if the integer does not fit, or what the operator raises for another reason."""
        value = parameters[self.index]
        if not self.low <= value <= self.high:
            with contextlib.suppress(OverflowError):
                self.rule(value)
            at = f" at {self.source}" if self.source else ""
            raise ScalarOverflowError(
                f"{self.operator}: Python integer {value} does not fit the array's dtype "
                f"({self.low} to {self.high}){at}"
            )


def ranges_of(graph: Graph) -> tuple[Range, ...]:
    """The bounds on the integers among a graph's parameters, found by asking each operator's own rule."""
    integers = {value: index for index, value in enumerate(graph.parameters) if value.weak is int}
    return tuple(dict.fromkeys(_ranges(graph, integers))) if integers else ()


def _ranges(graph: Graph, integers: dict[Value, int]) -> list[Range]:
    """The bounds on some integers in a graph, and in the bodies that they are passed on to."""
    found = []
    for node in graph.nodes:
        for body in bodies_of(node):
            inner = {
                value: integers[by] for value, by in body_inputs(node) if type(by) is Value and by in integers
            }
            found += _ranges(body, inner)
        for value in dict.fromkeys(v for v in node.inputs if v in integers):
            limits = _limits(node, value)
            if limits is not None:
                rule = partial(_ask, node, value)
                found.append(Range(integers[value], *limits, node.op.schema.name, node.source, rule))
    return found


def _limits(node: Node, value: Value) -> tuple[int, int] | None:
    if _accepts(node, value, _TOO_LARGE):
        return None
    lows = [low for low, _, _ in _LIMITS if _accepts(node, value, low)]
    highs = [high for _, high, _ in _LIMITS if _accepts(node, value, high)]
    return (min(lows), max(highs)) if lows and highs else None


def _ask(node: Node, value: Value, number: int) -> Any:
    """What the operator's rule says to this number for a weak Value."""

    def fill(other: Value) -> Any:
        return number if other is value else stand_in(other)

    return infer(
        node.op, map_values(fill, node.args), {k: map_values(fill, v) for k, v in node.kwargs.items()}
    )


def _accepts(node: Node, value: Value, number: int) -> bool:
    """Whether the operator's rule takes this number for a weak Value."""
    try:
        _ask(node, value, number)
    except (OverflowError, ValueArgumentError):  # too large, or a negative power of integers
        return False
    return True
