"""Rules that step along the gradient: SGD, ASGD, Rprop."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import ValueArgumentError
from ...operators.elementwise.arithmetic import sign
from ...operators.elementwise.selection import clip, where
from .rule import Rule, Scalar, ascend, choose, decay

if TYPE_CHECKING:
    from ...registry.types import Tensor


class SGD(Rule):
    """Gradient descent; the first velocity is the gradient itself."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-3,
        "momentum": 0.0,
        "dampening": 0.0,
        "weight_decay": 0.0,
        "nesterov": False,
    }

    def check(self, name: str, o: Mapping[str, Any]) -> None:
        """Nesterov's form has momentum and no dampening; a dampening may be negative."""
        super().check(name, {option: value for option, value in o.items() if option != "dampening"})
        if o["nesterov"] and (o["momentum"] <= 0 or o["dampening"] != 0):
            raise ValueArgumentError(f"{name}: nesterov needs momentum, and no dampening")

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The velocity, if there is momentum."""
        return {"momentum_buffer": 0.0} if o["momentum"] else {}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The share of the gradient that enters the velocity."""
        return {"share": choose(is_first, 1.0, 1.0 - o.dampening)}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step along the velocity."""
        g = decay(p, g, o)
        if not hasattr(s, "momentum_buffer"):
            return p - g * o.lr
        s.momentum_buffer = s.momentum_buffer * o.momentum + g * o.share
        return p - (g + s.momentum_buffer * o.momentum if o.nesterov else s.momentum_buffer) * o.lr


class ASGD(Rule):
    """Averaged gradient descent: ``ax`` is the average of the parameters from step ``t0`` on."""

    options: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-2,
        "lambd": 1e-4,
        "alpha": 0.75,
        "t0": 1e6,
        "weight_decay": 0.0,
    }

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The next rate, the next share of the average, the average."""
        return {"eta": Scalar(float(o["lr"])), "mu": Scalar(1.0), "ax": 0.0}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """The rate and the share of the next step."""
        averaged = step - o.t0
        share = choose(averaged > 1, 1.0 / choose(averaged > 1, averaged, 1.0), 1.0)
        return {"next_eta": o.lr / (1 + o.lambd * o.lr * step) ** o.alpha, "next_mu": share}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step, and the average with its result."""
        p = p * (1 - o.lambd * s.eta) - decay(p, g, o) * s.eta
        s.ax = where(s.mu == 1, p, s.ax + (p - s.ax) * s.mu)
        s.eta, s.mu = s.eta * 0 + o.next_eta, s.mu * 0 + o.next_mu
        return p


class Rprop(Rule):
    """Resilient propagation: a step size for each element, which grows while the sign of the gradient stays."""

    options: ClassVar[Mapping[str, Any]] = {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50.0)}

    def check(self, name: str, o: Mapping[str, Any]) -> None:
        """The factors are on either side of 1."""
        super().check(name, o)
        shrink, grow = o["etas"]
        if not 0 < shrink < 1 < grow:
            raise ValueArgumentError(f"{name}: etas must be a number below 1 and one above, not {o['etas']}")

    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The previous gradient and the step sizes."""
        return {"prev": 0.0, "step_size": float(o["lr"])}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """A step by the sign; none where the sign of the gradient has changed."""
        g = ascend(g, o)
        product = g * s.prev
        smaller = where(product < 0, s.step_size * o.eta_minus, s.step_size)
        size = where(product > 0, s.step_size * o.eta_plus, smaller)
        s.step_size = clip(size, o.smallest, o.largest)
        s.prev = where(product < 0, 0.0, g)
        return p - sign(s.prev) * s.step_size
