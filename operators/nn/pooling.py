"""Pooling: the maximum or the mean of each window, computed axis by axis from shifted views of the input.

An axis with windows of length k needs k views; a jitted function reads them in one loop. Of several equal maxima the
first receives the cotangent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import FLOATS, REAL, float32, is_half
from ..creation.creation import full
from ..declare.kinds import composite
from ..declare.shape_rules import compute_dtype, spec_of
from ..elementwise.arithmetic import add
from ..elementwise.casting import astype
from ..elementwise.comparison import gt, isnan, logical_or
from ..elementwise.selection import where
from ..indexing.slicing import basic_index
from ..shape.padding import pad
from ..shape.views import reshape
from .convolution import Ints, Pairs
from .convolution_kernel import dilated_size
from .convolution_layers import ensure_example_axis, expand_per_axis, normalize_padding

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor


def _nan_maximum(one: Tensor, two: Tensor) -> Tensor:
    """The larger of two elements, the first if they are equal; NaN if either is NaN."""
    is_second = gt(two, one)
    if spec_of(one).dtype.is_floating:
        is_second = logical_or(is_second, isnan(two))
    return where(is_second, two, one)


def _fold_windows(
    name: str, x: Tensor, fold: Callable[[Any, Any], Any], kernel: Ints, stride: Ints, dilation: Ints
) -> Tensor:
    """Fold every window, one axis after the other, the last axis first."""
    rank = len(x.shape)
    for axis in range(rank - 1, rank - len(kernel) - 1, -1):
        at = axis - rank
        room = x.shape[axis] - dilated_size(kernel[at], dilation[at])
        if room < 0:
            raise ShapeError(
                f"{name}: the window of {kernel[at]} (dilation {dilation[at]}) is longer than the {x.shape[axis]} "
                f"padded elements along axis {axis}"
            )
        count = room // stride[at] + 1
        parts = []
        for tap in range(kernel[at]):
            plan = [(0, size, 1) for size in x.shape]
            plan[axis] = (tap * dilation[at], count, stride[at])
            parts.append(basic_index(x, tuple(plan)))
        x = functools.reduce(fold, parts)
    return x


def _pad_spatial(x: Tensor, pairs: Pairs, value: Number) -> Tensor:
    if not any(map(any, pairs)):
        return x
    return pad(x, ((0, 0),) * (len(x.shape) - len(pairs)) + pairs, value=value)


def _normalize_windows(
    name: str,
    x: Tensor,
    rank: int,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | str | Sequence[int | Sequence[int]],
    dilation: int | Sequence[int],
) -> tuple[Ints, Ints, Pairs, Ints]:
    kernel = expand_per_axis(name, "kernel_size", kernel_size, rank, 1)
    steps = kernel if stride is None else expand_per_axis(name, "stride", stride, rank, 1)
    dilations = expand_per_axis(name, "dilation", dilation, rank, 1)
    pairs = normalize_padding(name, padding, x.shape[2:], kernel, steps, dilations)
    if any(max(pair) >= dilated_size(k, d) for pair, k, d in zip(pairs, kernel, dilations)):
        raise ValueArgumentError(
            f"{name}: with padding {padding!r} some windows of size {kernel} have no element; the padding must be "
            "smaller than the window"
        )
    return kernel, steps, pairs, dilations


_DOC = """

    Args:
        self: a tensor of shape ``(N, C, ...)`` or ``(C, ...)``, with {rank} spatial axes.
        kernel_size: the lengths of a window: an int, or one for each axis.
        stride: the steps from one window to the next: an int, or one for each axis; None: ``kernel_size``.
        padding: the padding on both sides, with {padded}: an int, an int or a pair (before, after) for each axis,
            ``"valid"`` (none), or ``"same"``: so that there are ``ceil(size / stride)`` windows.
        {last}

    Returns:
        A tensor of shape ``(N, C, ...)`` and the same dtype.

    Raises:
        ShapeError: a window is longer than the padded input.
        ValueArgumentError: stride or padding has another form, or the padding is as long as a window.
        DTypeError: {dtypes}.

    >>> td.{name}(td.ones((1, 2{sizes})), 2).shape
    (1, 2{halves})
    """


def _format_doc(rank: int, name: str, **words: str) -> str:
    return _DOC.format(rank=rank, name=name, sizes=", 4" * rank, halves=", 2" * rank, **words)


def _make_max_pool(rank: int) -> Tensor:
    name = f"max_pool{rank}d"

    @composite(
        f"{name}(Tensor self, Any kernel_size, Any stride=None, Any padding=0, Any dilation=1) -> Tensor",
        doc="The largest element of each window."
        + _format_doc(
            rank,
            name,
            padded="the lowest value",
            last="dilation: the spacing of a window's elements: an int, or one for each axis.",
            dtypes="bool or complex",
        ),
        reference=f"references.convolution.max_pool{rank}d",
        samples=("samples.nn.max_pool_samples", rank),
        errors=("samples.nn.pooling_errors", rank),
        dtypes=REAL,
        method=False,
    )
    def max_pool(
        self: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None,
        padding: int | str | Sequence[int | Sequence[int]],
        dilation: int | Sequence[int],
    ) -> Tensor:
        x, is_single = ensure_example_axis(name, self, rank)
        dtype = compute_dtype(name, "same", REAL, (self,))
        kernel, steps, pairs, dilations = _normalize_windows(
            name, x, rank, kernel_size, stride, padding, dilation
        )
        lowest = -math.inf if dtype.is_floating else int(np.iinfo(dtype.np).min)
        result = _fold_windows(name, _pad_spatial(x, pairs, lowest), _nan_maximum, kernel, steps, dilations)
        return reshape(result, result.shape[1:]) if is_single else result

    return max_pool


def _make_avg_pool(rank: int) -> Tensor:
    name = f"avg_pool{rank}d"

    @composite(
        f"{name}(Tensor self, Any kernel_size, Any stride=None, Any padding=0, *, "
        "bool count_include_pad=True) -> Tensor",
        doc="The mean of each window."
        + _format_doc(
            rank,
            name,
            padded="zeros",
            last="count_include_pad: whether the mean counts the padding of a window.",
            dtypes="not a real floating dtype",
        ),
        reference=f"references.convolution.avg_pool{rank}d",
        samples=("samples.nn.avg_pool_samples", rank),
        errors=("samples.nn.pooling_errors", rank),
        dtypes=FLOATS,
        tolerance={"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5},
        method=False,
    )
    def avg_pool(
        self: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None,
        padding: int | str | Sequence[int | Sequence[int]],
        *,
        count_include_pad: bool,
    ) -> Tensor:
        x, is_single = ensure_example_axis(name, self, rank)
        dtype = compute_dtype(name, "same", FLOATS, (self,))
        x = astype(x, float32, copy=False) if is_half(dtype) else x
        kernel, steps, pairs, dilations = _normalize_windows(name, x, rank, kernel_size, stride, padding, 1)
        result = _fold_windows(name, _pad_spatial(x, pairs, 0.0), add, kernel, steps, dilations)
        if count_include_pad or not any(map(any, pairs)):
            result = result / math.prod(kernel)
        else:
            inside = full(x.shape[2:], 1.0, dtype=x.dtype, device=x.device)
            result = result / _fold_windows(
                name, _pad_spatial(inside, pairs, 0.0), add, kernel, steps, dilations
            )
        return astype(reshape(result, result.shape[1:]) if is_single else result, dtype, copy=False)

    return avg_pool


max_pool1d = _make_max_pool(1)
max_pool2d = _make_max_pool(2)
max_pool3d = _make_max_pool(3)
avg_pool1d = _make_avg_pool(1)
avg_pool2d = _make_avg_pool(2)
avg_pool3d = _make_avg_pool(3)
