"""Losses with PyTorch's names, arguments and axes: the classes are axis 1."""

from __future__ import annotations

import math

from ...eager.compiled import compile_when_hot
from ...eager.layers.level_stack import stack
from ...eager.tensor.tensor import Tensor
from ...errors import OutOfBoundsError, ShapeError
from ...operators.elementwise.activation import softplus
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.exponential import exp, log
from ...operators.elementwise.selection import clip, maximum, where
from ...operators.indexing.take import take, take_along_axis
from ...operators.nn.losses import check_pair, check_reduction, reduce_losses
from ...operators.nn.losses import cross_entropy as class_cross_entropy
from ...operators.nn.losses import mse_loss as mse_loss
from ...operators.nn.normalization import log_softmax
from ...operators.reductions.folds import all, sum
from ...operators.shape.rearrange import expand_dims


def _class_axis(name: str, input: Tensor) -> int:
    if not input.ndim:
        raise ShapeError(f"{name}: the input needs an axis of classes")
    return min(input.ndim - 1, 1)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy of logits and a target.

    Args:
        input: the logits; the classes are axis 1, or axis 0 of a vector.
        target: the classes as integers, or probabilities of the input's shape.
        weight: a factor for each class.
        ignore_index: a class that counts as no loss.
        reduction: ``"mean"`` (with weights, the weighted mean), ``"sum"`` or ``"none"``.
        label_smoothing: the share of the target that is distributed evenly over all classes.

    Returns:
        The losses, or their mean or sum. NaN for an integer that is not a class, where the target has no data: in a
        trace, under ``vmap`` and on a GPU.

    Raises:
        OutOfBoundsError: an integer is not a class.

    >>> import tandem as td
    >>> td.nn.functional.cross_entropy(td.asarray([[100.0, 0.0], [0.0, 100.0]]), td.asarray([0, -100])).item()
    0.0
    """
    check_reduction("cross_entropy", reduction)
    axis = _class_axis("cross_entropy", input)
    if target.dtype.is_integer:
        _check_classes("cross_entropy", target, input.shape[axis], ignore_index)
    return _cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing, axis)


@compile_when_hot
def _cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    axis: int,
) -> Tensor:
    if target.dtype.is_integer and weight is not None:
        scores = log_softmax(input, axis)
        losses = _nll_loss(scores, target, weight, ignore_index, reduction, axis)
        if not label_smoothing:
            return losses
        even = _even_losses(scores, target, weight, ignore_index, reduction, axis)
        return losses * (1 - label_smoothing) + even * (label_smoothing / input.shape[axis])
    if target.dtype.is_integer:
        losses = class_cross_entropy(
            input, target, axis=axis, reduction="none", label_smoothing=label_smoothing
        )
        is_counted = target != ignore_index
        return _reduce_counted(where(is_counted, losses, 0.0), is_counted.to(losses.dtype), reduction)
    return _cross_entropy_of_probabilities(input, target, weight, reduction, label_smoothing, axis)


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float, axis: int
) -> Tensor:
    if target.shape != input.shape:
        raise ShapeError(
            f"cross_entropy: logits {input.shape} and probabilities {target.shape} differ in shape"
        )
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    scores = log_softmax(input, axis) * target
    if weight is not None:
        scores = scores * weight.reshape(_along(axis, input.ndim))
    losses = -sum(scores, axis)
    return reduce_losses(losses, reduction)


def _along(axis: int, rank: int) -> tuple[int, ...]:
    """The shape of a vector along an axis."""
    return tuple(-1 if at == axis else 1 for at in range(rank))


def _reduce_counted(losses: Tensor, counted: Tensor, reduction: str) -> Tensor:
    return sum(losses) / sum(counted) if reduction == "mean" else reduce_losses(losses, reduction)


def _even_losses(
    scores: Tensor, target: Tensor, weight: Tensor, ignore_index: int, reduction: str, axis: int
) -> Tensor:
    """The losses of a target that is spread evenly over the weighted classes."""
    is_counted = target != ignore_index
    losses = where(is_counted, -sum(scores * weight.reshape(_along(axis, scores.ndim)), axis), 0.0)
    counted = where(is_counted, take(weight, where(is_counted, target, 0)), 0.0)
    return _reduce_counted(losses, counted, reduction)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of classes.

    Args:
        input: the logarithms of probabilities; the classes are axis 1, or axis 0 of a vector.
        target: the classes as integers.
        weight: a factor for each class.
        ignore_index: a class that counts as no loss.
        reduction: ``"mean"`` (with weights, the weighted mean), ``"sum"`` or ``"none"``.

    Returns:
        The losses, or their mean or sum. NaN for an integer that is not a class, as in :func:`cross_entropy`.

    Raises:
        OutOfBoundsError: a target is not a class.
    """
    check_reduction("nll_loss", reduction)
    axis = _class_axis("nll_loss", input)
    _check_classes("nll_loss", target, input.shape[axis], ignore_index)
    return _nll_loss(input, target, weight, ignore_index, reduction, axis)


