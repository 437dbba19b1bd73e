"""LBFGS: quasi-Newton steps for all parameters together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..eager.autograd.grad_modes import enable_grad, no_grad
from ..errors import ArgumentError, ValueArgumentError
from ..operators.creation.full import zeros
from ..operators.elementwise.arithmetic import abs
from ..operators.reductions.folds import max, sum
from ..operators.shape.joining import concat
from .line_search import Point, search
from .optimizer import Optimizer

if TYPE_CHECKING:
    from ..registry.types import Tensor

SMALLEST_CURVATURE = 1e-10  # pairs with less are not kept


class LBFGS(Optimizer):
    """L-BFGS; a step makes up to ``max_iter`` iterations, each of which calls the closure.

    Args:
        params: the parameters, in one group.
        lr: the length of a step; with a line search, of the first trial.
        max_iter: the largest number of iterations of a step.
        max_eval: the largest number of evaluations of a step; None: 1.25 for each iteration.
        tolerance_grad: a step ends when no element of the gradient is larger.
        tolerance_change: a step ends when neither the loss nor a parameter changes by more.
        history_size: the number of pairs of changes that approximate the curvature.
        line_search_fn: ``"strong_wolfe"`` or None.

    Raises:
        ValueArgumentError: there are several groups, or the line search is unknown.

    >>> import tandem as td
    >>> x = td.asarray([3.0, -2.0], requires_grad=True)
    >>> optimizer = td.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    13.0
    >>> [round(value, 4) for value in x.tolist()]
    [1.0, 1.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueArgumentError(
                f"LBFGS: line_search_fn is 'strong_wolfe' or None, not {line_search_fn!r}"
            )
        options = {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad}
        options.update(tolerance_change=tolerance_change, history_size=history_size)
        super().__init__(params, {**options, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueArgumentError(f"LBFGS takes one group of parameters, not {len(self.param_groups)}")

    # -- the parameters as one vector ----------------------------------------------------------------------------------
    def _gradient(self) -> Tensor:
        parts = [
            zeros((p.size,), dtype=p.dtype, device=p.device) if p.grad is None else p.grad.reshape(-1)
            for p in self.param_groups[0]["params"]
        ]
        return concat(parts)

    def _add(self, t: float, direction: Tensor) -> None:
        start = 0
        for p in self.param_groups[0]["params"]:
            p.add_(direction[start : start + p.size].reshape(p.shape) * t)
            start += p.size

    def _copy(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.param_groups[0]["params"]]

    def _restore(self, values: list[Tensor]) -> None:
        for p, value in zip(self.param_groups[0]["params"], values):
            p[...] = value

    # -- the step ------------------------------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimize the loss for up to ``max_iter`` iterations.

        Args:
            closure: a function that computes the loss again, with its gradients.

        Returns:
            The loss before the step.

        Raises:
            ArgumentError: the closure is missing.
        """
        if closure is None:
            raise ArgumentError("LBFGS.step takes a closure, which computes the loss and its gradients")
        with no_grad():
            return self._minimize(closure)

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        limit = group["max_iter"] * 5 // 4 if group["max_eval"] is None else group["max_eval"]
        with enable_grad():
            first_loss = closure()
        loss, gradient, evaluations = float(first_loss), self._gradient(), 1
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        if _largest(gradient) <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction, before = self._find_direction(state, gradient), loss
            t = (
                min(1.0, 1.0 / float(sum(abs(gradient)))) * group["lr"]
                if state["n_iter"] == 1
                else group["lr"]
            )
            slope = float(sum(gradient * direction))
            if slope > -group["tolerance_change"]:
                break
            is_last = iteration == group["max_iter"]
            start = Point(0.0, loss, gradient, slope)
            point, count = self._advance(closure, start, direction, t, is_last)
            loss, gradient = point.loss, point.gradient
            state["d"], state["t"] = direction, point.t
            evaluations += count
            state["func_evals"] += count
            if (
                is_last
                or evaluations >= limit
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction * point.t) <= group["tolerance_change"]
                or -group["tolerance_change"] < loss - before < group["tolerance_change"]
            ):
                break
        return first_loss

    def _advance(
        self, closure: Callable[[], Any], start: Point, direction: Tensor, t: float, is_last: bool
    ) -> tuple[Point, int]:
        """Move the parameters along the direction; return the point, and the number of evaluations."""
        group = self.param_groups[0]
        if group["line_search_fn"] is None:
            self._add(t, direction)
            if is_last:  # the loss at the end of a step is not used
                return start._replace(t=t), 0
            return self._evaluate(closure, direction, t), 1
        origin = self._copy()

        def evaluate(t: float) -> Point:
            self._add(t, direction)
            point = self._evaluate(closure, direction, t)
            self._restore(origin)
            return point

        point, count = search(evaluate, start, t, _largest(direction), group["tolerance_change"])
        self._add(point.t, direction)
        return point, count

    def _evaluate(self, closure: Callable[[], Any], direction: Tensor, t: float) -> Point:
        with enable_grad():
            loss = float(closure())
        gradient = self._gradient()
        return Point(t, loss, gradient, float(sum(gradient * direction)))

    def _find_direction(self, state: dict[str, Any], gradient: Tensor) -> Tensor:
        """The negative gradient times the approximate inverse of the Hessian; updates the pairs of changes."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        else:
            change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
            curvature = float(sum(change * moved))
            if curvature > SMALLEST_CURVATURE:
                pairs = (("old_dirs", change), ("old_stps", moved), ("ro", 1.0 / curvature))
                for name, value in pairs:
                    state[name] = [*state[name], value][-self.param_groups[0]["history_size"] :]
                state["H_diag"] = curvature / float(sum(change * change))
        state["prev_flat_grad"] = gradient
        direction: Tensor = _apply_inverse_hessian(-gradient, state)
        return direction


def _apply_inverse_hessian(q: Tensor, state: dict[str, Any]) -> Any:
    """The two loops over the pairs of changes of gradients and parameters."""
    pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"]))
    factors = []
    for change, moved, inverse in reversed(pairs):
        factors.append(sum(moved * q) * inverse)
        q = q - change * factors[-1]
    r = q * state["H_diag"]
    for (change, moved, inverse), factor in zip(pairs, reversed(factors)):
        r = r + moved * (factor - sum(change * r) * inverse)
    return r


def _largest(x: Tensor) -> float:
    return float(max(abs(x))) if x.size else 0.0
