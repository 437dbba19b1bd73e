"""References for convolutions and pooling: SciPy's correlation channel by channel, and loops over windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from tandem.lazy import module
from tandem.registry.dtypes import as_dtype, is_half, promote

Array = Any


def _apart(x: Array, steps: Any) -> Array:
    """Zeros between the elements of the last axes."""
    for axis, step in enumerate(steps, x.ndim - len(steps)):
        wide = np.zeros((*x.shape[:axis], (x.shape[axis] - 1) * step + 1, *x.shape[axis + 1 :]), x.dtype)
        wide[(slice(None),) * axis + (slice(None, None, step),)] = x
        x = wide
    return x


def convolution(
    x: Array, w: Array, stride: Any, padding: Any, input_dilation: Any, dilation: Any, groups: int = 1
) -> Array:
    """SciPy's correlation for every pair of channels."""
    dtype = promote(as_dtype(x.dtype), as_dtype(w.dtype)).np
    if is_half(dtype):
        x, w = x.astype(np.float32), w.astype(np.float32)
    pairs = [(0, 0), (0, 0), *zip(padding[::2], padding[1::2])]
    x = np.pad(_apart(x, input_dilation), [(max(a, 0), max(b, 0)) for a, b in pairs])
    x = x[tuple(slice(max(-a, 0), size - max(-b, 0)) for size, (a, b) in zip(x.shape, pairs))]
    w = _apart(w, dilation)
    every = tuple(slice(None, None, step) for step in stride)
    sizes = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], w.shape[2:], stride)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes), np.result_type(x, w))
    correlate = module("scipy.signal").correlate
    of_group = w.shape[0] // groups
    for n, o, c in np.ndindex(x.shape[0], *w.shape[:2]):
        channel = x[n, o // of_group * w.shape[1] + c]
        result[n, o] += correlate(channel, np.conj(w[o, c]), "valid", "direct")[every]
    return result.astype(dtype)


def _many(given: Any, rank: int) -> tuple[int, ...]:
    return (given,) * rank if isinstance(given, int) else tuple(given)


def _pairs(padding: Any, sizes: Any, kernel: Any, stride: Any, dilation: Any) -> list[tuple[int, int]]:
    if padding == "valid":
        return [(0, 0)] * len(sizes)
    if padding == "same":
        totals = [
            max(0, -(-n // s) * s - s + (k - 1) * d + 1 - n)
            for n, k, s, d in zip(sizes, kernel, stride, dilation)
        ]
        return [(total // 2, total - total // 2) for total in totals]
    each = _many(padding, len(sizes))
    return [one if isinstance(one, tuple) else (one, one) for one in each]


def conv(
    x: Array,
    w: Array,
    bias: Array = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """:func:`convolution` with a bias."""
    rank = w.ndim - 2
    examples = x if x.ndim == rank + 2 else x[None]
    steps, apart = _many(stride, rank), _many(dilation, rank)
    around = sum(_pairs(padding, examples.shape[2:], w.shape[2:], steps, apart), ())
    result = convolution(examples, w, steps, around, (1,) * rank, apart, groups)
    result = result if bias is None else result + bias[(slice(None), *(None,) * rank)]
    return result if x.ndim == rank + 2 else result[0]


def conv_transpose(
    x: Array,
    w: Array,
    bias: Array = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    """Every element of the input adds its multiple of the kernel to the result."""
    rank = w.ndim - 2
    examples = x if x.ndim == rank + 2 else x[None]
    dtype = promote(as_dtype(x.dtype), as_dtype(w.dtype)).np
    wide = np.float32 if is_half(dtype) else dtype
    steps, less, more = (_many(one, rank) for one in (stride, padding, output_padding))
    kernel = _apart(w.astype(wide), _many(dilation, rank))
    reach = kernel.shape[2:]
    whole = [(n - 1) * s + k + e for n, s, k, e in zip(examples.shape[2:], steps, reach, more)]
    result = np.zeros((examples.shape[0], w.shape[1] * groups, *whole), wide)
    of_group = w.shape[0] // groups
    for n, c, *place in np.ndindex(*examples.shape):
        at = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, steps, reach))
        outs = slice(c // of_group * w.shape[1], (c // of_group + 1) * w.shape[1])
        result[(n, outs, *at)] += examples[(n, c, *place)].astype(wide) * kernel[c]
    kept = tuple(slice(p, size - p) for p, size in zip(less, whole))
    result = result[(slice(None), slice(None), *kept)].astype(dtype)
    result = result if bias is None else result + bias[(slice(None), *(None,) * rank)]
    return result if x.ndim == rank + 2 else result[0]


def _windows(
    x: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, fill: Any, rank: int
) -> Array:
    """The windows of the last ``rank`` axes, each flattened, along a new last axis."""
    kernel, apart = _many(kernel_size, rank), _many(dilation, rank)
    steps = kernel if stride is None else _many(stride, rank)
    sizes = x.shape[-rank:]
    pairs = _pairs(padding, sizes, kernel, steps, apart)
    padded = np.pad(x, [(0, 0)] * (x.ndim - rank) + pairs, constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, apart)]
    counts = [(n - r) // s + 1 for n, r, s in zip(padded.shape[-rank:], reach, steps)]
    result = np.empty((*x.shape[:-rank], *counts, int(np.prod(kernel))), padded.dtype)
    for place in np.ndindex(*counts):
        at: Any = (..., *(slice(p * s, p * s + r, d) for p, s, r, d in zip(place, steps, reach, apart)))
        result[(..., *place, slice(None))] = padded[at].reshape(*x.shape[:-rank], int(np.prod(kernel)))
    return result


def max_pool(rank: int) -> Any:
    """The maximum of each window."""

    def pool(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Array:
        is_int = np.issubdtype(x.dtype, np.integer)
        lowest = np.iinfo(x.dtype).min if is_int else -np.inf
        return _windows(x, kernel_size, stride, padding, dilation, lowest, rank).max(-1)

    return pool


def avg_pool(rank: int) -> Any:
    """The mean of each window."""

    def pool(
        x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, *, count_include_pad: bool = True
    ) -> Array:
        wide = x.astype(np.float64)
        totals = _windows(wide, kernel_size, stride, padding, 1, 0.0, rank)
        inside = _windows(np.ones_like(wide), kernel_size, stride, padding, 1, 0.0, rank)
        counts = totals.shape[-1] if count_include_pad else inside.sum(-1)
        return (totals.sum(-1) / counts).astype(x.dtype)

    return pool


max_pool1d, max_pool2d, max_pool3d = (max_pool(rank) for rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (avg_pool(rank) for rank in (1, 2, 3))
