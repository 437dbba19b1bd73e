"""bincount, digitize, histogram, histogram_bin_edges and histogram2d."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    ShapeError,
    UnsupportedError,
    ValueArgumentError,
)
from ...registry.dtypes import (
    DEFAULT_INT,
    INTEGERS,
    REAL,
    bool_,
    default_float,
    float32,
    float64,
    int64,
    is_half,
)
from ...registry.values import SCALARS, converters
from ..creation.creation import arange, full, linspace
from ..declare.derivatives import NotDifferentiable
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import is_tensor, promoted_dtype, result_dtype, spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import eq, ge, le, logical_and, lt
from ..elementwise.selection import minimum, where
from ..indexing.gather import index_put
from ..indexing.slicing import basic_index
from ..indexing.take import take
from ..shape.rearrange import flip
from ..shape.splitting import diff
from ..shape.views import reshape
from .folds import max as max_over
from .folds import min as min_over
from .folds import sum as sum_over
from .searching import searchsorted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...registry.types import Array, ArrayModule, Tensor


_ORDERED = (bool_, *REAL)


def _flatten(self: Tensor) -> Tensor:
    return reshape(self, (spec_of(self).size,))


# -- bincount ----------------------------------------------------------------------------------------------------------
def _count_bins(self: Tensor, minlength: int) -> int:
    """The number of bins up to the largest value; raises for negative values and in a trace."""
    if not spec_of(self).size:
        return minlength
    try:
        least, most = int(min_over(self)), int(max_over(self))
    except (ConcretizationError, UnsupportedError):
        raise UnsupportedError(
            "bincount: the result has a data-dependent shape: the largest value depends on data that a trace does not "
            "have. Pass length=n for n bins, or call bincount outside of jit"
        ) from None
    if least < 0:
        raise ValueArgumentError(f"bincount: values are not negative, but one is {least}")
    return max(most + 1, minlength)


def scatter_counts(slots: Tensor, count: int, weights: Tensor | None) -> Tensor:
    """The number or the sum of the weights of the slots from 0 to ``count`` - 1; slot ``count`` is dropped."""
    device = spec_of(slots).device
    dtype = DEFAULT_INT if weights is None else spec_of(weights).dtype
    start = full((count + 1,), 0, dtype=dtype, device=device)
    rows = full((), 1, dtype=dtype, device=device) if weights is None else weights
    return basic_index(index_put(start, [slots], rows, accumulate=True), ((0, count, 1),))


def check_weights(name: str, self: Tensor, weights: Tensor) -> Tensor:
    """The weights as floats."""
    shape, other = spec_of(self).shape, spec_of(weights)
    if other.shape != shape:
        raise ShapeError(f"{name}: weights of shape {other.shape} do not fit values of shape {shape}")
    return cast(_flatten(weights), result_dtype("float", other.dtype))


def _bincount_of_array(
    xp: ArrayModule, self: Array, weights: Array | None, minlength: int, *, length: int | None
) -> object:
    """Native twin: backends/cpu/fastpath/entries/rt_counts.py:bincount"""
    if length is not None or self.dtype.kind not in "iu":
        return NotImplemented
    if weights is None:
        return xp.bincount(self, None, minlength)  # raises for what the body rejects
    if isinstance(weights, np.ndarray) and weights.dtype.kind in "biu":
        weights = weights.astype(default_float().np)
    if not isinstance(weights, np.ndarray) or weights.dtype.char not in "fd":
        return NotImplemented
    if minlength < 0 or weights.shape != self.shape or self.ndim != 1 or not self.size:
        return NotImplemented
    if weights.dtype.char == "d":  # bincount adds in this order, and raises for negative values
        return xp.bincount(self, weights, minlength)
    if self.min() < 0:
        return NotImplemented
    result = xp.zeros(max(int(self.max()) + 1, minlength), weights.dtype)
    xp.add.at(result, self, weights)
    return result


@composite(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0, *, int? length=None) -> Tensor",
    doc=make_docstring(
        "How often each integer from 0 occurs in a vector.",
        """Args:
    self: a tensor of integers of one axis.
    weights: numbers to add instead of 1, of the same shape; integers become the default float.
    minlength: the least length of the result.
    length: the length of the result: larger and negative values are dropped. A trace requires it, because shapes must
        not depend on data; None: up to the largest value.

Returns:
    A tensor of one axis, int64 or of the dtype of the weights.

