"""Mean, variance, standard deviation and count_nonzero, composed of sums.

``var.dim`` and ``std.dim`` are PyTorch's, which divide by N - 1: the keywords ``dim`` and ``unbiased`` select them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import ArgumentError
from ...registry.dtypes import ALL, DEFAULT_INT, HALVES, float32
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axes, result_dtype
from ..elementwise.comparison import ne
from ..elementwise.complex_parts import imag, real
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
_CORRECTION = (
    "    correction: the sum of squares is divided by N - correction for N elements; ``ddof`` of NumPy.\n"
)


def _count_reduced(self: Tensor, axis: Sequence[int] | None) -> int:
    shape = self.shape
    return math.prod(shape if axis is None else [shape[a] for a in normalize_axes("mean", axis, len(shape))])


def widen_halves(self: Tensor) -> Tensor:
    """The tensor in the dtype that its mean is computed in."""
    dtype = result_dtype("float", self.dtype)
    wide = float32 if dtype in HALVES else dtype
    return self if self.dtype is wide else self.astype(wide)


def narrow_halves(result: Tensor, self: Tensor) -> Tensor:
    dtype = result_dtype("float", self.dtype)
    out: Tensor = result.astype(dtype) if dtype in HALVES else result
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
    return narrow_halves(sum(widen_halves(self), axis, keepdims=keepdims) / _count_reduced(self, axis), self)


def _variance(wide: Tensor, axis: tuple[int, ...] | None, correction: float, keepdims: bool) -> Tensor:
    count = _count_reduced(wide, axis)
    centred = wide - sum(wide, axis, keepdims=True) / count
    return sum(square_magnitudes(centred), axis, keepdims=keepdims) / max(count - correction, 0)


def square_magnitudes(x: Tensor) -> Tensor:
    """The squares of real numbers, and of the magnitudes of complex ones."""
    if not x.dtype.is_complex:
        return x * x
    real_part, imag_part = real(x), imag(x)
    return real_part * real_part + imag_part * imag_part


@composite(
    "var(Tensor self, int[]? axis=None, *, float correction=0.0, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The variance of the elements over axes.",
        _ARGS.format(more=", or complex", correction=_CORRECTION),
        "td.var(td.asarray([[1.0, 2.0], [3.0, 4.0]]), 0) -> [1.0, 1.0]",
    ),
    reference="numpy.var",
    dtypes=ALL[1:],
    samples="samples.kinds.reduction_samples",
    errors="samples.kinds.reduction_errors",
    autocast="float32",
    spellings={"ddof": "correction"},
)
def var(self: Tensor, axis: tuple[int, ...] | None, *, correction: float, keepdims: bool) -> Tensor:
    return narrow_halves(_variance(widen_halves(self), axis, correction, keepdims), self)


@composite(
    "std(Tensor self, int[]? axis=None, *, float correction=0.0, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The standard deviation of the elements over axes, the square root of `var`.",
        _ARGS.format(more=", or complex", correction=_CORRECTION),
        "td.std(td.asarray([[1.0, 2.0], [3.0, 4.0]]), 0) -> [1.0, 1.0]",
    ),
    reference="numpy.std",
    dtypes=ALL[1:],
    samples="samples.reductions.uneven_samples",
    errors="samples.kinds.reduction_errors",
    autocast="float32",
    spellings={"ddof": "correction"},
)
def std(self: Tensor, axis: tuple[int, ...] | None, *, correction: float, keepdims: bool) -> Tensor:
    return narrow_halves(sqrt(_variance(widen_halves(self), axis, correction, keepdims)), self)


_DIM_ARGS = """Args:
    self: tensor of integer, real floating or complex dtype, any shape.
    dim: an axis, several, or None for all.
    unbiased: whether the sum of squares is divided by N - 1 for N elements, or by N.
    keepdim: whether reduced axes remain, with length 1.
    correction: it is divided by N - correction; None: 1, unless ``unbiased`` is False.

Returns:
    A tensor of the reduced shape, of the same dtype, or the default float for integers.

Raises:
    ArgumentError: both ``unbiased`` and ``correction`` are given.
    OutOfBoundsError: an axis is out of bounds.
    ShapeError: an axis occurs twice."""


def _to_correction(name: str, unbiased: bool | None, correction: float | None) -> float:
    if correction is None:
        return 0.0 if unbiased is False else 1.0
    if unbiased is not None:
        raise ArgumentError(f"{name}: pass unbiased or correction, not both")
    return correction


@composite(
    "var.dim(Tensor self, int[]? dim=None, bool? unbiased=None, bool keepdim=False, *, float? correction=None)"
    " -> Tensor",
    doc=make_docstring(
        "The variance of the elements over axes, divided by N - 1.",
        _DIM_ARGS,
        "td.var(td.asarray([1.0, 2.0, 3.0]), dim=0) -> 1.0",
    ),
    reference="references.order.var_dim",
    dtypes=ALL[1:],
    samples="samples.order.spread_samples",
    errors="samples.order.spread_errors",
    autocast="float32",
    spellings={"axis": "dim", "keepdims": "keepdim"},
)
def var_dim(
    self: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    *,
    correction: float | None,
) -> Tensor:
    return var(self, dim, correction=_to_correction("var", unbiased, correction), keepdims=keepdim)


@composite(
    "std.dim(Tensor self, int[]? dim=None, bool? unbiased=None, bool keepdim=False, *, float? correction=None)"
    " -> Tensor",
    doc=make_docstring(
        "The standard deviation of the elements over axes, the square root of ``var.dim``.",
        _DIM_ARGS,
        "td.std(td.asarray([1.0, 2.0, 3.0]), dim=0) -> 1.0",
    ),
    reference="references.order.std_dim",
    dtypes=ALL[1:],
    samples="samples.order.spread_samples",
    errors="samples.order.spread_errors",
    autocast="float32",
    spellings={"axis": "dim", "keepdims": "keepdim"},
)
def std_dim(
    self: Tensor,
    dim: tuple[int, ...] | None,
    unbiased: bool | None,
    keepdim: bool,
    *,
    correction: float | None,
) -> Tensor:
    return std(self, dim, correction=_to_correction("std", unbiased, correction), keepdims=keepdim)


@composite(
    "count_nonzero(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=make_docstring(
        "The number of elements over axes that are not zero; NaN is not zero.",
        """Args:
    self: any tensor.
    axis: an axis, several, or None for all.
    keepdims: whether reduced axes remain, with length 1.

Returns:
    An int64 tensor of the reduced shape.

Raises:
    OutOfBoundsError: an axis is out of bounds.
    ShapeError: an axis occurs twice.""",
        "td.count_nonzero(td.asarray([[1, 0], [3, 4]]), 0) -> [2, 1]",
    ),
    reference="numpy.count_nonzero",
    dtypes=ALL,
    samples="samples.kinds.reduction_samples",
    errors="samples.kinds.reduction_errors",
)
def count_nonzero(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return sum(ne(self, 0), axis, dtype=DEFAULT_INT, keepdims=keepdims)
