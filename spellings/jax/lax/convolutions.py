"""Convolutions, products and windows: conv_general_dilated, dot_general, reduce_window and pad."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ValueArgumentError
from ...operators.contraction.einsum import einsum
from ...operators.declare.shape_rules import spec_of
from ...operators.elementwise.arithmetic import add, mul
from ...operators.elementwise.selection import maximum, minimum
from ...operators.nn.convolution import convolution
from ...operators.reductions.folds import max, min, prod, sum
from ...operators.shape.padding import pad_or_cut
from ...operators.shape.parts import unfold

if TYPE_CHECKING:
    from ...registry.types import Number, Tensor

    Pairs = Sequence[tuple[int, int]]


class Precision(Enum):
    """JAX's precisions of products, which change nothing: products are computed in the dtype of the arguments.

    >>> import tandem.jax as jax
    >>> jax.lax.Precision("float32")
    HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _PRECISIONS.get(str(value).lower())

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


_PRECISIONS = {
    **dict.fromkeys(("none", "default", "fastest", "bfloat16"), Precision.DEFAULT),
    **dict.fromkeys(("high", "bfloat16_3x", "tensorfloat32"), Precision.HIGH),
    **dict.fromkeys(("highest", "float32"), Precision.HIGHEST),
}


class ConvDimensionNumbers(NamedTuple):
    """The axes of the input, the kernel and the result, in the order batch, channels, and the others."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: Any,  # noqa: ANN401
) -> ConvDimensionNumbers:
    """The axes that three strings name, such as ``("NHWC", "HWIO", "NHWC")``; None: ``NCHW``, ``OIHW``, ``NCHW``.

    Raises:
        ValueArgumentError: the strings do not name each axis once.
    """
    rank = len(lhs_shape)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    texts = tuple(dimension_numbers)
    spatial = [letter for letter in texts[1] if letter not in "OI"]  # the order of strides and dilations
    heads = ("NC", "OI", "NC")
    for text, head in zip(texts, heads):
        if sorted(text) != sorted((*head, *spatial)) or len(text) != rank:
            raise ValueArgumentError(
                f"conv_dimension_numbers: {texts} do not name the {rank} axes of {lhs_shape}"
            )
    return ConvDimensionNumbers(
        *(tuple(text.index(letter) for letter in (*head, *spatial)) for text, head in zip(texts, heads))
    )


def _find_padding(
    padding: str | Pairs, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]
) -> Pairs:
    """The zeros before and after each axis that ``"SAME"``, ``"SAME_LOWER"`` or ``"VALID"`` mean."""
    if not isinstance(padding, str):
        return [(int(before), int(after)) for before, after in padding]
    word = padding.upper()
    if word == "VALID":
        return [(0, 0)] * len(sizes)
    if word not in ("SAME", "SAME_LOWER"):
        raise ValueArgumentError(
            f"padding is 'SAME', 'SAME_LOWER', 'VALID' or a list of pairs, not {padding!r}"
        )
    result = []
    for size, window, stride in zip(sizes, windows, strides):
        total = (-(-size // stride) - 1) * stride + window - size
        half = (total + (word == "SAME_LOWER")) // 2
        result.append((half, total - half) if total > 0 else (0, 0))
    return result


def conv_general_dilated(
    lhs: Tensor,
    rhs: Tensor,
    window_strides: Sequence[int],
    padding: str | Pairs,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,  # noqa: ANN401
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: object = None,
) -> Tensor:
    """A convolution (without flipped kernels), with the axes in any order.

    Args:
        lhs: the input.
        rhs: the kernels.
        window_strides: the step of each spatial axis.
        padding: ``"SAME"``, ``"VALID"``, or pairs of zeros before and after each spatial axis.
        lhs_dilation: the distance of the input's elements, as in a transposed convolution.
        rhs_dilation: the distance of the kernels' elements.
        dimension_numbers: see :func:`conv_dimension_numbers`.
        feature_group_count: the number of groups of channels.
        batch_group_count: 1.
        precision, preferred_element_type: accepted for compatibility with JAX.

    Raises:
        ValueArgumentError: an option is not supported, or does not fit the shapes.

    >>> import tandem.jax as jax
    >>> x = jax.numpy.ones((1, 4, 4, 2))
    >>> jax.lax.conv_general_dilated(
    ...     x, jax.numpy.ones((3, 3, 2, 5)), (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    ... ).shape
    (1, 2, 2, 5)
    """
    if batch_group_count != 1:
        raise ValueArgumentError("conv_general_dilated: batch_group_count is not supported; use vmap")
    axes = conv_dimension_numbers(spec_of(lhs).shape, spec_of(rhs).shape, dimension_numbers)
    x, w = lhs.permute(axes.lhs_spec), rhs.permute(axes.rhs_spec)
    ones = (1,) * len(window_strides)
    spread, apart = tuple(lhs_dilation or ones), tuple(rhs_dilation or ones)
    sizes = [(size - 1) * step + 1 for size, step in zip(spec_of(x).shape[2:], spread)]
    windows = [(size - 1) * step + 1 for size, step in zip(spec_of(w).shape[2:], apart)]
    pairs = _find_padding(padding, sizes, windows, window_strides)
    flat = [number for pair in pairs for number in pair]
    result = convolution(x, w, tuple(window_strides), flat, spread, apart, feature_group_count)
    order = [axes.out_spec.index(axis) for axis in range(len(axes.out_spec))]
    return result.permute(order)


def conv(
    lhs: Tensor,
    rhs: Tensor,
    window_strides: Sequence[int],
    padding: str,
    precision: object = None,
    preferred_element_type: object = None,
) -> Tensor:
    """A convolution of ``(N, C, ...)`` with kernels ``(O, I, ...)``."""
    return conv_general_dilated(lhs, rhs, window_strides, padding)


def conv_with_general_padding(
    lhs: Tensor,
    rhs: Tensor,
    window_strides: Sequence[int],
    padding: str | Pairs,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: object = None,
    preferred_element_type: object = None,
) -> Tensor:
    """A convolution of ``(N, C, ...)`` with kernels ``(O, I, ...)``, padding and dilations."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation)


def dot_general(
    lhs: Tensor,
    rhs: Tensor,
    dimension_numbers: tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]],
    precision: object = None,
    preferred_element_type: object = None,
) -> Tensor:
    """A product over contracted axes, of each element of the batch axes.

    Args:
        lhs: a tensor.
        rhs: a tensor.
        dimension_numbers: ``((axes of lhs, axes of rhs) to contract, (axes of lhs, axes of rhs) of the batch)``.
        precision, preferred_element_type: accepted for compatibility with JAX.

    Returns:
        A tensor of the batch axes, the other axes of ``lhs``, and those of ``rhs``.

    >>> import tandem.jax as jax
    >>> x = jax.numpy.ones((5, 2, 3))
    >>> jax.lax.dot_general(x, x, (((2,), (2,)), ((0,), (0,)))).shape
    (5, 2, 2)
    """
    (left, right), (left_batch, right_batch) = dimension_numbers
    letters = iter(string.ascii_letters)
    one = [next(letters) for _ in spec_of(lhs).shape]
    two = [""] * len(spec_of(rhs).shape)
    for axis, other in zip((*left, *left_batch), (*right, *right_batch), strict=True):
        two[other] = one[axis]
    two = [letter or next(letters) for letter in two]
    batch = [one[axis] for axis in left_batch]
    shared = {*batch, *(one[axis] for axis in left)}
    rest = [letter for letter in (*one, *two) if letter not in shared]
    return einsum(f"{''.join(one)},{''.join(two)}->{''.join([*batch, *rest])}", lhs, rhs)


