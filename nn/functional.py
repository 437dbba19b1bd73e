"""``td.nn.functional``: layers and losses as functions, with PyTorch's names and arguments.

Some are operators of ``td``; the others are composed of operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import lazy as _lazy
from ..eager.autograd.grad_modes import no_grad
from ..eager.compiled import compile_when_hot
from ..errors import ArgumentError, ShapeError, ValueArgumentError
from ..operators.contraction.matmul import matmul
from ..operators.elementwise.exponential import rsqrt
from ..operators.elementwise.selection import maximum
from ..operators.nn import layers, normalization
from ..operators.nn.convolution_layers import conv1d as conv1d
from ..operators.nn.convolution_layers import conv2d as conv2d
from ..operators.nn.convolution_layers import conv3d as conv3d
from ..operators.nn.convolution_layers import conv_transpose1d as conv_transpose1d
from ..operators.nn.convolution_layers import conv_transpose2d as conv_transpose2d
from ..operators.nn.convolution_layers import conv_transpose3d as conv_transpose3d
from ..operators.nn.losses import one_hot as _one_hot
from ..operators.reductions.folds import max, sum
from ..operators.reductions.statistics import mean, var
from ..operators.shape.repeating import repeat
from ..registry.dtypes import int64
from .functions.activations import celu as celu
from .functions.activations import celu_ as celu_
from .functions.activations import elu as elu
from .functions.activations import elu_ as elu_
from .functions.activations import gelu as gelu
from .functions.activations import glu as glu
from .functions.activations import gumbel_softmax as gumbel_softmax
from .functions.activations import hardshrink as hardshrink
from .functions.activations import hardsigmoid as hardsigmoid
from .functions.activations import hardswish as hardswish
from .functions.activations import hardtanh as hardtanh
from .functions.activations import hardtanh_ as hardtanh_
from .functions.activations import leaky_relu as leaky_relu
from .functions.activations import leaky_relu_ as leaky_relu_
from .functions.activations import log_softmax as log_softmax
from .functions.activations import logsigmoid as logsigmoid
from .functions.activations import mish as mish
from .functions.activations import prelu as prelu
from .functions.activations import relu as relu
from .functions.activations import relu6 as relu6
from .functions.activations import relu_ as relu_
from .functions.activations import rrelu as rrelu
from .functions.activations import rrelu_ as rrelu_
from .functions.activations import selu as selu
from .functions.activations import selu_ as selu_
from .functions.activations import sigmoid as sigmoid
from .functions.activations import silu as silu
from .functions.activations import softmax as softmax
from .functions.activations import softmin as softmin
from .functions.activations import softplus as softplus
from .functions.activations import softshrink as softshrink
from .functions.activations import softsign as softsign
from .functions.activations import tanh as tanh
from .functions.activations import tanhshrink as tanhshrink
from .functions.activations import threshold as threshold
from .functions.activations import threshold_ as threshold_
from .functions.dropping import alpha_dropout as alpha_dropout
from .functions.dropping import dropout as dropout
from .functions.dropping import dropout1d as dropout1d
from .functions.dropping import dropout2d as dropout2d
from .functions.dropping import dropout3d as dropout3d
from .functions.dropping import feature_alpha_dropout as feature_alpha_dropout
from .functions.embedding import embedding as embedding
from .functions.embedding import embedding_bag as embedding_bag
from .functions.grids import affine_grid as affine_grid
from .functions.grids import grid_sample as grid_sample
from .functions.losses import binary_cross_entropy as binary_cross_entropy
from .functions.losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .functions.losses import cross_entropy as cross_entropy
from .functions.losses import gaussian_nll_loss as gaussian_nll_loss
from .functions.losses import huber_loss as huber_loss
from .functions.losses import kl_div as kl_div
from .functions.losses import l1_loss as l1_loss
from .functions.losses import mse_loss as mse_loss
from .functions.losses import nll_loss as nll_loss
from .functions.losses import smooth_l1_loss as smooth_l1_loss
from .functions.metric_losses import bilinear as bilinear
from .functions.metric_losses import cosine_embedding_loss as cosine_embedding_loss
from .functions.metric_losses import cosine_similarity as cosine_similarity
from .functions.metric_losses import hinge_embedding_loss as hinge_embedding_loss
from .functions.metric_losses import margin_ranking_loss as margin_ranking_loss
from .functions.metric_losses import multi_margin_loss as multi_margin_loss
from .functions.metric_losses import multilabel_margin_loss as multilabel_margin_loss
from .functions.metric_losses import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from .functions.metric_losses import pairwise_distance as pairwise_distance
from .functions.metric_losses import poisson_nll_loss as poisson_nll_loss
from .functions.metric_losses import soft_margin_loss as soft_margin_loss
from .functions.metric_losses import triplet_margin_loss as triplet_margin_loss
from .functions.metric_losses import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from .functions.padding import channel_shuffle as channel_shuffle
from .functions.padding import pad as pad
from .functions.padding import pixel_shuffle as pixel_shuffle
from .functions.padding import pixel_unshuffle as pixel_unshuffle
from .functions.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from .functions.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from .functions.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from .functions.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from .functions.pooling import adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices
from .functions.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from .functions.pooling import adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices
from .functions.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from .functions.pooling import adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices
from .functions.pooling import avg_pool1d as avg_pool1d
from .functions.pooling import avg_pool2d as avg_pool2d
from .functions.pooling import avg_pool3d as avg_pool3d
from .functions.pooling import fold as fold
from .functions.pooling import local_response_norm as local_response_norm
from .functions.pooling import lp_pool1d as lp_pool1d
from .functions.pooling import lp_pool2d as lp_pool2d
from .functions.pooling import lp_pool3d as lp_pool3d
from .functions.pooling import max_pool1d as max_pool1d
from .functions.pooling import max_pool1d_with_indices as max_pool1d_with_indices
from .functions.pooling import max_pool2d as max_pool2d
from .functions.pooling import max_pool2d_with_indices as max_pool2d_with_indices
from .functions.pooling import max_pool3d as max_pool3d
from .functions.pooling import max_pool3d_with_indices as max_pool3d_with_indices
from .functions.pooling import unfold as unfold
from .functions.resampling import interpolate as interpolate
from .functions.resampling import upsample as upsample
from .functions.resampling import upsample_bilinear as upsample_bilinear
from .functions.resampling import upsample_nearest as upsample_nearest
from .functions.sequence_losses import ctc_loss as ctc_loss
from .functions.unpooling import max_unpool1d as max_unpool1d
from .functions.unpooling import max_unpool2d as max_unpool2d
from .functions.unpooling import max_unpool3d as max_unpool3d

if TYPE_CHECKING:
    from ..registry.types import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.mT + bias``, with a weight of shape ``(out_features, in_features)``.

    >>> import tandem as td
    >>> td.nn.functional.linear(td.ones((2, 3)), td.ones((1, 3)), td.ones(1)).tolist()
    [[4.0], [4.0]]
    """
    result: Tensor = matmul(input, weight.T)
    if bias is None:
        return result
    if result.dtype.itemsize < weight.dtype.itemsize:  # under autocast, which leaves sums as they are
        bias = bias.astype(result.dtype)
    return result + bias


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """One at the index of the class, zero elsewhere, as integers; -1 takes one class more than the largest index."""
    count = int(max(tensor)) + 1 if num_classes == -1 else num_classes
    return _one_hot(tensor, count, dtype=int64)


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


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Shift and scale each channel of each example to mean 0 and variance 1, or by running statistics.

    Args:
        input: ``(N, C, ...)``.
        running_mean, running_var: averages over examples, updated in place by ``momentum``; None: not kept.
        weight, bias: for each channel.
        use_input_stats: whether to normalize by the statistics of the input, not by the running ones.
        momentum: the share of the input in the running statistics.
        eps: a number added to the variance.

    Raises:
        ArgumentError: there are no running statistics, and those of the input are not used.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None and running_var is not None:
        count = math.prod(input.shape[2:])
        center, spread = _moments(input, tuple(range(2, input.ndim)))
        _update_average(running_mean, mean(center, 0), momentum)
        _update_average(running_var, mean(spread, 0) * (count / (count - 1)), momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


@compile_when_hot
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along an axis, or by ``eps`` if that is larger."""
    powers = input * input if p == 2 else abs(input) ** p
    return input / maximum(sum(powers, dim, keepdims=True) ** (1 / p), eps)


# -- attention -------------------------------------------------------------------------------------------------------
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.mT * scale) @ value``; a bool mask says where attention is allowed.

    Args:
        query, key, value: ``(..., heads, sequence, features)``.
        attn_mask: where attention is allowed, or floats that are added to the scores.
        dropout_p: the probability with which a weight is dropped.
        is_causal: whether queries attend to earlier keys only.
        scale: the factor of the scores; None: ``1 / sqrt(features)``.
        enable_gqa: whether each head of key and value serves several neighbouring heads of the query.
    """
    if enable_gqa:
        count = query.shape[-3] // key.shape[-3]
        key, value = (repeat(x, count, -3) for x in (key, value))
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


_lazy.refuse_unknown(__name__, "td.nn.functional.")
