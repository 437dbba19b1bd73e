"""Masks in subscripts: their positions, and writes that need no positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...registry.dtypes import bool_
from ...registry.schemas.binding import to_tensor_or_number
from ...registry.values import TensorBase, converters, traced_number_types
from ..creation.creation import full
from ..declare.shape_rules import spec_of
from ..elementwise.casting import astype
from ..elementwise.selection import where
from ..shape.views import reshape
from .slicing import check_storable
from .take import nonzero

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor, TensorLike


def is_mask(item: Any) -> bool:
    """Whether a part of a key is a mask, as a tensor or an array."""
    return isinstance(item, np.ndarray) or (isinstance(item, TensorBase) and spec_of(item).dtype is bool_)


def mask_positions(mask: Tensor | Array) -> tuple[Tensor, ...]:
    """The positions of the true elements of a mask, one tensor for each of its axes."""
    if isinstance(mask, np.ndarray):
        return tuple(converters[np.ndarray](one) for one in mask.nonzero())
    return tuple(nonzero(mask))


def write_at_mask(
    view: Any, mask: Tensor | Array, axis: int, value: Any, combine: Callable[[Any, Any], Any] | None
) -> Tensor | None:
    """A copy of a tensor with values written at a mask, as a ``where``.

    Args:
        view: the tensor.
        mask: a mask of consecutive axes.
        axis: the first of them.
        value: a number or a tensor that broadcasts to the selected elements.
        combine: combines elements with values; None: the values replace them.

    Returns:
        None if the value has an axis for the true elements, whose number is needed then.

    Raises:
        ShapeError, DTypeError: the value does not fit.
    """
    after = len(view.shape) - axis - len(mask.shape)
    aligned = _align_with_mask(to_tensor_or_number(value), len(mask.shape), after, len(view.shape))
    if aligned is None:
        return None
    spec = spec_of(view)
    check_storable("index_put", spec, aligned, spec.shape)
    if combine is not None:
        aligned = combine(view, aligned)
        check_storable("index_put", spec, aligned, spec.shape)
    if type(aligned) is int and spec.dtype.is_inexact:
        aligned = float(aligned)  # rounded twice, as by NumPy
    if isinstance(aligned, TensorBase):
        aligned = astype(aligned, spec.dtype, copy=False)
    else:
        aligned = full((), aligned, dtype=spec.dtype, device=spec.device)
    mask = converters[np.ndarray](mask) if isinstance(mask, np.ndarray) else mask
    return where(reshape(mask, (*mask.shape, *(1,) * after)) if after else mask, aligned, view)


def _align_with_mask(value: Any, covered: int, after: int, rank: int) -> Any:
    """A value with as many axes as a mask covers, instead of the axis of the true elements.

    Args:
        value: broadcasts to the selection: the axes before the mask, one for the true elements, the axes after it.
        covered, after, rank: the number of axes of the mask, of those after it, and of all axes.

    Returns:
        None if the value's axis of the true elements is not of length 1.
    """
    value = without_leading_ones(value, rank - covered + 1)
    shape = spec_of(value).shape if isinstance(value, TensorBase) else ()
    axis = len(shape) - 1 - after
    if axis < 0:
        return value
    if shape[axis] != 1:
        return None
    return value if covered == 1 else reshape(value, (*shape[:axis], *(1,) * covered, *shape[axis + 1 :]))


def without_leading_ones(value: TensorLike, rank: int) -> TensorLike:
    """A value without excess leading axes of length 1, which assignment allows."""
    if type(value) in traced_number_types:
        return value
    shape = spec_of(value).shape if isinstance(value, TensorBase) else np.shape(value)
    extra = len(shape) - rank
    if extra <= 0 or any(size != 1 for size in shape[:extra]):
        return value
    return reshape(value, shape[extra:])
