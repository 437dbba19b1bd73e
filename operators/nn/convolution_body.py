"""The convolution in terms of other operators, for calls that have no loop of their own.

Those are convolutions of integers and complex numbers, over more than three axes, and without elements. The windows of
the input are selections of its elements, which compiled code reads where they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...registry.dtypes import float32, is_half
from ..contraction.matmul import matmul
from ..creation.full import zeros
from ..elementwise.casting import cast
from ..elementwise.complex_parts import complex, imag, real
from ..indexing.slicing import basic_index
from ..reductions.folds import sum
from ..shape.joining import concat
from ..shape.padding import pad_or_cut
from ..shape.parts import unfold
from ..shape.rearrange import flip, full_plan
from ..shape.splitting import slice_axis
from ..shape.views import permute, reshape
from .convolution_kernel import Ints, dilated_size, used_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...registry.types import Tensor
    from ...registry.values import TensorSpec

MOST_WINDOWS = 1 << 24  # elements of windows that are copied


def convolve_by_operators(
    convolution: Callable[..., Tensor],
    out: TensorSpec,
    self: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int = 1,
) -> Tensor:
    """Compute a convolution by other operators.

    Args:
        convolution: the operator; that of complex numbers is one of their parts.
        out: the spec of the result.
        self, weight, stride, padding, input_dilation, dilation, groups: the arguments of the operator.
    """
    if 0 in (*self.shape, *weight.shape):
        return zeros(out.shape, dtype=out.dtype, device=out.device)
    x, w = cast(self, out.dtype), cast(weight, out.dtype)
    if out.dtype.kind == "c":
        x, w = _stack_parts(x, w, groups)
        sums = convolution(x, w, stride, padding, input_dilation, dilation, groups)
        parts = reshape(sums, (out.shape[0], groups, 2, out.shape[1] // groups, *out.shape[2:]))
        re, im = (reshape(slice_axis(parts, 2, at, at + 1), out.shape) for at in (0, 1))
        return complex(re, im)
    stride, dilation = used_steps(stride, out.shape[2:]), used_steps(dilation, w.shape[2:])
    input_dilation = used_steps(input_dilation, x.shape[2:])
    if max(input_dilation) > 1 and max(*stride, *dilation) == 1:
        return _swap_operands(convolution, out, x, w, padding, input_dilation, groups)
    if is_half(out.dtype):
        x, w = cast(x, float32), cast(w, float32)
    spaces = [(low, high, step - 1) for low, high, step in zip(padding[::2], padding[1::2], input_dilation)]
    x = pad_or_cut(x, [(0, 0, 0), (0, 0, 0), *spaces])
    return cast(_multiply_windows(x, w, out.shape, stride, dilation, groups), out.dtype)


def _stack_parts(x: Tensor, w: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """The parts of complex numbers as channels, so that the channels of the result are the parts of the sums."""
    count, channels, *sizes = x.shape
    x = reshape(x, (count, groups, channels // groups, *sizes))
    x = reshape(concat((real(x), imag(x)), axis=2), (count, 2 * channels, *sizes))
    of_group, (within, *kernel) = w.shape[0] // groups, w.shape[1:]
    w = reshape(w, (groups, of_group, within, *kernel))
    rows = concat((real(w), -imag(w)), axis=2), concat((imag(w), real(w)), axis=2)
    return x, reshape(concat(rows, axis=1), (2 * groups * of_group, 2 * within, *kernel))


def _swap_operands(
    convolution: Callable[..., Tensor],
    out: TensorSpec,
    x: Tensor,
    w: Tensor,
    padding: Ints,
    input_dilation: Ints,
    groups: int,
) -> Tensor:
    """A convolution of a dilated input as that of the weight by a dilated kernel, backwards.

    Such are the derivatives of transposed convolutions by their weights.
    """
    count, of_group, within = x.shape[0], w.shape[0] // groups, w.shape[1]
    sizes, kernel, lengths = x.shape[2:], w.shape[2:], out.shape[2:]
    spatial = range(3, 3 + len(sizes))
    signal = permute(reshape(w, (groups, of_group, within, *kernel)), (1, 0, 2, *spatial))
    taps = permute(reshape(x, (count, groups, within, *sizes)), (1, 0, 2, *spatial))
    around: list[int] = []
    for axis, length in enumerate(lengths):
        before = length - 1 - padding[2 * axis]
        reach = dilated_size(sizes[axis], input_dilation[axis])
        around += before, length - 1 + reach - kernel[axis] - before
    ones = (1,) * len(sizes)
    result = convolution(
        reshape(signal, (of_group, groups * within, *kernel)),
        reshape(taps, (groups * count, within, *sizes)),
        ones,
        tuple(around),
        ones,
        input_dilation,
        groups,
    )
    result = reshape(flip(result, tuple(range(2, 2 + len(sizes)))), (of_group, groups, count, *lengths))
    return reshape(permute(result, (2, 1, 0, *spatial)), out.shape)


def _multiply_windows(x: Tensor, w: Tensor, shape: Ints, stride: Ints, dilation: Ints, groups: int) -> Tensor:
    """The sums of the products of the kernels and the windows of a padded input."""
    count, out, kernel, rank = x.shape[0], shape[2:], w.shape[2:], len(stride)
    of_group, within = w.shape[0] // groups, w.shape[1]
    for axis, (size, space, step, windows) in enumerate(zip(kernel, dilation, stride, out), 2):
        x = slice_axis(unfold(x, axis, dilated_size(size, space), step), axis, 0, windows)
        x = basic_index(x, (*full_plan(x.shape[:-1]), (0, size, space)))
    x = reshape(x, (count, groups, within, *out, *kernel))
    if of_group == 1 or math.prod(x.shape) > MOST_WINDOWS:  # each product is computed where it is added
        x = reshape(x, (count, groups, 1, *x.shape[2:]))
        w = reshape(w, (groups, of_group, within, *(1,) * rank, *kernel))
        return reshape(sum(x * w, (3, *range(4 + rank, 4 + 2 * rank))), shape)
    order = 0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank)
    columns = reshape(permute(x, order), (count, groups, within * math.prod(kernel), math.prod(out)))
    return reshape(matmul(reshape(w, (groups, of_group, columns.shape[2])), columns), shape)