@compile_when_hot
def _nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, axis: int
) -> Tensor:
    is_counted = target != ignore_index
    is_class = (target >= 0) & (target < input.shape[axis])
    index = where(is_counted & is_class, target, 0)
    picked = take_along_axis(input, expand_dims(index, axis), axis).squeeze(axis)
    picked = where(is_counted, where(is_class, picked, math.nan), 0.0)
    counted = is_counted.to(input.dtype)
    if weight is not None:
        counted = counted * take(weight, index)
    return _reduce_counted(-picked * counted, counted, reduction)


def _check_classes(name: str, target: Tensor, count: int, ignore_index: int) -> None:
    """Check that integers are classes or ignored, where the host knows their values."""
    if type(target) is Tensor and not stack.levels and not _are_classes(target, count, ignore_index):
        wrong = target.detach().numpy()
        wrong = wrong[((wrong < 0) | (wrong >= count)) & (wrong != ignore_index)]
        raise OutOfBoundsError(f"{name}: {wrong[0]} in the target is not one of {count} classes")


@compile_when_hot
def _are_classes(target: Tensor, count: int, ignore_index: int) -> Tensor:
    return all(((target >= 0) & (target < count)) | (target == ignore_index))


@compile_when_hot
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The absolute differences."""
    check_reduction("l1_loss", reduction)
    check_pair("l1_loss", input, target)
    return reduce_losses(abs(input - target), reduction)


@compile_when_hot
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Half the squared differences over ``beta`` below ``beta``, the absolute differences minus ``beta / 2`` above."""
    return _smooth_l1_loss("smooth_l1_loss", input, target, reduction, beta)


@compile_when_hot
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """:func:`smooth_l1_loss` times ``delta``."""
    return _smooth_l1_loss("huber_loss", input, target, reduction, delta) * delta


def _smooth_l1_loss(name: str, input: Tensor, target: Tensor, reduction: str, beta: float) -> Tensor:
    check_reduction(name, reduction)
    check_pair(name, input, target)
    difference = abs(input - target)
    if not beta:
        return reduce_losses(difference, reduction)
    near = 0.5 * difference * difference / beta
    return reduce_losses(where(difference < beta, near, difference - 0.5 * beta), reduction)


@compile_when_hot
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The cross-entropy of probabilities and targets between 0 and 1; logarithms are clipped at -100."""
    check_reduction("binary_cross_entropy", reduction)
    if input.shape != target.shape:
        raise ShapeError(f"binary_cross_entropy: shapes {input.shape} and {target.shape} differ")
    scores = target * clip(log(input), -100.0) + (1 - target) * clip(log(1 - input), -100.0)
    return reduce_losses(-scores if weight is None else -scores * weight, reduction)


@compile_when_hot
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross-entropy of sigmoids of logits and targets between 0 and 1."""
    check_reduction("binary_cross_entropy_with_logits", reduction)
    if input.shape != target.shape:
        raise ShapeError(f"binary_cross_entropy_with_logits: shapes {input.shape} and {target.shape} differ")
    if pos_weight is None:
        losses = maximum(input, 0.0) - input * target + softplus(-abs(input))
    else:
        factor = 1 + (pos_weight - 1) * target
        losses = (1 - target) * input + factor * (softplus(-abs(input)) + maximum(-input, 0.0))
    return reduce_losses(losses if weight is None else losses * weight, reduction)


@compile_when_hot
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence of a target from ``input``, the logarithms of probabilities.

    ``reduction="batchmean"`` divides the sum by the length of axis 0.
    """
    if log_target:
        losses = exp(target) * (target - input)
    else:
        losses = where(target > 0, target * log(where(target > 0, target, 1.0)), 0.0) - target * input
    if reduction == "batchmean":
        return sum(losses) / input.shape[0]
    check_reduction("kl_div", reduction)
    return reduce_losses(losses, reduction)


@compile_when_hot
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log-likelihood of normal distributions with mean ``input`` and variance ``var``."""
    check_reduction("gaussian_nll_loss", reduction)
    clipped = var + (clip(var, eps) - var).detach()
    difference = input - target
    losses = 0.5 * (log(clipped) + difference * difference / clipped)
    return reduce_losses(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
