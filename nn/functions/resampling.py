"""Interpolation of images: each axis separately, by indices and weights that depend on shapes only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ...eager.compiled import compile_when_hot
from ...errors import ArgumentError, ShapeError, ValueArgumentError
from ...operators.declare.ownership import copy_shared_leaves
from ...operators.indexing.take import take
from .pooling import adaptive_pool

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor

_RANKS = {"linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,)}
_NEAREST = ("nearest", "nearest-exact")


@compile_when_hot
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample ``(batch, channels, ...)`` to another size.

    Args:
        input: a tensor of 3 to 5 axes.
        size: the new sizes.
        scale_factor: or the ratios to the old ones.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"trilinear"``, ``"bicubic"`` or
            ``"area"``.
        align_corners: whether the centers, not the corners, of the outermost elements are aligned.
        recompute_scale_factor: whether the ratios are computed from the sizes.
        antialias: only False.

    Raises:
        ArgumentError: both or neither of ``size`` and ``scale_factor`` are given, or a mode does not take an option.
        ShapeError: a mode does not take this number of axes.

    >>> import tandem as td
    >>> td.nn.functional.interpolate(td.asarray([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    _check_mode(input, mode, align_corners, antialias)
    old, result = input.shape[2:], input
    sizes, scales = _sizes(old, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return adaptive_pool("interpolate", input, sizes, len(sizes))
    for at, (count, scale) in enumerate(zip(sizes, scales)):
        axis = at + 2
        if mode in _NEAREST:
            offset = 0.5 if mode == "nearest-exact" else 0.0
            index = np.floor((np.arange(count) + offset) * scale).astype(np.int64)
            result = take(result, np.minimum(index, old[at] - 1), axis)
        elif count != old[at] or scale != 1:
            result = _mix(result, axis, *_taps(old[at], count, scale, mode == "bicubic", bool(align_corners)))
    return cast("Tensor", copy_shared_leaves(result, input))


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in (*_RANKS, *_NEAREST, "area"):
        known = ", ".join((*_NEAREST, *_RANKS, "area"))
        raise ValueArgumentError(f"interpolate: mode must be one of {known}, not {mode!r}")
    if not 3 <= input.ndim <= 5 or input.ndim not in _RANKS.get(mode, (3, 4, 5)):
        raise ShapeError(f"interpolate: mode {mode!r} does not take a tensor of {input.ndim} axes")
    if align_corners is not None and mode not in _RANKS:
        raise ArgumentError(f"interpolate: mode {mode!r} takes no align_corners")
    if antialias:
        raise ValueArgumentError("interpolate: antialias must be False; tandem has no filters for it")


def _sizes(
    old: tuple[int, ...],
    size: int | Sequence[int] | None,
    factor: float | Sequence[float] | None,
    recompute: bool | None,
) -> tuple[list[int], list[float]]:
    """The new sizes, and how far apart their elements are on the old axes."""
    if (size is None) == (factor is None):
        raise ArgumentError("interpolate takes one of size and scale_factor")
    if size is not None:
        sizes = [size] * len(old) if isinstance(size, int) else [int(one) for one in size]
        factors: list[float] = []
    else:
        factors = [factor] * len(old) if isinstance(factor, (int, float)) else list(factor or ())
        sizes = [math.floor(one * ratio) for one, ratio in zip(old, factors)]
    if len(sizes) != len(old):
        raise ShapeError(f"interpolate takes {len(old)} sizes for a tensor of {len(old) + 2} axes")
    if not factors or recompute:
        return sizes, [have / want for have, want in zip(old, sizes)]
    return sizes, [1 / ratio for ratio in factors]


def _taps(size: int, count: int, scale: float, cubic: bool, align: bool) -> tuple[list[Array], list[Array]]:
    """For each tap the indices on the old axis and their weights."""
    at = np.arange(count)
    if align:
        position = at * ((size - 1) / (count - 1) if count > 1 else 0.0)
    else:
        position = (at + 0.5) * scale - 0.5
        position = position if cubic else np.maximum(position, 0.0)
    base = np.floor(position)
    share = position - base
    if not cubic:
        weights = [1 - share, share]
    else:
        weights = [_cubic(share + 1), _cubic(share), _cubic(1 - share), _cubic(2 - share)]
    first = -1 if cubic else 0
    indices = [np.clip(base.astype(np.int64) + first + tap, 0, size - 1) for tap in range(len(weights))]
    return indices, weights


def _cubic(x: Array) -> Array:
    """The convolution kernel of Keys with ``a = -0.75``, at a distance below 2."""
    a = -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, far)


def _mix(input: Tensor, axis: int, indices: list[Array], weights: list[Array]) -> Tensor:
    shape = (-1,) + (1,) * (input.ndim - 1 - axis)
    dtype = input.dtype.np
    parts = [take(input, i, axis) * w.astype(dtype).reshape(shape) for i, w in zip(indices, weights)]
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """:func:`interpolate`, under its old name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """:func:`interpolate` with the nearest elements."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """:func:`interpolate` with ``mode="bilinear"`` and ``align_corners=True``."""
    return interpolate(input, size, scale_factor, "bilinear", True)
