"""The array kernel of convolutions: matrix products, by gathering windows (im2col) or scattering products (col2im).

Source: Chellapilla, Puri and Simard, High performance convolutional neural networks for document processing, 2006.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule

Ints = tuple[int, ...]

# Elements of the unfolded input at a time: on the CPU, as many as stay in the cache; on a device, enough for full use.
BLOCK = 1 << 20
DEVICE_BLOCK = 1 << 25


def _block_size(xp: ArrayModule) -> int:
    return BLOCK if xp is np else DEVICE_BLOCK


def dilated_size(size: int, step: int) -> int:
    """Return the length of an axis after its elements are spaced ``step`` apart."""
    return (size - 1) * step + 1 if size else 0


def used_steps(steps: Ints, sizes: Ints) -> Ints:
    """Return the steps between the elements of axes: 1 for a single element, where any step is the same."""
    return tuple(step if size > 1 else 1 for step, size in zip(steps, sizes))


def convolve(
    xp: ArrayModule,
    x: Array,
    w: Array,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    """A convolution of arrays of one dtype; the arguments are those of the operator ``convolution``.

    Either the windows of the input become the columns of a matrix product; or a matrix product computes the
    contributions of each element of the input, which are then summed. The second does not multiply by the zeros of a
    dilated input. The one that moves less memory is chosen.
    """
    # contiguous, because a library's products may round differently for other layouts
    x, w = xp.ascontiguousarray(x), xp.ascontiguousarray(w)
    sizes, kernel = x.shape[2:], w.shape[2:]
    ends = zip(sizes, kernel, stride, padding[::2], padding[1::2], input_dilation, dilation)
    out = tuple(
        (dilated_size(n, lhs) + before + after - dilated_size(k, d)) // step + 1
        for n, k, step, before, after, lhs, d in ends
    )
    stride, dilation = used_steps(stride, out), used_steps(dilation, kernel)
    input_dilation = used_steps(input_dilation, sizes)
    gathered, scattered = w.shape[1] * groups * math.prod(out), 2 * w.shape[0] * math.prod(sizes)
    if max(stride) == 1 and 0 < scattered < gathered:
        return _convolve_by_scatter(xp, x, w, padding[::2], out, input_dilation, dilation, groups)
    x = _pad(xp, x, padding, input_dilation)
    return _convolve_by_gather(xp, x, w, stride, out, dilation, groups)


def _pad(xp: ArrayModule, x: Array, padding: Ints, input_dilation: Ints) -> Array:
    """Insert zeros between and around the elements; negative padding removes elements."""
    if not any(padding) and max(input_dilation) == 1:
        return x
    shape, inner, cut = list(x.shape[:2]), [slice(None)] * 2, [slice(None)] * 2
    for size, before, after, step in zip(x.shape[2:], padding[::2], padding[1::2], input_dilation):
        length = dilated_size(size, step)
        first, last = max(before, 0), max(after, 0)
        shape.append(first + length + last)
        inner.append(slice(first, first + length, step))
        cut.append(slice(max(-before, 0), first + length + last - max(-after, 0)))
    wide = xp.zeros(shape, x.dtype)
    wide[tuple(inner)] = x
    return wide[tuple(cut)]


def _convolve_by_gather(
    xp: ArrayModule, x: Array, w: Array, stride: Ints, out: Ints, dilation: Ints, groups: int
) -> Array:
    count, rank, indices = x.shape[0], len(out), math.prod(out)
    of_group, within, kernel = w.shape[0] // groups, w.shape[1], w.shape[2:]
    taps = within * math.prod(kernel)
    windows = xp.lib.stride_tricks.as_strided(
        x,
        (count, groups, within, *kernel, *out),
        (
            x.strides[0],
            within * x.strides[1],
            x.strides[1],
            *(step * d for step, d in zip(x.strides[2:], dilation)),
            *(step * s for step, s in zip(x.strides[2:], stride)),
        ),
    )
    weights = w.reshape(groups, of_group, taps)
    result = xp.empty((count, groups, of_group, indices), x.dtype)
    step = max(1, _block_size(xp) // max(1, groups * taps * indices))
    if math.prod(kernel) <= indices:
        for at in range(0, count, step):
            block = windows[at : at + step]
            columns = block.reshape(len(block), groups, taps, indices)
            result[at : at + step] = xp.matmul(weights, columns)
    else:  # copy along the kernel; the few windows of many examples make one product
        order = 1, 0, *range(3 + rank, 3 + 2 * rank), *range(2, 3 + rank)
        for at in range(0, count, step):
            block = windows[at : at + step]
            rows = block.transpose(order).reshape(groups, len(block) * indices, taps)
            part = xp.matmul(rows, weights.swapaxes(-1, -2)).reshape(groups, len(block), indices, of_group)
            result[at : at + step] = part.transpose(1, 0, 3, 2)
    return result.reshape(count, w.shape[0], *out)


def _convolve_by_scatter(
    xp: ArrayModule,
    x: Array,
    w: Array,
    before: Ints,
    out: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int,
) -> Array:
    count, sizes, kernel = x.shape[0], x.shape[2:], w.shape[2:]
    of_group, within, taps = w.shape[0] // groups, w.shape[1], math.prod(kernel)
    weights = w.reshape(groups, of_group, within, taps).transpose(0, 3, 1, 2)
    matrices = weights.reshape(groups, taps * of_group, within)
    # for each axis the index to which the last tap moves the first element; may be negative
    lowest = tuple(first - (k - 1) * d for first, k, d in zip(before, kernel, dilation))
    margin = tuple(max(0, -low) for low in lowest)
    length = tuple(
        max(size, first + (n - 1) * step + 1) + extra
        for size, first, n, step, extra in zip(out, before, sizes, input_dilation, margin)
    )
    result = xp.zeros((count, groups, of_group, *length), x.dtype)
    step = max(1, _block_size(xp) // max(1, w.shape[0] * taps * math.prod(sizes)))
    for at in range(0, count, step):
        block = x[at : at + step]
        rows = block.reshape(len(block), groups, within, math.prod(sizes))
        parts = xp.matmul(matrices, rows).reshape(len(block), groups, taps, of_group, *sizes)
        for tap, offsets in enumerate(itertools.product(*map(range, kernel))):
            starts = [first - k * d + extra for first, k, d, extra in zip(before, offsets, dilation, margin)]
            target: tuple[Any, ...] = tuple(
                slice(s, s + (n - 1) * a + 1, a) for s, n, a in zip(starts, sizes, input_dilation)
            )
            result[(slice(at, at + step), ..., *target)] += parts[:, :, tap]
    cut: tuple[Any, ...] = tuple(slice(extra, extra + size) for extra, size in zip(margin, out))
    result = xp.ascontiguousarray(result[(..., *cut)])  # does not hold the memory of the margins
    return result.reshape(count, w.shape[0], *out)
