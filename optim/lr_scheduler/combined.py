"""Several schedulers: one after the other, or at once: SequentialLR, ChainedScheduler."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ValueArgumentError
from .scheduler import LRScheduler

if TYPE_CHECKING:
    from ..optimizer import Optimizer


class SequentialLR(LRScheduler):
    """Follow several schedulers one after the other; each begins at its own epoch 0 at a milestone.

    Args:
        optimizer: the optimizer of all schedulers.
        schedulers: the schedulers.
        milestones: the epochs at which the second and later ones begin.
        last_epoch: the number of steps before, -1 for none.

    Raises:
        ValueArgumentError: the number of milestones is not that of the schedulers less one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ):
        if len(milestones) != len(schedulers) - 1:
            raise ValueArgumentError(
                f"SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} milestones, "
                f"not {len(milestones)}"
            )
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates of the scheduler of this epoch."""
        index = bisect_right(self.milestones, self.last_epoch)
        current = self.schedulers[index]
        current.last_epoch = self.last_epoch - (self.milestones[index - 1] if index else 0)
        return current.get_lr()

    def state_dict(self) -> dict[str, Any]:
        """The number of epochs and the states of the schedulers."""
        states = [one.state_dict() for one in self.schedulers]
        return {"last_epoch": self.last_epoch, "milestones": self.milestones, "schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        self.last_epoch, self.milestones = state_dict["last_epoch"], list(state_dict["milestones"])
        for one, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            one.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Step several schedulers of one optimizer at once; their factors multiply.

    Args:
        schedulers: the schedulers.
        optimizer: the optimizer of all of them; None: that of the first one.

    Raises:
        ValueArgumentError: there is none, or they have several optimizers.

    >>> import tandem as td
    >>> optimizer = td.optim.SGD([td.ones(1).requires_grad_()], lr=1.0)
    >>> make = td.optim.lr_scheduler
    >>> scheduler = make.ChainedScheduler([make.ConstantLR(optimizer, 0.1, 2), make.ExponentialLR(optimizer, 0.5)])
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.05]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        self.schedulers = list(schedulers)
        if not self.schedulers:
            raise ValueArgumentError("ChainedScheduler takes at least one scheduler")
        self.optimizer = optimizer or self.schedulers[0].optimizer
        if any(one.optimizer is not self.optimizer for one in self.schedulers):
            raise ValueArgumentError("ChainedScheduler: the schedulers have several optimizers")

    def step(self, epoch: int | None = None) -> None:
        """Step the schedulers one after the other."""
        for one in self.schedulers:
            one.step(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The states of the schedulers."""
        return {"schedulers": [one.state_dict() for one in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        for one, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            one.load_state_dict(state)
