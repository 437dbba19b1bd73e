"""RuleOptimizer: the base class of the optimizers that have a rule.

A step of a parameter is one jitted call of its rule, compiled once for each shape, and one write in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import ArgumentError
from ..operators.creation.full import full_like, zeros
from .optimizer import Group, Optimizer
from .rules import Rule, Scalar

if TYPE_CHECKING:
    from ..registry.types import Tensor

    Parameters = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]

# PyTorch's options that choose among implementations; there is one here.
IMPLEMENTATIONS = ("foreach", "fused", "capturable")


class RuleOptimizer(Optimizer):
    """The base class of optimizers that have a rule.

    Args:
        params: the parameters, or groups of them.
        implementation: PyTorch's ``foreach``, ``fused``, ``capturable`` and ``differentiable=False``, which change
            nothing.
        options: the options of the rule.

    Raises:
        ArgumentError: an option is unknown.
        ValueArgumentError: an option has a value outside its range.
    """

    rule: ClassVar[Rule]

    def __init_subclass__(cls, rule: Rule | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if rule is not None:
            cls.rule = rule

    def __init__(
        self, params: Parameters, implementation: Mapping[str, bool | None], **options: object
    ) -> None:
        name = type(self).__name__
        for option, value in implementation.items():
            if option not in (*IMPLEMENTATIONS, "differentiable"):
                raise ArgumentError(f"{name} got an unexpected keyword argument {option!r}")
            if option == "differentiable" and value:
                raise ArgumentError(
                    f"{name}: a step is not differentiable; use td.optim.{name.lower()}, which is a pure function"
                )
        super().__init__(params, options)

    def add_param_group(self, param_group: Any) -> None:
        """Add parameters with their own options; see :meth:`Optimizer.add_param_group`."""
        self.rule.check(type(self).__name__, {**self.defaults, **param_group})
        super().add_param_group(param_group)

    def update_group(self, group: Group) -> None:
        """Run the rule of each parameter that has a gradient."""
        rule, states = self.rule, self.state
        slots = rule.slots(group)
        names, flags = tuple(slots), rule.flags(group)
        get = itemgetter("step", *names) if names else lambda state: (state["step"],)
        current: tuple[int, bool] | None = None  # most parameters are at the same step
        run: Any = None
        values: tuple[Any, ...] = ()
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            state, is_first = states[parameter], False
            try:
                step, *old = get(state)
            except KeyError:
                is_first = _fill_slots(parameter, state, slots)
                step, *old = get(state)
            step += 1
            if current != (step, is_first):
                current, numbers = (step, is_first), rule.numbers(group, step, is_first)
                run, values = rule.compiled(names, tuple(numbers), flags), tuple(numbers.values())
            if not gradient.is_contiguous():  # of a transposed weight: native entries take no other
                gradient = gradient.contiguous()
            result, *new = run(parameter, gradient, *old, *values)
            state["step"] = step
            for name, slot in zip(names, new):
                state[name] = slot
            parameter[...] = result


def _fill_slots(parameter: Tensor, state: dict[str, Any], slots: dict[str, float | Scalar]) -> bool:
    """Create the slots that a parameter lacks; return whether there were such."""
    is_first = False
    state.setdefault("step", 0)
    for name, first in slots.items():
        if name not in state:
            state[name] = first_value(parameter, first)
            is_first = True
    return is_first


def first_value(parameter: Tensor, first: float | Scalar) -> Tensor:
    """A slot of a parameter before the first step."""
    if isinstance(first, Scalar):
        return zeros((), dtype=parameter.dtype, device=parameter.device) + first.value
    return full_like(parameter, first)
