"""Images sampled at the positions of a grid, for spatial transformers.

Source: ``torch.nn.functional.grid_sample`` and ``affine_grid``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...eager.compiled import compile_when_hot
from ...errors import ShapeError, ValueArgumentError
from ...operators.contraction.matmul import matmul
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.rounding import floor, round
from ...operators.elementwise.selection import clip, where
from ...operators.indexing.take import take_along_axis
from ...operators.shape.views import broadcast_to
from ...registry.dtypes import int64

if TYPE_CHECKING:
    from ...registry.types import Tensor

Taps = list[tuple["Tensor", "Tensor"]]  # coordinates along an axis, and their weights
_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


@compile_when_hot
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions that affine maps send the pixels of an image to, for :func:`grid_sample`.

    Args:
        theta: the maps ``(N, 2, 3)``, or ``(N, 3, 4)``.
        size: the shape ``(N, C, H, W)`` or ``(N, C, D, H, W)`` of the result of :func:`grid_sample`.
        align_corners: whether -1 and 1 are the centers of the outermost pixels, not their outer edges.

    Returns:
        A tensor ``(N, H, W, 2)`` or ``(N, D, H, W, 3)``.

    Raises:
        ShapeError: the maps do not fit the size.
    """
    sizes, rank = tuple(size)[2:], len(size) - 2
    if theta.shape != (size[0], rank, rank + 1):
        raise ShapeError(f"affine_grid: theta must have shape {(size[0], rank, rank + 1)}, not {theta.shape}")
    axes = []
    for count in sizes:
        edge = 1.0 if align_corners else 1 - 1 / count
        axes.append(np.linspace(-edge, edge, count) if count > 1 else np.zeros(1))
    points = np.stack([*reversed(np.meshgrid(*axes, indexing="ij")), np.ones(sizes)], -1)
    flat = theta.new_tensor(points.reshape((-1, rank + 1)))
    result: Tensor = matmul(flat, theta.mT)
    return result.reshape((size[0], *sizes, rank))


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images at the positions of a grid.

    Args:
        input: ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        grid: positions ``(N, ..., 2)`` or ``(N, ..., 3)``, the last axis of the image first, from -1 to 1.
        mode: ``"bilinear"``, ``"nearest"`` or, for images of two axes, ``"bicubic"``.
        padding_mode: ``"zeros"`` outside of the image, ``"border"``: the nearest pixel, or ``"reflection"``.
        align_corners: whether -1 and 1 are the centers of the outermost pixels, not their outer edges.

    Returns:
        A tensor ``(N, C, ...)``.

    Raises:
        ValueArgumentError: another mode.
        ShapeError: the grid does not fit the input.

    >>> import tandem as td
    >>> image = td.asarray([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> td.nn.functional.grid_sample(image, td.zeros((1, 1, 1, 2))).tolist()
    [[[[2.5]]]]
    """
    rank = input.ndim - 2
    if mode not in _MODES or padding_mode not in _PADDINGS or (mode == "bicubic" and rank != 2):
        raise ValueArgumentError(
            f"grid_sample: mode must be one of {', '.join(_MODES)} (bicubic for two axes), and padding_mode one of "
            f"{', '.join(_PADDINGS)}, not {mode!r} and {padding_mode!r}"
        )
    if (
        rank not in (2, 3)
        or grid.ndim != input.ndim
        or grid.shape[-1] != rank
        or grid.shape[0] != input.shape[0]
    ):
        raise ShapeError(f"grid_sample: a grid of shape {grid.shape} does not fit an input of {input.shape}")
    return _sample(input, grid, mode, padding_mode, bool(align_corners))


@compile_when_hot
def _sample(input: Tensor, grid: Tensor, mode: str, padding: str, align: bool) -> Tensor:
    sizes = input.shape[2:]
    axes = []
    for at, size in enumerate(sizes):
        position = grid[..., len(sizes) - 1 - at].reshape((input.shape[0], -1))
        scaled = (position + 1) / 2 * (size - 1) if align else ((position + 1) * size - 1) / 2
        axes.append(_find_taps(scaled, size, mode, padding, align))
    flat = input.reshape((*input.shape[:2], -1))
    parts = [_gather(flat, taps, sizes) for taps in itertools.product(*axes)]
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result.reshape((*input.shape[:2], *grid.shape[1:-1]))


def _gather(flat: Tensor, taps: Sequence[tuple[Tensor, Tensor]], sizes: Sequence[int]) -> Tensor:
    """The pixels at one coordinate for each axis, times the weights; zero outside."""
    index, weight = taps[0][0] * 0, taps[0][1] * 0 + 1
    is_inside = index == 0
    for (coordinate, share), size in zip(taps, sizes):
        inside = (coordinate >= 0) & (coordinate < size)
        index = index * size + where(inside, coordinate, 0)
        is_inside, weight = is_inside & inside, weight * share
    shape = (*flat.shape[:2], index.shape[-1])
    pixels = take_along_axis(flat, broadcast_to(index.to(int64).unsqueeze(1), shape), -1)
    return pixels * where(is_inside, weight, 0.0).unsqueeze(1)


def _find_taps(position: Tensor, size: int, mode: str, padding: str, align: bool) -> Taps:
    """The coordinates of the pixels along an axis that a value is mixed from, and their weights."""
    if mode == "bicubic":
        base = floor(position).detach()
        share = position - base
        weights = [_cubic(share + 1), _cubic(share), _cubic(1 - share), _cubic(2 - share)]
        return [(_move_inside(base + at - 1, size, padding, align), w) for at, w in enumerate(weights)]
    position = _move_inside(position, size, padding, align)
    if mode == "nearest":
        nearest = round(position).detach()
        return [(nearest, position * 0 + 1)]  # its derivative is zero
    base = floor(position).detach()
    return [(base, 1 - (position - base)), (base + 1, position - base)]


def _move_inside(position: Tensor, size: int, padding: str, align: bool) -> Tensor:
    if padding == "zeros":
        return position
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
        if span:
            distance = abs(position - low)
            flips = floor(distance / span).detach()
            rest = distance - flips * span
            position = low + where(flips % 2 == 0, rest, span - rest)
        else:
            position = position * 0
    return clip(position, 0.0, size - 1.0)


def _cubic(x: Tensor) -> Tensor:
    """The convolution kernel of Keys with ``a = -0.75``, at a distance below 2."""
    a = -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return where(x <= 1, near, far)
