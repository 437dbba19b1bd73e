"""``td.nn.functional``: layers and losses as functions, with PyTorch's names and arguments.

Some are operators of ``td``; the others are composed of operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..eager.autograd.grad_modes import no_grad
from ..eager.tensor.generator import default_generator
from ..errors import ArgumentError, ShapeError, ValueArgumentError
from ..operators.contraction.matmul import matmul
from ..operators.elementwise.exponential import rsqrt
from ..operators.elementwise.selection import maximum, where
from ..operators.indexing.take import take
from ..operators.nn import layers, normalization
from ..operators.nn.convolution_layers import conv1d as conv1d
from ..operators.nn.convolution_layers import conv2d as conv2d
from ..operators.nn.convolution_layers import conv3d as conv3d
from ..operators.nn.convolution_layers import conv_transpose1d as conv_transpose1d
from ..operators.nn.convolution_layers import conv_transpose2d as conv_transpose2d
from ..operators.nn.convolution_layers import conv_transpose3d as conv_transpose3d
from ..operators.nn.losses import one_hot as _one_hot
from ..operators.nn.pooling import avg_pool1d as avg_pool1d
from ..operators.nn.pooling import avg_pool2d as avg_pool2d
from ..operators.nn.pooling import avg_pool3d as avg_pool3d
from ..operators.nn.pooling import max_pool1d as max_pool1d
from ..operators.nn.pooling import max_pool2d as max_pool2d
from ..operators.nn.pooling import max_pool3d as max_pool3d
from ..operators.random.uniform import bernoulli
from ..operators.reductions.folds import max, sum
from ..operators.reductions.statistics import mean, var
from ..operators.shape.repeating import pad as _pad
from ..registry.dtypes import int64
from .activations import elu as elu
from .activations import gelu as gelu
from .activations import glu as glu
from .activations import hardtanh as hardtanh
from .activations import leaky_relu as leaky_relu
from .activations import log_softmax as log_softmax
from .activations import logsigmoid as logsigmoid
from .activations import relu as relu
from .activations import relu6 as relu6
from .activations import sigmoid as sigmoid
from .activations import silu as silu
from .activations import softmax as softmax
from .activations import softplus as softplus
from .activations import tanh as tanh
from .compiled import compile_when_hot
from .losses import binary_cross_entropy as binary_cross_entropy
from .losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .losses import cross_entropy as cross_entropy
from .losses import gaussian_nll_loss as gaussian_nll_loss
from .losses import huber_loss as huber_loss
from .losses import kl_div as kl_div
from .losses import l1_loss as l1_loss
from .losses import mse_loss as mse_loss
from .losses import nll_loss as nll_loss
from .losses import smooth_l1_loss as smooth_l1_loss

if TYPE_CHECKING:
    from ..eager.tensor.generator import Generator
    from ..registry.types import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.mT + bias``, with a weight of shape ``(out_features, in_features)``.

    >>> import tandem as td
    >>> td.nn.functional.linear(td.ones((2, 3)), td.ones((1, 3)), td.ones(1)).tolist()
    [[4.0], [4.0]]
    """
    result: Tensor = matmul(input, weight.T)
    return result if bias is None else result + bias


@compile_when_hot
def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of ``weight`` at integer indices; the row ``padding_idx`` gets no gradient."""
    result: Tensor = take(weight, input, 0)
    if padding_idx is None:
        return result
    row = padding_idx % weight.shape[0]
    return where((input == row).unsqueeze(-1), result.detach(), result)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """One at the index of the class, zero elsewhere, as integers; -1 takes one class more than the largest index."""
    count = int(max(tensor)) + 1 if num_classes == -1 else num_classes
    return _one_hot(tensor, count, dtype=int64)


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Set a random share of the elements to zero and scale the others by ``1 / (1 - p)``; nothing when not training.

    Args:
        input: a tensor of real floating dtype.
        p: the probability that an element is dropped.
        training: whether to drop anything.
        inplace: whether to write the result into ``input``.
        generator: the generator to draw from; None: that of :func:`tandem.nn.manual_seed`.
    """
    if not training or not p:
        return input
    if not inplace:
        return layers.dropout(input, _next_key(generator), p)
    input[...] = layers.dropout(input.clone(), _next_key(generator), p)
    return input


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None
) -> Tensor:
    """Drop whole channels, the axes 0 and 1 taken together."""
    if not training or not p:
        return input
    if not 0 <= p < 1:
        raise ValueArgumentError(f"dropout2d: p must be at least 0 and below 1, not {p}")
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    kept = bernoulli(_next_key(generator), 1 - p, shape)
    return where(kept, input * (1 / (1 - p)), 0.0)


def _next_key(generator: Generator | None) -> Tensor:
    words: Tensor = (generator or default_generator).key().words
    return words


# -- normalization -----------------------------------------------------------------------------------------------------
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the last axes."""
    return normalization.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@compile_when_hot
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last axes; ``eps`` None is the machine epsilon."""
    sizes = tuple(normalized_shape)
    if not sizes or input.shape[-len(sizes) :] != sizes:
        raise ShapeError(f"rms_norm: shape {input.shape} ends differently from normalized_shape {sizes}")
    axes = tuple(range(-len(sizes), 0))
    wide = normalization.widen(input, input.dtype)
    share = rsqrt(mean(wide * wide, axes, keepdims=True) + (_epsilon(wide) if eps is None else eps))
    result = normalization.narrow(wide * share, input.dtype)
    return result if weight is None else result * weight


