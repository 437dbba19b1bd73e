"""GradScaler: a factor of the loss that keeps gradients in float16 from vanishing."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..eager.autograd.grad_modes import no_grad
from ..errors import AutogradError
from ..operators.elementwise.comparison import isfinite
from ..operators.reductions.folds import all

if TYPE_CHECKING:
    from .optimizer import Optimizer


@dataclass
class _Check:
    """The state of an optimizer since the last update."""

    is_finite: bool
    is_stepped: bool = False


class GradScaler:
    """Scale the loss, and unscale the gradients before the step; steps with infinite gradients are left out.

    Args:
        device: accepted; the factor is a number.
        init_scale: the factor at the start.
        growth_factor: a factor of the factor after ``growth_interval`` steps without infinite gradients.
        backoff_factor: a factor of the factor after infinite gradients.
        growth_interval: the number of steps.
        enabled: whether the methods do anything but call ``optimizer.step()``.

    >>> import tandem as td
    >>> x = td.ones(2).requires_grad_()
    >>> optimizer, scaler = td.optim.SGD([x], lr=0.5), td.optim.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale((x * x).sum()).backward()
    >>> x.grad.tolist()
    [16.0, 16.0]
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> x.tolist(), scaler.get_scale()
    ([0.0, 0.0], 8.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._device, self._enabled = device, enabled
        self._scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        self._checks: dict[int, _Check] = {}  # by the optimizer's id

    def scale(self, outputs: Any) -> Any:
        """The outputs, a tensor or a tree of tensors, times the factor."""
        return pytree.tree_map(lambda x: x * self._scale, outputs) if self._enabled else outputs

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, in place.

        Raises:
            AutogradError: they are unscaled, or its step is made, since the last :meth:`update`.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._checks:
            raise AutogradError("unscale_() has been called for this optimizer since the last update()")
        is_finite = True
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(1.0 / self._scale)
                        is_finite = is_finite and bool(all(isfinite(parameter.grad)))
        self._checks[id(optimizer)] = _Check(is_finite)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients, if that is not done, and make the step if they are finite.

        Returns:
            The result of ``optimizer.step``, or None.

        Raises:
            AutogradError: the step is made since the last :meth:`update`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) not in self._checks:
            self.unscale_(optimizer)
        check = self._checks[id(optimizer)]
        if check.is_stepped:
            raise AutogradError("step() has been called for this optimizer since the last update()")
        check.is_stepped = True
        return optimizer.step(*args, **kwargs) if check.is_finite else None

    def update(self, new_scale: float | None = None) -> None:
        """Adapt the factor to the steps since the last update, or set it.

        Raises:
            AutogradError: there was no step.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._checks:
            raise AutogradError("update() follows step() or unscale_()")
        elif not builtins.all(check.is_finite for check in self._checks.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._checks.clear()

    # -- state ---------------------------------------------------------------------------------------------------------
    def get_scale(self) -> float:
        """The factor; 1 if the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The factor and its settings; empty if the scaler is not enabled."""
        names = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")
        if not self._enabled:
            return {}
        return {name: getattr(self, f"_{name.lstrip('_')}") for name in names}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned."""
        if self._enabled:
            for name, value in state_dict.items():
                setattr(self, f"_{name.lstrip('_')}", value)
