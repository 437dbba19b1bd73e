"""Positions beyond an axis, where a program says what they mean: they are clipped, or read as a fill and never written.

An axis that is indexed gets one element more, which is what all positions beyond it stand for; what is written there is
cut off again. So it differentiates and batches as the operators do that it is made of.

Source: the ``mode`` of ``jax.numpy.ndarray.at``.
"""

from __future__ import annotations

from typing import Any

from ..errors import OutOfBoundsError, ValueArgumentError
from ..registry.dtypes import DType, bool_, int64
from ..registry.values import TensorBase
from .casting import astype
from .creation import full
from .indexing import consumed, getitem, item_of, put
from .joining import concat
from .rules import spec_of
from .selection import clip, where

MODES = ("promise_in_bounds", "clip", "fill", "drop")


def get_within(x: Any, key: Any, mode: str | None, wraps: bool, fill: Any) -> Any:
    """The elements that a key selects; see :meth:`tandem.eager.at.Place.get`."""
    within, axes = _within(x, key, mode, wraps)
    return getitem(_longer(x, axes, _fill_of(spec_of(x).dtype) if fill is None else fill), within)


def put_within(x: Any, key: Any, value: Any, mode: str | None, wraps: bool, accumulate: bool) -> Any:
    """A copy in which they are replaced, or added to; see :meth:`tandem.eager.at.Place.set`."""
    within, axes = _within(x, key, mode, wraps)
    written = put(_longer(x, axes, 0), within, value, accumulate=accumulate)
    if not axes:
        return written
    shape = spec_of(x).shape
    return getitem(
        written, tuple([slice(n) if axis in axes else slice(None) for axis, n in enumerate(shape)])
    )


def _within(x: Any, key: Any, mode: str | None, wraps: bool) -> tuple[tuple[Any, ...], list[int]]:
    """A key of positions from 0 that has one number for all that lie beyond, and the axes that it needs longer."""
    if mode is not None and mode not in MODES:
        raise ValueArgumentError(f"at: mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    items = [item_of(one) for one in (key if isinstance(key, tuple) else (key,))]
    shape, axis, found, axes = spec_of(x).shape, 0, list(items), []
    missing = len(shape) - sum(map(consumed, items))
    if missing < 0:
        raise OutOfBoundsError(f"index: {len(shape) - missing} indices are too many for shape {shape}")
    for place, item in enumerate(items):
        if _is_position(item):
            found[place] = _limited(item, shape[axis], mode == "clip", wraps)
            axes.append(axis)
        axis += missing if item is Ellipsis else consumed(item)
    return tuple(found), axes if mode in ("fill", "drop") else []


def _is_position(item: Any) -> bool:
    return type(item) is int or (isinstance(item, TensorBase) and spec_of(item).dtype is not bool_)


def _limited(item: Any, size: int, clips: bool, wraps: bool) -> Any:
    """Positions in an axis: from 0 up to its size, which stands for those beyond it."""
    if type(item) is int:
        at = item + size if wraps and item < 0 else item
        return max(0, min(at, size - 1)) if clips else at if 0 <= at < size else size
    at = astype(item, int64, copy=False)
    at = where(at < 0, at + size, at) if wraps else at
    return clip(at, 0, size - 1) if clips else where((at < 0) | (at >= size), size, at)


def _longer(x: Any, axes: list[int], fill: Any) -> Any:
    """A tensor with one element more along some axes."""
    for axis in axes:
        shape = list(spec_of(x).shape)
        shape[axis] = 1
        x = concat([x, full(shape, fill, dtype=spec_of(x).dtype, device=spec_of(x).device)], axis)
    return x


def _fill_of(dtype: DType) -> Any:
    """What is read beyond an axis: NaN, for integers the number that is the least likely to mean something."""
    if dtype.is_inexact:
        return float("nan")
    if dtype is bool_:
        return True
    bits = 8 * dtype.itemsize
    return 2**bits - 1 if dtype.kind == "u" else -(2 ** (bits - 1))
