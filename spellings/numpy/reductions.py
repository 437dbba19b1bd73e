"""Reductions with NumPy's arguments ``dtype``, ``initial`` and ``where``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from ..eager.tensor import construct, tensor
from ..errors import ValueArgumentError
from ..operators.creation.creation import full
from ..operators.declare.shape_rules import normalize_axis, spec_of
from ..operators.elementwise import arithmetic, selection
from ..operators.elementwise.exponential import sqrt
from ..operators.reductions import covariance, extrema, folds, nan_reductions, statistics
from ..operators.shape.views import broadcast_to, reshape
from .array_likes import name_operator

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor, TensorLike

    Reduction = Callable[..., Tensor]
    Axes = int | tuple[int, ...] | None


def _with_mask(function: Reduction, identity: object, combine: Reduction | None) -> Reduction:
    """A reduction that takes ``where`` and ``initial``; calls without these are calls of the reduction of tandem.

    Args:
        function: the reduction of tandem.
        identity: the value of elements at which ``where`` is false; None: that of ``initial``.
        combine: the operator of the result and ``initial``; None: the reduction does not take ``initial``.
    """

    @wraps(function, updated=())
    def reduce(
        a: Tensor, *args: object, initial: object = None, where: Tensor | None = None, **kwargs: object
    ) -> Tensor:
        if where is not None:
            fill = initial if identity is None else identity
            if fill is None:
                raise ValueArgumentError(f"{function.__name__}: where needs initial, the value of no element")
            a = selection.where(where, a, fill)
        if initial is None or combine is None:
            return function(a, *args, **kwargs)
        out = kwargs.pop("out", None)
        if 0 in spec_of(a).shape and identity is None:  # max and min of no elements
            shaped = folds.any(a, *args, **kwargs)
            return selection.where(shaped, initial, construct.asarray(initial, spec_of(a).dtype), out=out)
        return combine(function(a, *args, **kwargs), initial, out=out)

    return name_operator(function, "initial", "where")(reduce)


sum = _with_mask(folds.sum, 0, arithmetic.add)
prod = _with_mask(folds.prod, 1, arithmetic.mul)
any = _with_mask(folds.any, False, None)
all = _with_mask(folds.all, True, None)
max = _with_mask(folds.max, None, selection.maximum)
min = _with_mask(folds.min, None, selection.minimum)
amax = _with_mask(extrema.amax, None, selection.maximum)
amin = _with_mask(extrema.amin, None, selection.minimum)


@name_operator(statistics.mean, "dtype", "out", "where")
def mean(
    a: Tensor,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    keepdims: bool = False,
    *,
    where: Tensor | None = None,
) -> Tensor:
    """The arithmetic mean.

    Args:
        a: a tensor of any shape and dtype.
        axis: an axis, a tuple of axes, or None for all.
        dtype: the dtype of the sum and the result.
        out: a tensor of the result's shape that is written and returned.
        keepdims: whether the reduced axes remain, with length 1.
        where: bools that broadcast to ``a``: the elements to include.

    Source: ``numpy.mean``.

    >>> import tandem.numpy as np
    >>> np.mean(np.array([1, 2, 9]), where=np.array([True, True, False])).item()
    1.5
    """
    x = construct.asarray(a, dtype)
    if where is None and out is None:
        return statistics.mean(x, axis, keepdims=keepdims) if keepdims else statistics.mean(x, axis)
    if where is None:
        return statistics.mean(x, axis, keepdims=keepdims, out=out)
    total = folds.sum(selection.where(where, x, 0), axis, keepdims=keepdims)
    return arithmetic.div(total, _count(x, where, axis, keepdims), out=out)


def _count(x: Tensor, where: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    return statistics.count_nonzero(broadcast_to(where, spec_of(x).shape), axis, keepdims=keepdims)


@name_operator(statistics.var, "dtype", "out", "where", "ddof")
def var(
    a: Tensor,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Tensor | None = None,
    correction: float | None = None,
) -> Tensor:
    """The variance.

    Args:
        a, axis, dtype, out, keepdims, where: as for :func:`mean`.
        ddof, correction: the sum of squares is divided by the number of elements less this number.

    Source: ``numpy.var``.
    """
    x, ddof = construct.asarray(a, dtype), ddof if correction is None else correction
    if where is None and out is None:
        return statistics.var(x, axis, correction=ddof, keepdims=keepdims)
    if where is None:
        return statistics.var(x, axis, correction=ddof, keepdims=keepdims, out=out)
    centred = arithmetic.abs(arithmetic.sub(x, mean(x, axis, keepdims=True, where=where)))
    total = folds.sum(selection.where(where, arithmetic.mul(centred, centred), 0), axis, keepdims=keepdims)
    return arithmetic.div(total, arithmetic.sub(_count(x, where, axis, keepdims), ddof), out=out)


@name_operator(statistics.std, "dtype", "out", "where", "ddof")
def std(
    a: Tensor,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: Tensor | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Tensor | None = None,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation; the arguments are those of :func:`var`.

    Source: ``numpy.std``.
    """
    if where is None and out is None:
        x, ddof = construct.asarray(a, dtype), ddof if correction is None else correction
        return statistics.std(x, axis, correction=ddof, keepdims=keepdims)
    return sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, correction=correction), out=out)


