"""LRScheduler: the base class of schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import ValueArgumentError

if TYPE_CHECKING:
    from ..optimizer import Optimizer

FUNCTIONS = ("optimizer", "lr_lambdas", "scale_fn")  # attributes that are not saved


class LRScheduler:
    """The base class: ``step()`` sets the learning rate of each group from the number of steps so far.

    A learning rate that is not the schedule's, because a second scheduler or the program has changed it, is scaled
    by the change of the schedule: schedules of one optimizer multiply.

    Args:
        optimizer: the optimizer.
        last_epoch: the number of steps before; -1: none, and the first learning rate is set here.

    Attributes:
        base_lrs: the learning rates of the groups at the start.
        multiplies: whether the schedule is one of factors of the learning rates. Others set the learning rates.
    """

    multiplies: ClassVar[bool] = True
    eta_min: float = 0.0  # factors are those of the part above it

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self._last_scheduled = list(self.base_lrs) if last_epoch < 0 else self.get_lr()
        self.step()

    def get_lr(self) -> list[float]:
        """The learning rate of each group at ``last_epoch``."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def factor(self, epoch: int) -> float:
        """The factor of the learning rates at the start."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        scheduled, floor = self.get_lr(), self.eta_min
        groups = self.optimizer.param_groups
        for group, lr, last in zip(groups, scheduled, self._last_scheduled, strict=True):
            if self.multiplies and group["lr"] != last != floor:
                lr = floor + (group["lr"] - floor) * (lr - floor) / (last - floor)
            group["lr"] = lr
        self._last_lr, self._last_scheduled = self.get_last_lr(), scheduled

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
