"""Pooling into a number of windows, norms of windows, windows as columns, and normalization across channels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...eager.compiled import compile_when_hot
from ...errors import ShapeError
from ...operators.contraction.matmul import matmul
from ...operators.elementwise.activation import relu
from ...operators.elementwise.arithmetic import abs, sign
from ...operators.indexing.take import take
from ...operators.nn import pooling as _operators
from ...operators.reductions.folds import max
from ...operators.reductions.statistics import mean
from .padding import pad
from .unpooling import find_largest
from .windows import Sizes, Windows, bounds, covering_positions, expand

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor

Counts = int | Sequence[int | None]
Pooled: TypeAlias = "Tensor | tuple[Tensor, Tensor]"  # with indices


def _pair(value: Sizes) -> tuple[int, int]:
    first, second = (value, value) if isinstance(value, int) else value
    return first, second


# -- a number of windows -----------------------------------------------------------------------------------------------
def adaptive_pool(
    name: str, input: Tensor, output_size: Counts, rank: int, *, largest: bool = False
) -> Tensor:
    """The means, or largest elements, of so many windows that the result has a size; None keeps that of an axis."""
    sizes, counts = count_windows(name, input, output_size, rank)
    if not any(size % count for size, count in zip(sizes, counts)):
        split = [part for size, count in zip(sizes, counts) for part in (count, size // count)]
        windows = input.reshape((*input.shape[:-rank], *split))
        axes = tuple(range(-2 * rank + 1, 0, 2))
        return max(windows, axes) if largest else mean(windows, axes)
    for axis, count in zip(range(-rank, 0), counts):
        if count != input.shape[axis]:
            input = (_largest if largest else _average)(input, axis, count)
    return input


def count_windows(
    name: str, input: Tensor, output_size: Counts, rank: int
) -> tuple[tuple[int, ...], list[int]]:
    """The sizes of the last axes, and the numbers of windows that cover them."""
    sizes = input.shape[-rank:]
    wanted = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    if len(wanted) == 1:
        wanted *= rank
    if len(wanted) != rank or input.ndim < rank:
        raise ShapeError(f"{name}: takes {rank} sizes, and an input of at least {rank} axes")
    counts = [size if count is None else count for size, count in zip(sizes, wanted, strict=True)]
    if any(count < 1 for count in counts):
        raise ShapeError(f"{name}: the sizes {tuple(counts)} must be positive")
    return sizes, counts


def _average(input: Tensor, axis: int, count: int) -> Tensor:
    size = input.shape[axis]
    first, end = bounds(size, count)
    position = np.arange(size)[:, None]
    weights = ((position >= first) & (position < end)) / (end - first)
    return matmul(input.swapaxes(axis, -1), weights.astype(input.dtype.np)).swapaxes(axis, -1)


def _largest(input: Tensor, axis: int, count: int) -> Tensor:
    first, end = bounds(input.shape[axis], count)
    width = int((end - first).max())
    index = np.minimum(first[:, None] + np.arange(width), end[:, None] - 1)
    windows = take(input.swapaxes(axis, -1), index.reshape(-1), -1)
    return max(windows.reshape((*windows.shape[:-1], count, width)), -1).swapaxes(axis, -1)


def _make_adaptive(name: str, rank: int, largest: bool) -> Callable[..., Any]:
    def pool(input: Tensor, output_size: Counts, return_indices: bool = False) -> Pooled:
        if return_indices:
            return find_largest(input, covering_positions(*count_windows(name, input, output_size, rank)))
        return adaptive_pool(name, input, output_size, rank, largest=largest)

    pool.__name__ = pool.__qualname__ = name
    what = "largest elements" if largest else "means"
    pool.__doc__ = f"The {what} of so many windows of the last {rank} axes that the result has a size."
    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _make_adaptive(f"adaptive_avg_pool{rank}d", rank, False) for rank in (1, 2, 3)
)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _make_adaptive(f"adaptive_max_pool{rank}d", rank, True) for rank in (1, 2, 3)
)


# -- norms of windows --------------------------------------------------------------------------------------------------
def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel: Sizes, stride: Sizes | None, ceil: bool
) -> Tensor:
    count = int(np.prod(expand(kernel, rank)))
    averages = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1](input**norm_type, kernel, stride, 0, ceil)
    return (sign(averages) * relu(abs(averages)) * count) ** (1 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norms of windows of the last axis."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norms of windows of the last two axes."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norms of windows of the last three axes."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# -- windows as columns ------------------------------------------------------------------------------------------------
def _window_indices(
    sizes: Sequence[int], kernel: Sizes, dilation: Sizes, stride: Sizes
) -> tuple[Array, Array]:
    """Rows and columns of the elements ``(kernel elements, windows)`` of a padded image."""
    axes = []
    for size, k, d, s in zip(sizes, _pair(kernel), _pair(dilation), _pair(stride)):
        starts = np.arange(0, size - d * (k - 1), s)
        axes.append(np.arange(k)[:, None] * d + starts)
    rows, columns = axes
    grid = [(r, c) for r, c in itertools.product(rows, columns)]
    return (
        np.stack([np.repeat(r, len(c)) for r, c in grid]),
        np.stack([np.tile(c, len(r)) for r, c in grid]),
    )


@compile_when_hot
def unfold(
    input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """The windows of images ``(batch, channels, h, w)`` as columns ``(batch, channels * kernel, windows)``."""
    above, left = _pair(padding)
    padded = pad(input, (left, left, above, above))
    rows, columns = _window_indices(padded.shape[2:], kernel_size, dilation, stride)
    windows = padded[:, :, rows, columns]
    return windows.reshape((input.shape[0], -1, rows.shape[1]))


@compile_when_hot
def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """The sums of columns of windows at their places in images: the transpose of :func:`unfold`."""
    height, width = _pair(output_size)
    above, left = _pair(padding)
    sizes = (height + 2 * above, width + 2 * left)
    rows, columns = _window_indices(sizes, kernel_size, dilation, stride)
    if input.shape[2] != rows.shape[1]:
        raise ShapeError(f"fold: {input.shape[2]} columns do not fit the {rows.shape[1]} windows of {sizes}")
    windows = input.reshape((input.shape[0], -1, *rows.shape))
    images = input.new_zeros((*windows.shape[:2], *sizes)).at[:, :, rows, columns].add(windows)
    return images[:, :, above : above + height, left : left + width]


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by a power of the mean square over neighbouring channels."""
    squares = (input * input).reshape((input.shape[0], 1, input.shape[1], -1))
    padded = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    means = avg_pool2d(padded, (size, 1), 1).reshape(input.shape)
    return input / (means * alpha + k) ** beta


