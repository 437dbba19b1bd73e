"""Batch normalization that becomes part of the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeVar

from ...errors import ArgumentError
from ...operators.elementwise.exponential import rsqrt
from ..parameter import Parameter

if TYPE_CHECKING:
    from ...registry.types import Tensor
    from ..module import Module

M = TypeVar("M", bound="Module")


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Tensor, Tensor]:
    """The weight and bias of a convolution followed by batch normalization.

    Args:
        conv_w, conv_b: those of the convolution.
        bn_rm, bn_rv, bn_eps: the running mean and variance, and what is added to the variance.
        bn_w, bn_b: the weight and bias of the normalization.
        transpose: whether the convolution is transposed: its results are the second axis of the weight.
    """
    scale = rsqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else scale * bn_w
    axis = 1 if transpose else 0
    shape = tuple(-1 if at == axis else 1 for at in range(conv_w.ndim))
    bias = -bn_rm if conv_b is None else conv_b - bn_rm
    bias = bias * scale if bn_b is None else bias * scale + bn_b
    weight: Tensor = conv_w * scale.reshape(shape)
    return Parameter(weight.detach(), conv_w.requires_grad), Parameter(bias.detach(), conv_w.requires_grad)


def _fuse(layer: M, bn: Module, transpose: bool) -> M:
    if layer.training or bn.training:
        raise ArgumentError("fusing batch normalization needs modules in evaluation mode; call eval()")
    fused = copy.deepcopy(layer)
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(layer.weight, layer.bias, *statistics, transpose)
    return fused


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """A convolution that computes what it and the batch normalization behind it do in evaluation mode.

    Args:
        conv, bn: the modules, in evaluation mode.
        transpose: whether the convolution is transposed.

    Raises:
        ArgumentError: a module is in training mode.
    """
    return _fuse(conv, bn, transpose)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The weight and bias of a linear layer followed by batch normalization; see :func:`fuse_conv_bn_weights`."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """A linear layer that computes what it and the batch normalization behind it do in evaluation mode."""
    return _fuse(linear, bn, False)
