"""Histograms, whose counts have the dtype of the tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ValueArgumentError
from ..named_tuple import NamedTuple
from ..operators.creation.creation import arange, linspace
from ..operators.declare.named_results import Histogram
from ..operators.declare.shape_rules import spec_of
from ..operators.elementwise.casting import astype
from ..operators.elementwise.comparison import eq, ge, le, logical_and
from ..operators.elementwise.rounding import floor
from ..operators.elementwise.selection import clip, where
from ..operators.reductions.folds import max, min, sum
from ..operators.reductions.histograms import bincount
from ..operators.reductions.searching import searchsorted as _searchsorted
from ..operators.shape.splitting import diff
from ..operators.shape.views import reshape
from ..registry.dtypes import int64

if TYPE_CHECKING:
    from ..registry.types import Number, Tensor


class GridHistogram(NamedTuple):
    """The result of :func:`histogramdd`."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """The numbers of elements in intervals of equal width, in the dtype of the tensor.

    Args:
        input: any real tensor.
        bins: the number of intervals.
        min, max: the first and the last bound; equal ones: the smallest and the largest element.

    Raises:
        ValueArgumentError: ``bins`` is not positive, or ``max`` is less than ``min``.

    >>> import tandem.torch as torch
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), 4, 0, 3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if bins < 1 or max < min:
        raise ValueArgumentError(
            f"histc: {bins} bins from {min} to {max}; bins must be positive, and min <= max"
        )
    low, high = _bounds(input, (min, max) if min < max else None)
    x = reshape(input, (-1,))
    cells = astype(floor((x - low) * bins / (high - low)), int64)
    is_inside = logical_and(ge(x, low), le(x, high))
    return bincount(clip(cells, 0, bins - 1), astype(is_inside, x.dtype), bins, length=bins)


def _bounds(x: Tensor, given: tuple[float, float] | None) -> tuple[Tensor | Number, Tensor | Number]:
    """The given bounds, or the smallest and the largest element; never equal ones."""
    if given is not None:
        return given
    if not spec_of(x).size:
        return 0, 1
    low, high = min(x), max(x)
    is_point = eq(low, high)
    return where(is_point, low - 1, low), where(is_point, high + 1, high)


def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """The numbers of elements between bounds, or the sums of their weights, and the bounds.

    >>> import tandem.torch as torch
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), 2).hist.tolist()
    [2.0, 1.0]
    """
    points = reshape(input, (-1, 1))
    result = histogramdd(
        points, [bins], range=None if range is None else [*range], weight=weight, density=density
    )
    return Histogram(result.hist, result.bin_edges[0])


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int | Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> GridHistogram:
    """The numbers of points in the cells of a grid, and the bounds of the cells along each axis.

    Args:
        input: a tensor whose last axis has the coordinates of a point.
        bins: the number of cells, for each axis or all; or the bounds along each axis.
        range: the first and the last bound of each axis; None: the smallest and the largest coordinate.
        weight: a weight for each point.
        density: whether the numbers are divided by their sum and the sizes of the cells.

    >>> import tandem.torch as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 1.0]]), [2, 1]).hist.tolist()
    [[1.0], [1.0]]
    """
    count = spec_of(input).shape[-1]
    points = reshape(input, (-1, count))
    wanted = [bins] * count if isinstance(bins, int) else list(bins)
    edges: list[Tensor] = []
    rows = spec_of(points).shape[:1]
    cell = points.new_zeros(rows, dtype=int64)
    weights = points.new_ones(rows) if weight is None else reshape(weight, (-1,))
    for axis, given in enumerate(wanted):
        x = points[:, axis]
        bounds = None if range is None else (range[2 * axis], range[2 * axis + 1])
        edges.append(_equal_cells(x, given, bounds) if isinstance(given, int) else given)
        at, is_inside = _find_cells(edges[-1], x)
        cell = cell * (spec_of(edges[-1]).shape[0] - 1) + at
        weights = where(is_inside, weights, 0)
    shape = tuple(spec_of(edge).shape[0] - 1 for edge in edges)
    total = math.prod(shape)
    hist = reshape(bincount(cell, weights, total, length=total), shape)
    if density:
        hist = hist / sum(hist)
        for axis, edge in enumerate(edges):
            hist = hist / reshape(diff(edge), (-1,) + (1,) * (count - axis - 1))
    return GridHistogram(hist, tuple(edges))


def _equal_cells(x: Tensor, count: int, bounds: tuple[float, float] | None) -> Tensor:
    spec = spec_of(x)
    if bounds is not None:
        result: Tensor = linspace(*bounds, count + 1, dtype=spec.dtype, device=spec.device)
        return result
    low, high = _bounds(x, None)
    steps = arange(count + 1, dtype=spec.dtype, device=spec.device) / count
    return where(eq(steps, 1), high, low + steps * (high - low))


def _find_cells(edges: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The cell of each number, and whether it is inside of the bounds; the last cell includes its upper bound."""
    last = spec_of(edges).shape[0] - 1
    at = clip(_searchsorted(edges, x, "right") - 1, 0, last - 1)
    return at, logical_and(ge(x, edges[0]), le(x, edges[-1]))
