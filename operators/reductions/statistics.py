"""Mean, variance and standard deviation, composed of sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, REAL, bfloat16, float16, float32
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axes
from ..elementwise.exponential import sqrt
from .folds import sum

if TYPE_CHECKING:
    from ...registry.types import Tensor

_ARGS = """Args:
    self: tensor of integer or real floating dtype, any shape{more}.
    axis: an axis, several, or None for all.
{correction}    keepdims: whether reduced axes remain, with length 1.

Returns:
    A tensor of the reduced shape, of the same dtype, or the default float for integers. NaN if there are no elements.
    float16 and bfloat16 are computed in float32.

Raises:
    OutOfBoundsError: an axis is out of bounds.
    ShapeError: an axis occurs twice."""
_CORRECTION = "    correction: the sum of squares is divided by the number of elements less the correction.\n"


def _count_reduced(self: Tensor, axis: Sequence[int] | None) -> int:
    shape = self.shape
    return math.prod(shape if axis is None else [shape[a] for a in normalize_axes("mean", axis, len(shape))])


def _widen(self: Tensor) -> Tensor:
    """The tensor in the dtype that its mean is computed in."""
    keep = self.dtype.is_inexact and self.dtype not in (float16, bfloat16)
    return self if keep else self.astype(float32)


def _narrow(result: Tensor, self: Tensor) -> Tensor:
    out: Tensor = result.astype(self.dtype) if self.dtype in (float16, bfloat16) else result
    return out


@composite(
    "mean(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The arithmetic mean of the elements over axes.",
        _ARGS.format(more=", or complex", correction=""),
        "td.mean(td.asarray([[1.0, 2.0], [3.0, 4.0]]), 0) -> [2.0, 3.0]",
    ),
    reference="numpy.mean",
    dtypes=ALL[1:],
    samples="samples.kinds.reduction_samples",
    errors="samples.kinds.reduction_errors",
    autocast="float32",
)
def mean(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return _narrow(sum(_widen(self), axis, keepdims=keepdims) / _count_reduced(self, axis), self)


def _variance(wide: Tensor, axis: tuple[int, ...] | None, correction: float, keepdims: bool) -> Tensor:
    count = _count_reduced(wide, axis)
    centred = wide - sum(wide, axis, keepdims=True) / count
    return sum(centred * centred, axis, keepdims=keepdims) / max(count - correction, 0)


@composite(
    "var(Tensor self, int[]? axis=None, *, float correction=0.0, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The variance of the elements over axes.",
        _ARGS.format(more="", correction=_CORRECTION),
        "td.var(td.asarray([[1.0, 2.0], [3.0, 4.0]]), 0) -> [1.0, 1.0]",
    ),
    reference="numpy.var",
    dtypes=REAL,
    samples="samples.kinds.reduction_samples",
    errors="samples.kinds.reduction_errors",
    autocast="float32",
)
def var(self: Tensor, axis: tuple[int, ...] | None, *, correction: float, keepdims: bool) -> Tensor:
    return _narrow(_variance(_widen(self), axis, correction, keepdims), self)


@composite(
    "std(Tensor self, int[]? axis=None, *, float correction=0.0, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The standard deviation of the elements over axes, the square root of `var`.",
        _ARGS.format(more="", correction=_CORRECTION),
        "td.std(td.asarray([[1.0, 2.0], [3.0, 4.0]]), 0) -> [1.0, 1.0]",
    ),
    reference="numpy.std",
    dtypes=REAL,
    samples="samples.reductions.uneven_samples",
    errors="samples.kinds.reduction_errors",
    autocast="float32",
)
def std(self: Tensor, axis: tuple[int, ...] | None, *, correction: float, keepdims: bool) -> Tensor:
    return _narrow(sqrt(_variance(_widen(self), axis, correction, keepdims)), self)
