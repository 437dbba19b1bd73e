"""histogramdd: histograms of points of any number of coordinates."""

from __future__ import annotations

import math
from builtins import range as _range
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, ShapeError
from ...registry.dtypes import default_float
from ..declare.array_arguments import accept_arrays
from ..declare.shape_rules import is_tensor, result_dtype, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import logical_and, lt
from ..elementwise.selection import where
from ..shape.joining import stack, unstack
from ..shape.splitting import diff
from ..shape.views import reshape
from .folds import sum as sum_over
from .histograms import check_weights, find_bins, make_edges, scatter_counts, to_edges

if TYPE_CHECKING:
    from ...registry.types import Tensor


@accept_arrays
def histogramdd(
    sample: Tensor | Sequence[Tensor],
    bins: int | Sequence[int | Tensor] = 10,
    range: Sequence[tuple[float, float] | None] | None = None,
    density: bool | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """The number of points in each of some boxes, and the edges of the boxes along each axis.

    Args:
        sample: a tensor with a row for each point, or a sequence of the coordinates of all points.
        bins: the number of bins along every axis, or a sequence: for each axis a number or the edges.
        range: for each axis the lowest and the highest edge, or None.
        density: whether the histogram's integral is 1.
        weights: numbers to add instead of 1, one for each point.

    Returns:
        ``(histogram, edges)``: a float tensor with an axis for each coordinate, and a list of the edges.

    Raises:
        ShapeError: the sample has not two axes, or the weights have another length.
        ArgumentError: there are not as many bins as coordinates.

    >>> import tandem as td
    >>> td.histogramdd(td.asarray([[0.0, 0.0], [1.0, 4.0], [4.0, 4.0]]), 2)[0].tolist()
    [[1.0, 1.0], [0.0, 1.0]]

    Source: ``numpy.histogramdd``.
    """
    points = sample if is_tensor(sample) else stack(list(sample), 1)
    shape = spec_of(points).shape
    if len(shape) != 2:
        raise ShapeError(f"histogramdd: the sample has a row for each point, and not shape {shape}")
    each = [to_edges(one) for one in (bins if isinstance(bins, (tuple, list)) else [bins] * shape[1])]
    limits = [None] * shape[1] if range is None else list(range)
    if len(each) != shape[1] or len(limits) != shape[1]:
        raise ArgumentError(f"histogramdd: {shape[1]} coordinates need as many bins and ranges")
    columns = unstack(points, 1)
    edges = [make_edges("histogramdd", x, many, limit) for x, many, limit in zip(columns, each, limits)]
    wide = None if weights is None else check_weights("histogramdd", columns[0], weights)
    slots: Any = 0
    valid: Any = True
    sizes = []
    for x, many, edge in zip(columns, each, edges):
        slot, count = find_bins(x, edge, not is_tensor(many))
        slots, valid = slots * count + slot, logical_and(lt(slot, count), valid)
        sizes.append(count)
    total = math.prod(sizes)
    dtype = default_float() if wide is None else spec_of(wide).dtype
    result = reshape(cast(scatter_counts(where(valid, slots, total), total, wide), dtype), tuple(sizes))
    if density:
        result = result / sum_over(result)
        for axis, edge in enumerate(edges):
            widths = cast(diff(edge), dtype)
            result = result / reshape(widths, [-1 if at == axis else 1 for at in _range(len(sizes))])
    shown = [
        edge if is_tensor(many) else cast(edge, result_dtype("float", spec_of(x).dtype))
        for x, many, edge in zip(columns, each, edges)
    ]
    return result, shown