def pad(
    operand: Tensor, padding_value: Tensor | Number, padding_config: Sequence[tuple[int, int, int]]
) -> Tensor:
    """The tensor with a value before, after and between the elements of each axis; negative numbers remove elements."""
    return pad_or_cut(operand, padding_config, padding_value)


_REDUCTIONS: dict[Any, Callable[..., Tensor]] = {add: sum, mul: prod, maximum: max, minimum: min}


def reduce_window(
    operand: Tensor,
    init_value: Tensor | Number,
    computation: Callable[..., Tensor],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Pairs = "VALID",
) -> Tensor:
    """A reduction of each window of a tensor, such as a pooling.

    Args:
        operand: a tensor.
        init_value: what windows are padded with.
        computation: ``lax.add``, ``lax.mul``, ``lax.max`` or ``lax.min``.
        window_dimensions: the size of a window along each axis.
        window_strides: the step along each axis; None: 1.
        padding: ``"SAME"``, ``"VALID"``, or pairs of elements before and after each axis.

    Raises:
        ValueArgumentError: another computation.

    >>> import tandem.jax as jax
    >>> x = jax.numpy.arange(4.0)
    >>> jax.lax.reduce_window(x, 0.0, jax.lax.add, (2,), (2,), "VALID").tolist()
    [1.0, 5.0]
    """
    fold = _REDUCTIONS.get(computation)
    if fold is None:
        raise ValueArgumentError("reduce_window: the computation is lax.add, lax.mul, lax.max or lax.min")
    steps = tuple(window_strides or (1,) * len(window_dimensions))
    pairs = _find_padding(padding, spec_of(operand).shape, window_dimensions, steps)
    result = pad(operand, init_value, [(before, after, 0) for before, after in pairs])
    for axis, (size, step) in enumerate(zip(window_dimensions, steps)):
        if (size, step) != (1, 1):
            result = fold(unfold(result, axis, size, step), -1)
    return result


def conv_transpose(
    lhs: Tensor,
    rhs: Tensor,
    strides: Sequence[int],
    padding: str | Pairs,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,  # noqa: ANN401
    transpose_kernel: bool = False,
    precision: object = None,
    preferred_element_type: object = None,
) -> Tensor:
    """A transposed convolution, which makes the spatial axes larger by the strides.

    Raises:
        ValueArgumentError: ``transpose_kernel``, which is not supported.
    """
    if transpose_kernel:
        raise ValueArgumentError("conv_transpose: transpose_kernel is not supported; flip the kernel")
    axes = conv_dimension_numbers(
        spec_of(lhs).shape, spec_of(rhs).shape, dimension_numbers or _CHANNELS_LAST[spec_of(lhs).ndim]
    )
    apart = tuple(rhs_dilation or (1,) * len(strides))
    shape = spec_of(rhs).shape
    windows = [(shape[axis] - 1) * step + 1 for axis, step in zip(axes.rhs_spec[2:], apart)]
    pairs: Pairs = (
        [_transposed_padding(window, stride, padding) for window, stride in zip(windows, strides)]
        if isinstance(padding, str)
        else padding
    )
    return conv_general_dilated(lhs, rhs, (1,) * len(strides), pairs, strides, apart, axes)


_CHANNELS_LAST = {3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO", "NHWDC")}


def _transposed_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    if padding == "SAME":
        total = window + stride - 2
        before = window - 1 if stride > window - 1 else -(-total // 2)
    else:
        total = window + stride - 2 + (window - stride if window > stride else 0)
        before = window - 1
    return before, total - before
