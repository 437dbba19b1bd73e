"""``tandem.jax.nn``: activations and losses with JAX's names and arguments.

exponential_sums.py: softmax, log_softmax, logsumexp
initializers.py: functions that draw parameters
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operators.elementwise import activation
from ...operators.elementwise.activation import elu as elu
from ...operators.elementwise.activation import leaky_relu as leaky_relu
from ...operators.elementwise.activation import relu as relu
from ...operators.elementwise.activation import sigmoid as sigmoid
from ...operators.elementwise.activation import silu as silu
from ...operators.elementwise.activation import softplus as softplus
from ...operators.elementwise.arithmetic import abs as _abs
from ...operators.elementwise.exponential import expm1, sqrt
from ...operators.elementwise.selection import clip, where
from ...operators.elementwise.trigonometry import tanh as tanh
from ...operators.nn import layers, losses
from ...operators.reductions.statistics import mean as _mean
from ...operators.reductions.statistics import var as _var
from ...operators.shape.repeating import repeat
from ...operators.shape.splitting import split as _split
from ...spellings.forwarding import refuse_unknown
from . import initializers as initializers
from .exponential_sums import log_softmax as log_softmax
from .exponential_sums import logsumexp as logsumexp
from .exponential_sums import softmax as softmax

if TYPE_CHECKING:
    from ...registry.types import DTypeLike, Tensor

swish = silu


def gelu(x: Tensor, approximate: bool = True) -> Tensor:
    """The Gaussian error linear unit, by default by tanh; ``td.gelu`` is exact by default."""
    return activation.gelu(x, approximate="tanh" if approximate else "none")


def one_hot(x: Tensor, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1) -> Tensor:
    """One for the class of each element, else zero."""
    return losses.one_hot(x, num_classes, axis=axis, dtype=dtype)


def log_sigmoid(x: Tensor) -> Tensor:
    """The logarithm of the sigmoid."""
    return -softplus(-x)


def relu6(x: Tensor) -> Tensor:
    """``x`` between 0 and 6."""
    return clip(x, 0, 6)


def hard_tanh(x: Tensor) -> Tensor:
    """``x`` between -1 and 1."""
    return clip(x, -1, 1)


def hard_sigmoid(x: Tensor) -> Tensor:
    """``relu6(x + 3) / 6``."""
    return relu6(x + 3.0) / 6.0


def hard_silu(x: Tensor) -> Tensor:
    """``x * hard_sigmoid(x)``."""
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def selu(x: Tensor) -> Tensor:
    """The scaled exponential linear unit."""
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x)))


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """``max(x, 0) + alpha * expm1(min(x, 0) / alpha)``."""
    return where(x > 0, x, alpha * expm1(where(x > 0, 0.0, x) / alpha))


def soft_sign(x: Tensor) -> Tensor:
    """``x / (1 + abs(x))``."""
    return x / (1.0 + _abs(x))


def squareplus(x: Tensor, b: float = 4.0) -> Tensor:
    """``(x + sqrt(x * x + b)) / 2``."""
    return (x + sqrt(x * x + b)) / 2.0


def mish(x: Tensor) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return x * tanh(softplus(x))


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half along an axis times the sigmoid of the second."""
    first, second = _split(x, 2, axis)
    return first * sigmoid(second)


def standardize(x: Tensor, axis: int | tuple[int, ...] | None = -1, epsilon: float = 1e-5) -> Tensor:
    """``x`` shifted and scaled to mean 0 and variance 1 along an axis."""
    return (x - _mean(x, axis, keepdims=True)) / sqrt(_var(x, axis, keepdims=True) + epsilon)


def dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    implementation: str | None = None,
) -> Tensor:
    """Scaled dot product attention of tensors ``(B, T, N, H)``: batch, time, heads, width.

    Args:
        query, key, value: the tensors; the keys and values may have fewer heads, which groups of queries share.
        bias: what is added to the scores ``(B, N, T, S)``.
        mask: where scores count.
        scale: what scores are multiplied with; None: one over the root of the width.
        is_causal: whether a query sees only its own time and earlier ones.
        implementation: accepted for compatibility with JAX.
    """
    heads = [matrix.swapaxes(-3, -2) for matrix in (query, key, value)]
    if bias is not None and mask is not None:
        mask, bias = where(mask, bias, float("-inf")), None
    copies = heads[0].shape[-3] // heads[1].shape[-3]
    if copies > 1:
        heads[1:] = [repeat(matrix, copies, axis=-3) for matrix in heads[1:]]
    result: Tensor = layers.scaled_dot_product_attention(
        *heads, mask if bias is None else bias, is_causal=is_causal, scale=scale
    )
    return result.swapaxes(-3, -2)


def identity(x: Tensor) -> Tensor:
    """``x``."""
    return x


__getattr__ = refuse_unknown(__name__)
