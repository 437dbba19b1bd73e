"""Histograms with NumPy's rules for the number of bins, and sums of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..eager.tensor.tensor import Tensor
from ..errors import ConcretizationError, ShapeError
from ..operators.declare.shape_rules import spec_of
from ..operators.reductions import histograms
from ..operators.shape.views import reshape
from .array_likes import name_operator
from .memory import to_arrays

if TYPE_CHECKING:
    from ..registry.types import TensorLike

    Bins = int | str | Sequence[float] | Tensor
    Range = tuple[float, float] | None


def _count_bins(name: str, a: Tensor, bins: Bins, limits: Range, weights: TensorLike | None) -> Bins:
    """The number of bins by a rule of NumPy, such as ``"auto"``; other bins as they are."""
    if not isinstance(bins, str):
        return bins
    if type(a) is not Tensor:
        raise ConcretizationError(
            f"{name}: bins={bins!r} depends on the values; under a transform, pass an int"
        )
    return len(np.histogram_bin_edges(a.numpy(), bins, limits, to_arrays(weights))) - 1


@name_operator(histograms.histogram_bin_edges, takes_none=True, most=3)
def histogram_bin_edges(
    a: Tensor, bins: Bins = 10, range: Range = None, weights: TensorLike | None = None
) -> Tensor:
    """The edges of the bins of a histogram; arguments are those of :func:`histogram`.

    >>> import tandem.numpy as np
    >>> np.histogram_bin_edges([0.0, 1.0, 2.0, 4.0], "sturges").tolist()
    [0.0, 1.3333333333333333, 2.6666666666666665, 4.0]

    Source: ``numpy.histogram_bin_edges``.
    """
    return histograms.histogram_bin_edges(a, _count_bins("histogram_bin_edges", a, bins, range, None), range)


@name_operator(histograms.histogram, "weights", takes_none=True, most=4)
def histogram(
    a: Tensor,
    bins: Bins = 10,
    range: Range = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """The number of elements in each of some bins, and the edges of the bins.

    Args:
        a: a tensor of real dtype, any shape.
        bins: the number of bins; their edges; or, of values that are known, a rule of NumPy: ``"auto"``, ``"fd"``,
            ``"doane"``, ``"scott"``, ``"stone"``, ``"rice"``, ``"sturges"`` or ``"sqrt"``.
        range: the lowest and the highest edge of equal bins; None: the least and the largest element.
        density: whether the histogram's integral is 1.
        weights: numbers to add instead of 1, of the same shape; sums of integers have their dtype.

    Returns:
        ``(hist, bin_edges)``.

    Raises:
        ConcretizationError: the values are not known, and ``bins`` is a rule.

    >>> import tandem.numpy as np
    >>> np.histogram([0.0, 1.0, 4.0], 2, weights=np.array([1, 2, 3]))[0].tolist()
    [3, 3]

    Source: ``numpy.histogram``.
    """
    bins = _count_bins("histogram", a, bins, range, weights)
    if weights is None or density or spec_of(weights).dtype.kind not in "iu":
        return histograms.histogram(a, bins, range, density, weights)
    if spec_of(weights).shape != spec_of(a).shape:
        raise ShapeError(f"histogram: weights of shape {spec_of(weights).shape} for shape {spec_of(a).shape}")
    edges = histograms.make_edges("histogram", a, histograms.to_edges(bins), range)
    slots, count = histograms.find_bins(a, edges, isinstance(bins, int))
    totals = histograms.scatter_counts(slots, count, reshape(weights, (-1,)))
    return totals, histograms.histogram_bin_edges(a, bins, range)
