"""Padding with copies of elements, and rearrangements of channels and pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ...eager.compiled import compile_when_hot
from ...errors import ShapeError, ValueArgumentError
from ...operators.declare.ownership import copy_shared_leaves
from ...operators.shape.padding import pad as _pad

if TYPE_CHECKING:
    from ...registry.types import Tensor

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""The modes of PyTorch, and NumPy's names of them."""


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad a tensor.

    Args:
        input: the tensor.
        pad: two numbers for each axis, the last axis first; with a constant, negative ones cut elements off.
        mode: ``"constant"``; ``"reflect"`` about the elements at the edge, ``"replicate"`` for copies of those,
            ``"circular"`` for those at the other end.
        value: the constant; None: 0.

    Raises:
        ValueArgumentError: another mode, or another number of numbers.
        ShapeError: an axis is too short to be reflected, or wrapped, so far.

    >>> import tandem as td
    >>> td.nn.functional.pad(td.arange(3), (1, 2), mode="replicate").tolist()
    [0, 0, 1, 2, 2, 2]
    """
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueArgumentError(f"pad: takes two numbers for each of at most {input.ndim} axes, not {pad}")
    pairs = [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    if mode == "constant":
        input, pairs = _crop(input, pairs)
    return pad_last_axes("pad", input, pairs, mode, value)


def pad_last_axes(
    name: str, input: Tensor, pairs: Sequence[tuple[int, int]], mode: str, value: float | None = None
) -> Tensor:
    """Pad the last axes, the last one first, in a mode of PyTorch.

    Args:
        name: the caller, for messages.
        input: the tensor.
        pairs: the numbers of elements before and after each axis.
        mode, value: those of :func:`pad`.
    """
    if mode not in MODES:
        raise ValueArgumentError(f"{name}: mode must be one of {', '.join(MODES)}, not {mode!r}")
    for at, (before, after) in enumerate(pairs):
        size = input.shape[-1 - at]
        limit = {"reflect": size - 1, "circular": size}.get(mode, before + after)
        if min(before, after) < 0 or max(before, after) > limit:
            raise ShapeError(
                f"{name}: mode {mode!r} cannot pad an axis of {size} elements by {before} and {after}"
            )
    width = ((0, 0),) * (input.ndim - len(pairs)) + tuple(reversed(pairs))  # a tuple is a kind of hot calls
    if mode == "constant":
        return _pad(input, width, value=0.0 if value is None else value)
    return _pad(input, width, MODES[mode])


def _crop(input: Tensor, pairs: list[tuple[int, int]]) -> tuple[Tensor, list[tuple[int, int]]]:
    """Cut off what negative numbers ask for."""
    for at, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            axis = input.ndim - 1 - at
            first, last = max(0, -before), input.shape[axis] - max(0, -after)
            input = input[(slice(None),) * axis + (slice(first, last),)]
            pairs[at] = (max(0, before), max(0, after))
    return input, pairs


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Turn channels into pixels: ``(..., c * r * r, h, w)`` becomes ``(..., c, h * r, w * r)``."""
    *batch, channels, height, width = input.shape
    r = upscale_factor
    if channels % (r * r):
        raise ShapeError(f"pixel_shuffle: {channels} channels are not a multiple of {r} * {r}")
    rank = len(batch)
    parts = input.reshape((*batch, channels // (r * r), r, r, height, width))
    axes = (*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2)
    pixels = parts.permute(axes).reshape((*batch, channels // (r * r), height * r, width * r))
    return cast("Tensor", copy_shared_leaves(pixels, input))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`."""
    *batch, channels, height, width = input.shape
    r = downscale_factor
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: an image of {height} by {width} pixels is not a multiple of {r}")
    rank = len(batch)
    parts = input.reshape((*batch, channels, height // r, r, width // r, r))
    axes = (*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3)
    pixels = parts.permute(axes).reshape((*batch, channels * r * r, height // r, width // r))
    return cast("Tensor", copy_shared_leaves(pixels, input))


@compile_when_hot
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Exchange the channels of groups: the first of each group comes first."""
    batch, channels, *sizes = input.shape
    if channels % groups:
        raise ShapeError(f"channel_shuffle: {channels} channels are not a multiple of {groups} groups")
    parts = input.reshape((batch, groups, channels // groups, *sizes))
    return cast("Tensor", copy_shared_leaves(parts.swapaxes(1, 2).reshape(input.shape), input))
