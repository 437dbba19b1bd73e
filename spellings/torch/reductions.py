"""Reductions and sorting with PyTorch's arguments and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.declare.named_results import ValuesAndIndices
from ..operators.elementwise.selection import maximum, minimum
from ..operators.reductions import extrema, folds, order_statistics, quantiles, signals, sorting, statistics
from ..operators.reductions.calculus import trapezoid
from ..operators.reductions.scans import cumsum
from ..operators.reductions.unique import unique as _unique
from ..operators.shape.rearrange import moveaxis
from ..operators.shape.splitting import diff
from ..operators.shape.views import reshape
from ..registry.values import TensorBase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.function import OperatorFunction
    from ..registry.types import Tensor


def _extremum(
    reduce: OperatorFunction[Tensor],
    with_indices: OperatorFunction[tuple[Tensor, Tensor]],
    pairwise: OperatorFunction[Tensor],
    input: Tensor,
    dim: int | Tensor | None,
    keepdim: bool,
) -> Tensor | ValuesAndIndices:
    if dim is None:
        return reduce(input)
    return (
        pairwise(input, dim)
        if isinstance(dim, TensorBase)
        else ValuesAndIndices(*with_indices(input, dim, keepdim))
    )


def max(
    input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Tensor | ValuesAndIndices:
    """The largest element; along ``dim`` with indices; ``max(x, other)`` is elementwise.

    >>> import tandem.torch as torch
    >>> torch.max(torch.tensor([[1, 5], [7, 4]]), 1).indices.tolist()
    [1, 0]
    """
    return _extremum(folds.max, extrema.max_dim, maximum, input, dim if other is None else other, keepdim)


def min(
    input: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None
) -> Tensor | ValuesAndIndices:
    """The smallest element; along ``dim`` with indices; ``min(x, other)`` is elementwise."""
    return _extremum(folds.min, extrema.min_dim, minimum, input, dim if other is None else other, keepdim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesAndIndices:
    """The lower median of all elements, or along ``dim`` with indices.

    >>> import tandem.torch as torch
    >>> torch.median(torch.tensor([1, 4, 2, 5])).item()
    2
    """
    if dim is None:
        return quantiles.median_dim(reshape(input, (-1,)), 0)[0]
    return ValuesAndIndices(*quantiles.median_dim(input, dim, keepdim))


def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesAndIndices:
    """The lower median of the elements that are not NaN, or along ``dim`` with indices."""
    if dim is None:
        return quantiles.nanmedian_dim(reshape(input, (-1,)), 0)[0]
    return ValuesAndIndices(*quantiles.nanmedian_dim(input, dim, keepdim))


def _spread(
    function: OperatorFunction[Tensor],
    input: Tensor,
    dim: int | Sequence[int] | bool | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> Tensor:
    if isinstance(dim, bool):  # std(x, unbiased)
        dim, unbiased = None, dim
    return function(input, dim, unbiased, keepdim, correction=correction)


def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation, with the sum of squares divided by N - 1.

    >>> import tandem.torch as torch
    >>> torch.std(torch.tensor([1.0, 2.0, 3.0])).item()
    1.0
    """
    return _spread(statistics.std_dim, input, dim, unbiased, keepdim, correction)


def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """The variance, with the sum of squares divided by N - 1."""
    return _spread(statistics.var_dim, input, dim, unbiased, keepdim, correction)


def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean``."""
    spread = std(input, dim, unbiased, keepdim, correction=correction)
    return spread, statistics.mean(input, dim, keepdims=keepdim)


def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean``."""
    spread = var(input, dim, unbiased, keepdim, correction=correction)
    return spread, statistics.mean(input, dim, keepdims=keepdim)


# -- order -------------------------------------------------------------------------------------------------------------
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> ValuesAndIndices:
    """The elements in order along ``dim``, and their indices; always stable."""
    return ValuesAndIndices(*sorting.sort_dim(input, dim, descending, stable=stable))


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Tensor:
    """The indices of the elements in order along ``dim``; always stable."""
    return sorting.argsort(input, axis=dim, descending=descending)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesAndIndices:
    """The ``k`` largest or smallest elements along ``dim``, and their indices."""
    return ValuesAndIndices(*order_statistics.topk(input, k, dim, largest=largest, sorted=sorted))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The k-th smallest elements along ``dim``, and their indices."""
    return ValuesAndIndices(*order_statistics.kthvalue(input, k, dim, keepdims=keepdim))


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent elements along ``dim``, and their indices."""
    return ValuesAndIndices(*order_statistics.mode(input, dim, keepdims=keepdim))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    size: int | None = None,
    fill_value: float | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements, or slices along ``dim``, always in ascending order; their groups and counts if wanted.

    Args:
        input: any tensor, which is flattened without ``dim``. NaNs are different from each other.
        sorted: accepted for compatibility with PyTorch.
        return_inverse: whether to return the group of each element, too.
        return_counts: whether to return the sizes of the groups, too.
        dim: the axis of the slices.
        size, fill_value: those of :func:`tandem.unique`, for traces.

    >>> import tandem.torch as torch
    >>> torch.unique(torch.tensor([[2, 1], [0, 5], [2, 1]]), dim=0).tolist()
    [[0, 5], [2, 1]]
    """
    return _unique(
        input, False, return_inverse, return_counts, dim, equal_nan=False, size=size, fill_value=fill_value
    )


# -- derivatives and integrals -----------------------------------------------------------------------------------------
def gradient(
    input: Tensor,
    *,
    spacing: float | Tensor | Sequence[float | Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The derivatives of sampled values along axes, always as a tuple: :func:`tandem.gradient`.

    Args:
        input: the values: a tensor of numeric dtype, of at least one axis.
        spacing: the distance of the samples, 1 by default; for each axis a number or a vector of positions.
        dim: an axis, several, or None for all.
        edge_order: the order of the differences at the edges, 1 or 2.

    >>> import tandem.torch as torch
    >>> [slope.tolist() for slope in torch.gradient(torch.tensor([1.0, 2.0, 4.0]), spacing=0.5)]
    [[2.0, 3.0, 4.0]]

    Source: ``torch.gradient``.
    """
    steps = () if spacing is None else tuple(spacing) if isinstance(spacing, (list, tuple)) else (spacing,)
    axes = (dim,) if isinstance(dim, int) else dim
    result = signals.gradient(input, *steps, axis=axes, edge_order=edge_order)
    return result if isinstance(result, tuple) else (result,)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The integrals up to each point along ``dim``, by the trapezoidal rule.

    Args:
        y: a tensor of at least one axis.
        x: the positions of the points: a vector, or a tensor that broadcasts to ``y``; None: ``dx`` apart.
        dx: the distance of neighbours.
        dim: the axis.

    >>> import tandem.torch as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 3.0, 5.0])).tolist()
    [2.0, 6.0]
    """
    points = moveaxis(y, dim, -1)
    heights = (points[..., 1:] + points[..., :-1]) / 2
    width: Tensor | float = dx
    if x is not None:
        width = diff(x if x.ndim == 1 else moveaxis(x, dim, -1))
    return moveaxis(cumsum(heights * width, -1), -1, dim)


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The integrals along ``dim`` by the trapezoidal rule: :func:`tandem.trapezoid`."""
    return trapezoid(y, x, dx, axis=dim)
