"""The optimizers that have a rule: SGD, Adam, RMSprop, ...

A step of a parameter is one jitted call of its rule, compiled once for each shape, and one write in place.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import ArgumentError
from ..operators.creation.full import full_like, zeros
from .optimizer import Group, Optimizer
from .rules import RULES, Rule, Scalar

if TYPE_CHECKING:
    from ..registry.types import Tensor

# PyTorch's options that choose among implementations; there is one here.
IMPLEMENTATIONS = ("foreach", "fused", "capturable")


class RuleOptimizer(Optimizer):
    """The base class of optimizers that have a rule.

    Args:
        params: the parameters, or groups of them.
        args, options: the options of the rule in their order, or by name; ``maximize`` by name. PyTorch's ``foreach``,
            ``fused``, ``capturable`` and ``differentiable=False`` are accepted and change nothing.

    Raises:
        ArgumentError: an option is unknown.
        ValueArgumentError: an option has a value outside its range.
    """

    rule: ClassVar[Rule]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        rule = RULES.get(cls.__name__) if cls.__module__ == __name__ else None
        if rule is not None:
            cls.rule = rule
            cls.__signature__ = _signature(rule)  # type: ignore[attr-defined]

    def __init__(self, params: Iterable[Any], *args: Any, **options: Any):
        name = type(self).__name__
        positional = [option for option in self.rule.defaults if option != "maximize"]
        if len(args) > len(positional):
            raise ArgumentError(f"{name} takes at most {len(positional)} positional options, not {len(args)}")
        given = dict(zip(positional, args))
        for option, value in options.items():
            if option in given:
                raise ArgumentError(f"{name} got two values for argument {option!r}")
            if option == "differentiable" and value:
                raise ArgumentError(
                    f"{name}: a step is not differentiable; use td.optim.{name.lower()}, which is a pure function"
                )
            if option in self.rule.defaults:
                given[option] = value
            elif option not in (*IMPLEMENTATIONS, "differentiable"):
                raise ArgumentError(f"{name} got an unexpected keyword argument {option!r}")
        super().__init__(params, {**self.rule.defaults, **given})

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


def _signature(rule: Rule) -> inspect.Signature:
    make, kinds = inspect.Parameter, inspect.Parameter
    parameters = [make("params", kinds.POSITIONAL_OR_KEYWORD)]
    for name, value in rule.defaults.items():
        kind = kinds.KEYWORD_ONLY if name == "maximize" else kinds.POSITIONAL_OR_KEYWORD
        parameters.append(make(name, kind, default=value))
    parameters.append(make("implementation", kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


class SGD(RuleOptimizer):
    """Stochastic gradient descent.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        momentum: the share of the velocity that is kept.
        dampening: the share of the gradient that the velocity leaves out, but for the first.
        weight_decay: a factor of the parameter that is added to its gradient.
        nesterov: whether to look ahead by the momentum.
        maximize: whether to go up.
        implementation: PyTorch's ``foreach``, ``fused`` and ``capturable``, which change nothing.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> optimizer = td.optim.SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.0, 0.0]
    """


class ASGD(RuleOptimizer):
    """Averaged stochastic gradient descent; ``state[p]["ax"]`` is the average of a parameter.

    Args:
        params: the parameters, or groups of them.
        lr: the first learning rate.
        lambd: the decay of the parameters, and of the learning rate.
        alpha: the power with which the learning rate falls.
        t0: the step at which the average starts.
        weight_decay: a factor of the parameter that is added to its gradient.
        maximize, implementation: as for :class:`SGD`.
    """


class Rprop(RuleOptimizer):
    """Resilient propagation: steps by the sign of the gradient, whose sizes grow while the sign stays.

    Args:
        params: the parameters, or groups of them.
        lr: the first step size.
        etas: the factors of a step size after a change of the sign, and after none.
        step_sizes: the smallest and the largest step size.
        maximize, implementation: as for :class:`SGD`.
    """


class Adagrad(RuleOptimizer):
    """Adagrad: steps by gradients divided by the root of the sum of all their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        lr_decay: how fast the learning rate falls with the steps.
        weight_decay: a factor of the parameter that is added to its gradient.
        initial_accumulator_value: the sum of the squares at the start.
        eps: a number added to the root.
        maximize, implementation: as for :class:`SGD`.
    """


class Adadelta(RuleOptimizer):
    """Adadelta: steps whose size follows the size of the steps before.

    Args:
        params: the parameters, or groups of them.
        lr: a factor of the steps.
        rho: how much of the averages of squares a step keeps.
        eps: a number added to the averages.
        weight_decay: a factor of the parameter that is added to its gradient.
        maximize, implementation: as for :class:`SGD`.
    """


class RMSprop(RuleOptimizer):
    """RMSprop: steps by gradients divided by the root of an average of their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        alpha: how much of the average a step keeps.
        eps: a number added to the root.
        weight_decay: a factor of the parameter that is added to its gradient.
        momentum: the share of the velocity that is kept.
        centered: whether to divide by the deviation from the average gradient.
        maximize, implementation: as for :class:`SGD`.
    """


class Adam(RuleOptimizer):
    """Adam: steps by averages of the gradients, divided by the root of averages of their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the two averages a step keeps.
        eps: a number added to the root.
        weight_decay: a factor of the parameter that is added to its gradient.
        amsgrad: whether to divide by the largest average of the squares so far.
        decoupled_weight_decay: whether the weight decay is that of :class:`AdamW`.
        maximize, implementation: as for :class:`SGD`.
    """


class AdamW(Adam):
    """Adam with a weight decay of the parameter itself; the arguments are those of :class:`Adam`."""


class Adamax(RuleOptimizer):
    """Adamax: Adam that divides by the largest absolute gradient, which decays.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the average and of the largest gradient a step keeps.
        eps: a number added to the absolute gradient.
        weight_decay: a factor of the parameter that is added to its gradient.
        maximize, implementation: as for :class:`SGD`.
    """


class NAdam(RuleOptimizer):
    """NAdam: Adam with Nesterov's momentum.

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, weight_decay: as for :class:`Adam`.
        momentum_decay: how fast the momentum rises to its final value.
        decoupled_weight_decay: whether the weight decay is that of :class:`AdamW`.
        maximize, implementation: as for :class:`SGD`.
    """


class RAdam(RuleOptimizer):
    """RAdam: Adam whose first steps are plain, until the average of the squares is reliable.

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, weight_decay: as for :class:`Adam`.
        decoupled_weight_decay: whether the weight decay is that of :class:`AdamW`.
        maximize, implementation: as for :class:`SGD`.
    """
