"""median, quantile and percentile, also of the elements that are not NaN.

``median.dim`` and ``nanmedian.dim`` are PyTorch's: the lower of two elements in the middle, and its index.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import HALVES, REAL, float32, float64, int64
from ...registry.values import SCALARS, traced_number_types
from ..creation.creation import full
from ..declare.declaration import ErrorInput, TensorSample
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.named_results import ValuesAndIndices
from ..declare.shape_rules import normalize_axes, normalize_axis, reduced_shape, result_dtype, spec_of
from ..elementwise.casting import cast, stop_gradient
from ..elementwise.comparison import eq, isfinite, isnan, logical_and, logical_not, lt
from ..elementwise.rounding import ceil, floor, round
from ..elementwise.selection import clip, minimum, where
from ..indexing.take import take_along_axis
from ..shape.joining import concat
from ..shape.rearrange import moveaxis
from ..shape.splitting import slice_axis
from ..shape.views import broadcast_to, reshape
from .extrema import take_at
from .folds import any, sum
from .selection import find_rank, select
from .sorting import sort

if TYPE_CHECKING:
    from ...registry.types import Tensor

# Methods that interpolate between elements: the numbers alpha and beta of Hyndman and Fan, "Sample quantiles in
# statistical packages", 1996.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_LEAST_SELECTED = 4096  # elements of rows of which one quantile is found faster by rank than by sorting
_METHODS = (
    *("linear", "lower", "higher", "midpoint", "nearest"),
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *_CONTINUOUS,
)
_ARGS = """Args:
    self: tensor of integer or real floating dtype; integers become the default float.{q}
    axis: an axis, several, or None for all.{method}
    keepdims: whether reduced axes remain, with length 1.

Returns:
    A tensor of the reduced shape{shape}. {nan}

