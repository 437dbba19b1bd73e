"""Activation functions with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..operators.elementwise import activation
from ..operators.elementwise import trigonometry as trig
from ..operators.elementwise.activation import elu as _elu
from ..operators.elementwise.activation import gelu as _gelu
from ..operators.elementwise.selection import clip, where
from ..operators.nn import normalization

if TYPE_CHECKING:
    from ..registry.types import DTypeLike, Tensor


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