def _without_nan(
    function: Reduction, plain: Reduction, identity: float, combine: Reduction | None
) -> Reduction:
    """A reduction that ignores NaNs and takes ``where``; of integers, which have none, the plain reduction does."""
    masked = _with_mask(function, identity, combine)

    @wraps(function, updated=())
    def reduce(a: Tensor, *args: object, **kwargs: object) -> Tensor:
        return (masked if spec_of(a).dtype.is_inexact else plain)(a, *args, **kwargs)

    return name_operator(function, "initial", "where", *vars(plain)["options"])(reduce)


nansum = _without_nan(nan_reductions.nansum, sum, 0, arithmetic.add)
nanprod = _without_nan(nan_reductions.nanprod, prod, 1, arithmetic.mul)
nanmax = _without_nan(nan_reductions.nanmax, max, math.nan, selection.maximum)
nanmin = _without_nan(nan_reductions.nanmin, min, math.nan, selection.minimum)
nanmean = _without_nan(nan_reductions.nanmean, mean, math.nan, None)
nanvar = _without_nan(nan_reductions.nanvar, var, math.nan, None)
nanstd = _without_nan(nan_reductions.nanstd, std, math.nan, None)


@name_operator(covariance.average, "returned", takes_none=True, most=3)
def average(
    a: Tensor,
    axis: Axes = None,
    weights: TensorLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The weighted average.

    Args:
        a: a tensor of any shape and numeric dtype.
        axis: an axis, a tuple of axes, or None for all.
        weights: a tensor of the same shape, or one weight for each position along the axis; None: equal weights.
        returned: whether to return the sum of the weights too, a tensor of the shape and dtype of the average.
        keepdims: whether reduced axes remain, with length 1.

    >>> import tandem.numpy as np
    >>> [x.item() for x in np.average([1.0, 2.0], weights=[3.0, 1.0], returned=True)]
    [1.25, 4.0]

    Source: ``numpy.average``.
    """
    result = covariance.average(a, axis, weights, keepdims=keepdims)
    if not returned:
        return result
    shape, dtype = spec_of(a).shape, spec_of(result).dtype
    if weights is None:
        total = full(spec_of(result).shape, spec_of(a).size / (spec_of(result).size or 1), dtype=dtype)
        return result, total
    factors = construct.asarray(weights, dtype)
    if spec_of(factors).shape != shape and isinstance(axis, int):
        at = normalize_axis("average", axis, len(shape))
        factors = reshape(factors, tuple(n if other == at else 1 for other, n in enumerate(shape)))
    return result, folds.sum(broadcast_to(factors, shape), axis, keepdims=keepdims)


def _has_negative(x: Tensor) -> bool:
    return bool((x.numpy() < 0).any()) if x.ndim else x.item() < 0


def _checked(function: Reduction) -> Reduction:
    """A function of positions that raises if a slice has no number and the values are known."""

    @wraps(function, updated=())
    def find_position(
        a: Tensor, axis: int | None = None, out: Tensor | None = None, *, keepdims: bool = False
    ) -> Tensor:
        result = function(a, axis, keepdims=keepdims)
        if type(result) is tensor.Tensor and spec_of(a).dtype.is_inexact and _has_negative(result):
            raise ValueArgumentError(f"{function.__name__}: a slice has only NaNs")
        return result if out is None else out.copy_(result)

    return find_position


nanargmax = _checked(nan_reductions.nanargmax)
nanargmin = _checked(nan_reductions.nanargmin)
