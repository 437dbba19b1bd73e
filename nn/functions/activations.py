"""Activation functions with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...eager.tensor.generator import default_generator
from ...operators.elementwise import activation
from ...operators.elementwise import trigonometry as trig
from ...operators.elementwise.activation import elu as _elu
from ...operators.elementwise.activation import gelu as _gelu
from ...operators.elementwise.selection import clip, where
from ...operators.nn import normalization
from ...operators.nn.losses import one_hot
from ...operators.reductions.folds import argmax
from ...operators.shape.rearrange import moveaxis

if TYPE_CHECKING:
    from ...eager.tensor.generator import Generator
    from ...registry.types import DTypeLike, Tensor


def _apply(function: Callable[..., Tensor], input: Tensor, inplace: bool, *args: float) -> Tensor:
    """Call a function of a tensor; with ``inplace`` write the result into the tensor and return that."""
    if not inplace:
        return function(input, *args)
    input[...] = function(input.clone(), *args)
    return input


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The positive elements, and 0 for the others."""
    return input.relu_() if inplace else activation.relu(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The positive elements, and the others times a slope."""
    return _apply(activation.leaky_relu, input, inplace, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive elements, and ``alpha * (exp(x) - 1)`` for the others."""
    return _apply(_elu, input, inplace, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return _apply(activation.silu, input, inplace)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """The Gaussian error linear unit; ``approximate="tanh"`` approximates it."""
    return _gelu(input, approximate=approximate)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``x`` clipped to the interval from 0 to 6."""
    return _apply(clip, input, inplace, 0.0, 6.0)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` clipped to an interval."""
    return _apply(clip, input, inplace, min_val, max_val)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and ``x`` where ``beta * x`` is above the threshold."""
    scaled = input * beta
    return where(scaled > threshold, input, activation.softplus(scaled) / beta)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return activation.sigmoid(input)


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of :func:`sigmoid`."""
    return -activation.softplus(-input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return trig.tanh(input)


def softmax(input: Tensor, dim: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials normalized to sum to one along an axis."""
    return normalization.softmax(input if dtype is None else input.to(dtype), dim)


def log_softmax(input: Tensor, dim: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """The logarithm of :func:`softmax`."""
    return normalization.log_softmax(input if dtype is None else input.to(dtype), dim)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second half."""
    first, second = input.split(2, axis=dim)
    return first * activation.sigmoid(second)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """:func:`elu` with the factors that keep mean 0 and variance 1 through layers."""
    return _apply(_selu, input, inplace)


def _selu(input: Tensor) -> Tensor:
    return _elu(input, 1.6732632423543772) * 1.0507009873554805


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive elements, and ``alpha * (exp(x / alpha) - 1)`` for the others."""
    return _apply(_celu, input, inplace, alpha)


def _celu(input: Tensor, alpha: float) -> Tensor:
    return _elu(input / alpha) * alpha


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return _apply(_mish, input, inplace)


def _mish(input: Tensor) -> Tensor:
    return input * trig.tanh(activation.softplus(input))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``(x + 3) / 6`` clipped to the interval from 0 to 1."""
    return _apply(activation.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x`` times :func:`hardsigmoid`."""
    return _apply(activation.hardswish, input, inplace)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return input / (1 + abs(input))


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return input - trig.tanh(input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``lambd``, and 0 within that distance."""
    return input - clip(input, -lambd, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The elements whose magnitude is greater than ``lambd``; 0 in place of the others."""
    return where(abs(input) > lambd, input, 0.0)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The elements above a threshold; a value in place of the others."""
    return _apply(_threshold, input, inplace, threshold, value)


def _threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    return where(input > threshold, input, value)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """:func:`leaky_relu` with one slope, or one for each channel, axis 1."""
    if weight.ndim and weight.shape[0] > 1:
        weight = weight.reshape((-1, *(1,) * (input.ndim - 2)))
    return activation.relu_with_slope(input, weight)


def softmin(input: Tensor, dim: int = -1, dtype: DTypeLike | None = None) -> Tensor:
    """:func:`softmax` of ``-x``."""
    return softmax(-input, dim, dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draw from a relaxed categorical distribution: :func:`softmax` of logits plus noise, over ``tau``.

    Args:
        logits: the logarithms of probabilities, up to a constant.
        tau: the temperature; near 0 the results are near to one-hot vectors.
        hard: whether the result is one-hot, with the gradient of the relaxed one.
        eps: as in PyTorch, it changes nothing.
        dim: the axis of the categories.
    """
    noise = default_generator.gumbel(logits.shape, logits.dtype)
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = argmax(soft, dim)
    hot = moveaxis(one_hot(index, soft.shape[dim], dtype=soft.dtype), -1, dim)
    return hot - soft.detach() + soft


def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """The positive elements, and the others times a slope: the mean of two bounds, or when training random ones.

    Args:
        input: the tensor.
        lower, upper: the bounds of the slopes.
        training: whether each element has its own slope, uniform between the bounds.
        inplace: whether to write the result into the tensor.
        generator: the generator of the slopes; None: that of ``td.nn``.
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = (generator or default_generator).uniform(input.shape, input.dtype, lower, upper)
    return _apply(lambda x: where(x >= 0, x, x * slopes), input, inplace)


def _write_into_input(function: Any) -> Callable[..., Tensor]:  # noqa: ANN401  # a function, or an object that is called
    def apply(input: Tensor, *args: object, **options: object) -> Tensor:
        result: Tensor = function(input, *args, **options, inplace=True)
        return result

    apply.__name__ = apply.__qualname__ = f"{function.__name__}_"
    apply.__doc__ = f":func:`{function.__name__}` with the result written into the input."
    return apply


relu_, elu_, celu_, selu_, leaky_relu_, hardtanh_, threshold_, rrelu_ = map(
    _write_into_input, (relu, elu, celu, selu, leaky_relu, hardtanh, threshold, rrelu)
)
