"""Largest elements of windows with their positions, and the way back: unpooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...eager.tensor.construct import asarray
from ...errors import ShapeError
from ...operators.elementwise.selection import maximum, where
from ...operators.indexing.along_axis import scatter
from ...operators.indexing.take import take, take_along_axis
from ...operators.reductions.folds import argmax
from ...operators.shape.views import broadcast_to
from .windows import Sizes, expand

if TYPE_CHECKING:
    from ...registry.types import Array, Tensor


def find_largest(input: Tensor, positions: Array) -> tuple[Tensor, Tensor]:
    """The largest element of each window, and its flat index.

    Args:
        input: a tensor.
        positions: the flat indices in its last axes ``(windows ..., elements)``, -1 for no element.
    """
    counts, rank = positions.shape[:-1], positions.ndim - 1
    head = input.shape[: input.ndim - rank]
    flat = input.reshape((*head, -1))
    index = asarray(positions.reshape((-1, positions.shape[-1])), device=input.device)
    lowest = -math.inf if input.dtype.is_floating else int(np.iinfo(input.dtype.np).min)
    windows = where(index >= 0, take(flat, maximum(index, 0), -1), lowest)
    best = argmax(windows, -1).unsqueeze(-1)
    values = take_along_axis(windows, best, -1)
    all_indices = broadcast_to(index, windows.shape)
    indices = take_along_axis(all_indices, best, -1)
    return values.reshape((*head, *counts)), indices.reshape((*head, *counts))


def _make_unpool(rank: int) -> Callable[..., Tensor]:
    name = f"max_unpool{rank}d"

    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        kernel, pads = expand(kernel_size, rank), expand(padding, rank)
        steps = expand(stride or kernel_size, rank)
        head, counts = input.shape[: input.ndim - rank], input.shape[input.ndim - rank :]
        if indices.shape != input.shape:
            raise ShapeError(f"{name}: the input has shape {input.shape}, the indices {indices.shape}")
        least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(counts, steps, pads, kernel)]
        sizes = least if output_size is None else list(output_size)[-rank:]
        if len(sizes) != rank or any(abs(size - want) >= s for size, want, s in zip(sizes, least, steps)):
            raise ShapeError(f"{name}: output_size {output_size} is not within a stride {steps} of {least}")
        zeros = input.new_zeros((*head, math.prod(sizes)))
        flat = scatter(zeros, -1, indices.reshape((*head, -1)), input.reshape((*head, -1)))
        return flat.reshape((*head, *sizes))

    unpool.__name__ = unpool.__qualname__ = name
    unpool.__doc__ = f"""The opposite of ``max_pool{rank}d``: elements at their positions, and zeros elsewhere.

    Args:
        input, indices: the results of ``max_pool{rank}d`` with ``return_indices=True``.
        kernel_size, stride, padding: its arguments.
        output_size: the sizes of the last {rank} axes; None: the smallest ones.

    Raises:
        ShapeError: the shapes of input and indices differ, or the sizes do not fit.
    """
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_make_unpool, (1, 2, 3))