# -- windows -----------------------------------------------------------------------------------------------------------
_MAX: tuple[Any, ...] = tuple(getattr(_operators, f"max_pool{rank}d") for rank in (1, 2, 3))
_AVERAGE: tuple[Any, ...] = tuple(getattr(_operators, f"avg_pool{rank}d") for rank in (1, 2, 3))


def _make_max_pool(rank: int) -> Callable[..., Any]:
    name = f"max_pool{rank}d"

    def pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Pooled:
        function: Callable[..., Tensor] = _MAX[rank - 1]
        if not ceil_mode and not return_indices:
            return function(input, kernel_size, stride, padding, dilation)
        windows = Windows(rank, input.shape[-rank:], kernel_size, stride, padding, dilation, ceil_mode)
        if return_indices:
            return find_largest(input, windows.positions())
        padded = pad(input, windows.pads(), value=-float("inf"))
        return function(padded, windows.kernel, windows.stride, 0, windows.dilation)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"The largest elements of windows of the last {rank} axes, and their indices if asked for."
    return pool


def _make_avg_pool(rank: int) -> Callable[..., Tensor]:
    def pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        function: Callable[..., Tensor] = _AVERAGE[rank - 1]
        if not ceil_mode and divisor_override is None:
            return function(input, kernel_size, stride, padding, count_include_pad=count_include_pad)
        windows = Windows(rank, input.shape[-rank:], kernel_size, stride, padding, 1, ceil_mode)
        means = function(pad(input, windows.pads()), windows.kernel, windows.stride, 0)
        total = float(np.prod(windows.kernel))
        if divisor_override is not None:
            return means * (total / divisor_override)
        counts: Array = np.ones(())
        for axis in range(rank):
            counts = counts[..., None] * windows.lengths(axis, count_include_pad)
        return means * (total / counts).astype(input.dtype.np)

    pool.__name__ = pool.__qualname__ = f"avg_pool{rank}d"
    pool.__doc__ = f"The means of windows of the last {rank} axes, or their sums over ``divisor_override``."
    return pool


max_pool1d, max_pool2d, max_pool3d = map(_make_max_pool, (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = map(_make_avg_pool, (1, 2, 3))


def _return_indices(pool: Callable[..., Any]) -> Callable[..., Any]:
    def pool_with_indices(*args: object, **options: object) -> tuple[Tensor, Tensor]:
        result: tuple[Tensor, Tensor] = pool(*args, **options | {"return_indices": True})
        return result

    name = f"{pool.__name__}_with_indices"
    pool_with_indices.__name__ = pool_with_indices.__qualname__ = name
    pool_with_indices.__doc__ = f":func:`{pool.__name__}` with ``return_indices=True``."
    return pool_with_indices


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = map(
    _return_indices, (max_pool1d, max_pool2d, max_pool3d)
)
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = map(
    _return_indices, (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)
