"""Rules that divide the gradient by the root of its squares: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from ...operators.elementwise.exponential import sqrt
from .rule import Rule, Scalar, decay

if TYPE_CHECKING:
    from ...registry.types import Tensor


class Adagrad(Rule):
    """Steps by the gradient, divided by the root of the sum of all squares."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-2,
        "lr_decay": 0.0,
        "weight_decay": 0.0,
        "initial_accumulator_value": 0.0,
        "eps": 1e-10,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The sum of the squares."""
        return {"sum": float(o["initial_accumulator_value"])}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The rate, which decays."""
        return {"rate": o.lr / (1 + (step - 1) * o.lr_decay)}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the quotient."""
        g = decay(p, g, o)
        s.sum = s.sum + g * g
        return p - g / (sqrt(s.sum) + o.eps) * o.rate


class Adadelta(Rule):
    """Steps by the gradient, times the quotient of the roots of the average squares of steps and gradients."""

    options: ClassVar[Mapping[str, Any]] = {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.0}

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The average squares of the gradients and of the steps."""
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step, which enters the average after it is made."""
        g = decay(p, g, o)
        s.square_avg = s.square_avg * o.rho + g * g * (1 - o.rho)
        delta = sqrt(s.acc_delta + o.eps) / sqrt(s.square_avg + o.eps) * g
        s.acc_delta = s.acc_delta * o.rho + delta * delta * (1 - o.rho)
        return p - delta * o.lr


class RMSprop(Rule):
    """Steps by the gradient, divided by the root of the average of its squares."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-2,
        "alpha": 0.99,
        "eps": 1e-8,
        "weight_decay": 0.0,
        "momentum": 0.0,
        "centered": False,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The average square, the average if it is centered, and the velocity if there is momentum."""
        average = {"grad_avg": 0.0} if o["centered"] else {}
        velocity = {"momentum_buffer": 0.0} if o["momentum"] else {}
        return {"square_avg": 0.0, **average, **velocity}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the quotient, or along the velocity of the quotients."""
        g = decay(p, g, o)
        s.square_avg = s.square_avg * o.alpha + g * g * (1 - o.alpha)
        variance = s.square_avg
        if o.centered:
            s.grad_avg = s.grad_avg * o.alpha + g * (1 - o.alpha)
            variance = variance - s.grad_avg * s.grad_avg
        change = g / (sqrt(variance) + o.eps)
        if hasattr(s, "momentum_buffer"):
            change = s.momentum_buffer = s.momentum_buffer * o.momentum + change
        return p - change * o.lr