def _epsilon(x: Tensor) -> float:
    return 2.0**-52 if x.dtype.itemsize == 8 else 2.0**-23


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Shift and scale each channel, axis 1, by the statistics of the batch, or when not training by running ones.

    When training, the running statistics are updated in place. In a jitted function they must belong to an argument,
    since a jitted function writes into its arguments only.

    Raises:
        ValueArgumentError: when training, a channel has one value.
        ArgumentError: when not training, there are no running statistics.
    """
    shape = (1, -1, *(1,) * (input.ndim - 2))
    if training:
        axes = (0, *range(2, input.ndim))
        count = math.prod(input.shape[axis] for axis in axes)
        if count == 1:
            raise ValueArgumentError(
                f"batch_norm: training needs more than one value per channel: {input.shape}"
            )
        center, spread = _moments(input, axes)
        if running_mean is not None:
            _update_average(running_mean, center, momentum)
        if running_var is not None:
            _update_average(running_var, spread * (count / (count - 1)), momentum)
    elif running_mean is None or running_var is None:
        raise ArgumentError("batch_norm: needs running_mean and running_var when not training")
    else:
        center, spread = running_mean, running_var
    return _shift_and_scale(input, center, spread, weight, bias, eps, shape)


@compile_when_hot
def _moments(input: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    return mean(input, axes), var(input, axes)


@compile_when_hot
def _shift_and_scale(
    input: Tensor,
    center: Tensor,
    spread: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    shape: tuple[int, ...],
) -> Tensor:
    scale = rsqrt(spread + eps)
    if weight is not None:
        scale = scale * weight
    result = (input - center.reshape(shape)) * scale.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def _update_average(running: Tensor, value: Tensor, momentum: float | Tensor) -> None:
    with no_grad():
        target = (
            running.detach() if running.requires_grad else running
        )  # it does under td.grad of a whole module
        target[...] = running * (1 - momentum) + value.detach() * momentum


@compile_when_hot
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Shift and scale each group of channels of each example to mean 0 and variance 1."""
    examples, channels, *sizes = input.shape
    if channels % num_groups:
        raise ShapeError(f"group_norm: {channels} channels are not a multiple of {num_groups} groups")
    grouped = input.reshape((examples, num_groups, -1))
    result = normalization.layer_norm(grouped, grouped.shape[-1:], None, None, eps).reshape(input.shape)
    shape = (1, channels, *(1,) * len(sizes))
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


@compile_when_hot
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, or by ``eps`` if that is larger."""
    powers = input * input if p == 2 else abs(input) ** p
    return input / maximum(sum(powers, dim, keepdims=True) ** (1 / p), eps)


# -- attention, padding, pooling ---------------------------------------------------------------------------------------
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """``softmax(query @ key.mT * scale) @ value``; a bool mask says where attention is allowed."""
    if not dropout_p:
        return layers.scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, scale=scale
        )
    weights = attention_weights(query, key, attn_mask, is_causal, scale)
    return matmul(dropout(weights, dropout_p), value)


@compile_when_hot
def attention_weights(
    query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool = False, scale: float | None = None
) -> Tensor:
    """The weights of :func:`scaled_dot_product_attention`."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = matmul(query * factor, key.mT)
    if is_causal:
        scores = layers.mask_future(scores)
    if attn_mask is not None:
        scores = layers.apply_mask(scores, attn_mask)
    return normalization.softmax(scores, -1)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad with a constant; ``pad`` has two numbers for each axis, the last axis first."""
    if mode != "constant":
        raise ValueArgumentError(f"pad: mode must be 'constant', not {mode!r}; see td.pad")
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueArgumentError(f"pad: takes two numbers for each of at most {input.ndim} axes, not {pad}")
    pairs = [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    width = [(0, 0)] * (input.ndim - len(pairs)) + pairs[::-1]
    return _pad(input, width, value=0.0 if value is None else value)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """The means of windows, so many that the result has this size, which divides the size of the input."""
    return _adaptive_pool("adaptive_avg_pool2d", input, output_size, 2)


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    """As :func:`adaptive_avg_pool2d`, along one axis."""
    return _adaptive_pool("adaptive_avg_pool1d", input, output_size, 1)


def _adaptive_pool(name: str, input: Tensor, output_size: int | Sequence[int | None], rank: int) -> Tensor:
    sizes = input.shape[-rank:]
    wanted = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    if len(wanted) == 1:
        wanted *= rank
    counts = [size if count is None else count for size, count in zip(sizes, wanted, strict=True)]
    if any(count < 1 or size % count for size, count in zip(sizes, counts)):
        raise ShapeError(f"{name}: the sizes {sizes} are not multiples of {tuple(counts)}")
    split = [part for size, count in zip(sizes, counts) for part in (count, size // count)]
    axes = tuple(range(-2 * rank + 1, 0, 2))
    return mean(input.reshape((*input.shape[:-rank], *split)), axes)