Raises:
    {q_error}ShapeError: there are no elements.
    OutOfBoundsError: an axis is out of bounds."""
_METHOD = """
    method: between two elements: ``"linear"`` interpolation, the ``"lower"``, the ``"higher"``, their ``"midpoint"``,
        or the ``"nearest"``; or an estimate of Hyndman and Fan: ``"inverted_cdf"``, ``"averaged_inverted_cdf"``,
        ``"closest_observation"``, ``"interpolated_inverted_cdf"``, ``"hazen"``, ``"weibull"``, ``"median_unbiased"``,
        ``"normal_unbiased"``."""


def _doc(summary: str, example: str, limit: int, skips_nan: bool) -> str:
    """The docstring of a median (limit 0), or of quantiles up to ``limit``."""
    q = f"\n    q: a number between 0 and {limit}, or a tensor of them, which are clipped to that range."
    error = f"ValueArgumentError: ``q`` is a number that is not between 0 and {limit}, or an unknown method.\n    "
    text = _ARGS.format(
        q=q if limit else "",
        method=_METHOD if limit else "",
        shape=", with the axes of ``q`` in front" if limit else "",
        nan="NaN if all elements are NaN." if skips_nan else "NaN if an element is NaN.",
        q_error=error if limit else "",
    )
    return make_docstring(summary, text, example)


def _fraction(name: str, q: Tensor | float, limit: int, device: str) -> Tensor:
    """``q`` as a tensor of fractions, in float32 at least, and float64 for integers."""
    if isinstance(q, SCALARS):
        number = float(q)
        if not 0 <= number <= limit:
            raise ValueArgumentError(f"{name}: q must be between 0 and {limit}, not {number}")
        return full((), number / limit, dtype=float64, device=device)
    if type(q) in traced_number_types:
        q = full((), q, dtype=float64, device=device)
    spec = spec_of(q)
    wide = cast(q, float32) if spec.dtype in HALVES else q if spec.dtype.is_inexact else cast(q, float64)
    return clip(wide / limit if limit != 1 else wide, 0, 1)


def _join_reduced(name: str, self: Tensor, axis: tuple[int, ...] | None) -> Tensor:
    """The elements as floats, with a last axis that joins the reduced ones."""
    spec = spec_of(self)
    axes = normalize_axes(name, axis, len(spec.shape))
    kept = reduced_shape(spec.shape, axes, False)
    count = math.prod(spec.shape[at] for at in axes)
    if not count:
        raise ShapeError(f"{name}: there are no elements to reduce in {spec} over axes {axes}")
    joined = reshape(moveaxis(self, axes, tuple(range(-len(axes), 0))) if axes else self, (*kept, count))
    return cast(joined, result_dtype("float", spec.dtype))


def _find_position(method: str, fraction: Tensor, count: Tensor | int) -> Tensor:
    """The positions of quantiles among ``count`` sorted elements, as floats."""
    last: Tensor | int = count - 1 if isinstance(count, int) else clip(count - 1, 0, None)
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        position = count * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
    elif method == "inverted_cdf":
        position = ceil(count * fraction) - 1
    elif method == "averaged_inverted_cdf":
        before = count * fraction - 1
        position = where(eq(floor(before), before), before + 0.5, ceil(before))
    elif method == "closest_observation":
        before = count * fraction - 1.5
        at = floor(before)
        position = where(logical_and(eq(at, before), eq(at % 2, 1)), at, at + 1)
    else:
        return fraction * last
    return minimum(clip(position, 0, None), last)


def _find_neighbours(position: Tensor, method: str) -> list[Tensor]:
    """The positions of the one or two elements, int64, that determine the value at a fractional position."""
    if method in ("nearest", "inverted_cdf", "closest_observation"):
        return [cast(round(position), int64)]
    low, high = cast(floor(position), int64), cast(ceil(position), int64)
    if method in ("lower", "higher"):
        return [low if method == "lower" else high]
    return [low, high]


def _interpolate(low: Tensor, high: Tensor, position: Tensor, method: str) -> Tensor:
    """The values between two neighbours at a fractional position."""
    share = 0.5 if method == "midpoint" else cast(position - floor(position), low.dtype)
    return where(isfinite(low), low + (high - low) * share, low)  # inf - inf is NaN


def _pick(rows: Tensor, positions: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    """The elements at positions in sorted order along the last axis, and whether a row has a NaN."""
    count, last = rows.shape[-1], len(rows.shape) - 1
    if count >= _LEAST_SELECTED and positions[0].shape[-1] == 1:
        values = select(rows, concat(positions, -1))
        parts = [slice_axis(values, last, at, at + 1) for at in range(len(positions))]
        return parts, any(isnan(rows), -1, keepdims=True)
    ordered = sort(rows)
    largest = slice_axis(ordered, last, count - 1, count)  # NaN is sorted last
    return [take_along_axis(ordered, position) for position in positions], isnan(largest)


def _quantile(
    name: str,
    self: Tensor,
    q: Tensor | float,
    axis: tuple[int, ...] | None,
    method: str,
    keepdims: bool,
    limit: int = 1,
    skips_nan: bool = False,
) -> Tensor:
    if method not in _METHODS:
        raise ValueArgumentError(f"{name}: the method is one of {', '.join(_METHODS)}, not {method!r}")
    spec = spec_of(self)
    shape, fraction = spec.shape, _fraction(name, q, limit, spec.device)
    rows, q_shape, size = _join_reduced(name, self, axis), fraction.shape, fraction.size
    count: Tensor | int = rows.shape[-1]
    if skips_nan:
        count = sum(cast(logical_not(isnan(rows)), fraction.dtype), -1, keepdims=True)
    flat = reshape(fraction, (1,) * (len(rows.shape) - 1) + (size,))
    position = broadcast_to(_find_position(method, flat, count), (*rows.shape[:-1], size))
    neighbours = _find_neighbours(position, method)
    values, has_nan = _pick(rows, neighbours)
    result = values[0] if len(values) == 1 else _interpolate(values[0], values[1], position, method)
    if not skips_nan:
        result = where(has_nan, float("nan"), result)
    axes = normalize_axes(name, axis, len(shape))
    return reshape(moveaxis(result, -1, 0), (*q_shape, *reduced_shape(shape, axes, keepdims)))


@composite(
    "quantile(Tensor self, Tensor q, int[]? axis=None, *, str method='linear', bool keepdims=False) -> Tensor",
    doc=_doc(
        "The quantiles of the elements.", "td.quantile(td.asarray([1.0, 2.0, 4.0]), 0.75) -> 3.0", 1, False
    ),
    reference="numpy.quantile",
    samples=("samples.reductions.quantile_samples", 1),
    errors=("samples.reductions.quantile_errors", 1),
    dtypes=REAL,
    spellings={"interpolation": "method"},
)
def quantile(self: Tensor, q: Tensor, axis: tuple[int, ...] | None, *, method: str, keepdims: bool) -> Tensor:
    return _quantile("quantile", self, q, axis, method, keepdims)


@composite(
    "percentile(Tensor self, Tensor q, int[]? axis=None, *, str method='linear', bool keepdims=False) -> Tensor",
    doc=_doc(
        "The percentiles of the elements.",
        "td.percentile(td.asarray([1.0, 2.0, 4.0]), 75) -> 3.0",
        100,
        False,
    ),
    reference="numpy.percentile",
    samples=("samples.reductions.quantile_samples", 100),
    errors=("samples.reductions.quantile_errors", 100),
    dtypes=REAL,
    method=False,
    spellings={"interpolation": "method"},
)
def percentile(
    self: Tensor, q: Tensor, axis: tuple[int, ...] | None, *, method: str, keepdims: bool
) -> Tensor:
    return _quantile("percentile", self, q, axis, method, keepdims, limit=100)


@composite(
    "nanquantile(Tensor self, Tensor q, int[]? axis=None, *, str method='linear', bool keepdims=False) -> Tensor",
    doc=_doc(
        "The quantiles of the elements that are not NaN.",
        "td.nanquantile(td.asarray([1.0, td.nan, 2.0, 4.0]), 0.75) -> 3.0",
        1,
        True,
    ),
    reference="numpy.nanquantile",
    samples=("samples.reductions.quantile_samples", 1),
    errors=("samples.reductions.quantile_errors", 1),
    dtypes=REAL,
    spellings={"interpolation": "method"},
)
def nanquantile(
    self: Tensor, q: Tensor, axis: tuple[int, ...] | None, *, method: str, keepdims: bool
) -> Tensor:
    return _quantile("nanquantile", self, q, axis, method, keepdims, skips_nan=True)


@composite(
    "nanpercentile(Tensor self, Tensor q, int[]? axis=None, *, str method='linear', bool keepdims=False) -> Tensor",
    doc=_doc(
        "The percentiles of the elements that are not NaN.",
        "td.nanpercentile(td.asarray([1.0, td.nan, 2.0, 4.0]), 75) -> 3.0",
        100,
        True,
    ),
    reference="numpy.nanpercentile",
    samples=("samples.reductions.quantile_samples", 100),
    errors=("samples.reductions.quantile_errors", 100),
    dtypes=REAL,
    method=False,
    spellings={"interpolation": "method"},
)
def nanpercentile(
    self: Tensor, q: Tensor, axis: tuple[int, ...] | None, *, method: str, keepdims: bool
) -> Tensor:
    return _quantile("nanpercentile", self, q, axis, method, keepdims, limit=100, skips_nan=True)


@composite(
    "median(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The median of the elements: the mean of the two in the middle for an even number.",
        "td.median(td.asarray([1.0, 4.0, 2.0, 5.0])) -> 3.0",
        0,
        False,
    ),
    reference="numpy.median",
    samples="samples.reductions.median_samples",
    errors=lambda: [ErrorInput((TensorSample((0,)),), ValueError, "no elements")],
    dtypes=REAL,
)
def median(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return _quantile("median", self, 0.5, axis, "midpoint", keepdims)


@composite(
    "nanmedian(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The median of the elements that are not NaN.",
        "td.nanmedian(td.asarray([1.0, td.nan, 2.0])) -> 1.5",
        0,
        True,
    ),
    reference="numpy.nanmedian",
    samples="samples.reductions.median_samples",
    errors=lambda: [ErrorInput((TensorSample((0,)),), ValueError, "no elements")],
    dtypes=REAL,
)
def nanmedian(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return _quantile("nanmedian", self, 0.5, axis, "midpoint", keepdims, skips_nan=True)


# -- PyTorch's medians -------------------------------------------------------------------------------------------------
_DIM_TEXT = """Args:
    self: a real tensor of at least one axis.
    dim: the axis.
    keepdim: whether the axis remains, with length 1.

