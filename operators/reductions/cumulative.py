"""cumulative_sum and cumulative_prod of the Array API standard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ArgumentError
from ...registry.dtypes import NUMERIC, DType
from ..creation.full import ones, zeros
from ..declare.docstrings import make_docstring
from ..declare.kinds import composite
from ..declare.shape_rules import normalize_axis, spec_of
from ..elementwise.casting import astype
from ..shape.joining import concat
from .folds import sum_result_dtype
from .scans import cumprod, cumsum

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor

_TEXT = """Args:
    self: a tensor of at least one axis and of a numeric dtype.
    axis: the axis; it may be left out for a tensor of one axis.
    dtype: the dtype of the result, in which the elements are combined; None: int64 for signed and uint64 for unsigned
        integers, else that of ``self``.
    include_initial: whether the result starts with {initial}, and is longer by one.

Returns:
    A new tensor.

Raises:
    ArgumentError: ``axis`` is missing, and the tensor has several axes, or none.
    OutOfBoundsError: there is no such axis."""


def _scan(
    name: str,
    scan: OperatorFunction[Tensor],
    self: Tensor,
    axis: int | None,
    dtype: DType | None,
    initial: OperatorFunction[Tensor] | None,
) -> Tensor:
    """The scan along an axis, behind a slice of ``initial`` values unless that is None."""
    spec = spec_of(self)
    if axis is None and len(spec.shape) != 1:
        raise ArgumentError(f"{name}: a tensor of shape {spec.shape} needs an axis; pass axis=0, for example")
    along = normalize_axis(name, axis or 0, len(spec.shape))
    wanted = dtype or sum_result_dtype(spec.dtype)
    result = scan(astype(self, wanted, copy=False), along, dtype=wanted)
    if initial is None:
        return result
    first = initial((*spec.shape[:along], 1, *spec.shape[along + 1 :]), dtype=wanted, device=spec.device)
    return concat([first, result], along)


@composite(
    "cumulative_sum(Tensor self, *, int? axis=None, ScalarType? dtype=None, bool include_initial=False) -> Tensor",
    doc=make_docstring(
        "The sums of the elements up to and including each along an axis.",
        _TEXT.format(initial="0"),
        "td.cumulative_sum(td.asarray([1, 2, 3]), include_initial=True) -> [0, 1, 3, 6]",
    ),
    reference="references.arrays.cumulative_sum",
    samples="samples.reductions.cumulative_samples",
    errors="samples.reductions.cumulative_errors",
    dtypes=NUMERIC,
    method=False,
)
def cumulative_sum(self: Tensor, *, axis: int | None, dtype: DType | None, include_initial: bool) -> Tensor:
    return _scan("cumulative_sum", cumsum, self, axis, dtype, zeros if include_initial else None)


@composite(
    "cumulative_prod(Tensor self, *, int? axis=None, ScalarType? dtype=None, bool include_initial=False) -> Tensor",
    doc=make_docstring(
        "The products of the elements up to and including each along an axis.",
        _TEXT.format(initial="1"),
        "td.cumulative_prod(td.asarray([1, 2, 3]), include_initial=True) -> [1, 1, 2, 6]",
    ),
    reference="references.arrays.cumulative_prod",
    samples="samples.reductions.cumulative_samples",
    errors="samples.reductions.cumulative_errors",
    dtypes=NUMERIC,
    method=False,
)
def cumulative_prod(self: Tensor, *, axis: int | None, dtype: DType | None, include_initial: bool) -> Tensor:
    return _scan("cumulative_prod", cumprod, self, axis, dtype, ones if include_initial else None)
