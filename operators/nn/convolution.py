"""The general convolution, an operator whose derivatives are convolutions; :mod:`.convolution_layers` has the layers.

As in other frameworks, a convolution is a correlation: the kernel is not flipped. The vjp of the input is a convolution
of the dilated cotangent with the flipped kernel; that of the kernel is a convolution with the cotangent as the kernel.

Sources: ``jax.lax.conv_general_dilated``; Dumoulin and Visin, A guide to convolution arithmetic for deep learning,
2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import HALVES, NUMERIC, as_dtype, float32, float64, is_half, promote
from ...registry.values import TensorSpec
from ..contraction.matmul import SUMS
from ..creation.full import zeros
from ..declare.batching import Batched, BatchInfo, Dims, ensure_batch_axis
from ..declare.derivatives import Rule
from ..declare.kinds import array_op
from ..declare.native_kernel import Decomposition, NativeKernel, NativeLoop
from ..declare.shape_rules import common_device, compute_dtype, spec_of
from ..elementwise.casting import contiguous
from ..shape.rearrange import flip
from ..shape.views import permute, reshape
from .convolution_body import convolve_by_operators
from .convolution_kernel import convolve, dilated_size, used_steps

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Array, ArrayModule, Tensor

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
MOST_AXES = 3  # of native convolutions
MOST_STEP = 1 << 31  # of their sizes, steps and padding: products of two are counted in 64 bits
MOST_PRODUCTS = 1 << 56  # of their elements: the scratch memory that they need is counted in 64 bits


# -- sizes -------------------------------------------------------------------------------------------------------------
def to_pairs(padding: Ints) -> Pairs:
    """A flat sequence of numbers before and after each axis, as pairs."""
    return tuple(zip(padding[::2], padding[1::2]))


def flatten_pairs(pairs: Iterable[tuple[int, int]]) -> Ints:
    return tuple(number for pair in pairs for number in pair)


def _out_sizes(
    x: TensorSpec, w: TensorSpec, stride: Ints, padding: Ints, input_dilation: Ints, dilation: Ints
) -> Ints:
    items = []
    for axis, (before, after) in enumerate(to_pairs(padding), 2):
        size = dilated_size(x.shape[axis], input_dilation[axis - 2]) + before + after
        room = size - dilated_size(w.shape[axis], dilation[axis - 2])
        if room < 0:
            raise ShapeError(
                f"convolution: the kernel of {w} (dilation {dilation}) is longer than the padded input of {x} (padding "
                f"{padding}) along axis {axis}"
            )
        items.append(room // stride[axis - 2] + 1)
    return tuple(items)


def _shape_rule(
    self: TensorSpec,
    weight: TensorSpec,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int = 1,
) -> TensorSpec:
    x, w = spec_of(self), spec_of(weight)
    dtype = compute_dtype("convolution", "same", NUMERIC, (self, weight))
    rank = len(x.shape) - 2
    if rank < 1 or len(w.shape) != rank + 2:
        raise ShapeError(
            f"convolution: needs an input (N, C, ...) and a weight (O, C / groups, ...), not {x} and {w}"
        )
    lengths = len(stride), len(padding), len(input_dilation), len(dilation)
    if lengths != (rank, 2 * rank, rank, rank):
        raise ValueArgumentError(
            f"convolution: stride, padding and dilations are not for {rank} axes: "
            f"{stride}, {padding}, {input_dilation}, {dilation}"
        )
    if min(*stride, *input_dilation, *dilation) < 1 or 0 in w.shape[2:]:
        raise ValueArgumentError(
            f"convolution: strides, dilations and the kernel's sizes are at least 1, not {stride}, {input_dilation}, "
            f"{dilation} and {w.shape[2:]}"
        )
    if groups < 1 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise ShapeError(
            f"convolution: the channels of {x} and {w} do not fit with groups={groups}: {x.shape[1]} must be "
            f"{w.shape[1]} * groups, and {w.shape[0]} a multiple of groups"
        )
    sizes = _out_sizes(x, w, stride, padding, input_dilation, dilation)
    return TensorSpec((x.shape[0], w.shape[0], *sizes), dtype, common_device("convolution", (self, weight)))


def _kernel(xp: ArrayModule, self: Array, weight: Array, *how: Any) -> Array:  # noqa: ANN401
    dtype = promote(as_dtype(self.dtype), as_dtype(weight.dtype)).np
    wide = xp.dtype(xp.float32) if is_half(dtype) else dtype  # BLAS has no half types
    with xp.errstate(all="ignore"):
        result = convolve(xp, self.astype(wide, copy=False), weight.astype(wide, copy=False), *how)
    out: Array = result.astype(dtype, copy=False)
    return out


def _find_loops(
    self: TensorSpec,
    weight: TensorSpec,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int = 1,
) -> tuple[NativeLoop, ...]:
    """The loop of a call, whose name has its sizes."""
    rank = len(self.shape) - 2
    if rank > MOST_AXES or 0 in (*self.shape, *weight.shape):
        return ()
    out = _out_sizes(self, weight, stride, padding, input_dilation, dilation)
    stride, dilation = used_steps(stride, out), used_steps(dilation, weight.shape[2:])
    input_dilation = used_steps(input_dilation, self.shape[2:])
    # products of a dilated input are scattered: over results of any step that is 1, by kernels smaller than these
    is_scattered = max(stride) == 1 and math.prod(weight.shape[2:]) <= math.prod(out)
    if max(input_dilation) > 1 and not is_scattered:
        return ()
    axes = (self.shape[2:], weight.shape[2:], out, stride, padding[::2], input_dilation, dilation)
    if any(abs(number) >= MOST_STEP for sizes in axes for number in sizes):
        return ()
    points = math.prod(self.shape[2:])
    if math.prod(weight.shape) * max(math.prod(out), points) + self.shape[1] * points >= MOST_PRODUCTS:
        return ()
    numbers = (groups, self.shape[1], weight.shape[0] // groups)
    name = ",".join([*map(str, numbers), *("x".join(map(str, sizes)) for sizes in axes)])
    return (NativeLoop("convolution", name),)


# -- derivative --------------------------------------------------------------------------------------------------------
def transpose_weight(weight: Tensor, groups: int) -> Tensor:
    """A weight ``(O, C / groups, ...)`` as ``(C, O / groups, ...)``, with flipped kernels."""
    out, within, *kernel = weight.shape
    axes = tuple(range(2, len(weight.shape)))
    if groups == 1:
        return flip(permute(weight, (1, 0, *axes)), axes)
    parts = reshape(weight, (groups, out // groups, within, *kernel))
    parts = permute(parts, (0, 2, 1, *(axis + 1 for axis in axes)))
    return flip(reshape(parts, (groups * within, out // groups, *kernel)), axes)


def _input_vjp(
    g: Tensor,
    self_spec: TensorSpec,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    if 0 in self_spec.shape:  # without elements, but with results where its padding is
        return zeros(self_spec.shape, dtype=g.dtype, device=g.device)
    around = []
    for axis, (before, _) in enumerate(to_pairs(padding)):
        reach = dilated_size(weight.shape[axis + 2], dilation[axis])
        wanted = (self_spec.shape[axis + 2] - 1) * input_dilation[axis] + reach
        first = reach - 1 - before
        around.append((first, wanted - dilated_size(g.shape[axis + 2], stride[axis]) - first))
    return convolution(
        g, transpose_weight(weight, groups), input_dilation, flatten_pairs(around), stride, dilation, groups
    )


def _weight_vjp(
    g: Tensor,
    self: Tensor,
    weight_spec: TensorSpec,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    """The vjp of the weight: a convolution whose batch are the channels, and whose channels are the examples.

    Its result is in row-major order, as the weight: optimizers and DLPack consumers expect that.
    """
    around = []
    for axis, (before, _) in enumerate(to_pairs(padding)):
        wanted = (weight_spec.shape[axis + 2] - 1) * dilation[axis] + dilated_size(
            g.shape[axis + 2], stride[axis]
        )
        around.append((before, wanted - dilated_size(self.shape[axis + 2], input_dilation[axis]) - before))
    count, channels, *sizes = self.shape
    axes = tuple(range(2, len(self.shape)))
    if groups == 1:
        x = permute(self, (1, 0, *axes))
    else:
        x = reshape(self, (count, groups, channels // groups, *sizes))
        x = permute(x, (2, 1, 0, *(axis + 1 for axis in axes)))
        x = reshape(x, (channels // groups, groups * count, *sizes))
    kernel = permute(g, (1, 0, *axes))
    result = convolution(x, kernel, dilation, flatten_pairs(around), input_dilation, stride, groups)
    return contiguous(permute(result, (1, 0, *axes)))


# -- batches -----------------------------------------------------------------------------------------------------------
def _batched(info: BatchInfo, in_dims: Dims, self: Tensor, weight: Tensor, *steps: Tensor) -> Batched:
    """Batching rule: a batch of inputs becomes examples; a batch of weights becomes groups of channels."""
    *how, groups = steps
    size = info.batch_size
    if in_dims[1] is None:
        count = self.shape[1]
        result = info.call(reshape(self, (size * count, *self.shape[2:])), weight, *how, groups)
        return reshape(result, (size, count, *result.shape[1:])), 0
    x = ensure_batch_axis(self, in_dims[0], size)
    count, channels = x.shape[1:3]
    axes = tuple(range(2, len(x.shape)))
    x = reshape(permute(x, (1, 0, *axes)), (count, size * channels, *x.shape[3:]))
    weights = reshape(weight, (size * weight.shape[1], *weight.shape[2:]))
    result = info.call(x, weights, *how, size * groups)
    return reshape(result, (count, size, weight.shape[1], *result.shape[2:])), 1


# -- convolution -------------------------------------------------------------------------------------------------------
convolution: OperatorFunction[Tensor] = array_op(
    "convolution",
    "convolution(Tensor self, Tensor weight, int[] stride, int[] padding, int[] input_dilation, int[] dilation, "
    "int groups=1) -> Tensor",
    _shape_rule,
    _kernel,
    doc="""The general convolution, over any number of axes; see also :func:`conv2d`.

    Args:
        self: a tensor of shape ``(N, C, ...)``: examples, channels, and the axes to convolve over.
        weight: a tensor of shape ``(O, C / groups, ...)``: one kernel for each channel of the result.
        stride: for each axis the step of the kernel.
        padding: for each axis the numbers of zeros before and after; negative: elements removed.
        input_dilation: for each axis the spacing of the input's elements, with zeros between them.
        dilation: for each axis the spacing of the kernel's elements.
        groups: the number of groups of channels; a channel of the result depends on those of its group.

    Returns:
        A tensor of shape ``(N, O, ...)`` and the promoted dtype; float16 and bfloat16 are summed in float32.

    Raises:
        ShapeError: the shapes do not fit, or the kernel is longer than the padded input.
        ValueArgumentError: an argument is for another number of axes, or a step is below 1.
        DTypeError: bool, or dtypes that do not promote.

    >>> x = td.reshape(td.arange(5.0), (1, 1, 5))
    >>> td.convolution(x, td.ones((1, 1, 2)), (2,), (0, 1), (1,), (1,)).tolist()
    [[[1.0, 5.0, 4.0]]]
    """,
    reference="references.convolution.convolution",
    native=NativeKernel(
        (), widen=dict.fromkeys(HALVES, float32), make=_find_loops, dtypes=(float32, float64, *HALVES)
    ),
    dtypes=NUMERIC,
    decomposition=Decomposition(
        lambda self, weight, *how: convolve_by_operators(
            convolution, _shape_rule(spec_of(self), spec_of(weight), *how), self, weight, *how
        ),
        is_eager=lambda self, weight, *how: promote(self.dtype, weight.dtype).is_inexact,
    ),
    derivative=Rule(
        vjp={"self": _input_vjp, "weight": _weight_vjp},
        jvp={
            "self": lambda t, weight, stride, padding, input_dilation, dilation, groups: convolution(
                t, weight, stride, padding, input_dilation, dilation, groups
            ),
            "weight": lambda t, self, stride, padding, input_dilation, dilation, groups: convolution(
                self, t, stride, padding, input_dilation, dilation, groups
            ),
        },
    ),
    batching=_batched,
    samples="samples.nn.convolution_samples",
    errors="samples.nn.convolution_errors",
    tolerance=SUMS,
    method=False,
    autocast="lower",
)
