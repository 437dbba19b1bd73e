"""Interval arithmetic on integer expressions: what is known of a value before a kernel runs.

An interval is never empty. An expression that may overflow, or of which nothing is known, has all integers of its
dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ....named_tuple import NamedTuple
from ....operators.scalar_ir.expr import Expr
from ....registry.dtypes import DType


class Interval(NamedTuple):
    """The integers from ``low`` to ``high``, which is included."""

    low: int
    high: int

    def intersect(self, other: Interval) -> Interval:
        """Return the integers that are in both intervals; ``low`` is larger than ``high`` if there are none."""
        return Interval(max(self.low, other.low), min(self.high, other.high))

    def contains(self, other: Interval) -> bool:
        """Return whether all integers of another interval are in this one."""
        return self.low <= other.low and other.high <= self.high


def integers_of(dtype: DType) -> Interval:
    """Return the integers of a dtype; bools are 0 and 1."""
    if dtype.kind == "b":
        return Interval(0, 1)
    bits = 8 * dtype.itemsize
    return (
        Interval(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.kind == "i" else Interval(0, 2**bits - 1)
    )


def find_interval(
    e: Expr,
    loads: Mapping[str, Interval] = MappingProxyType({}),
    sizes: Mapping[int, int] = MappingProxyType({}),
) -> Interval:
    """Return an interval that contains the values of an expression of integers or bools.

    Args:
        e: the expression.
        loads: the intervals of the elements of some buffers, by their names.
        sizes: the sizes of some dimensions, whose positions may be numbers in the expression.

    >>> from tandem.operators.scalar_ir.expr import apply, arg
    >>> from tandem.registry.dtypes import int64
    >>> x = arg(0, int64)
    >>> find_interval(apply("minimum", apply("maximum", x, 0), 5))
    Interval(low=0, high=5)
    """
    return _IntervalReader(loads, sizes).read(e)


def add_intervals(intervals: Iterable[Interval]) -> Interval:
    """Return the interval of a sum of integers that does not overflow."""
    ends = list(intervals)
    return Interval(sum(low for low, _ in ends), sum(high for _, high in ends))


class _IntervalReader:
    """Reads the intervals of expressions, each once."""

    def __init__(self, loads: Mapping[str, Interval], sizes: Mapping[int, int]):
        self.loads, self.sizes = loads, sizes
        self.known: dict[Expr, Interval] = {}

    def read(self, e: Expr) -> Interval:
        """Return the interval of an expression."""
        if e not in self.known:
            every = integers_of(e.dtype)
            interval = self._read(e) or every
            self.known[e] = interval if every.contains(interval) else every
        return self.known[e]

    def _read(self, e: Expr) -> Interval | None:
        if e.op == "const":
            return Interval(int(e.payload), int(e.payload))
        if e.op == "load":
            return self.loads.get(e.payload)
        if e.op == "index" and e.payload in self.sizes:
            return Interval(0, max(self.sizes[e.payload] - 1, 0))
        rule = _RULES.get(e.op)
        args = e.args[-2:]  # of a select without the condition
        if rule is None or any(a.dtype.kind not in "iub" for a in args):
            return None
        return rule(*map(self.read, args))


def _multiply(one: Interval, two: Interval) -> Interval:
    products = [a * b for a in one for b in two]
    return Interval(min(products), max(products))


def _divide(one: Interval, two: Interval) -> Interval | None:
    if two.low <= 0:
        return None
    quotients = [a // b for a in one for b in two]
    return Interval(min(quotients), max(quotients))


def _remainder(one: Interval, two: Interval) -> Interval | None:
    if two.low <= 0:
        return None
    return one if one.low >= 0 and one.high < two.low else Interval(0, two.high - 1)


_RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda one, two: Interval(one.low + two.low, one.high + two.high),
    "sub": lambda one, two: Interval(one.low - two.high, one.high - two.low),
    "mul": _multiply,
    "floordiv": _divide,
    "remainder": _remainder,
    "minimum": lambda one, two: Interval(min(one.low, two.low), min(one.high, two.high)),
    "maximum": lambda one, two: Interval(max(one.low, two.low), max(one.high, two.high)),
    "select": lambda one, two: Interval(min(one.low, two.low), max(one.high, two.high)),
    "cast": lambda one: one,
}
