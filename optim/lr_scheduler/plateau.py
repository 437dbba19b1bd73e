"""ReduceLROnPlateau: learning rates that fall when a metric stops to improve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsFloat

from ...errors import ArgumentError, ValueArgumentError
from .scheduler import LRScheduler

if TYPE_CHECKING:
    from ..optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiply the learning rate by ``factor`` when a metric has not improved for more than ``patience`` epochs.

    Args:
        optimizer: the optimizer.
        mode: ``"min"`` if smaller values of the metric are better, ``"max"`` if larger ones are.
        factor: the factor of the learning rates.
        patience: the number of epochs without improvement that are tolerated.
        threshold: the least improvement that counts.
        threshold_mode: ``"rel"`` for a share of the best value, ``"abs"`` for a difference.
        cooldown: the number of epochs after a reduction in which none is counted.
        min_lr: the smallest learning rate, or one for each group.
        eps: a reduction by less than this is not made.

    Raises:
        ValueArgumentError: a mode is unknown, or ``factor`` is not less than 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs") or factor >= 1:
            raise ValueArgumentError(
                "ReduceLROnPlateau: mode is 'min' or 'max', threshold_mode 'rel' or 'abs', and factor is less than 1; "
                f"given {mode!r}, {threshold_mode!r} and {factor}"
            )
        self.mode, self.reduction, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = (
            threshold,
            threshold_mode,
            cooldown,
            eps,
        )
        count = len(optimizer.param_groups)
        self.min_lrs = [min_lr] * count if isinstance(min_lr, (int, float)) else list(min_lr)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self.optimizer, self.last_epoch = optimizer, 0

    def step(  # type: ignore[override]
        self, metrics: SupportsFloat | None = None, epoch: int | None = None
    ) -> None:
        """Count an epoch that has this value of the metric, and reduce the learning rates if it is due.

        Raises:
            ArgumentError: the metric is missing.
        """
        if metrics is None:
            raise ArgumentError("ReduceLROnPlateau.step takes the metric: scheduler.step(loss)")
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            return sign * (value - self.best) > self.threshold
        return sign * value > sign * self.best * (1 + sign * self.threshold)

    def _reduce(self) -> None:
        for group, smallest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            lower = max(group["lr"] * self.reduction, smallest)
            if group["lr"] - lower > self.eps:
                group["lr"] = lower
