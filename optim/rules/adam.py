"""Rules with averages of the gradient and of its square: Adam, AdamW, Adamax, NAdam, RAdam."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from ...operators.elementwise.arithmetic import abs
from ...operators.elementwise.exponential import sqrt
from ...operators.elementwise.selection import maximum
from .rule import Rule, Scalar, choose, decay, decay_decoupled, root

if TYPE_CHECKING:
    from ...registry.types import Tensor


def _average(g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> None:
    """The new averages of the gradient and of its square."""
    s.exp_avg = s.exp_avg * o.beta1 + g * (1 - o.beta1)
    s.exp_avg_sq = s.exp_avg_sq * o.beta2 + g * g * (1 - o.beta2)


class Adam(Rule):
    """Adam; the averages start at zero, which the corrections undo."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
        "amsgrad": False,
        "decoupled_weight_decay": False,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The averages, and for AMSGrad the largest average of the squares so far."""
        largest = {"max_exp_avg_sq": 0.0} if o["amsgrad"] else {}
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0, **largest}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The rate with the correction of the first average, and the root of that of the second."""
        return {"rate": o.lr / (1 - o.beta1**step), "correction": root(1 - o.beta2**step)}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the quotient of the average and the root of the average square."""
        p, g = decay_decoupled(p, g, o)
        _average(g, s, o)
        square = s.exp_avg_sq
        if o.amsgrad:
            square = s.max_exp_avg_sq = maximum(s.max_exp_avg_sq, square)
        return p - s.exp_avg / (sqrt(square) / o.correction + o.eps) * o.rate


class Adamax(Rule):
    """Adam with the largest absolute gradient, which decays, in place of the root of the average square."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 2e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The average and the largest absolute gradient."""
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The rate with the correction of the average."""
        return {"rate": o.lr / (1 - o.beta1**step)}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the quotient."""
        g = decay(p, g, o)
        s.exp_avg = s.exp_avg * o.beta1 + g * (1 - o.beta1)
        s.exp_inf = maximum(s.exp_inf * o.beta2, abs(g) + o.eps)
        return p - s.exp_avg / s.exp_inf * o.rate


class NAdam(Rule):
    """Adam with Nesterov's momentum, whose decay rate rises to ``beta1`` with the steps."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 2e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
        "momentum_decay": 4e-3,
        "decoupled_weight_decay": False,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The product of the decay rates so far, and the averages."""
        return {"mu_product": Scalar(1.0), "exp_avg": 0.0, "exp_avg_sq": 0.0}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The decay rates of this step and of the next one, and the correction of the average square."""

        def rate(count: Any) -> Any:
            return o.beta1 * (1 - 0.5 * 0.96 ** (count * o.momentum_decay))

        return {"mu": rate(step), "mu_next": rate(step + 1), "correction": root(1 - o.beta2**step)}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the gradient and the average of the next step."""
        p, g = decay_decoupled(p, g, o)
        _average(g, s, o)
        s.mu_product = s.mu_product * o.mu
        ahead = g * ((1 - o.mu) / (1 - s.mu_product))
        ahead = ahead + s.exp_avg * (o.mu_next / (1 - s.mu_product * o.mu_next))
        return p - ahead / (sqrt(s.exp_avg_sq) / o.correction + o.eps) * o.lr


class RAdam(Rule):
    """Adam whose first steps are those of momentum, until the variance of the average square is known."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
        "decoupled_weight_decay": False,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The averages."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The rate, and how much of the adaptive and of the plain step is made; one of the two is zero."""
        remaining = 1 - o.beta2**step
        longest = 2 / (1 - o.beta2) - 1
        length = longest - 2 * step * (1 - remaining) / remaining
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        is_known = length > 5
        return {
            "rate": o.lr / (1 - o.beta1**step),
            "adaptive": choose(is_known, root(ratio * remaining), 0.0),
            "plain": choose(is_known, 0.0, 1.0),
        }

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the average, or by the quotient."""
        p, g = decay_decoupled(p, g, o)
        _average(g, s, o)
        return p - s.exp_avg * (o.adaptive / (sqrt(s.exp_avg_sq) + o.eps) + o.plain) * o.rate
