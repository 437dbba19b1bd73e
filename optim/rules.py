"""The update rules of one parameter, as pure functions of tensors; the optimizers of both styles use them.

Each takes the parameter, its gradient and its slots, then numbers, then settings that a jitted rule is compiled for.
It returns the new parameter and the new slots. A slot that is not used is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators.elementwise.exponential import sqrt
from ..operators.elementwise.selection import maximum

if TYPE_CHECKING:
    from ..registry.types import Tensor


def sgd(
    p: Tensor,
    g: Tensor,
    velocity: Tensor | None,
    lr: float | Tensor,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool = False,
    maximize: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gradient descent; the velocity is zero before the first step, or None without momentum."""
    g = (-g if maximize else g) + p * weight_decay
    if velocity is None:
        return p - g * lr, None
    velocity = velocity * momentum + g * (1 - dampening)
    return p - (g + velocity * momentum if nesterov else velocity) * lr, velocity


def adam(
    p: Tensor,
    g: Tensor,
    first: Tensor,
    second: Tensor,
    largest: Tensor | None,
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    correction1: float | Tensor,
    correction2: float | Tensor,
    decoupled: bool = False,
    maximize: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Adam, or with ``decoupled`` AdamW.

    Args:
        p, g: the parameter and its gradient.
        first, second: the averages of the gradients and of their squares.
        largest: for AMSGrad the largest ``second`` so far; None: Adam.
        lr, beta1, beta2, eps, weight_decay: as for :class:`tandem.optim.Adam`.
        correction1, correction2: ``1 - beta1**step`` and the root of ``1 - beta2**step``, which correct the averages
            for their start at zero.
        decoupled: whether the weight decay is applied to the parameter, not to the gradient.
        maximize: whether to go up.
    """
    g = -g if maximize else g
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + p * weight_decay
    first = first * beta1 + g * (1 - beta1)
    second = second * beta2 + g * g * (1 - beta2)
    if largest is not None:
        largest = maximum(largest, second)
    root = sqrt(second if largest is None else largest) / correction2 + eps
    return p - (first / root) * (lr / correction1), first, second, largest


def rmsprop(
    p: Tensor,
    g: Tensor,
    second: Tensor,
    average: Tensor | None,
    velocity: Tensor | None,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    maximize: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """RMSprop; ``average`` is that of the gradients if centered, ``velocity`` None without momentum."""
    g = (-g if maximize else g) + p * weight_decay
    second = second * alpha + g * g * (1 - alpha)
    variance = second
    if average is not None:
        average = average * alpha + g * (1 - alpha)
        variance = second - average * average
    change = g / (sqrt(variance) + eps)
    if velocity is None:
        return p - change * lr, second, average, None
    velocity = velocity * momentum + change
    return p - velocity * lr, second, average, velocity
