"""Rule: an update rule of one parameter, declared once; the class of an optimizer and its pure form follow from it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import ValueArgumentError
from ...jit.api import jit
from ...named_tuple import NamedTuple
from ...operators.elementwise.exponential import sqrt
from ...operators.elementwise.selection import maximum, where

if TYPE_CHECKING:
    from ...registry.types import Tensor

# Options of several numbers, and the names of the numbers in a rule.
PARTS = {
    "betas": ("beta1", "beta2"),
    "etas": ("eta_minus", "eta_plus"),
    "step_sizes": ("smallest", "largest"),
}


class Scalar(NamedTuple):
    """A slot of one element, whatever the shape of the parameter.

    Attributes:
        value: its first value.
    """

    value: float


class Rule:
    """The base class of rules; an optimizer's rule is an instance.

    Attributes:
        options: the defaults. Numbers are arguments of the compiled rule; of each combination of bools there is one
            compiled rule.
        takes_weight_decay: whether the gradient that the rule gets contains the weight decay.
    """

    options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **options: object):
        self.defaults: dict[str, Any] = {**self.options, **options, "maximize": False}

    # -- what a rule declares -----------------------------------------------------------------------------------------
    def slots(self, o: Mapping[str, Any]) -> dict[str, float | Scalar]:
        """The tensors that a step keeps for the next one, with their first values."""
        return {}

    def derive(self, o: SimpleNamespace, step: Any, is_first: Any) -> dict[str, Any]:
        """Further numbers of a step, computed in double precision.

        Args:
            o: the options that are numbers.
            step: the number of the step, from 1: a number, or a tensor when the step itself is compiled.
            is_first: whether the slots have their first values: a bool or a tensor.
        """
        return {}

    def update(self, p: Tensor, g: Tensor, s: SimpleNamespace, o: SimpleNamespace) -> Any:
        """The new value of a parameter.

        Args:
            p, g: the parameter and its gradient.
            s: the slots, which are replaced by their new values.
            o: the options and the derived numbers.
        """
        raise NotImplementedError

    def check(self, name: str, o: Mapping[str, Any]) -> None:
        """Check the options of a group.

        Raises:
            ValueArgumentError: a number is negative, or a decay rate of an average is not below 1.
        """
        for option, value in o.items():
            if option in self.defaults and is_number(value) and not value >= 0:
                raise ValueArgumentError(f"{name}: {option} must not be negative, not {value}")
        betas = o.get("betas", (0.0, 0.0))
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueArgumentError(
                f"{name}: betas must be two numbers of at least 0 and below 1, not {betas}"
            )

    # -- what follows from it -----------------------------------------------------------------------------------------
    def flags(self, o: Mapping[str, Any]) -> tuple[tuple[str, bool], ...]:
        """The options that select a compiled rule."""
        return tuple(
            (name, bool(o[name])) for name, value in self.defaults.items() if isinstance(value, bool)
        )

    def numbers(
        self, o: Mapping[str, Any], step: Any, is_first: Any, convert: Callable[[Any], Any] = float
    ) -> dict[str, Any]:
        """The arguments of the compiled rule at a step."""
        result: dict[str, Any] = {}
        for name, value in self.defaults.items():
            if isinstance(value, tuple):
                result.update(zip(PARTS[name], map(convert, o[name]), strict=True))
            elif not isinstance(value, bool):
                result[name] = convert(o[name])
        result.update(self.derive(SimpleNamespace(**result), step, is_first))
        return result

    def run(
        self,
        p: Tensor,
        g: Tensor,
        slots: Mapping[str, Tensor],
        numbers: Mapping[str, Any],
        flags: tuple[tuple[str, bool], ...],
    ) -> tuple[Tensor, ...]:
        """The new parameter, and the new slots in their order."""
        s = SimpleNamespace(**slots)
        p = self.update(p, g, s, SimpleNamespace(**numbers, **dict(flags)))
        return (p, *(getattr(s, name) for name in slots))

    @functools.cache  # noqa: B019 - rules live as long as the process
    def compiled(
        self, slots: tuple[str, ...], numbers: tuple[str, ...], flags: tuple[tuple[str, bool], ...]
    ) -> Callable[..., tuple[Tensor, ...]]:
        """The jitted rule; its arguments are the parameter, the gradient, the slots and the numbers."""

        def step(p: Tensor, g: Tensor, *values: Any) -> tuple[Tensor, ...]:
            count = len(slots)
            return self.run(p, g, dict(zip(slots, values)), dict(zip(numbers, values[count:])), flags)

        step.__name__ = step.__qualname__ = type(self).__name__.lower()
        return jit(step)


# -- parts of rules ----------------------------------------------------------------------------------------------------
def is_number(value: object) -> bool:
    """Whether an option is a number, not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def root(x: Any) -> Any:
    """The root of a number or a tensor; 0 of negative ones."""
    return math.sqrt(max(x, 0.0)) if is_number(x) else sqrt(maximum(x, 0.0))


def choose(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where a condition holds, ``y`` elsewhere; numbers if it is a bool."""
    return (x if condition else y) if isinstance(condition, bool) else where(condition, x, y)


def ascend(g: Tensor, o: SimpleNamespace) -> Any:
    """The gradient, or its negative with ``maximize``."""
    return -g if o.maximize else g


def decay(p: Tensor, g: Tensor, o: SimpleNamespace) -> Any:
    """The gradient of the loss and the weight decay."""
    return ascend(g, o) + p * o.weight_decay


def decay_decoupled(p: Tensor, g: Tensor, o: SimpleNamespace) -> tuple[Tensor, Tensor]:
    """The parameter and the gradient; ``decoupled_weight_decay`` selects which of them the weight decay changes."""
    if o.decoupled_weight_decay:
        return p * (1 - o.lr * o.weight_decay), ascend(g, o)
    return p, decay(p, g, o)