Returns:
    ``(values, indices)``, a named tuple; {nan} The indices are int64.

Raises:
    OutOfBoundsError: there is no such axis.
    ShapeError: the axis has no elements."""


def _median_dim(name: str, self: Tensor, dim: int, keepdim: bool, skips_nan: bool) -> tuple[Tensor, Tensor]:
    spec = spec_of(self)
    along = normalize_axis(name, dim, len(spec.shape))
    count = spec.shape[along]
    if not count:
        raise ShapeError(f"{name}: there are no elements to reduce in {spec} over axis {along}")
    middle = (count - 1) // 2
    if not spec.dtype.is_inexact:
        return take_at(self, find_rank(self, middle, along), along, keepdim)
    valid = count - sum(cast(isnan(stop_gradient(self)), int64), along, keepdims=True)
    if skips_nan:
        position = clip(valid - 1, 0, None) // 2
    else:
        position = where(lt(valid, count), valid, middle)  # the first NaN, which are sorted last
    return take_at(self, find_rank(self, position, along), along, keepdim)


@composite(
    "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The medians along an axis, and their indices: the lower of the two in the middle for an even number.",
        _DIM_TEXT.format(nan="NaN if an element is NaN."),
        "td.median(td.asarray([1.0, 4.0, 2.0, 5.0]), dim=0).values -> 2.0",
    ),
    reference="references.order.median_dim",
    samples="samples.order.median_samples",
    errors="samples.order.median_errors",
    dtypes=REAL,
    spellings={"axis": "dim", "keepdims": "keepdim"},
    result_type=ValuesAndIndices,
)
def median_dim(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return _median_dim("median", self, dim, keepdim, skips_nan=False)


@composite(
    "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    doc=make_docstring(
        "The medians of the elements that are not NaN along an axis, and their indices; the lower of two.",
        _DIM_TEXT.format(nan="NaN if all elements are NaN."),
        "td.nanmedian(td.asarray([1.0, td.nan, 2.0]), dim=0).values -> 1.0",
    ),
    reference="references.order.nanmedian_dim",
    samples="samples.order.median_samples",
    errors="samples.order.median_errors",
    dtypes=REAL,
    spellings={"axis": "dim", "keepdims": "keepdim"},
    result_type=ValuesAndIndices,
)
def nanmedian_dim(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    return _median_dim("nanmedian", self, dim, keepdim, skips_nan=True)
