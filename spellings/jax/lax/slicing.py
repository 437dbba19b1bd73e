"""Slices at static and traced positions, broadcasts and joins with the arguments of ``jax.lax``."""

from __future__ import annotations

import math
from builtins import slice as _builtin_slice
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, ValueArgumentError
from ...operators.creation.creation import arange
from ...operators.creation.creation import full as _full
from ...operators.declare.shape_rules import normalize_axis, spec_of
from ...operators.elementwise.casting import astype
from ...operators.elementwise.comparison import lt
from ...operators.elementwise.selection import clip, where
from ...operators.indexing.gather import index, index_put
from ...operators.shape.joining import concat
from ...operators.shape.parts import split_with_sizes
from ...operators.shape.rearrange import squeeze
from ...operators.shape.splitting import slice_axis
from ...operators.shape.views import broadcast_to, reshape
from ...registry.dtypes import DEFAULT_INT

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Number, Tensor


# -- static slices -----------------------------------------------------------------------------------------------------
def slice(
    operand: Tensor,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tensor:
    """The elements between two corners.

    Raises:
        ValueArgumentError: a corner is out of bounds.
    """
    shape = spec_of(operand).shape
    steps = strides or (1,) * len(shape)
    if not len(start_indices) == len(limit_indices) == len(steps) == len(shape) or any(
        not 0 <= low <= high <= size for low, high, size in zip(start_indices, limit_indices, shape)
    ):
        raise ValueArgumentError(
            f"slice: from {start_indices} to {limit_indices} is not within shape {shape}"
        )
    return operand[tuple(map(_builtin_slice, start_indices, limit_indices, steps))]


def slice_in_dim(
    operand: Tensor, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Tensor:
    """The elements between two indices of one axis."""
    along = normalize_axis("slice_in_dim", axis, len(spec_of(operand).shape))
    return operand[(_builtin_slice(None),) * along + (_builtin_slice(start_index, limit_index, stride),)]


def index_in_dim(operand: Tensor, index: int, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The slice at one index of an axis."""
    shape = spec_of(operand).shape
    along = normalize_axis("index_in_dim", axis, len(shape))
    start = index + shape[along] if index < 0 else index
    if not 0 <= start < shape[along]:
        raise ValueArgumentError(f"index_in_dim: {index} is not within axis {axis} of shape {shape}")
    result = slice_axis(operand, along, start, start + 1)
    return result if keepdims else squeeze(result, along)


# -- traced positions --------------------------------------------------------------------------------------------------
def _positions(name: str, operand: Tensor, starts: Sequence[Any], sizes: Sequence[int]) -> list[Tensor]:
    """The positions of a block along each axis; the start is moved so that the block is within the tensor."""
    spec = spec_of(operand)
    shape, rank = spec.shape, len(spec.shape)
    if len(starts) != rank or len(sizes) != rank or any(not 0 <= n <= m for n, m in zip(sizes, shape)):
        raise ShapeError(
            f"{name}: a block of shape {tuple(sizes)} at {len(starts)} indices does not fit shape {shape}"
        )
    result = []
    for axis, (start, size, length) in enumerate(zip(starts, sizes, shape)):
        at = astype(start, DEFAULT_INT) if hasattr(start, "shape") else _full((), start, dtype=DEFAULT_INT)
        first = clip(where(lt(at, 0), at + length, at), 0, length - size)
        column = [size if other == axis else 1 for other in range(rank)]
        result.append(reshape(arange(size, device=spec.device) + first, column))
    return result


def dynamic_slice(operand: Tensor, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Tensor:
    """A block of a given shape, at indices that may be traced; it is moved into the tensor if necessary.

    Raises:
        ShapeError: the block is larger than the tensor.

    >>> import tandem as td
    >>> td.jax.lax.dynamic_slice(td.arange(5), (4,), (2,)).tolist()
    [3, 4]
    """
    positions = _positions("dynamic_slice", operand, start_indices, slice_sizes)
    return index(operand, positions) if positions else operand


def dynamic_update_slice(operand: Tensor, update: Tensor, start_indices: Sequence[Any]) -> Tensor:
    """The tensor with a block replaced, at indices that may be traced; it is moved into the tensor if necessary.

    Raises:
        ShapeError: the block is larger than the tensor.
    """
    starts = start_indices if isinstance(start_indices, (tuple, list)) else [start_indices]
    positions = _positions("dynamic_update_slice", operand, starts, spec_of(update).shape)
    return index_put(operand, positions, update) if positions else astype(update, operand.dtype)


def _along(operand: Tensor, axis: int, start: object) -> tuple[int, list[object]]:
    rank = len(spec_of(operand).shape)
    along = normalize_axis("dynamic_slice_in_dim", axis, rank)
    return along, [start if at == along else 0 for at in range(rank)]


def dynamic_slice_in_dim(operand: Tensor, start_index: object, slice_size: int, axis: int = 0) -> Tensor:
    """A block along one axis, at an index that may be traced."""
    along, starts = _along(operand, axis, start_index)
    sizes = [slice_size if at == along else n for at, n in enumerate(spec_of(operand).shape)]
    return dynamic_slice(operand, starts, sizes)


def dynamic_index_in_dim(operand: Tensor, index: object, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The slice at one index of an axis, which may be traced."""
    result = dynamic_slice_in_dim(operand, index, 1, axis)
    return result if keepdims else squeeze(result, axis)


def dynamic_update_slice_in_dim(operand: Tensor, update: Tensor, start_index: object, axis: int) -> Tensor:
    """The tensor with a block along one axis replaced, at an index that may be traced."""
    return dynamic_update_slice(operand, update, _along(operand, axis, start_index)[1])


def dynamic_update_index_in_dim(operand: Tensor, update: Tensor, index: object, axis: int) -> Tensor:
    """The tensor with the slice at one index of an axis replaced."""
    along, starts = _along(operand, axis, index)
    shape = [1 if at == along else n for at, n in enumerate(spec_of(operand).shape)]
    return dynamic_update_slice(operand, reshape(update, shape), starts)


# -- creation, broadcasts, joins ---------------------------------------------------------------------------------------
def full(shape: Sequence[int], fill_value: Number, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of one value."""
    return _full(tuple(shape), fill_value, dtype=dtype)


def iota(dtype: DTypeLike, size: int) -> Tensor:
    """The numbers from 0 to below ``size``."""
    return arange(size, dtype=dtype)


def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Tensor:
    """The index along one axis, as a tensor of a shape."""
    at = normalize_axis("broadcasted_iota", dimension, len(shape))
    column = [n if axis == at else 1 for axis, n in enumerate(shape)]
    return broadcast_to(reshape(iota(dtype, shape[at]), column), tuple(shape))


def broadcast(operand: Tensor, sizes: Sequence[int]) -> Tensor:
    """The tensor with new axes in front."""
    return broadcast_to(operand, (*sizes, *spec_of(operand).shape))


def broadcast_in_dim(operand: Tensor, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Tensor:
    """The tensor broadcast to a shape, with its axes at the given ones.

    Raises:
        ShapeError: there is not one ascending axis of the shape for each axis of the tensor.
    """
    own = spec_of(operand).shape
    axes = list(broadcast_dimensions)
    if len(axes) != len(own) or axes != sorted({*axes}) or any(not 0 <= at < len(shape) for at in axes):
        raise ShapeError(f"broadcast_in_dim: axes {axes} of shape {tuple(shape)} do not fit shape {own}")
    sizes = dict(zip(axes, own))
    return broadcast_to(reshape(operand, [sizes.get(at, 1) for at in range(len(shape))]), tuple(shape))


def concatenate(operands: Sequence[Tensor], dimension: int) -> Tensor:
    """The tensors joined along an axis."""
    return concat(list(operands), dimension)


def split(operand: Tensor, sizes: Sequence[int], axis: int = 0) -> list[Tensor]:
    """Consecutive parts of the given sizes along an axis, which add up to its length.

    Raises:
        ValueArgumentError: they do not.
    """
    count = spec_of(operand).shape[normalize_axis("split", axis, len(spec_of(operand).shape))]
    if sum(sizes) != count or any(size < 0 for size in sizes):
        raise ValueArgumentError(f"split: the sizes {tuple(sizes)} do not add up to {count}")
    return list(split_with_sizes(operand, sizes, axis))


def collapse(operand: Tensor, start_dimension: int, stop_dimension: int | None = None) -> Tensor:
    """The axes from ``start_dimension`` up to ``stop_dimension``, which is left out, as one axis.

    >>> import tandem as td
    >>> td.jax.lax.collapse(td.zeros((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = spec_of(operand).shape
    start, stop, _ = _builtin_slice(start_dimension, stop_dimension).indices(len(shape))
    if stop <= start:
        raise ValueArgumentError(f"collapse: there are no axes from {start_dimension} to {stop_dimension}")
    return reshape(operand, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))
