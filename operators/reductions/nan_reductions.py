"""Reductions and scans that skip NaN, composed of those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...registry.dtypes import ALL, REAL, bool_
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from ..elementwise.casting import cast
from ..elementwise.comparison import isnan, logical_not
from ..elementwise.complex_parts import real
from ..elementwise.exponential import sqrt
from ..elementwise.selection import clip, where
from .folds import all, argmax, argmin, max, min, prod, sum
from .scans import cumprod, cumsum
from .statistics import narrow_halves, square_magnitudes, widen_halves

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.dtypes import DType
    from ...registry.types import Tensor

_ORDERED = (bool_, *REAL)
_ARGS = """Args:
    self: tensor of {dtypes} dtype, any shape.
    axis: {axis}{more}

Returns:
    {returns}

Raises:
    OutOfBoundsError: an axis is out of bounds."""
_SEVERAL = "an axis, several, or None for all."
_ONE = "an axis, or None for the flattened tensor."
_KEEPDIMS = "\n    keepdims: whether reduced axes remain, with length 1."
_DTYPE = "\n    dtype: dtype of the result; by default the tensor's, int64 or uint64 for integers."
_CAST = "\n    dtype: the dtype that the elements are cast to before they are combined; None: the tensor's."
_CORRECTION = "\n    correction: the sum of squares is divided by the number of elements less the correction."
_ERRORS = "samples.kinds.reduction_errors"


def _doc(
    summary: str,
    example: str,
    *,
    dtypes: str = "any",
    axis: str = _SEVERAL,
    more: str = _KEEPDIMS,
    returns: str = "A tensor of the reduced shape.",
) -> str:
    return make_docstring(
        summary, _ARGS.format(dtypes=dtypes, axis=axis, more=more, returns=returns), example
    )


def _cast_to(self: Tensor, dtype: DType | None) -> Tensor:
    return self if dtype is None else cast(self, dtype)


def _replace_nan(self: Tensor, value: float) -> Tensor:
    return where(isnan(self), value, self) if spec_of(self).dtype.is_inexact else self


# -- sums and products -------------------------------------------------------------------------------------------------
@composite(
    "nansum(Tensor self, int[]? axis=None, *, ScalarType? dtype=None, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The sum of the elements that are not NaN; 0 if there are none.",
        "td.nansum(td.asarray([1.0, td.nan, 2.0])) -> 3.0",
        more=_DTYPE + _KEEPDIMS,
    ),
    reference="numpy.nansum",
    samples="samples.kinds.fold_samples",
    errors=_ERRORS,
    dtypes=ALL,
    autocast="float32",
)
def nansum(self: Tensor, axis: tuple[int, ...] | None, *, dtype: DType | None, keepdims: bool) -> Tensor:
    return sum(_replace_nan(self, 0), axis, dtype=dtype, keepdims=keepdims)


@composite(
    "nanprod(Tensor self, int[]? axis=None, *, ScalarType? dtype=None, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The product of the elements that are not NaN; 1 if there are none.",
        "td.nanprod(td.asarray([3.0, td.nan, 2.0])) -> 6.0",
        more=_DTYPE + _KEEPDIMS,
    ),
    reference="numpy.nanprod",
    samples="samples.kinds.fold_samples",
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
    autocast="float32",
)
def nanprod(self: Tensor, axis: tuple[int, ...] | None, *, dtype: DType | None, keepdims: bool) -> Tensor:
    return prod(_replace_nan(self, 1), axis, dtype=dtype, keepdims=keepdims)


@composite(
    "nancumsum(Tensor self, int? axis=None, *, ScalarType? dtype=None) -> Tensor",
    doc=_doc(
        "The cumulative sums, with NaN counted as 0.",
        "td.nancumsum(td.asarray([1.0, td.nan, 2.0])) -> [1.0, 1.0, 3.0]",
        axis=_ONE,
        more=_DTYPE,
        returns="A tensor of the same shape, or 1-d without an axis.",
    ),
    reference="numpy.nancumsum",
    samples="samples.reductions.nan_scan_samples",
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
    autocast="float32",
)
def nancumsum(self: Tensor, axis: int | None, *, dtype: DType | None) -> Tensor:
    return cumsum(_replace_nan(self, 0), axis, dtype=dtype)


@composite(
    "nancumprod(Tensor self, int? axis=None, *, ScalarType? dtype=None) -> Tensor",
    doc=_doc(
        "The cumulative products, with NaN counted as 1.",
        "td.nancumprod(td.asarray([3.0, td.nan, 2.0])) -> [3.0, 3.0, 6.0]",
        axis=_ONE,
        more=_DTYPE,
        returns="A tensor of the same shape, or 1-d without an axis.",
    ),
    reference="numpy.nancumprod",
    samples="samples.reductions.nan_scan_samples",
    errors=_ERRORS,
    dtypes=ALL,
    method=False,
    autocast="float32",
)
def nancumprod(self: Tensor, axis: int | None, *, dtype: DType | None) -> Tensor:
    return cumprod(_replace_nan(self, 1), axis, dtype=dtype)


# -- extrema -----------------------------------------------------------------------------------------------------------
def _extremum(
    reduce: Callable[..., Tensor],
    self: Tensor,
    low: float,
    missing: float,
    axis: tuple[int, ...] | int | None,
    keepdims: bool,
) -> Tensor:
    """The extremum, or its index, with NaN replaced by ``low``; ``missing`` if all are NaN."""
    if not spec_of(self).dtype.is_inexact:
        return reduce(self, axis, keepdims=keepdims)
    result = reduce(_replace_nan(self, low), axis, keepdims=keepdims)
    return where(all(isnan(self), axis, keepdims=keepdims), missing, result)


@composite(
    "nanmax(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The largest element that is not NaN; NaN if all are.",
        "td.nanmax(td.asarray([1.0, td.nan, 2.0])) -> 2.0",
        dtypes="bool or real",
    ),
    reference="references.numpy_functions.nanmax",
    samples="samples.reductions.nan_samples",
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
)
def nanmax(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return _extremum(max, self, float("-inf"), float("nan"), axis, keepdims)


@composite(
    "nanmin(Tensor self, int[]? axis=None, *, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The smallest element that is not NaN; NaN if all are.",
        "td.nanmin(td.asarray([1.0, td.nan, 2.0])) -> 1.0",
        dtypes="bool or real",
    ),
    reference="references.numpy_functions.nanmin",
    samples="samples.reductions.nan_samples",
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
)
def nanmin(self: Tensor, axis: tuple[int, ...] | None, *, keepdims: bool) -> Tensor:
    return _extremum(min, self, float("inf"), float("nan"), axis, keepdims)


@composite(
    "nanargmax(Tensor self, int? axis=None, *, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The index of the largest element that is not NaN, the first of several; -1 if all are NaN.",
        "td.nanargmax(td.asarray([1.0, td.nan, 2.0])) -> 2",
        dtypes="bool or real",
        axis=_ONE,
    ),
    reference="numpy.nanargmax",
    samples="samples.kinds.index_reduction_samples",
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
)
def nanargmax(self: Tensor, axis: int | None, *, keepdims: bool) -> Tensor:
    return _extremum(argmax, self, float("-inf"), -1, axis, keepdims)


@composite(
    "nanargmin(Tensor self, int? axis=None, *, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The index of the smallest element that is not NaN, the first of several; -1 if all are NaN.",
        "td.nanargmin(td.asarray([1.0, td.nan, 2.0])) -> 0",
        dtypes="bool or real",
        axis=_ONE,
    ),
    reference="numpy.nanargmin",
    samples="samples.kinds.index_reduction_samples",
    errors=_ERRORS,
    dtypes=_ORDERED,
    method=False,
)
def nanargmin(self: Tensor, axis: int | None, *, keepdims: bool) -> Tensor:
    return _extremum(argmin, self, float("inf"), -1, axis, keepdims)


# -- mean and variance -------------------------------------------------------------------------------------------------
def _count(self: Tensor, axis: tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """The number of elements that are not NaN, in the dtype of the tensor."""
    return sum(cast(logical_not(isnan(self)), spec_of(self).dtype), axis, keepdims=keepdims)


@composite(
    "nanmean(Tensor self, int[]? axis=None, *, ScalarType? dtype=None, bool keepdims=False) -> Tensor",
    doc=_doc(
        "The arithmetic mean of the elements that are not NaN; NaN if there are none.",
        "td.nanmean(td.asarray([1.0, td.nan, 2.0])) -> 1.5",
        dtypes="numeric",
        more=_CAST + _KEEPDIMS,
    ),
    reference="references.numpy_functions.nanmean",
    samples="samples.reductions.nan_samples",
    errors=_ERRORS,
    dtypes=ALL[1:],
    autocast="float32",
)
def nanmean(self: Tensor, axis: tuple[int, ...] | None, *, dtype: DType | None, keepdims: bool) -> Tensor:
    self = _cast_to(self, dtype)
    wide = widen_halves(self)
    total = sum(_replace_nan(wide, 0), axis, keepdims=keepdims)
    return narrow_halves(total / _count(wide, axis, keepdims), self)


def _nan_variance(wide: Tensor, axis: tuple[int, ...] | None, correction: float, keepdims: bool) -> Tensor:
    mean = sum(_replace_nan(wide, 0), axis, keepdims=True) / _count(wide, axis, True)
    centred = where(isnan(wide), 0.0, wide - mean)
    count = _count(wide, axis, keepdims)
    degrees = clip((real(count) if count.dtype.is_complex else count) - correction, 0, None)
    result = sum(square_magnitudes(centred), axis, keepdims=keepdims) / degrees
    return where(degrees > 0, result, float("nan"))


@composite(
    "nanvar(Tensor self, int[]? axis=None, *, float correction=0.0, ScalarType? dtype=None, bool keepdims=False)"
    " -> Tensor",
    doc=_doc(
        "The variance of the elements that are not NaN; NaN if there are too few.",
        "td.nanvar(td.asarray([1.0, td.nan, 3.0])) -> 1.0",
        dtypes="integer, real floating or complex",
        more=_CORRECTION + _CAST + _KEEPDIMS,
    ),
    reference="references.numpy_functions.nanvar",
    samples="samples.reductions.nan_samples",
    errors=_ERRORS,
    dtypes=ALL[1:],
    method=False,
    autocast="float32",
    spellings={"ddof": "correction"},
)
def nanvar(
    self: Tensor, axis: tuple[int, ...] | None, *, correction: float, dtype: DType | None, keepdims: bool
) -> Tensor:
    self = _cast_to(self, dtype)
    return narrow_halves(_nan_variance(widen_halves(self), axis, correction, keepdims), self)


@composite(
    "nanstd(Tensor self, int[]? axis=None, *, float correction=0.0, ScalarType? dtype=None, bool keepdims=False)"
    " -> Tensor",
    doc=_doc(
        "The standard deviation of the elements that are not NaN; NaN if there are too few.",
        "td.nanstd(td.asarray([1.0, td.nan, 3.0])) -> 1.0",
        dtypes="integer, real floating or complex",
        more=_CORRECTION + _CAST + _KEEPDIMS,
    ),
    reference="references.numpy_functions.nanstd",
    samples="samples.reductions.nan_samples",
    errors=_ERRORS,
    dtypes=ALL[1:],
    method=False,
    autocast="float32",
    spellings={"ddof": "correction"},
)
def nanstd(
    self: Tensor, axis: tuple[int, ...] | None, *, correction: float, dtype: DType | None, keepdims: bool
) -> Tensor:
    self = _cast_to(self, dtype)
    return narrow_halves(sqrt(_nan_variance(widen_halves(self), axis, correction, keepdims)), self)
