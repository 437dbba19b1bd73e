"""Modes of ``x.at`` for out-of-bounds positions: clip them, read a fill value, or drop the write.

An indexed axis is extended by one element, to which all positions out of bounds are mapped; after a write the element
is removed. So reads and writes differentiate and batch as the operators that they are composed of.

Source: the ``mode`` of ``jax.numpy.ndarray.at``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from ...errors import OutOfBoundsError, ValueArgumentError
from ...registry.dtypes import DType, bool_, int64
from ...registry.values import TensorBase, converters
from ..creation.creation import arange, full
from ..declare.shape_rules import spec_of
from ..elementwise.casting import astype
from ..elementwise.comparison import lt
from ..elementwise.selection import clip, where
from ..reductions.folds import sum as sum_of
from ..shape.joining import concat
from ..shape.views import reshape
from .gather import index
from .subscript import count_axes, getitem, normalize_item, parse_subscript, put
from .take import nonzero

if TYPE_CHECKING:
    from ...registry.types import IndexItem, Number, Tensor, TensorLike

MODES = ("promise_in_bounds", "clip", "fill", "drop")


def get_with_mode(x: Tensor, key: object, mode: str | None, wraps: bool, fill: TensorLike | None) -> Tensor:
    """The elements that a key selects, by a mode for out-of-bounds positions; see ``x.at[...].get``."""
    within, axes = _bound_key(x, key, mode, wraps)
    elements: Tensor = getitem(
        _append_slots(x, axes, _default_fill(spec_of(x).dtype) if fill is None else fill), within
    )
    return elements


def get_sized(x: Tensor, key: object, size: int, fill: TensorLike | None) -> Tensor:
    """The first ``size`` elements at a mask, padded with a fill value; see ``x.at[mask].get``.

    Raises:
        ValueArgumentError: the key has no mask, or index tensors beside it.
    """
    subscript = parse_subscript(x, key)
    if subscript.mask is None:
        raise ValueArgumentError(
            "at: size is the number of elements at a mask, and the key is not a single mask"
        )
    view = subscript.view(x)
    mask = (
        converters[np.ndarray](subscript.mask) if isinstance(subscript.mask, np.ndarray) else subscript.mask
    )
    positions = nonzero(mask, size=size)
    is_element = lt(arange(size, device=spec_of(x).device), sum_of(astype(mask, int64)))
    selected = index(view, positions, subscript.axis)
    after = len(spec_of(selected).shape) - subscript.axis - 1
    dtype = spec_of(x).dtype
    value = full((), _default_fill(dtype) if fill is None else fill, dtype=dtype, device=spec_of(x).device)
    return where(reshape(is_element, (size, *(1,) * after)), selected, value)


def put_with_mode(
    x: Tensor, key: object, value: TensorLike, mode: str | None, wraps: bool, combine: str
) -> Tensor:
    """A copy with the selected elements replaced by a value, or combined with it; see ``x.at[...].set``."""
    within, axes = _bound_key(x, key, mode, wraps)
    written = put(_append_slots(x, axes, 0), within, value, combine=combine)
    if not axes:
        return written
    shape = spec_of(x).shape
    result: Tensor = getitem(
        written, tuple([slice(n) if axis in axes else slice(None) for axis, n in enumerate(shape)])
    )
    return result


def _bound_key(
    x: Tensor, key: object, mode: str | None, wraps: bool
) -> tuple[tuple[IndexItem, ...], list[int]]:
    """The key with out-of-bounds positions clipped or mapped to the axis' size, and the axes to extend."""
    if mode is not None and mode not in MODES:
        raise ValueArgumentError(f"at: mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    items = [normalize_item(one) for one in (key if isinstance(key, tuple) else (key,))]
    shape, axis, value, axes = spec_of(x).shape, 0, list(items), []
    missing = len(shape) - sum(map(count_axes, items))
    if missing < 0:
        raise OutOfBoundsError(f"index: {len(shape) - missing} indices are too many for shape {shape}")
    for number, item in enumerate(items):
        if _is_position(item):
            value[number] = _bound_positions(item, shape[axis], mode == "clip", wraps)
            axes.append(axis)
        axis += missing if item is Ellipsis else count_axes(item)
    return tuple(value), axes if mode in ("fill", "drop") else []


def _is_position(item: object) -> TypeGuard[int | Tensor]:
    return type(item) is int or (isinstance(item, TensorBase) and spec_of(item).dtype is not bool_)


def _bound_positions(item: int | Tensor, size: int, clips: bool, wraps: bool) -> int | Tensor:
    """Positions from 0 to ``size`` along an axis; ``size`` represents all that are out of bounds."""
    if isinstance(item, int):
        position = item + size if wraps and item < 0 else item
        if clips:
            return max(0, min(position, size - 1))
        return position if 0 <= position < size else size
    at = astype(item, int64, copy=False)
    at = where(at < 0, at + size, at) if wraps else at
    return clip(at, 0, size - 1) if clips else where((at < 0) | (at >= size), size, at)


def _append_slots(x: Tensor, axes: list[int], fill: TensorLike | None) -> Tensor:
    """A tensor with one element ``fill`` appended along each of some axes."""
    for axis in axes:
        shape = list(spec_of(x).shape)
        shape[axis] = 1
        x = concat([x, full(shape, fill, dtype=spec_of(x).dtype, device=spec_of(x).device)], axis)
    return x


def _default_fill(dtype: DType) -> Number:
    """The default fill value: NaN, True, the largest unsigned or the most negative signed integer."""
    if dtype.is_inexact:
        return float("nan")
    if dtype is bool_:
        return True
    bits = 8 * dtype.itemsize
    return (1 << bits) - 1 if dtype.kind == "u" else -(1 << (bits - 1))
