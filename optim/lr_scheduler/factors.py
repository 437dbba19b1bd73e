"""Learning rates times a factor of the epoch: StepLR, MultiStepLR, ExponentialLR, LinearLR, ..."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .scheduler import FactorScheduler

if TYPE_CHECKING:
    from ..optimizer import Optimizer


class StepLR(FactorScheduler):
    """Multiply the learning rate by ``gamma`` after each ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """A power of ``gamma``."""
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(FactorScheduler):
    """Multiply the learning rate by ``gamma`` at each of the epochs in ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """A power of ``gamma``."""
        return self.gamma ** bisect_right(self.milestones, epoch)


class ExponentialLR(FactorScheduler):
    """Multiply the learning rate by ``gamma`` after each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """A power of ``gamma``."""
        return self.gamma**epoch


class LinearLR(FactorScheduler):
    """Go from ``start_factor`` to ``end_factor`` times the learning rate in ``total_iters`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The point of the line."""
        share = min(epoch / self.total_iters, 1.0)
        return self.start_factor + (self.end_factor - self.start_factor) * share


class ConstantLR(FactorScheduler):
    """Multiply the learning rate by ``factor`` during the first ``total_iters`` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        self.first_factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The first factor, or 1."""
        return self.first_factor if epoch < self.total_iters else 1.0


class PolynomialLR(FactorScheduler):
    """Go from the learning rate to 0 in ``total_iters`` epochs along a power of the remaining share."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The power of the share that remains."""
        return float((1 - min(epoch / self.total_iters, 1.0)) ** self.power)
