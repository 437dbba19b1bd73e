"""``arange`` as a loop: on a device whose launches are dear its numbers are counted where they are read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..operators.expr import Expr, cast, const
from ..registry import dtypes as dt
from ..registry.dtypes import DType
from ..registry.values import TensorSpec
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


def range_of_constant(array: Any) -> Range | None:
    """What the elements of an array of integers count along its one axis; None for other arrays."""
    flat = array.reshape(-1)
    if array.dtype.kind not in "iu" or flat.size < 2 or sum(size > 1 for size in array.shape) != 1:
        return None
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    counts = max(map(abs, (start, start + step * flat.size))) < 2**62
    found = counts and np.array_equal(np.arange(flat.size) * step + start, flat)
    return Range(start, step) if found else None


def range_kernel(name: str, out: TensorSpec, found: Range) -> FusedKernel:
    """The kernel that writes evenly spaced numbers: ``start + i * step`` in the widest type, rounded once."""
    exact = isinstance(found.start, int) and isinstance(found.step, int)
    wide = dt.int64 if exact else dt.float64
    value = cast(index(next((d for d, size in enumerate(out.shape) if size > 1), 0)), wide)
    if not exact or found.step != 1:
        value = Expr("mul", (value, _number(found.step, wide)), wide)
    if not exact or found.start != 0:
        value = Expr("add", (value, _number(found.start, wide)), wide)
    target = Buffer("b0", out.dtype, contiguous(out.shape).strides, 0)
    stage = Stage(tuple(range(len(out.shape))), (Store("b0", cast(value, out.dtype)),))
    return FusedKernel(name, (), out.shape, (target,), (stage,))


def _number(value: int | float, dtype: DType) -> Expr:
    return const(float(value) if dtype is dt.float64 else value, dtype)