Raises:
    DTypeError: the values are not integers.
    ShapeError: the tensor has not one axis, or the weights have another shape.
    ValueArgumentError: a length is negative, or a value without ``length``.
    UnsupportedError: the tensor is traced and ``length`` is not given.""",
        "td.bincount(td.asarray([1, 3, 1])) -> [0, 2, 0, 1]",
    ),
    reference="references.numpy_functions.bincount",
    eager_kernel=_bincount_of_array,
    samples="samples.reductions.bincount_samples",
    errors="samples.reductions.bincount_errors",
    dtypes=INTEGERS,
    autocast="float32",
)
def bincount(self: Tensor, weights: Tensor | None, minlength: int, *, length: int | None) -> Tensor:
    spec = spec_of(self)
    if not spec.dtype.is_integer:
        raise DTypeError(f"bincount: values are integers, not {spec.dtype}")
    if len(spec.shape) != 1:
        raise ShapeError(f"bincount: values have one axis, not shape {spec.shape}")
    if minlength < 0 or (length is not None and length < 0):
        raise ValueArgumentError(f"bincount: a length is not negative: {minlength}, {length}")
    wide = None if weights is None else check_weights("bincount", self, weights)
    count = _count_bins(self, minlength) if length is None else max(length, minlength)
    values = cast(self, int64)
    slots = where(logical_and(ge(values, 0), lt(values, count)), values, count)
    return scatter_counts(slots, count, wide)


# -- digitize ----------------------------------------------------------------------------------------------------------
@composite(
    "digitize(Tensor self, Tensor bins, bool right=False) -> Tensor",
    doc=make_docstring(
        "The number of the bin of each element.",
        """Args:
    self: tensor of bool, integer or real floating dtype, any shape.
    bins: the edges of the bins, a tensor of one axis that increases or decreases.
    right: whether a bin includes its right edge instead of the left one.

Returns:
    An int64 tensor of the shape of ``self``: 0 is before the first edge.

Raises:
    ShapeError: the edges have not one axis.
    DTypeError: the dtype is not supported.""",
        "td.digitize(td.asarray([0.5, 1.5, 9.0]), td.asarray([1.0, 2.0])) -> [0, 1, 2]",
    ),
    reference="numpy.digitize",
    derivative=NotDifferentiable("digitize returns integers"),
    samples="samples.reductions.digitize_samples",
    errors="samples.reductions.digitize_errors",
    dtypes=_ORDERED,
    method=False,
    spellings={"x": "self"},
)
def digitize(self: Tensor, bins: Tensor, right: bool) -> Tensor:
    spec = spec_of(bins)
    if len(spec.shape) != 1:
        raise ShapeError(f"digitize: the edges have one axis, not shape {spec.shape}")
    side = "left" if right else "right"
    if spec.size < 2:
        return searchsorted(bins, self, side)
    rises = le(basic_index(bins, (0,)), basic_index(bins, (spec.size - 1,)))
    position = searchsorted(where(rises, bins, flip(bins)), self, side)
    return where(rises, position, spec.size - position)


# -- histograms --------------------------------------------------------------------------------------------------------
_BINS = """bins: the number of equal bins; or their edges, an increasing tensor or list of one axis.
    range: the lowest and the highest edge of equal bins; None: the least and the largest element."""
_RAISES = """ValueArgumentError: the number of bins is not positive, or the range decreases.
    ShapeError: the edges have not one axis.
    DTypeError: the dtype is not supported."""


def to_edges(bins: Any) -> Any:  # noqa: ANN401
    """Edges as a tensor; a number of bins as it is."""
    if is_tensor(bins) or isinstance(bins, (int, str, float)):
        return bins
    return converters[np.ndarray](np.asarray(bins))


def make_edges(
    name: str,
    self: Tensor,
    bins: Any,  # noqa: ANN401
    limits: tuple[float, ...] | None,
) -> Tensor:
    """The edges of bins, in the dtype to compare in: the tensor's, or float64 for integers, float32 for halves."""
    has_edges = is_tensor(bins)
    if has_edges:
        if len(spec_of(bins).shape) != 1:
            raise ShapeError(f"{name}: the edges have one axis, not shape {spec_of(bins).shape}")
        edges: Tensor = bins
        return edges
    spec, count = spec_of(self), bins
    if isinstance(count, str):
        raise ArgumentError(f"{name}: bins are an int or edges, not {count!r}")
    if not isinstance(count, int) or count < 1:
        raise ValueArgumentError(f"{name}: the number of bins is a positive int, not {count!r}")
    known = limits is None or all(type(end) in SCALARS for end in limits)
    if limits is not None and (len(limits) != 2 or (known and limits[0] > limits[1])):
        raise ValueArgumentError(f"{name}: range has a lower and an upper limit, not {limits}")
    dtype = float32 if is_half(spec.dtype) else spec.dtype if spec.dtype.is_inexact else float64
    if limits is None and not spec.size:
        limits = (0.0, 1.0)
    if limits is not None and known:
        margin = 0.5 if limits[0] == limits[1] else 0.0
        # NumPy computes the edges of given limits in float64, and rounds them
        exact: Tensor = linspace(
            limits[0] - margin, limits[1] + margin, count + 1, dtype=dtype, device=spec.device
        )
        return exact
    if limits is None:
        wide = cast(self, dtype)
        ends = [min_over(wide), max_over(wide)]
    else:
        ends = [full((), end, dtype=dtype, device=spec.device) for end in limits]
    flat = eq(*ends)
    low, high = ends[0] - where(flat, 0.5, 0.0), ends[1] + where(flat, 0.5, 0.0)
    steps = arange(count + 1, dtype=dtype, device=spec.device)
    return where(eq(steps, count), high, steps * ((high - low) / count) + low)


