"""Distances and similarities of vectors, and losses that compare them with margins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...eager.compiled import compile_when_hot
from ...errors import ShapeError
from ...operators.creation.creation import arange
from ...operators.elementwise.activation import relu, softplus
from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.exponential import exp, log, sqrt
from ...operators.elementwise.selection import maximum, minimum, where
from ...operators.indexing.take import take, take_along_axis
from ...operators.nn.losses import check_reduction, reduce_losses
from ...operators.reductions.cumulative import cumulative_prod
from ...operators.reductions.folds import any, max, sum
from ...operators.reductions.statistics import mean
from ...registry.dtypes import int64

if TYPE_CHECKING:
    from ...registry.types import Tensor


# -- distances ---------------------------------------------------------------------------------------------------------
@compile_when_hot
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis; norms are at least ``eps``."""
    lengths = maximum(sqrt(sum(x1 * x1, dim)), eps) * maximum(sqrt(sum(x2 * x2, dim)), eps)
    return sum(x1 * x2, dim) / lengths


@compile_when_hot
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last axis."""
    difference = x1 - x2 + eps
    if p == 2:
        return sqrt(sum(difference * difference, -1, keepdims=keepdim))
    if p == math.inf:
        return max(abs(difference), -1, keepdims=keepdim)
    return sum(abs(difference) ** p, -1, keepdims=keepdim) ** (1 / p)


# -- losses of distances -----------------------------------------------------------------------------------------------
@compile_when_hot
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``1 - cosine`` where the target is 1; the cosine above the margin where it is -1."""
    check_reduction("cosine_embedding_loss", reduction)
    dot, epsilon = sum(input1 * input2, -1), 1e-12
    squares = (sum(input1 * input1, -1) + epsilon) * (sum(input2 * input2, -1) + epsilon)
    cosine = dot / sqrt(squares)
    return reduce_losses(where(target == 1, 1 - cosine, relu(cosine - margin)), reduction)


@compile_when_hot
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The distance of the positive example from the anchor, less that of the negative one, plus a margin; at least 0.

    Args:
        anchor, positive, negative: ``(batch, features)``.
        margin: the difference of distances that is wanted.
        p, eps: as for :func:`pairwise_distance`.
        swap: whether the negative example may be compared with the positive one instead, if that is nearer.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    check_reduction("triplet_margin_loss", reduction)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduce_losses(relu(pairwise_distance(anchor, positive, p, eps) - far + margin), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """:func:`triplet_margin_loss` with any distance."""
    check_reduction("triplet_margin_with_distance_loss", reduction)
    distance = distance_function or pairwise_distance
    far = distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_losses(relu(distance(anchor, positive) - far + margin), reduction)


@compile_when_hot
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``margin - target * (input1 - input2)``, at least 0: 1 asks for a larger ``input1``, -1 for a smaller."""
    check_reduction("margin_ranking_loss", reduction)
    return reduce_losses(relu(margin - target * (input1 - input2)), reduction)


@compile_when_hot
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The distances where the target is 1; where it is -1, how far they are below the margin."""
    check_reduction("hinge_embedding_loss", reduction)
    return reduce_losses(where(target == 1, input, relu(margin - input)), reduction)


@compile_when_hot
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-target * input))`` for targets of 1 and -1."""
    check_reduction("soft_margin_loss", reduction)
    return reduce_losses(softplus(-target * input), reduction)


# -- losses of several classes -----------------------------------------------------------------------------------------
@compile_when_hot
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over the classes, the last axis, of the cross-entropy of sigmoids of logits and targets."""
    check_reduction("multilabel_soft_margin_loss", reduction)
    losses = target * softplus(-input) + (1 - target) * softplus(input)
    return reduce_losses(mean(losses if weight is None else losses * weight, -1), reduction)


@compile_when_hot
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over other classes of their scores, less that of the target, plus a margin; each at least 0.

    Args:
        input: scores ``(batch, classes)`` or ``(classes,)``.
        target: the classes as integers.
        p: the power of each difference.
        margin: the margin.
        weight: a factor for each class.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    check_reduction("multi_margin_loss", reduction)
    count = input.shape[-1]
    index = target.unsqueeze(-1)
    losses = relu(margin - take_along_axis(input, index, -1) + input) ** p
    if weight is not None:
        losses = losses * take(weight, index)
    others = arange(count, device=input.device) != index
    return reduce_losses(sum(where(others, losses, 0.0), -1) / count, reduction)


@compile_when_hot
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The sum over the target's classes and the others of ``1 - (score - other score)``, at least 0.

    Args:
        input: scores ``(batch, classes)`` or ``(classes,)``.
        target: the classes as integers, of the input's shape; those from the first -1 on are ignored.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    check_reduction("multilabel_margin_loss", reduction)
    count = input.shape[-1]
    is_listed = cumulative_prod((target >= 0).to(int64), axis=-1) == 1
    index = where(is_listed, target, 0)
    classes = arange(count, device=input.device)
    is_class = any(is_listed.unsqueeze(-1) & (index.unsqueeze(-1) == classes), -2)
    scores = take_along_axis(input, index, -1)
    losses = relu(1 - scores.unsqueeze(-1) + input.unsqueeze(-2))
    is_counted = is_listed.unsqueeze(-1) & ~is_class.unsqueeze(-2)
    return reduce_losses(sum(where(is_counted, losses, 0.0), (-2, -1)) / count, reduction)


@compile_when_hot
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of Poisson distributions.

    Args:
        input: the logarithms of the rates, or with ``log_input=False`` the rates.
        target: the counts.
        log_input: whether ``input`` is a logarithm.
        full: whether to add Stirling's approximation of the logarithm of ``target!``, for targets above 1.
        eps: added to rates before the logarithm.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    check_reduction("poisson_nll_loss", reduction)
    losses = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        counts = where(target > 1, target, 1.0)
        stirling = counts * log(counts) - counts + 0.5 * log(2 * math.pi * counts)
        losses = losses + where(target > 1, stirling, 0.0)
    return reduce_losses(losses, reduction)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2`` for each ``k``, plus a bias.

    Raises:
        ShapeError: the sizes of the last axes are not those of the weight ``(out, in1, in2)``.
    """
    if weight.shape[1:] != (input1.shape[-1], input2.shape[-1]):
        raise ShapeError(
            f"bilinear: a weight of shape {weight.shape} does not fit {input1.shape} and {input2.shape}"
        )
    products = (input1.unsqueeze(-2).unsqueeze(-2) @ weight)[..., 0, :]
    result = sum(products * input2.unsqueeze(-2), -1)
    return result if bias is None else result + bias
