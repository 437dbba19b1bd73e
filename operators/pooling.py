"""Pooling: the largest element or the mean of each window, axis by axis, from shifted views of the input.

An axis of windows of length k takes k views; a jitted function reads them in one loop. Of several largest elements
the first has the derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lazy
from ..errors import ShapeError, ValueArgumentError
from ..registry.dtypes import FLOATS, REAL, bool_, float32, is_half
from .arithmetic import add
from .casting import astype
from .comparison import gt, isnan, logical_or
from .convolution import Ints, Pairs, spread
from .convolution_layers import padding_pairs, per_axis, with_example
from .creation import full
from .declare import Bad, Draw, Sample
from .kinds import LAYOUTS, composite
from .repeating import pad
from .rules import compute_dtype, spec_of
from .selection import where
from .slicing import basic_index
from .views import reshape

references = lazy.Functions("operators.references_convolution")


def _larger(one: Any, two: Any) -> Any:
    """The larger of two, the first where they are equal; NaN where there is one."""
    is_second = gt(two, one)
    if spec_of(one).dtype.is_floating:
        is_second = logical_or(is_second, isnan(two))
    return where(is_second, two, one)


def _folded(
    name: str, x: Any, fold: Callable[[Any, Any], Any], kernel: Ints, stride: Ints, dilation: Ints
) -> Any:
    """The fold of every window, over the last axes one after the other, the innermost first."""
    rank = len(x.shape)
    for axis in range(rank - 1, rank - len(kernel) - 1, -1):
        at = axis - rank
        room = x.shape[axis] - spread(kernel[at], dilation[at])
        if room < 0:
            raise ShapeError(
                f"{name}: the window of {kernel[at]} (dilation {dilation[at]}) is longer than the {x.shape[axis]} "
                f"padded elements along axis {axis}"
            )
        count = room // stride[at] + 1
        found = None
        for tap in range(kernel[at]):
            plan = [(0, size, 1) for size in x.shape]
            plan[axis] = (tap * dilation[at], count, stride[at])
            part = basic_index(x, tuple(plan))
            found = part if found is None else fold(found, part)
        x = found
    return x


def _around(x: Any, pairs: Pairs, value: Any) -> Any:
    if not any(map(any, pairs)):
        return x
    return pad(x, ((0, 0),) * (len(x.shape) - len(pairs)) + pairs, value=value)


def _geometry(
    name: str, x: Any, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Ints, Ints, Pairs, Ints]:
    kernel = per_axis(name, "kernel_size", kernel_size, rank, 1)
    steps = kernel if stride is None else per_axis(name, "stride", stride, rank, 1)
    apart = per_axis(name, "dilation", dilation, rank, 1)
    pairs = padding_pairs(name, padding, x.shape[2:], kernel, steps, apart)
    if any(max(pair) >= spread(k, d) for pair, k, d in zip(pairs, kernel, apart)):
        raise ValueArgumentError(
            f"{name}: padding {padding!r} leaves windows of {kernel} without any element; it must be "
            "smaller than they are"
        )
    return kernel, steps, pairs, apart


_DOC = """

    Args:
        self: a tensor of shape ``(N, C, ...)``, or ``(C, ...)``, with {rank} more.
        kernel_size: the lengths of a window: an int, or one for each axis.
        stride: the steps from one window to the next: an int, or one for each axis; None: ``kernel_size``.
        padding: what is added on both sides, {padded}: an int, an int or a pair (before, after) for each axis,
            ``"valid"`` (nothing), or ``"same"``: as much as gives ``ceil(size / stride)`` windows.
        {last}

    Returns:
        A tensor of shape ``(N, C, ...)`` and the same dtype.

    Raises:
        ShapeError: a window is longer than the padded input.
        ValueArgumentError: stride or padding is not as above, or the padding as long as a window.
        DTypeError: {dtypes}.

    >>> td.{name}(td.ones((1, 2{sizes})), 2).shape
    (1, 2{halves})
    """

_SIZES: dict[int, Ints] = {1: (7,), 2: (3, 4), 3: (2, 2, 3)}


def _errors(rank: int) -> list[Bad]:
    x = Draw((1, 2, *_SIZES[rank]))
    return [
        Bad((Draw((3,)), 2), ValueError, "axes"),
        Bad((x, 0), ValueError, "kernel_size"),
        Bad((x, 2, -1), ValueError, "stride"),
        Bad((x, 2, None, 2), ValueError, "smaller"),
        Bad((x, 9), ValueError, "longer than"),
        Bad((Draw((1, 2, *_SIZES[rank]), dtype=bool_), 2), TypeError, "does not take bool"),
    ]


def _text(rank: int, name: str, **words: str) -> str:
    return _DOC.format(rank=rank, name=name, sizes=", 4" * rank, halves=", 2" * rank, **words)


def _max_pool(rank: int) -> Any:
    name = f"max_pool{rank}d"
    size = _SIZES[rank]

    @composite(
        f"{name}(Tensor self, Any kernel_size, Any stride=None, Any padding=0, Any dilation=1) -> Tensor",
        doc="The largest element of each window."
        + _text(
            rank,
            name,
            padded="which is smaller than all",
            last="dilation: how far a window's elements are apart: an int, or one for each axis.",
            dtypes="bool or complex",
        ),
        reference=references.max_pool(rank),
        samples=lambda dtype: [
            *(Sample((Draw((2, 2, *size), layout=layout, distinct=True), 2)) for layout in LAYOUTS),
            Sample((Draw((2, 2, *size), distinct=True), 3, 1, 1)),
            Sample((Draw((3, *size), distinct=True), 2, 2, "same")),
            Sample(
                (Draw((1, 2, *size), distinct=True), (1, *(2,) * (rank - 1))), {"stride": 1, "dilation": 1}
            ),
            Sample((Draw((0, 2, *size)), 2)),
        ],
        errors=lambda: _errors(rank),
        dtypes=REAL,
        method=False,
    )
    def max_pool(self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
        x, is_single = with_example(name, self, rank)
        dtype = compute_dtype(name, "same", REAL, (self,))
        kernel, steps, pairs, apart = _geometry(name, x, rank, kernel_size, stride, padding, dilation)
        lowest = -math.inf if dtype.is_floating else int(np.iinfo(dtype.np).min)
        found = _folded(name, _around(x, pairs, lowest), _larger, kernel, steps, apart)
        return reshape(found, found.shape[1:]) if is_single else found

    return max_pool


def _avg_pool(rank: int) -> Any:
    name = f"avg_pool{rank}d"
    size = _SIZES[rank]

    @composite(
        f"{name}(Tensor self, Any kernel_size, Any stride=None, Any padding=0, *, "
        "bool count_include_pad=True) -> Tensor",
        doc="The mean of each window."
        + _text(
            rank,
            name,
            padded="zeros",
            last="count_include_pad: whether a window's padding counts as elements of it.",
            dtypes="no floats",
        ),
        reference=references.avg_pool(rank),
        samples=lambda dtype: [
            *(Sample((Draw((2, 2, *size), layout=layout), 2)) for layout in LAYOUTS),
            Sample((Draw((2, 2, *size)), 3, 1, 1)),
            Sample((Draw((3, *size)), 2, 2, "same"), {"count_include_pad": False}),
            Sample((Draw((0, 2, *size)), 2)),
        ],
        errors=lambda: _errors(rank),
        dtypes=FLOATS,
        tolerance={"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5},
        method=False,
    )
    def avg_pool(self: Any, kernel_size: Any, stride: Any, padding: Any, *, count_include_pad: bool) -> Any:
        x, is_single = with_example(name, self, rank)
        dtype = compute_dtype(name, "same", FLOATS, (self,))
        x = astype(x, float32, copy=False) if is_half(dtype) else x
        kernel, steps, pairs, apart = _geometry(name, x, rank, kernel_size, stride, padding, 1)
        found = _folded(name, _around(x, pairs, 0.0), add, kernel, steps, apart)
        if count_include_pad or not any(map(any, pairs)):
            found = found / math.prod(kernel)
        else:
            inside = full(x.shape[2:], 1.0, dtype=x.dtype, device=x.device)
            found = found / _folded(name, _around(inside, pairs, 0.0), add, kernel, steps, apart)
        return astype(reshape(found, found.shape[1:]) if is_single else found, dtype, copy=False)

    return avg_pool


max_pool1d: Any = _max_pool(1)
max_pool2d: Any = _max_pool(2)
max_pool3d: Any = _max_pool(3)
avg_pool1d: Any = _avg_pool(1)
avg_pool2d: Any = _avg_pool(2)
avg_pool3d: Any = _avg_pool(3)