def find_bins(self: Tensor, edges: Tensor, are_equal: bool) -> tuple[Tensor, int]:
    """The bin of each element, and the number of bins, which is the slot of elements in none.

    The bin of equal ones follows from the distance from the first edge but for rounding, as in ``numpy.histogram``.
    """
    dtype, count = spec_of(edges).dtype, spec_of(edges).size - 1
    values = _flatten(self)
    if are_equal:
        return _find_equal_bins(cast(values, dtype), edges, count), count
    if promoted_dtype("histogram", (values, edges)) is not dtype:
        edges = cast(edges, promoted_dtype("histogram", (values, edges)))
    bins = searchsorted(edges, cast(values, edges.dtype), "right") - 1
    last = eq(values, basic_index(edges, (count,)))
    bins = where(last, count - 1, bins)
    return where(logical_and(ge(bins, 0), lt(bins, count)), bins, count), count


def _find_equal_bins(values: Tensor, edges: Tensor, count: int) -> Tensor:
    low, high = basic_index(edges, (0,)), basic_index(edges, (count,))
    is_inside = logical_and(ge(values, low), le(values, high))
    near = cast(where(is_inside, (values - low) / (high - low) * count, 0), int64)
    near = minimum(near, count - 1)
    before = lt(values, take(edges, near, 0))
    after = logical_and(ge(values, take(edges, near + 1, 0)), lt(near, count - 1))
    return where(is_inside, near - cast(before, int64) + cast(after, int64), count)


@composite(
    "histogram_bin_edges(Tensor self, Any bins=10, float[]? range=None, Tensor? weights=None) -> Tensor",
    doc=make_docstring(
        "The edges of the bins of a histogram.",
        f"""Args:
    self: tensor of bool, integer or real floating dtype, any shape.
    {_BINS}
    weights: accepted for compatibility with NumPy; it has no effect.

Returns:
    A tensor of one axis, of the dtype of ``self``, or the default float for integers and bools.

Raises:
    {_RAISES}""",
        "td.histogram_bin_edges(td.asarray([0.0, 1.0, 4.0]), 2) -> [0.0, 2.0, 4.0]",
    ),
    reference="references.numpy_functions.histogram_bin_edges",
    samples="samples.reductions.bin_edge_samples",
    errors="samples.reductions.histogram_errors",
    dtypes=REAL,
    method=False,
    autocast="float32",
    spellings={"a": "self"},
)
def histogram_bin_edges(
    self: Tensor,
    bins: Tensor | Sequence[float] | int,
    range: tuple[float, ...] | None,
    weights: Tensor | None,
) -> Tensor:
    bins = to_edges(bins)
    edges = make_edges("histogram_bin_edges", self, bins, range)
    return edges if is_tensor(bins) else cast(edges, result_dtype("float", spec_of(self).dtype))


