"""Windows of the last axes of an input: how many there are, and which elements belong to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ShapeError

if TYPE_CHECKING:
    from ...registry.types import Array

Sizes = int | Sequence[int]


def expand(value: Sizes, rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    return (value,) * rank if isinstance(value, int) else tuple(value) * (rank if len(value) == 1 else 1)


def bounds(size: int, count: int) -> tuple[Array, Array]:
    """The first index of each of so many windows that cover an axis, and that after its last."""
    at = np.arange(count)
    return at * size // count, -(-(at + 1) * size // count)


class Windows:
    """The windows of the last axes of an input, with the padding that each axis needs."""

    def __init__(
        self,
        rank: int,
        sizes: tuple[int, ...],
        kernel: Sizes,
        stride: Sizes | None,
        padding: Sizes,
        dilation: Sizes,
        ceil: bool,
    ):
        self.kernel, self.padding = expand(kernel, rank), expand(padding, rank)
        self.stride, self.dilation = expand(stride or kernel, rank), expand(dilation, rank)
        self.sizes, self.ceil = sizes, ceil
        if any(2 * p > k for p, k in zip(self.padding, self.kernel)):
            raise ShapeError(f"pooling: the padding {self.padding} is more than half of {self.kernel}")

    def count(self, axis: int) -> int:
        """The number of windows along an axis; with ``ceil``, of those too that begin inside and end outside."""
        size, p, s = self.sizes[axis], self.padding[axis], self.stride[axis]
        room = size + 2 * p - self.dilation[axis] * (self.kernel[axis] - 1) - 1
        count = (-(-room // s) if self.ceil else room // s) + 1
        return count - (self.ceil and (count - 1) * s >= size + p)

    def pads(self) -> list[int]:
        """The numbers for :func:`pad` with which all windows are inside."""
        result = []
        for axis in reversed(range(len(self.sizes))):
            reach = (
                (self.count(axis) - 1) * self.stride[axis] + self.dilation[axis] * (self.kernel[axis] - 1) + 1
            )
            before = self.padding[axis]
            result += [before, reach - self.sizes[axis] - before]
        return result

    def lengths(self, axis: int, include_pad: bool) -> Array:
        """The number of elements of each window that count."""
        start = np.arange(self.count(axis)) * self.stride[axis] - self.padding[axis]
        border = self.padding[axis] if include_pad else 0
        end = np.minimum(start + self.kernel[axis], self.sizes[axis] + border)
        lengths: Array = end - np.maximum(start, -border)
        return lengths

    def positions(self) -> Array:
        """The flat indices ``(windows ..., elements)`` of the elements of each window, -1 for padding."""
        axes = []
        for axis, size in enumerate(self.sizes):
            start = np.arange(self.count(axis)) * self.stride[axis] - self.padding[axis]
            index = start[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]
            axes.append(np.where((index >= 0) & (index < size), index, -1))
        return join_axes(axes, self.sizes)


def covering_positions(sizes: Sequence[int], counts: Sequence[int]) -> Array:
    """The flat indices ``(windows ..., elements)`` of so many windows that cover each axis, -1 for no element."""
    axes = []
    for size, count in zip(sizes, counts):
        first, end = bounds(size, count)
        index = first[:, None] + np.arange(int((end - first).max()))
        axes.append(np.where(index < end[:, None], index, -1))
    return join_axes(axes, sizes)


def join_axes(axes: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Flat indices ``(windows ..., elements)`` from those along each axis, ``(windows, elements)``, -1 for none."""
    result: Array = np.zeros((1,), np.int64)
    for index, size in zip(axes, sizes):
        outer = result[..., None, :, None]
        inner = index.reshape((1,) * (result.ndim - 1) + (index.shape[0], 1, index.shape[1]))
        joined = np.where((outer >= 0) & (inner >= 0), outer * size + inner, -1)
        result = joined.reshape((*joined.shape[:-2], -1))
    return result
