"""Quantiles with NumPy's arguments ``weights``, ``out`` and ``overwrite_input``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from ..errors import ShapeError, ValueArgumentError
from ..operators.declare.shape_rules import normalize_axes, reduced_shape, spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import eq, isnan, lt
from ..operators.elementwise.selection import clip, minimum, where
from ..operators.indexing.take import take_along_axis
from ..operators.reductions import quantiles
from ..operators.reductions.folds import sum as sum_over
from ..operators.reductions.scans import cumsum
from ..operators.reductions.sorting import argsort
from ..operators.shape.rearrange import moveaxis
from ..operators.shape.views import broadcast_to, reshape
from ..registry.dtypes import float64, int64
from .array_likes import name_operator
from .creation import asarray

if TYPE_CHECKING:
    from ..registry.types import Tensor, TensorLike

    Axes = int | tuple[int, ...] | None
    Quantile = Callable[..., Tensor]


def _with_weights(function: Quantile, limit: int, skips_nan: bool) -> Quantile:
    """A function of quantiles that takes ``weights``; calls without the new arguments are calls of tandem's."""

    @name_operator(function, "out", "overwrite_input", "weights", takes_none=True, most=3)
    @wraps(function, updated=())
    def find_quantiles(
        a: Tensor,
        q: TensorLike,
        axis: Axes = None,
        out: Tensor | None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: TensorLike | None = None,
        interpolation: str | None = None,
    ) -> Tensor:
        method = method if interpolation is None else interpolation
        if weights is None:
            options = {} if out is None else {"out": out}
            return function(a, q, axis, method=method, keepdims=keepdims, **options)
        if method != "inverted_cdf":
            raise ValueArgumentError(
                f"{function.__name__}: weights need method='inverted_cdf', not {method!r}"
            )
        fractions = asarray(q).astype(float64) / limit
        result = _find_weighted(
            function.__name__, asarray(a), fractions, axis, keepdims, asarray(weights), skips_nan
        )
        return result if out is None else out.copy_(result)

    return find_quantiles


def _find_weighted(
    name: str, a: Tensor, q: Tensor, axis: Axes, keepdims: bool, weights: Tensor, skips_nan: bool
) -> Tensor:
    """The elements at which the sums of weights reach fractions ``q`` of the sum of all.

    Args:
        name: the function that is called.
        a, weights: tensors of one shape, or weights for the positions along one axis.
        q: float64, any shape, whose axes are the first ones of the result.
        axis, keepdims: as for reductions.
        skips_nan: whether NaNs have no weight; else a NaN is the result.
    """
    shape = spec_of(a).shape
    axes = normalize_axes(name, (axis,) if isinstance(axis, int) else axis, len(shape))
    if spec_of(weights).shape != shape:
        if spec_of(weights).shape != tuple(shape[at] for at in axes):
            raise ShapeError(f"{name}: weights of shape {spec_of(weights).shape} do not fit shape {shape}")
        weights = reshape(weights, tuple(size if at in axes else 1 for at, size in enumerate(shape)))
    values = _join_axes(a, axes)
    if not spec_of(values).shape[-1]:
        raise ShapeError(f"{name}: there are no elements")
    chances = astype(_join_axes(broadcast_to(weights, shape), axes), float64)
    if skips_nan:
        chances = where(isnan(values), 0.0, chances)
    order = argsort(values)
    values, sums = take_along_axis(values, order), cumsum(take_along_axis(chances, order), -1)
    count = spec_of(values).shape[-1]
    shares = sums / sums[..., count - 1 :]
    shares = where(eq(shares, 0), -1.0, shares)  # elements without weight are never chosen
    wanted = reshape(clip(q, 0, 1), (spec_of(q).size,) + (1,) * len(spec_of(values).shape))
    positions = minimum(sum_over(astype(lt(shares, wanted), int64), -1), count - 1)
    positions = moveaxis(positions, 0, -1)
    result = take_along_axis(values, positions)
    if not skips_nan and spec_of(values).dtype.is_inexact:
        result = where(isnan(values[..., count - 1 :]), math.nan, result)
    return reshape(moveaxis(result, -1, 0), (*spec_of(q).shape, *reduced_shape(shape, axes, keepdims)))


def _join_axes(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The tensor with one last axis in place of several."""
    shape = spec_of(x).shape
    kept = tuple(size for at, size in enumerate(shape) if at not in axes)
    moved = moveaxis(x, tuple(axes), tuple(range(-len(axes), 0))) if axes else x
    return reshape(moved, (*kept, math.prod(shape[at] for at in axes)))


quantile = _with_weights(quantiles.quantile, 1, False)
percentile = _with_weights(quantiles.percentile, 100, False)
nanquantile = _with_weights(quantiles.nanquantile, 1, True)
nanpercentile = _with_weights(quantiles.nanpercentile, 100, True)
