"""conv1d to conv3d and their transposes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ShapeError, ValueArgumentError
from ...registry.dtypes import NUMERIC
from ..contraction.matmul import SUMS
from ..declare.kinds import composite
from ..declare.shape_rules import spec_of
from ..shape.views import reshape
from .convolution import Ints, Pairs, convolution, flatten_pairs, transpose_weight
from .convolution_kernel import dilated_size

if TYPE_CHECKING:
    from ...registry.function import OperatorFunction
    from ...registry.types import Tensor


# -- arguments ---------------------------------------------------------------------------------------------------------
def expand_per_axis(name: str, what: str, value: object, rank: int, least: int) -> Ints:
    """An argument that is an int for all axes or a sequence for each, as a tuple.

    Raises:
        ValueArgumentError: the argument is neither, or a number is below ``least``.
    """
    numbers = (value,) * rank if type(value) is int else tuple(value) if isinstance(value, Sequence) else ()
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank or any(type(n) is not int or n < least for n in numbers):
        raise ValueArgumentError(
            f"{name}: {what} {value!r} is neither an int of at least {least} nor {rank} of them"
        )
    return numbers


def normalize_padding(
    name: str, padding: object, sizes: Ints, kernel: Ints, stride: Ints, dilation: Ints
) -> Pairs:
    """The padding before and after each axis, as pairs.

    Args:
        name: the name of the operator.
        padding: an int, an int or a pair for each axis, ``"valid"``, or ``"same"``.
        sizes, kernel, stride, dilation: numbers for each axis.

    Raises:
        ValueArgumentError: another form of padding.
    """
    if padding == "valid":
        return ((0, 0),) * len(sizes)
    if padding == "same":
        steps = (math.ceil(size / step) - 1 for size, step in zip(sizes, stride))
        wanted = (n * step + dilated_size(k, d) for n, step, k, d in zip(steps, stride, kernel, dilation))
        missing = [max(length - size, 0) for length, size in zip(wanted, sizes)]
        return tuple((total // 2, total - total // 2) for total in missing)
    if isinstance(padding, Sequence) and all(isinstance(one, Sequence) for one in padding) and padding:
        pairs = tuple(expand_per_axis(name, "padding", tuple(one), 2, 0) for one in padding)
        if len(pairs) == len(sizes) and not isinstance(padding, str):
            return tuple((before, after) for before, after in pairs)
    if isinstance(padding, str):
        raise ValueArgumentError(f"{name}: padding {padding!r} is neither 'same' nor 'valid'")
    return tuple((n, n) for n in expand_per_axis(name, "padding", padding, len(sizes), 0))


def ensure_example_axis(name: str, x: Tensor, rank: int) -> tuple[Tensor, bool]:
    """The input with shape ``(N, C, ...)``, and whether it was a single example without the axis N.

    Raises:
        ShapeError: the input has another number of axes.
    """
    shape = spec_of(x).shape
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: takes an input of {rank + 2} axes (N, C, ...) or {rank + 1}, not {spec_of(x)}"
        )
    return (x, False) if len(shape) == rank + 2 else (reshape(x, (1, *shape)), True)


# -- test inputs: few enough elements for numerical derivatives --------------------------------------------------------


# -- convolutions ------------------------------------------------------------------------------------------------------
_CONV = """{title}, a correlation as in other frameworks.

    Args:
        self: a tensor of shape ``(N, C, ...)`` or ``(C, ...)``, with {rank} spatial axes.
        weight: a tensor of shape ``(O, C / groups, ...)``: one kernel for each channel of the result.
        bias: a tensor of shape ``(O,)``, added to each channel; or None.
        stride: the steps of the kernel: an int, or one for each axis.
        padding: zeros on both sides: an int, an int or a pair (before, after) for each axis, ``"valid"`` (none), or
            ``"same"``: so that the result has size ``ceil(size / stride)``; an odd zero comes after.
        dilation: the spacing of the kernel's elements: an int, or one for each axis.
        groups: the number of groups of channels; a channel of the result depends on those of its group.

    Returns:
        A tensor of shape ``(N, O, ...)`` and the promoted dtype.

    Raises:
        ShapeError: the shapes do not fit, or the kernel is longer than the padded input.
        ValueArgumentError: stride, padding or dilation has another form.
        DTypeError: bool, or dtypes that do not promote.

    >>> td.conv{rank}d(td.ones((1, 2{fours})), td.ones((3, 2{twos})), stride=2).shape
    (1, 3{twos})
    """

_TRANSPOSED = """The transposed convolution: the transpose of :func:`conv{rank}d` with respect to its input.

    Args:
        self: a tensor of shape ``(N, C, ...)`` or ``(C, ...)``, with {rank} spatial axes.
        weight: a tensor of shape ``(C, O / groups, ...)``.
        bias: a tensor of shape ``(O,)``, added to each channel; or None.
        stride: the spacing of the input's elements in the result: an int, or one for each axis.
        padding: the elements removed on both sides of the result: an int, or one for each axis.
        output_padding: the elements added at the end of the result: an int, or one for each axis.
        groups: the number of groups of channels.
        dilation: the spacing of the kernel's elements: an int, or one for each axis.

    Returns:
        A tensor of shape ``(N, O, ...)`` and the promoted dtype, along each axis of length
        ``(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

    Raises:
        ShapeError: the shapes do not fit, or the result would be empty.
        ValueArgumentError: stride, padding or dilation has another form.
        DTypeError: bool, or dtypes that do not promote.

    >>> td.conv_transpose{rank}d(td.ones((1, 2{fours})), td.ones((2, 3{twos})), stride=2).shape
    (1, 3{eights})
    """


def _format_doc(text: str, rank: int) -> str:
    title = "A convolution over one axis" if rank == 1 else f"A convolution over {rank} axes"
    return text.format(title=title, rank=rank, twos=", 2" * rank, fours=", 4" * rank, eights=", 8" * rank)


def _check_inputs(
    name: str, rank: int, self: Tensor, weight: Tensor, bias: Tensor | None, out: int
) -> tuple[Tensor, bool]:
    x, is_single = ensure_example_axis(name, self, rank)
    if len(spec_of(weight).shape) != rank + 2:
        raise ShapeError(f"{name}: takes a weight of {rank + 2} axes, not {spec_of(weight)}")
    if bias is not None and spec_of(bias).shape != (out,):
        raise ShapeError(f"{name}: needs a bias of shape ({out},), not {spec_of(bias)}")
    return x, is_single


def _add_bias(result: Tensor, bias: Tensor | None, rank: int, is_single: bool) -> Tensor:
    if bias is not None:
        result = result + reshape(bias, (bias.shape[0], *(1,) * rank))
    return reshape(result, result.shape[1:]) if is_single else result


def _conv_op(
    schema: str,
    rank: int,
    doc: str,
    **fields: Any,  # noqa: ANN401
) -> Callable[[Callable[..., Tensor]], OperatorFunction[Tensor]]:
    return composite(
        schema,
        doc=_format_doc(doc, rank),
        dtypes=NUMERIC,
        tolerance=SUMS,
        method=False,
        autocast="lower",
        **fields,
    )


def _make_conv(rank: int) -> OperatorFunction[Tensor]:
    name = f"conv{rank}d"

    @_conv_op(
        f"{name}(Tensor self, Tensor weight, Tensor? bias=None, Any stride=1, Any padding=0, Any dilation=1, "
        "int groups=1) -> Tensor",
        rank,
        _CONV,
        reference="references.convolution.conv",
        samples=("samples.nn.conv_samples", rank),
        errors=("samples.nn.conv_errors", rank),
    )
    def conv(
        self: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: int | Sequence[int],
        padding: int | str | Sequence[int | Sequence[int]],
        dilation: int | Sequence[int],
        groups: int,
    ) -> Tensor:
        x, is_single = _check_inputs(name, rank, self, weight, bias, (spec_of(weight).shape or (0,))[0])
        steps = expand_per_axis(name, "stride", stride, rank, 1)
        dilations = expand_per_axis(name, "dilation", dilation, rank, 1)
        around = normalize_padding(name, padding, x.shape[2:], weight.shape[2:], steps, dilations)
        result = convolution(x, weight, steps, flatten_pairs(around), (1,) * rank, dilations, groups)
        return _add_bias(result, bias, rank, is_single)

    return conv


# -- transposed --------------------------------------------------------------------------------------------------------


def _check_channels(name: str, x: Tensor, weight: Tensor, groups: int) -> None:
    if groups < 1 or weight.shape[0] % groups or x.shape[1] != weight.shape[0]:
        raise ShapeError(
            f"{name}: the channels of {spec_of(x)} and {spec_of(weight)} do not fit with groups={groups}: both must "
            "have as many, a multiple of groups"
        )


def _make_conv_transpose(rank: int) -> OperatorFunction[Tensor]:
    name = f"conv_transpose{rank}d"

    @_conv_op(
        f"{name}(Tensor self, Tensor weight, Tensor? bias=None, Any stride=1, Any padding=0, "
        "Any output_padding=0, int groups=1, Any dilation=1) -> Tensor",
        rank,
        _TRANSPOSED,
        reference="references.convolution.conv_transpose",
        samples=("samples.nn.conv_transpose_samples", rank),
        errors=("samples.nn.channel_errors", rank),
    )
    def conv_transpose(
        self: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: int | Sequence[int],
        padding: int | Sequence[int],
        output_padding: int | Sequence[int],
        groups: int,
        dilation: int | Sequence[int],
    ) -> Tensor:
        out = groups * (*spec_of(weight).shape, 0, 0)[1]
        x, is_single = _check_inputs(name, rank, self, weight, bias, out)
        steps = expand_per_axis(name, "stride", stride, rank, 1)
        dilations = expand_per_axis(name, "dilation", dilation, rank, 1)
        less = expand_per_axis(name, "padding", padding, rank, 0)
        more = expand_per_axis(name, "output_padding", output_padding, rank, 0)
        _check_channels(name, x, weight, groups)
        ends = [dilated_size(k, d) - 1 - p for k, d, p in zip(weight.shape[2:], dilations, less)]
        around = flatten_pairs((end, end + extra) for end, extra in zip(ends, more))
        result = convolution(
            x, transpose_weight(weight, groups), (1,) * rank, around, steps, dilations, groups
        )
        return _add_bias(result, bias, rank, is_single)

    return conv_transpose


conv1d = _make_conv(1)
conv2d = _make_conv(2)
conv3d = _make_conv(3)
conv_transpose1d = _make_conv_transpose(1)
conv_transpose2d = _make_conv_transpose(2)
conv_transpose3d = _make_conv_transpose(3)
