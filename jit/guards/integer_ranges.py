"""Guards on integer parameters: an integer that meets an integer array must fit the array's dtype."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import ScalarOverflowError, ValueArgumentError
from ...named_tuple import NamedTuple
from ...registry.dtypes import INTEGERS
from ...tracer.graph import Graph, Node, Value, bodies_of, body_inputs, map_values
from ...tracer.infer import infer, to_example

_TOO_LARGE = 2**70
_LIMITS = [(int(np.iinfo(d.np).min), int(np.iinfo(d.np).max), d.name) for d in INTEGERS]


class Range(NamedTuple):
    """The range of valid integers of one parameter of a graph.

    Attributes:
        parameter: which of ``graph.parameters``.
        low, high: the smallest and the largest integer that fits.
        operator, source: the operator that rejects other integers, and its source line.
        rule: the operator's type rule as a function of the integer; it raises the operator's error.
    """

    parameter: int
    low: int
    high: int
    operator: str
    source: str
    rule: Callable[[int], Any]

    def check(self, parameters: Sequence[Any]) -> None:
        """Raise ScalarOverflowError, or the operator's own error, if the integer does not fit.

        Native twin: backends/cpu/fastpath/entries/rt_guards.py:integer_matches
        """
        value = parameters[self.parameter]
        if not self.low <= value <= self.high:
            with contextlib.suppress(OverflowError):
                self.rule(value)
            at = f" at {self.source}" if self.source else ""
            raise ScalarOverflowError(
                f"{self.operator}: Python integer {value} does not fit the array's dtype "
                f"({self.low} to {self.high}){at}"
            )


def find_ranges(graph: Graph) -> tuple[Range, ...]:
    """Find the ranges of a graph's integer parameters by trying each operator's type rule."""
    integers = {value: index for index, value in enumerate(graph.parameters) if value.weak is int}
    return tuple({bound[:-1]: bound for bound in _find_ranges(graph, integers)}.values()) if integers else ()


def _find_ranges(graph: Graph, integers: dict[Value, int]) -> list[Range]:
    """Find the ranges of some integers in a graph, and in bodies that they are passed to."""
    result = []
    for node in graph.nodes:
        for body in bodies_of(node):
            inner = {
                value: integers[by] for value, by in body_inputs(node) if type(by) is Value and by in integers
            }
            result += _find_ranges(body, inner)
        for value in dict.fromkeys(v for v in node.inputs if v in integers):
            limits = _find_limits(node, value)
            if limits is not None:
                rule = partial(_apply_rule, node, value)
                result.append(Range(integers[value], *limits, node.op.schema.name, node.source, rule))
    return result


def _find_limits(node: Node, value: Value) -> tuple[int, int] | None:
    if _accepts(node, value, _TOO_LARGE):
        return None
    lows = [low for low, _, _ in _LIMITS if _accepts(node, value, low)]
    highs = [high for _, high, _ in _LIMITS if _accepts(node, value, high)]
    return (min(lows), max(highs)) if lows and highs else None


def _apply_rule(node: Node, value: Value, number: int) -> object:
    """Apply the operator's type rule with a number in place of a weak Value."""

    def fill(other: Value) -> Any:
        return number if other is value else to_example(other)

    return infer(
        node.op, map_values(fill, node.args), {k: map_values(fill, v) for k, v in node.kwargs.items()}
    )


def _accepts(node: Node, value: Value, number: int) -> bool:
    """Whether the operator's type rule accepts a number in place of a weak Value."""
    try:
        _apply_rule(node, value, number)
    except (OverflowError, ValueArgumentError):  # too large, or a negative power of integers
        return False
    return True
