"""Learning rates from functions of the epoch: LambdaLR, MultiplicativeLR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...errors import ValueArgumentError
from .scheduler import LRScheduler

if TYPE_CHECKING:
    from ..optimizer import Optimizer


class LambdaLR(LRScheduler):
    """Multiply the learning rate by a function of the epoch.

    Args:
        optimizer: the optimizer.
        lr_lambda: the function, or one for each group.
        last_epoch: the number of steps before, -1 for none.

    >>> import tandem as td
    >>> optimizer = td.optim.SGD([td.ones(1).requires_grad_()], lr=1.0)
    >>> scheduler = td.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ):
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueArgumentError(f"LambdaLR: {len(self.lr_lambdas)} functions for {count} groups")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates times the functions."""
        return [base * fn(self.last_epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LambdaLR):
    """Multiply the current learning rate by a function of the epoch; the arguments are those of :class:`LambdaLR`."""

    def get_lr(self) -> list[float]:
        """The current learning rates times the functions."""
        if self.last_epoch == 0:
            return self.base_lrs
        return [lr * fn(self.last_epoch) for lr, fn in zip(self.get_last_lr(), self.lr_lambdas)]
