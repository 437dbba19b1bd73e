"""``arange`` as a loop: on a device whose launches are dear its numbers are counted where they are read."""

from __future__ import annotations

from typing import NamedTuple

from ..operators.expr import Expr, cast, const
from ..registry import dtypes as dt
from ..registry.dtypes import DType
from ..tracer.graph import Node
from .layout import contiguous
from .loops import Buffer, FusedKernel, Stage, Store, index


class Range(NamedTuple):
    """Evenly spaced numbers: the first, and the step to the next."""

    start: int | float
    step: int | float


def range_of(node: Node) -> Range | None:
    """What an ``arange`` counts, if that is known now; None for other nodes."""
    if node.op.name != "td::arange":
        return None
    bounds = [*node.args, *(node.kwargs[name] for name in ("stop", "step") if name in node.kwargs)]
    start, stop, step = (*bounds, None, 1)[:3] if len(bounds) < 3 else bounds
    start = 0 if stop is None else start
    known = all(type(number) in (int, float) for number in (start, step))
    return Range(start, step) if known else None


def range_kernel(name: str, node: Node, found: Range) -> FusedKernel:
    """The kernel that writes an ``arange``: ``start + i * step`` in the widest type, rounded once."""
    out = node.outputs[0].spec
    exact = isinstance(found.start, int) and isinstance(found.step, int)
    wide = dt.int64 if exact else dt.float64
    value = cast(index(0), wide)
    if not exact or found.step != 1:
        value = Expr("mul", (value, _number(found.step, wide)), wide)
    if not exact or found.start != 0:
        value = Expr("add", (value, _number(found.start, wide)), wide)
    target = Buffer("b0", out.dtype, contiguous(out.shape).strides, 0)
    return FusedKernel(name, (), out.shape, (target,), (Stage((0,), (Store("b0", cast(value, out.dtype)),)),))


def _number(value: int | float, dtype: DType) -> Expr:
    return const(float(value) if dtype is dt.float64 else value, dtype)
