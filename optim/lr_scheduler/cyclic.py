"""Learning rates and momenta that rise and fall: OneCycleLR, CyclicLR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...errors import ValueArgumentError
from .scheduler import LRScheduler, one_for_each_group

if TYPE_CHECKING:
    from ..optimizer import Optimizer


class MomentumScheduler(LRScheduler):
    """The base class of schedulers that may also set the momentum, or the first of the betas."""

    cycle_momentum: bool

    def _check_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if self.cycle_momentum and "momentum" not in defaults and "betas" not in defaults:
            raise ValueArgumentError(
                f"{type(self).__name__}: {type(self.optimizer).__name__} has no momentum; pass cycle_momentum=False"
            )

    def get_momentum(self) -> list[float]:
        """The momentum of each group at ``last_epoch``."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to a given one."""
        super().step(epoch)
        if self.cycle_momentum:
            for group, momentum in zip(self.optimizer.param_groups, self.get_momentum(), strict=True):
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum


class OneCycleLR(MomentumScheduler):
    """Raise the learning rate to ``max_lr`` and lower it to almost 0, once; ``step()`` follows each batch.

    Args:
        optimizer: the optimizer, whose learning rates are replaced.
        max_lr: the largest learning rate, or one for each group.
        total_steps: the number of steps; None: ``epochs * steps_per_epoch``.
        epochs, steps_per_epoch: the factors of the number of steps.
        pct_start: the share of the steps during which the learning rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: whether the momentum falls while the learning rate rises, and rises while it falls.
        base_momentum, max_momentum: the smallest and the largest momentum, or one for each group.
        div_factor: the largest learning rate divided by the first one.
        final_div_factor: the first learning rate divided by the last one.
        three_phase: whether the learning rate falls to the first one as fast as it rose, and then to the last one.
        last_epoch: the number of steps before, -1 for none.

    Raises:
        ValueArgumentError: the number of steps is missing, the strategy is unknown, or the optimizer has no momentum.
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
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueArgumentError("OneCycleLR: pass total_steps, or epochs and steps_per_epoch")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueArgumentError(
                f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}"
            )
        self.total_steps = (epochs or 0) * (steps_per_epoch or 0) if total_steps is None else total_steps
        self.pct_start, self.anneal_strategy, self.three_phase = pct_start, anneal_strategy, three_phase
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        self.optimizer, self.cycle_momentum = optimizer, cycle_momentum
        self._check_momentum()
        self.max_lrs = one_for_each_group("OneCycleLR", max_lr, optimizer)
        self.base_momenta = one_for_each_group("OneCycleLR", base_momentum, optimizer)
        self.max_momenta = one_for_each_group("OneCycleLR", max_momentum, optimizer)
        for group, largest in zip(optimizer.param_groups, self.max_lrs):
            group["initial_lr"] = largest / div_factor
        super().__init__(optimizer, last_epoch)

    def _phase(self) -> tuple[int, float]:
        """The number of the phase, and the share of it that is over."""
        if self.last_epoch > self.total_steps:  # as in PyTorch, one step may follow the cycle
            raise ValueArgumentError(
                f"OneCycleLR: step {self.last_epoch} of a cycle of {self.total_steps} steps"
            )
        top = self.pct_start * self.total_steps - 1
        ends = [0.0, top, *([2 * top] if self.three_phase else []), self.total_steps - 1.0]
        phase = next(i for i in range(len(ends) - 1) if self.last_epoch <= ends[i + 1] or i == len(ends) - 2)
        length = ends[phase + 1] - ends[phase]
        return phase, (self.last_epoch - ends[phase]) / length if length else 1.0

    def _anneal(self, points: Sequence[float]) -> float:
        phase, share = self._phase()
        start, end = points[phase], points[phase + 1]
        if self.anneal_strategy == "cos":
            return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
        return start + (end - start) * share

    def get_lr(self) -> list[float]:
        """The points of the rise or of the fall."""
        return [
            self._anneal([base, largest, *([base] if self.three_phase else []), base / self.final_div_factor])
            for base, largest in zip(self.base_lrs, self.max_lrs)
        ]

    def get_momentum(self) -> list[float]:
        """The points of the fall or of the rise."""
        return [
            self._anneal([high, low, high, high]) for low, high in zip(self.base_momenta, self.max_momenta)
        ]


class CyclicLR(MomentumScheduler):
    """Let the learning rate rise and fall between two values along lines; ``step()`` follows each batch.

    Args:
        optimizer: the optimizer, whose learning rates are replaced.
        base_lr, max_lr: the smallest and the largest learning rate, or one for each group.
        step_size_up, step_size_down: the number of steps up, and down; None: as many.
        mode: ``"triangular"``; ``"triangular2"``: each rise is half of the one before; ``"exp_range"``: ``gamma``
            to the power of the number of steps is a factor of the rise.
        gamma: the constant of ``"exp_range"``.
        scale_fn: a function that replaces the mode.
        scale_mode: the argument of the function: ``"cycle"`` for the number of the cycle, from 1, or ``"iterations"``.
        cycle_momentum: whether the momentum falls while the learning rate rises.
        base_momentum, max_momentum: the smallest and the largest momentum, or one for each group.
        last_epoch: the number of steps before, -1 for none.

    Raises:
        ValueArgumentError: the mode is unknown, or the optimizer has no momentum.

    >>> import tandem as td
    >>> optimizer = td.optim.SGD([td.ones(1).requires_grad_()], lr=1.0, momentum=0.9)
    >>> scheduler = td.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
    >>> for _ in range(3):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ):
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueArgumentError(
                f"CyclicLR: mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}"
            )
        self.optimizer, self.cycle_momentum = optimizer, cycle_momentum
        self._check_momentum()
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.counts_steps = mode == "exp_range" if scale_fn is None else scale_mode == "iterations"
        self.step_size_up = step_size_up
        self.step_size_down = step_size_up if step_size_down is None else step_size_down
        self.max_lrs = one_for_each_group("CyclicLR", max_lr, optimizer)
        self.base_momenta = one_for_each_group("CyclicLR", base_momentum, optimizer)
        self.max_momenta = one_for_each_group("CyclicLR", max_momentum, optimizer)
        for group, lowest in zip(optimizer.param_groups, one_for_each_group("CyclicLR", base_lr, optimizer)):
            group["initial_lr"] = lowest
        super().__init__(optimizer, last_epoch)

    def _scale(self, count: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(count)
        if self.mode == "triangular2":
            return float(0.5 ** (count - 1))
        return float(self.gamma**count) if self.mode == "exp_range" else 1.0

    def _height(self) -> float:
        """The height at this step, as a share of the whole rise."""
        up, down = self.step_size_up, self.step_size_down
        cycle, position = divmod(self.last_epoch, up + down)
        height = position / up if position <= up else 1 - (position - up) / down
        return height * self._scale(self.last_epoch if self.counts_steps else cycle + 1)

    def get_lr(self) -> list[float]:
        """The points of the lines."""
        height = self._height()
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def get_momentum(self) -> list[float]:
        """The points of the lines, from the top."""
        height = self._height()
        return [high - (high - low) * height for low, high in zip(self.base_momenta, self.max_momenta)]
