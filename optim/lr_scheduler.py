"""``td.optim.lr_scheduler``: learning rates that follow the epochs, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

from .. import lazy as _lazy
from ..errors import ArgumentError, ValueArgumentError

if TYPE_CHECKING:
    from .optimizer import Optimizer


class LRScheduler:
    """The base class: ``step()`` sets the learning rate of each group from the number of steps so far.

    Args:
        optimizer: the optimizer.
        last_epoch: the number of steps before; -1: none, and the first learning rate is set here.

    Attributes:
        base_lrs: the learning rates of the groups at the start.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The learning rate of each group at ``last_epoch``."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def factor(self, epoch: int) -> float:
        """The factor of the learning rates at the start."""
        raise NotImplementedError

    def step(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The attributes apart from the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        vars(self).update(state_dict)


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


class StepLR(LRScheduler):
    """Multiply the learning rate by ``gamma`` after each ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """A power of ``gamma``."""
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiply the learning rate by ``gamma`` at each of the epochs in ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """A power of ``gamma``."""
        return self.gamma ** bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Multiply the learning rate by ``gamma`` after each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """A power of ``gamma``."""
        return self.gamma**epoch


class LinearLR(LRScheduler):
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


class CosineAnnealingLR(LRScheduler):
    """Follow half a cosine from the learning rate down to ``eta_min`` in ``T_max`` epochs, then up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The points of the cosine."""
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Multiply the learning rate by ``factor`` during the first ``total_iters`` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        self.first_factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The first factor, or 1."""
        return self.first_factor if epoch < self.total_iters else 1.0


class PolynomialLR(LRScheduler):
    """Go from the learning rate to 0 in ``total_iters`` epochs along a power of the remaining share."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The power of the share that remains."""
        return float((1 - min(epoch / self.total_iters, 1.0)) ** self.power)


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


class OneCycleLR(LRScheduler):
    """Raise the learning rate to ``max_lr`` and lower it to almost 0, once; ``step()`` follows each batch.

    Args:
        optimizer: the optimizer, whose learning rates are replaced.
        max_lr: the largest learning rate, or one for each group.
        total_steps: the number of steps; None: ``epochs * steps_per_epoch``.
        epochs, steps_per_epoch: the factors of the number of steps.
        pct_start: the share of the steps during which the learning rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        div_factor: the largest learning rate divided by the first one.
        final_div_factor: the first learning rate divided by the last one.
        last_epoch: the number of steps before, -1 for none.

    Raises:
        ValueArgumentError: the number of steps is missing, or the strategy is unknown.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        *,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ):
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueArgumentError("OneCycleLR: pass total_steps, or epochs and steps_per_epoch")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueArgumentError(
                f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}"
            )
        self.total_steps = (epochs or 0) * (steps_per_epoch or 0) if total_steps is None else total_steps
        self.pct_start, self.anneal_strategy = pct_start, anneal_strategy
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        count = len(optimizer.param_groups)
        self.max_lrs = [max_lr] * count if isinstance(max_lr, (int, float)) else list(max_lr)
        for group, largest in zip(optimizer.param_groups, self.max_lrs, strict=True):
            group["initial_lr"] = largest / div_factor
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "cos":
            return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
        return start + (end - start) * share

    def get_lr(self) -> list[float]:
        """The points of the rise or of the fall."""
        top = self.pct_start * self.total_steps - 1
        if self.last_epoch >= self.total_steps:
            raise ValueArgumentError(
                f"OneCycleLR: step {self.last_epoch + 1} of a cycle of {self.total_steps} steps"
            )
        if self.last_epoch <= top:
            share = self.last_epoch / top
            return [self._anneal(base, largest, share) for base, largest in zip(self.base_lrs, self.max_lrs)]
        share = (self.last_epoch - top) / (self.total_steps - 1 - top)
        return [
            self._anneal(largest, base / self.final_div_factor, share)
            for base, largest in zip(self.base_lrs, self.max_lrs)
        ]


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

    def step(self, metrics: SupportsFloat | None = None) -> None:
        """Count an epoch that has this value of the metric, and reduce the learning rates if it is due.

        Raises:
            ArgumentError: the metric is missing.
        """
        if metrics is None:
            raise ArgumentError("ReduceLROnPlateau.step takes the metric: scheduler.step(loss)")
        value = float(metrics)
        self.last_epoch += 1
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


_lazy.refuse_unknown(__name__, "td.optim.lr_scheduler.")
