"""Ranges as kernels: ``arange``, and constants that are ranges, as expressions of the position that readers inline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...named_tuple import NamedTuple
from ...operators.scalar_ir.expr import Expr, cast, const
from ...registry import dtypes as dt
from ...registry.dtypes import DType
from ...registry.values import TensorSpec
from ...tracer.graph import Node
from ..layout import contiguous
from .loop_ir import Buffer, FusedKernel, Stage, Store, index

if TYPE_CHECKING:
    from ...registry.types import Array


class Range(NamedTuple):
    """Evenly spaced numbers: the first one and the step."""

    start: int | float
    step: int | float


def match_range(node: Node) -> Range | None:
    """The range of an ``arange`` with constant start and step; None for other nodes."""
    if node.op.name != "td::arange":
        return None
    bounds = [*node.args, *(node.kwargs[name] for name in ("stop", "step") if name in node.kwargs)]
    start, stop, step = (*bounds, None, 1)[:3] if len(bounds) < 3 else bounds
    start = 0 if stop is None else start
    known = all(type(number) in (int, float) for number in (start, step))
    return Range(start, step) if known else None


def match_constant_range(array: Array) -> Range | None:
    """The range of an integer array that is evenly spaced along its only axis; None for other arrays."""
    flat = array.reshape(-1)
    if array.dtype.kind not in "iu" or flat.size < 2 or sum(size > 1 for size in array.shape) != 1:
        return None
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    counts = max(map(abs, (start, start + step * flat.size))) < 2**62
    value = counts and np.array_equal(np.arange(flat.size) * step + start, flat)
    return Range(start, step) if value else None


def make_range_kernel(name: str, out: TensorSpec, numbers: Range) -> FusedKernel:
    """Make the kernel that writes a range: ``start + i * step`` in int64 or float64, rounded once."""
    exact = isinstance(numbers.start, int) and isinstance(numbers.step, int)
    wide = dt.int64 if exact else dt.float64
    value = cast(index(next((d for d, size in enumerate(out.shape) if size > 1), 0)), wide)
    if not exact or numbers.step != 1:
        value = Expr("mul", (value, _number(numbers.step, wide)), wide)
    if not exact or numbers.start != 0:
        value = Expr("add", (value, _number(numbers.start, wide)), wide)
    target = Buffer("b0", out.dtype, contiguous(out.shape).strides, 0)
    stage = Stage(tuple(range(len(out.shape))), (Store("b0", cast(value, out.dtype)),))
    return FusedKernel(name, (), out.shape, (target,), (stage,))


def _number(value: int | float, dtype: DType) -> Expr:
    return const(float(value) if dtype is dt.float64 else value, dtype)
