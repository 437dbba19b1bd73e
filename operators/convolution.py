"""Convolution: one operator, closed under its own derivatives; the layers that call it are in another module.

As everywhere where networks are trained, a convolution is a correlation: the kernel is not turned around. The
derivative of a convolution by its input is one by the turned kernel, of an input with zeros between its elements; that
by its kernel is one with the cotangent as the kernel.

Sources: ``jax.lax.conv_general_dilated``; Dumoulin and Visin, A guide to convolution arithmetic for deep learning,
2016.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import lazy
from ..errors import ShapeError, ValueArgumentError
from ..registry.dtypes import NUMERIC, DType, as_dtype, bool_, is_half, promote
from ..registry.values import TensorSpec
from .batching import Batched, BatchInfo, Dims, with_batch
from .contraction import SUMS
from .convolution_kernel import convolve
from .declare import Bad, Draw, Sample
from .derivatives import Rule
from .kinds import LAYOUTS, library
from .rearrange import flip
from .rules import common_device, compute_dtype, spec_of
from .views import permute, reshape

references = lazy.Functions("operators.references_convolution")

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


# -- sizes -------------------------------------------------------------------------------------------------------------
def spread(size: int, step: int) -> int:
    """The length of an axis whose elements are ``step`` apart."""
    return (size - 1) * step + 1 if size else 0


def pairs_of(padding: Ints) -> Pairs:
    """Numbers before and after, axis by axis, as pairs."""
    return tuple(zip(padding[::2], padding[1::2]))


def flat(pairs: Iterable[tuple[int, int]]) -> Ints:
    return tuple(number for pair in pairs for number in pair)


def _out_sizes(
    x: TensorSpec, w: TensorSpec, stride: Ints, padding: Ints, input_dilation: Ints, dilation: Ints
) -> Ints:
    found = []
    for axis, (before, after) in enumerate(pairs_of(padding), 2):
        size = spread(x.shape[axis], input_dilation[axis - 2]) + before + after
        room = size - spread(w.shape[axis], dilation[axis - 2])
        if room < 0:
            raise ShapeError(
                f"convolution: the kernel of {w} (dilation {dilation}) is longer than the padded input of {x} (padding "
                f"{padding}) along axis {axis}"
            )
        found.append(room // stride[axis - 2] + 1)
    return tuple(found)


def _meta(
    self: Any,
    weight: Any,
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


def _kernel(xp: Any, self: Any, weight: Any, *how: Any) -> Any:
    dtype = promote(as_dtype(self.dtype), as_dtype(weight.dtype)).np
    wide = xp.dtype(xp.float32) if is_half(dtype) else dtype  # BLAS has no half types
    with xp.errstate(all="ignore"):
        found = convolve(xp, self.astype(wide, copy=False), weight.astype(wide, copy=False), *how)
    return found.astype(dtype, copy=False)


# -- derivative --------------------------------------------------------------------------------------------------------
def turned(weight: Any, groups: int) -> Any:
    """A weight ``(O, C / groups, ...)`` as ``(C, O / groups, ...)``, its kernel turned around."""
    out, within, *kernel = weight.shape
    axes = tuple(range(2, len(weight.shape)))
    if groups == 1:
        return flip(permute(weight, (1, 0, *axes)), axes)
    parts = reshape(weight, (groups, out // groups, within, *kernel))
    parts = permute(parts, (0, 2, 1, *(axis + 1 for axis in axes)))
    return flip(reshape(parts, (groups * within, out // groups, *kernel)), axes)


def _by_self(
    g: Any,
    self_spec: TensorSpec,
    weight: Any,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    around = []
    for axis, (before, _) in enumerate(pairs_of(padding)):
        reach = spread(weight.shape[axis + 2], dilation[axis])
        wanted = (self_spec.shape[axis + 2] - 1) * input_dilation[axis] + reach
        first = reach - 1 - before
        around.append((first, wanted - spread(g.shape[axis + 2], stride[axis]) - first))
    return convolution(g, turned(weight, groups), input_dilation, flat(around), stride, dilation, groups)


def _by_weight(
    g: Any,
    self: Any,
    weight_spec: TensorSpec,
    stride: Ints,
    padding: Ints,
    input_dilation: Ints,
    dilation: Ints,
    groups: int,
) -> Any:
    """Channels are the batch of this convolution, and examples its channels."""
    around = []
    for axis, (before, _) in enumerate(pairs_of(padding)):
        wanted = (weight_spec.shape[axis + 2] - 1) * dilation[axis] + spread(g.shape[axis + 2], stride[axis])
        around.append((before, wanted - spread(self.shape[axis + 2], input_dilation[axis]) - before))
    count, channels, *sizes = self.shape
    axes = tuple(range(2, len(self.shape)))
    if groups == 1:
        x = permute(self, (1, 0, *axes))
    else:
        x = reshape(self, (count, groups, channels // groups, *sizes))
        x = permute(x, (2, 1, 0, *(axis + 1 for axis in axes)))
        x = reshape(x, (channels // groups, groups * count, *sizes))
    kernel = permute(g, (1, 0, *axes))
    found = convolution(x, kernel, dilation, flat(around), input_dilation, stride, groups)
    return permute(found, (1, 0, *axes))


# -- batches -----------------------------------------------------------------------------------------------------------
def _batched(info: BatchInfo, in_dims: Dims, self: Any, weight: Any, *steps: Any) -> Batched:
    """A batch of inputs has more examples; a batch of weights more channels, in more groups."""
    *how, groups = steps
    size = info.batch_size
    if in_dims[1] is None:
        count = self.shape[1]
        found = info.call(reshape(self, (size * count, *self.shape[2:])), weight, *how, groups)
        return reshape(found, (size, count, *found.shape[1:])), 0
    x = with_batch(self, in_dims[0], size)
    count, channels = x.shape[1:3]
    axes = tuple(range(2, len(x.shape)))
    x = reshape(permute(x, (1, 0, *axes)), (count, size * channels, *x.shape[3:]))
    weights = reshape(weight, (size * weight.shape[1], *weight.shape[2:]))
    found = info.call(x, weights, *how, size * groups)
    return reshape(found, (count, size, weight.shape[1], *found.shape[2:])), 1


# -- convolution -------------------------------------------------------------------------------------------------------
_ONE, _TWO = (1,), (1, 1)


def _samples(dtype: DType) -> Iterable[Sample]:
    for layout in LAYOUTS:
        yield Sample(
            (Draw((2, 3, 7), layout=layout), Draw((4, 3, 3), layout=layout), _ONE, (0, 0), _ONE, _ONE)
        )
    yield Sample((Draw((1, 2, 7)), Draw((2, 2, 2)), (2,), (1, 2), _ONE, (2,)))
    yield Sample((Draw((2, 2, 5)), Draw((3, 2, 3)), (3,), (1, -1), (2,), _ONE))
    yield Sample((Draw((1, 4, 5)), Draw((4, 2, 2)), _ONE, (-1, 1), _ONE, _ONE, 2))
    yield Sample((Draw((1, 8, 4)), Draw((1, 8, 3)), _ONE, (2, 2), (2,), _ONE))
    yield Sample((Draw((2, 3, 5, 6)), Draw((2, 3, 2, 3)), (1, 2), (1, 0, 0, 2), _TWO, (2, 1)))
    yield Sample((Draw((1, 4, 4, 3)), Draw((2, 2, 3, 2)), _TWO, (2, 2, 1, 1), (2, 3), _TWO, 2))
    yield Sample((Draw((1, 1, 3, 2, 4)), Draw((2, 1, 2, 2, 1)), (1, 1, 2), (0, 1) * 3, (1,) * 3, (1,) * 3))
    yield Sample((Draw((0, 2, 4)), Draw((3, 2, 2)), _ONE, (0, 0), _ONE, _ONE))
    yield Sample((Draw((2, 0, 4)), Draw((3, 0, 2)), _ONE, (0, 0), _ONE, _ONE))


def _errors() -> Iterable[Bad]:
    x, w = Draw((1, 2, 5)), Draw((3, 2, 2))
    yield Bad((Draw((2, 5)), w, _ONE, (0, 0), _ONE, _ONE), ValueError, "needs an input")
    yield Bad((x, w, _TWO, (0, 0), _ONE, _ONE), ValueError, "not for 1 axes")
    yield Bad((x, w, (0,), (0, 0), _ONE, _ONE), ValueError, "at least 1")
    yield Bad((x, w, _ONE, (0, 0), _ONE, _ONE, 2), ValueError, "do not fit")
    yield Bad((x, w, _ONE, (0, 0), _ONE, (5,)), ValueError, "longer than")
    yes = Draw((1, 2, 5), dtype=bool_), Draw((3, 2, 2), dtype=bool_)
    yield Bad((*yes, _ONE, (0, 0), _ONE, _ONE), TypeError, "does not take bool")


convolution: Any = library(
    "convolution",
    "convolution(Tensor self, Tensor weight, int[] stride, int[] padding, int[] input_dilation, int[] dilation, "
    "int groups=1) -> Tensor",
    _meta,
    _kernel,
    doc="""The general convolution, over any number of axes; :func:`conv2d` and its kin are short forms.

    Args:
        self: a tensor of shape ``(N, C, ...)``: examples, channels, and the axes to convolve over.
        weight: a tensor of shape ``(O, C / groups, ...)``: for each channel of the result a kernel.
        stride: for each axis the step from one place of the kernel to the next.
        padding: for each axis the number of zeros before and after; negative: elements left out.
        input_dilation: for each axis how far the input's elements are apart, with zeros between them.
        dilation: for each axis how far the kernel's elements are apart.
        groups: how many groups the channels are in; a channel of the result sees those of its group.

    Returns:
        A tensor of shape ``(N, O, ...)`` and the promoted dtype; float16 and bfloat16 are summed in float32.

    Raises:
        ShapeError: the shapes do not fit, or the kernel is longer than the padded input.
        ValueArgumentError: numbers for another number of axes, or a step below 1.
        DTypeError: bool, or dtypes that do not promote.

    >>> x = td.reshape(td.arange(5.0), (1, 1, 5))
    >>> td.convolution(x, td.ones((1, 1, 2)), (2,), (0, 1), (1,), (1,)).tolist()
    [[[1.0, 5.0, 4.0]]]
    """,
    reference=references.convolution,
    dtypes=NUMERIC,
    derivative=Rule(
        vjp={"self": _by_self, "weight": _by_weight},
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
    samples=_samples,
    errors=_errors,
    tolerance=SUMS,
    method=False,
    autocast="lower",
)
