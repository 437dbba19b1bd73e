"""The values of a loop's counters for which the positions that its body reads and writes are in bounds.

A position is an affine function of a counter if the kernels of the body compute it with additions, multiplications by
constants, casts, and limits by constants. The loop runs without checks while its counters are in the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...lowering.fusion.loop_ir import FusedKernel, IndexMap, Stage, Store, Update
from ...lowering.loop_bodies import Body
from ...lowering.thunks import KernelThunk
from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr
from ...tracer.graph import Value
from .codegen.intervals import Interval, integers_of

MOST_KERNELS = 8  # of bodies that are written twice
MOST_POINTS = 64  # of each of them


class Affine(NamedTuple):
    """The integers from ``scale * counter + low`` to ``scale * counter + high``.

    Attributes:
        counter: the number of the counter among the inputs of the body; None for numbers that depend on none.
        scale, low, high: the constants; the scale is 0 without a counter.
    """

    counter: int | None
    scale: int
    low: int
    high: int

    def solve(self, inside: Interval) -> Interval:
        """Return the values of the counter for which all of the integers are in an interval.

        >>> Affine(0, -2, 0, 3).solve(Interval(0, 10))
        Interval(low=-3, high=0)
        """
        low, high = inside.low - self.low, inside.high - self.high
        if self.scale < 0:
            low, high = -high, -low
        scale = abs(self.scale)
        return Interval(-(-low // scale), high // scale)


Condition = tuple[Affine, Interval]
"""Integers that are in an interval."""


Read = tuple["Affine | None", list[Condition]]
"""An expression as an affine function, None if it is not one, and the conditions on which it is that function."""
_UNKNOWN: Read = (None, [])


class Bounds(NamedTuple):
    """The bounds of the positions that a loop reads and writes.

    Attributes:
        intervals: the intervals of counters, by number, in which the positions that depend on them are in bounds.
        has_others: whether other positions may be out of bounds, so that each iteration checks them.
    """

    intervals: dict[int, Interval]
    has_others: bool


def find_bounds(bodies: Sequence[Body], counters: Iterable[int]) -> Bounds:
    """Return what is known of positions; nothing if a body has other steps than a few small kernels.

    Args:
        bodies: the bodies of the loop.
        counters: the numbers of the inputs that are counters.
    """
    lowered = [body.lowered for body in bodies if body.lowered is not None]
    steps = [step for one in lowered for step in one.steps]
    if len(steps) > MOST_KERNELS or not all(map(_is_small_kernel, steps)):
        return Bounds({}, False)
    result: dict[int, Interval] = {}
    has_others = False
    numbers = list(counters)
    for one in lowered:
        parameters = one.graph.parameters
        values: dict[Value, Read] = {parameters[number]: (Affine(number, 1, 0, 0), []) for number in numbers}
        conditions, others = _find_conditions(one.steps, values)
        has_others |= others
        for affine, inside in conditions:
            if affine.counter is not None:
                interval = affine.solve(inside)
                known = result.get(affine.counter, interval)
                result[affine.counter] = known.intersect(interval)
    return Bounds(result, has_others)


def _is_small_kernel(step: object) -> bool:
    """Return whether a step is a kernel with few points."""
    if not isinstance(step, KernelThunk):
        return False
    return math.prod(step.kernel.outer + step.kernel.inner) <= MOST_POINTS


def _find_conditions(steps: Iterable[KernelThunk], values: dict[Value, Read]) -> tuple[list[Condition], bool]:
    """Return the conditions that hold if positions are in bounds, and whether there are other positions.

    Args:
        steps: the kernels, in order.
        values: scalar values that are affine; those that the kernels store are added.
    """
    result, has_others = [], False
    for step in steps:
        kernel = step.kernel
        scalars = {
            b.name: step.params[b.param]
            for b in kernel.buffers
            if b.param is not None and not step.params[b.param].spec.shape
        }
        reader = _Reader(kernel, {name: values[v] for name, v in scalars.items() if v in values})
        for stage in kernel.stages:
            for index_map, indices in _indices_of(stage):
                for axis, e in zip(index_map.axes, indices, strict=True):
                    affine, needed = reader.read(e)
                    if affine is not None:
                        result += [*needed, (affine, Interval(0, axis.size - 1))]
                    has_others |= affine is None and not reader.is_limited(e)
            for s in stage.body:
                if isinstance(s, Store) and s.buffer in scalars:
                    read = reader.read(s.value)
                    if read[0] is not None and s.value.dtype is scalars[s.buffer].spec.dtype:
                        values[scalars[s.buffer]] = read
    return result, has_others


def _indices_of(stage: Stage) -> list[tuple[IndexMap, tuple[Expr, ...]]]:
    """Return the index maps of a stage, and the indices along their axes."""
    gathers = [(e.payload, e.args) for e in stage.exprs() if e.op == "gather"]
    return gathers + [(s.map, s.indices) for s in stage.body if isinstance(s, Update)]


class _Reader:
    """Reads integer expressions of a kernel as affine functions.

    Args:
        kernel: the kernel.
        loads: the functions in the buffers with one element.
    """

    def __init__(self, kernel: FusedKernel, loads: Mapping[str, Read]):
        self.kernel, self.loads = kernel, loads
        self.known: dict[Expr, Read] = {}
        self.rules: dict[str, Callable[[Expr], Read]] = {
            "cast": self._read_cast,
            "minimum": self._read_limit,
            "maximum": self._read_limit,
            "select": self._read_select,
        }

    def read(self, e: Expr) -> Read:
        """Return an expression as an affine function, and the conditions for that."""
        if e not in self.known:
            self.known[e] = self._read(e)
        return self.known[e]

    def _read(self, e: Expr) -> Read:
        if e.op in self.rules:
            return self.rules[e.op](e)
        if not e.dtype.is_integer:
            return _UNKNOWN
        if e.op == "const":
            return Affine(None, 0, int(e.payload), int(e.payload)), []
        if e.op == "index":
            return Affine(None, 0, 0, self.kernel.inner[e.payload] - 1), []
        if e.op == "load":
            return self.loads.get(e.payload, _UNKNOWN)
        return self._read_arithmetic(e) if e.op in ("add", "sub", "mul") else _UNKNOWN

    def is_limited(self, e: Expr) -> bool:
        """Return whether LLVM may prove bounds of an expression that is not affine."""
        while e.op == "cast":
            (e,) = e.args
        if e.op in ("and", "remainder", "minimum", "maximum"):
            return any(a.op == "const" for a in e.args)
        return e.op in ("floordiv", "rshift") and self.read(e.args[0])[0] is not None

    def _read_arithmetic(self, e: Expr) -> Read:
        """Read a sum, a difference or a product. It may overflow: then its bits are those of the integer."""
        (one, needed), (two, more) = map(self.read, e.args)
        if one is None or two is None:
            return _UNKNOWN
        if e.op == "mul":
            if two.scale or two.low != two.high:
                one, two = two, one
            return (
                _multiply(one, two.low) if two == Affine(None, 0, two.low, two.low) else None
            ), needed + more
        if e.op == "sub":
            two = _multiply(two, -1)
        counters = {part.counter for part in (one, two) if part.counter is not None}
        if len(counters) > 1:
            return _UNKNOWN
        total = Affine(
            next(iter(counters), None), one.scale + two.scale, one.low + two.low, one.high + two.high
        )
        return (total if total.scale or not counters else None), needed + more

    def _read_cast(self, e: Expr) -> Read:
        """Read a cast between integers: it keeps an integer that both dtypes have."""
        (operand,) = e.args
        if not (operand.dtype.is_integer and e.dtype.is_integer):
            return _UNKNOWN
        affine, needed = self.read(operand)
        if affine is None:
            return _UNKNOWN
        both = integers_of(operand.dtype).intersect(integers_of(e.dtype))
        return affine, [*needed, (affine, both)] if affine.scale else needed

    def _read_limit(self, e: Expr) -> Read:
        """Read a minimum or a maximum with a constant, where it is the other operand."""
        reads = [self.read(a) for a in e.args]
        for (affine, needed), (limit, _) in (reads, reads[::-1]):
            if affine is None or not affine.scale or limit is None or limit.scale or limit.low != limit.high:
                continue
            inside = integers_of(e.dtype)
            inside = inside._replace(**{"high" if e.op == "minimum" else "low": limit.low})
            return affine, [*needed, (affine, inside)]
        return _UNKNOWN

    def _read_select(self, e: Expr) -> Read:
        """Read ``i + size if i < 0 else i`` where ``i`` is not negative."""
        condition, _, other = e.args
        if condition.op != "lt" or not other.dtype.is_integer:
            return _UNKNOWN
        (affine, needed), (limit, _) = map(self.read, condition.args)
        result, more = self.read(other)
        if affine is None or not affine.scale or limit is None or limit.scale or limit.low != limit.high:
            return _UNKNOWN
        inside = integers_of(condition.args[0].dtype)._replace(low=limit.low)
        return result, [*needed, *more, (affine, inside)]


def _multiply(one: Affine, factor: int) -> Affine:
    """Return the products of integers with a factor; the scale may be 0."""
    low, high = sorted((one.low * factor, one.high * factor))
    scale = one.scale * factor
    return Affine(one.counter if scale else None, scale, low, high)
