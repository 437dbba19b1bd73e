"""Convolutions and their transposes over one to three axes, as layers of networks have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import lazy
from ..errors import ShapeError, ValueArgumentError
from ..registry.dtypes import NUMERIC
from .contraction import SUMS
from .convolution import Ints, Pairs, convolution, flat, spread, turned
from .declare import Bad, Draw, Sample
from .kinds import composite
from .rules import spec_of
from .views import reshape

references = lazy.Functions("operators.references_convolution")


# -- arguments ---------------------------------------------------------------------------------------------------------
def per_axis(name: str, what: str, given: Any, rank: int, least: int) -> Ints:
    """An int for every axis, or one for each.

    Raises:
        ValueArgumentError: it is neither, or a number is below ``least``.
    """
    numbers = (given,) * rank if type(given) is int else tuple(given) if isinstance(given, Sequence) else ()
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank or any(type(n) is not int or n < least for n in numbers):
        raise ValueArgumentError(
            f"{name}: {what} {given!r} is neither an int of at least {least} nor {rank} of them"
        )
    return numbers


def padding_pairs(name: str, padding: Any, sizes: Ints, kernel: Ints, stride: Ints, dilation: Ints) -> Pairs:
    """How much to add before and after each axis.

    Args:
        name: the operator's.
        padding: an int, an int or a pair for each axis, ``"valid"``, or ``"same"``.
        sizes, kernel, stride, dilation: numbers for each axis.

    Raises:
        ValueArgumentError: it is none of these.
    """
    if padding == "valid":
        return ((0, 0),) * len(sizes)
    if padding == "same":
        steps = (math.ceil(size / step) - 1 for size, step in zip(sizes, stride))
        wanted = (n * step + spread(k, d) for n, step, k, d in zip(steps, stride, kernel, dilation))
        missing = [max(length - size, 0) for length, size in zip(wanted, sizes)]
        return tuple((total // 2, total - total // 2) for total in missing)
    if isinstance(padding, Sequence) and all(isinstance(one, Sequence) for one in padding) and padding:
        pairs = tuple(per_axis(name, "padding", tuple(one), 2, 0) for one in padding)
        if len(pairs) == len(sizes) and not isinstance(padding, str):
            return tuple((before, after) for before, after in pairs)
    if isinstance(padding, str):
        raise ValueArgumentError(f"{name}: padding {padding!r} is neither 'same' nor 'valid'")
    return tuple((n, n) for n in per_axis(name, "padding", padding, len(sizes), 0))


def with_example(name: str, x: Any, rank: int) -> tuple[Any, bool]:
    """An input of shape ``(N, C, ...)``, and whether it was one example without that axis.

    Raises:
        ShapeError: it has another number of axes.
    """
    shape = spec_of(x).shape
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name}: takes an input of {rank + 2} axes (N, C, ...) or {rank + 1}, not {spec_of(x)}"
        )
    return (x, False) if len(shape) == rank + 2 else (reshape(x, (1, *shape)), True)


# -- what the tests draw: few enough elements for numerical derivatives ------------------------------------------------
_SIZES: dict[int, tuple[Ints, Ints]] = {1: ((6,), (3,)), 2: ((3, 4), (2, 2)), 3: ((2, 3, 2), (1, 2, 2))}


def _draws(rank: int) -> tuple[Draw, Draw, Ints, Ints]:
    size, kernel = _SIZES[rank]
    return Draw((2, 2, *size)), Draw((4, 2, *kernel)), size, kernel


# -- convolutions ------------------------------------------------------------------------------------------------------
_CONV = """{title}, as layers of networks have it.

    Args:
        self: a tensor of shape ``(N, C, ...)``, or ``(C, ...)``, with {rank} more.
        weight: a tensor of shape ``(O, C / groups, ...)``: for each channel of the result a kernel.
        bias: a tensor of shape ``(O,)``, added to each channel; or None.
        stride: the steps of the kernel: an int, or one for each axis.
        padding: zeros on both sides: an int, an int or a pair (before, after) for each axis, ``"valid"`` (none), or
            ``"same"``: as many as give ``ceil(size / stride)`` places; an odd one comes after.
        dilation: how far the kernel's elements are apart: an int, or one for each axis.
        groups: how many groups the channels are in; a channel of the result sees those of its group.

    Returns:
        A tensor of shape ``(N, O, ...)`` and the promoted dtype.

    Raises:
        ShapeError: the shapes do not fit, or the kernel is longer than the padded input.
        ValueArgumentError: stride, padding or dilation is not as above.
        DTypeError: bool, or dtypes that do not promote.

    >>> td.conv{rank}d(td.ones((1, 2{fours})), td.ones((3, 2{twos})), stride=2).shape
    (1, 3{twos})
    """

_TRANSPOSED = """The transpose of :func:`conv{rank}d` by its input: it widens what that narrows.

    Args:
        self: a tensor of shape ``(N, C, ...)``, or ``(C, ...)``, with {rank} more.
        weight: a tensor of shape ``(C, O / groups, ...)``.
        bias: a tensor of shape ``(O,)``, added to each channel; or None.
        stride: how far apart the input's elements lie in the result: an int, or one for each axis.
        padding: how much is left out on both sides of the result: an int, or one for each axis.
        output_padding: how much longer the result is at its end: an int, or one for each axis.
        groups: how many groups the channels are in.
        dilation: how far the kernel's elements are apart: an int, or one for each axis.

    Returns:
        A tensor of shape ``(N, O, ...)`` and the promoted dtype, along each axis of length
        ``(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

    Raises:
        ShapeError: the shapes do not fit, or nothing is left.
        ValueArgumentError: stride, padding or dilation is not as above.
        DTypeError: bool, or dtypes that do not promote.

    >>> td.conv_transpose{rank}d(td.ones((1, 2{fours})), td.ones((2, 3{twos})), stride=2).shape
    (1, 3{eights})
    """


def _doc(text: str, rank: int) -> str:
    title = "A convolution over one axis" if rank == 1 else f"A convolution over {rank} axes"
    return text.format(title=title, rank=rank, twos=", 2" * rank, fours=", 4" * rank, eights=", 8" * rank)


def _conv_samples(rank: int) -> list[Sample]:
    x, w, size, kernel = _draws(rank)
    return [
        Sample((x, w)),
        Sample((x, w, Draw((4,)), 2, "same", 1, 1)),
        Sample((x, Draw((4, 2, *(1,) * rank)), None, (2,) * rank, "valid", 2)),
        Sample((Draw((2, *size)), w), {"padding": 1, "bias": Draw((4,))}),
        Sample((x, Draw((4, 1, *kernel))), {"padding": ((1, 0),) * rank, "groups": 2}),
    ]


def _errors(rank: int) -> list[Bad]:
    x, w, _, _ = _draws(rank)
    return [
        Bad((Draw((4,)), w), ValueError, "axes"),
        Bad((x, Draw((6, 4))), ValueError, "weight"),
        Bad((x, w, Draw((3,))), ValueError, "bias"),
        Bad((x, w, None, 0), ValueError, "stride"),
        Bad((x, w, None, 1, -1), ValueError, "padding"),
        Bad((x, w, None, 1, "full"), ValueError, "padding"),
        Bad((x, Draw((4, 3, *(1,) * rank))), ValueError, "do not fit"),
    ]


def _checked(name: str, rank: int, self: Any, weight: Any, bias: Any, out: int) -> tuple[Any, bool]:
    x, is_single = with_example(name, self, rank)
    if len(spec_of(weight).shape) != rank + 2:
        raise ShapeError(f"{name}: takes a weight of {rank + 2} axes, not {spec_of(weight)}")
    if bias is not None and spec_of(bias).shape != (out,):
        raise ShapeError(f"{name}: needs a bias of shape ({out},), not {spec_of(bias)}")
    return x, is_single


def _finished(found: Any, bias: Any, rank: int, is_single: bool) -> Any:
    if bias is not None:
        found = found + reshape(bias, (bias.shape[0], *(1,) * rank))
    return reshape(found, found.shape[1:]) if is_single else found


def _layer(schema: str, rank: int, doc: str, **fields: Any) -> Callable[[Callable[..., Any]], Any]:
    return composite(
        schema,
        doc=_doc(doc, rank),
        dtypes=NUMERIC,
        tolerance=SUMS,
        method=False,
        autocast="lower",
        **fields,
    )


def _conv(rank: int) -> Any:
    name = f"conv{rank}d"

    @_layer(
        f"{name}(Tensor self, Tensor weight, Tensor? bias=None, Any stride=1, Any padding=0, Any dilation=1, "
        "int groups=1) -> Tensor",
        rank,
        _CONV,
        reference=references.conv,
        samples=lambda dtype: _conv_samples(rank),
        errors=lambda: [
            *_errors(rank),
            Bad((*_draws(rank)[:2], None, 1, 0, 9), ValueError, "longer than"),
        ],
    )
    def conv(self: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        x, is_single = _checked(name, rank, self, weight, bias, (spec_of(weight).shape or (0,))[0])
        steps = per_axis(name, "stride", stride, rank, 1)
        apart = per_axis(name, "dilation", dilation, rank, 1)
        around = padding_pairs(name, padding, x.shape[2:], weight.shape[2:], steps, apart)
        found = convolution(x, weight, steps, flat(around), (1,) * rank, apart, groups)
        return _finished(found, bias, rank, is_single)

    return conv


# -- transposed --------------------------------------------------------------------------------------------------------
def _transposed_samples(rank: int) -> list[Sample]:
    size, kernel = _SIZES[rank]
    x, w = Draw((1, 2, *size)), Draw((2, 3, *kernel))
    return [
        Sample((x, w)),
        Sample((x, w, Draw((3,)), 2, 1, 1)),
        Sample((Draw((2, *size)), w), {"dilation": 2}),
        Sample((x, Draw((2, 2, *kernel)), Draw((4,))), {"groups": 2, "stride": 3}),
    ]


def _check_channels(name: str, x: Any, weight: Any, groups: int) -> None:
    if groups < 1 or weight.shape[0] % groups or x.shape[1] != weight.shape[0]:
        raise ShapeError(
            f"{name}: the channels of {spec_of(x)} and {spec_of(weight)} do not fit with groups={groups}: both must "
            "have as many, a multiple of groups"
        )


def _conv_transpose(rank: int) -> Any:
    name = f"conv_transpose{rank}d"

    @_layer(
        f"{name}(Tensor self, Tensor weight, Tensor? bias=None, Any stride=1, Any padding=0, "
        "Any output_padding=0, int groups=1, Any dilation=1) -> Tensor",
        rank,
        _TRANSPOSED,
        reference=references.conv_transpose,
        samples=lambda dtype: _transposed_samples(rank),
        errors=lambda: _errors(rank),
    )
    def conv_transpose(
        self: Any,
        weight: Any,
        bias: Any,
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        dilation: Any,
    ) -> Any:
        out = groups * (*spec_of(weight).shape, 0, 0)[1]
        x, is_single = _checked(name, rank, self, weight, bias, out)
        steps = per_axis(name, "stride", stride, rank, 1)
        apart = per_axis(name, "dilation", dilation, rank, 1)
        less = per_axis(name, "padding", padding, rank, 0)
        more = per_axis(name, "output_padding", output_padding, rank, 0)
        _check_channels(name, x, weight, groups)
        ends = [spread(k, d) - 1 - p for k, d, p in zip(weight.shape[2:], apart, less)]
        around = flat((end, end + extra) for end, extra in zip(ends, more))
        found = convolution(x, turned(weight, groups), (1,) * rank, around, steps, apart, groups)
        return _finished(found, bias, rank, is_single)

    return conv_transpose


conv1d: Any = _conv(1)
conv2d: Any = _conv(2)
conv3d: Any = _conv(3)
conv_transpose1d: Any = _conv_transpose(1)
conv_transpose2d: Any = _conv_transpose(2)
conv_transpose3d: Any = _conv_transpose(3)
