"""LRScheduler and FactorScheduler: the base classes of schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ValueArgumentError

if TYPE_CHECKING:
    from ..optimizer import Optimizer

FUNCTIONS = ("optimizer", "lr_lambdas", "scale_fn")  # attributes that are not saved


class LRScheduler:
    """The base class: ``step()`` sets the learning rate of each group to what ``get_lr()`` returns.

    Args:
        optimizer: the optimizer.
        last_epoch: the number of steps before; -1: none, and the first learning rate is set here.

    Attributes:
        base_lrs: the learning rates of the groups at the start.

    >>> import tandem as td
    >>> class Harmonic(td.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) for lr in self.base_lrs]
    >>> scheduler = Harmonic(td.optim.SGD([td.ones(1).requires_grad_()], lr=1.0))
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The learning rate of each group at ``last_epoch``."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr
        self._last_lr = self.get_last_lr()

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The attributes apart from the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in FUNCTIONS}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned.

        The learning rates are the optimizer's: make the scheduler, then load the optimizer's state, as in PyTorch.
        """
        vars(self).update(state_dict)


class FactorScheduler(LRScheduler):
    """The base class of schedules that multiply.

    A learning rate that is not the schedule's, because a second scheduler or the program has changed it, is scaled by
    the change of the schedule.

    Args:
        optimizer, last_epoch: as for :class:`LRScheduler`.
    """

    eta_min: float = 0.0  # factors are those of the part above it

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self._last_scheduled: list[float] | None = None
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rate of each group at ``last_epoch`` if nothing else changes it."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def factor(self, epoch: int) -> float:
        """The factor of the learning rates at the start."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one."""
        before, last = self.get_last_lr(), self._last_scheduled
        if last is None:
            last = self.base_lrs if self.last_epoch < 0 else self.get_lr()
        super().step(epoch)
        self._last_scheduled, floor = self._last_lr, self.eta_min
        for group, lr, old in zip(self.optimizer.param_groups, before, last, strict=True):
            if lr != old != floor:
                group["lr"] = floor + (lr - floor) * (group["lr"] - floor) / (old - floor)
        self._last_lr = self.get_last_lr()


def one_for_each_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """A value for each group: a list of those given, or the same one for all.

    Raises:
        ValueArgumentError: there are more or fewer values than groups.
    """
    count = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ValueArgumentError(f"{name}: {len(values)} values for {count} groups")
    return values
