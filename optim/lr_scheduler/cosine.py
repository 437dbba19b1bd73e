"""Learning rates along a cosine: CosineAnnealingLR, CosineAnnealingWarmRestarts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .scheduler import FactorScheduler, LRScheduler

if TYPE_CHECKING:
    from ..optimizer import Optimizer


class CosineAnnealingLR(FactorScheduler):
    """Follow half a cosine from the learning rate down to ``eta_min`` in ``T_max`` epochs, then up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The points of the cosine."""
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Follow half a cosine down to ``eta_min`` in ``T_0`` epochs, then again in ``T_mult`` times as many."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ):
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The points of the cosine."""
        position, length = self.last_epoch, self.T_0
        while position >= length:
            position, length = position - length, length * self.T_mult
        share = (1 + math.cos(math.pi * position / length)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]