@composite(
    "histogram(Tensor self, Any bins=10, float[]? range=None, bool? density=None, Tensor? weights=None)"
    " -> (Tensor hist, Tensor bin_edges)",
    doc=make_docstring(
        "The number of elements in each of some bins, and the edges of the bins.",
        f"""Args:
    self: tensor of bool, integer or real floating dtype, any shape.
    {_BINS}
    density: whether the histogram's integral is 1.
    weights: numbers to add instead of 1, of the same shape; integers become the default float.

Returns:
    ``(hist, bin_edges)``: int64, or floating with weights or ``density``; and the edges. The last bin includes its
    right edge.

Raises:
    {_RAISES}

>>> [x.tolist() for x in td.histogram(td.asarray([0.0, 1.0, 4.0]), 2)]
[[2, 1], [0.0, 2.0, 4.0]]
""",
        "",
    ),
    reference="references.numpy_functions.histogram",
    samples="samples.reductions.histogram_samples",
    errors="samples.reductions.histogram_errors",
    dtypes=REAL,
    method=False,
    autocast="float32",
    spellings={"a": "self"},
)
def histogram(
    self: Tensor,
    bins: Tensor | Sequence[float] | int,
    range: tuple[float, ...] | None,
    density: bool | None,
    weights: Tensor | None,
) -> tuple[Tensor, Tensor]:
    bins = to_edges(bins)
    edges = make_edges("histogram", self, bins, range)
    wide = None if weights is None else check_weights("histogram", self, weights)
    slots, count = find_bins(self, edges, not is_tensor(bins))
    result = scatter_counts(slots, count, wide)
    shown = edges if is_tensor(bins) else cast(edges, result_dtype("float", spec_of(self).dtype))
    if density:
        floats = cast(result, result_dtype("float", spec_of(result).dtype))
        result = floats / cast(diff(shown), floats.dtype) / sum_over(floats)
    return result, shown


def _split_bins(bins: Any) -> list[Any]:  # noqa: ANN401
    """The bins of each axis: of one argument for both, or a pair."""
    if isinstance(bins, (list, tuple)):
        if len(bins) != 2:
            raise ArgumentError(
                f"histogram2d: bins are an int, a tensor of edges, or a pair of them, not {bins!r}"
            )
        return [to_edges(one) for one in bins]
    return [to_edges(bins)] * 2


@composite(
    "histogram2d(Tensor self, Tensor y, Any bins=10, Any range=None, bool? density=None, Tensor? weights=None)"
    " -> (Tensor hist, Tensor x_edges, Tensor y_edges)",
    doc=make_docstring(
        "The number of points in each of some rectangular bins, and the edges of the bins.",
        f"""Args:
    self, y: the coordinates of the points: tensors of integer or real floating dtype, of one axis and length.
    bins: as for `histogram`, for both axes; or a pair.
    range: a pair of ranges; None: the least and the largest coordinates.
    density: whether the histogram's integral is 1.
    weights: numbers to add instead of 1, of the same shape; integers become the default float.

Returns:
    ``(hist, x_edges, y_edges)``: a float matrix with a row for each bin of x, and the edges.

Raises:
    ArgumentError: there are not two bins.
    {_RAISES}

>>> x, y = td.asarray([0.0, 1.0, 4.0]), td.asarray([0.0, 4.0, 4.0])
>>> td.histogram2d(x, y, 2)[0].tolist()
[[1.0, 1.0], [0.0, 1.0]]
""",
        "",
    ),
    reference="references.numpy_functions.histogram2d",
    samples="samples.reductions.histogram2d_samples",
    errors="samples.reductions.histogram2d_errors",
    dtypes=REAL,
    method=False,
    autocast="float32",
    spellings={"x": "self"},
)
def histogram2d(
    self: Tensor,
    y: Tensor,
    bins: Tensor | Sequence[float | Tensor] | int,
    range: Sequence[tuple[float, ...] | None] | None,
    density: bool | None,
    weights: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    shapes = spec_of(self).shape, spec_of(y).shape
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        raise ShapeError(
            f"histogram2d: coordinates have one axis and length, not shapes {shapes[0]} and {shapes[1]}"
        )
    limits, each = (None, None) if range is None else range, _split_bins(bins)
    edges = [make_edges("histogram2d", x, many, limit) for x, many, limit in zip((self, y), each, limits)]
    wide = None if weights is None else check_weights("histogram2d", self, weights)
    (rows, height), (columns, width) = (
        find_bins(x, edge, not is_tensor(many)) for x, many, edge in zip((self, y), each, edges)
    )
    valid = logical_and(lt(rows, height), lt(columns, width))
    counts = scatter_counts(where(valid, rows * width + columns, height * width), height * width, wide)
    dtype = default_float() if wide is None else spec_of(wide).dtype
    result = reshape(cast(counts, dtype), (height, width))
    if density:
        steps = [cast(diff(edge), dtype) for edge in edges]
        result = result / reshape(steps[0], (height, 1)) / steps[1] / sum_over(result)
    x_edges, y_edges = (
        edge if is_tensor(many) else cast(edge, result_dtype("float", spec_of(x).dtype))
        for x, many, edge in zip((self, y), each, edges)
    )
    return result, x_edges, y_edges
