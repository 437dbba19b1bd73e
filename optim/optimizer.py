"""Optimizers with PyTorch's ``step()``: param groups, state by parameter, ``state_dict``.

A step of a parameter is one jitted call of its rule, compiled once for each shape, and one write in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..eager.autograd.grad_modes import enable_grad, no_grad
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, ValueArgumentError
from ..jit.api import jit
from ..operators.creation.full import zeros_like
from ..registry.values import describe
from . import rules

Group = dict[str, Any]


class Optimizer:
    """The base class of optimizers.

    Args:
        params: parameters, pairs of name and parameter, or dicts with ``"params"`` and options of the group.
        defaults: options of groups that do not set them.

    Attributes:
        param_groups: dicts with ``"params"`` and the options, which may be changed between steps.
        state: for each parameter a dict of its slots.
    """

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, object]):
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        if isinstance(params, Tensor):
            raise ArgumentError(
                "an optimizer takes an iterable of parameters, not one tensor; pass [parameter]"
            )
        given = list(params)
        if not given:
            raise ValueArgumentError("an optimizer takes at least one parameter")
        groups = given if isinstance(given[0], dict) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters with their own options.

        Raises:
            ArgumentError: one is not a tensor, or an option is unknown.
            ValueArgumentError: one is not a leaf, or in another group already.
        """
        group = {**self.defaults, **param_group}
        given = group["params"]
        listed = [given] if isinstance(given, Tensor) else list(given)
        group["params"] = [item[1] if isinstance(item, tuple) else item for item in listed]
        known_names = (*self.defaults, "params", "initial_lr")  # the last is that of a schedule
        unknown = [name for name in param_group if name not in known_names]
        if unknown:
            raise ArgumentError(f"{type(self).__name__}: unknown option {', '.join(unknown)}")
        known = {id(parameter) for other in self.param_groups for parameter in other["params"]}
        for parameter in group["params"]:
            if not isinstance(parameter, Tensor):
                raise ArgumentError(f"{type(self).__name__} takes tensors, not {describe(parameter)}")
            if not parameter.is_leaf:
                raise ValueArgumentError(
                    f"{type(self).__name__} takes leaves, not the result of an operation: {describe(parameter)}"
                )
            if id(parameter) in known:
                raise ValueArgumentError(f"{type(self).__name__}: a parameter is in the groups twice")
            known.add(id(parameter))
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad = zeros_like(parameter)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient.

        Args:
            closure: a function that computes the loss again, with its gradients.

        Returns:
            The result of ``closure``, or None.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is not None:
                        state = self.state.get(parameter)
                        if state is None:
                            state = self.state[parameter] = self.init_state(parameter, group)
                        if (
                            not gradient.is_contiguous()
                        ):  # of a transposed weight: native entries take no other
                            gradient = gradient.contiguous()
                        parameter[...] = self.update(parameter, gradient, state, group)
        return loss

    def init_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """The slots of a parameter before its first step."""
        raise NotImplementedError

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> Tensor:
        """The new value of a parameter; changes its slots."""
        raise NotImplementedError

    # -- state -------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """The slots by the number of the parameter, and the options of the groups, as in PyTorch."""
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        numbers = {id(parameter): number for number, parameter in enumerate(parameters)}
        groups = [
            {**group, "params": [numbers[id(parameter)] for parameter in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(parameter)]: dict(slots) for parameter, slots in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned, of this class or of PyTorch's with arrays as values.

        Raises:
            ValueArgumentError: the groups have other numbers of parameters.
        """
        groups = state_dict["param_groups"]
        if [len(group["params"]) for group in groups] != [
            len(group["params"]) for group in self.param_groups
        ]:
            raise ValueArgumentError("load_state_dict: the groups have other numbers of parameters")
        by_number: dict[int, Tensor] = {}
        for group, saved in zip(self.param_groups, groups):
            by_number.update(zip(saved["params"], group["params"]))
            group.update({name: value for name, value in saved.items() if name in group and name != "params"})
        self.state = {
            by_number[int(number)]: {name: _load_slot(name, value) for name, value in slots.items()}
            for number, slots in state_dict["state"].items()
        }

    def __repr__(self) -> str:
        options = (
            ", ".join(f"{name}={value}" for name, value in group.items() if name != "params")
            for group in self.param_groups
        )
        return f"{type(self).__name__}({'; '.join(options)})"


def _load_slot(name: str, value: Any) -> Any:
    if name == "step":
        return int(value)
    return None if value is None else asarray(value, copy=True)


def check_options(name: str, **options: float) -> None:
    """Check that options are not negative."""
    for option, value in options.items():
        if not value >= 0:
            raise ValueArgumentError(f"{name}: {option} must not be negative, not {value}")


def check_betas(name: str, betas: tuple[float, float]) -> None:
    """Check that both decay rates are in [0, 1)."""
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueArgumentError(f"{name}: betas must be two numbers of at least 0 and below 1, not {betas}")


def check_implementation(name: str, options: dict[str, bool | None]) -> None:
    """Check the names of PyTorch's options that choose among implementations; there is one here."""
    for option in options:
        if option not in ("foreach", "fused", "capturable"):
            raise ArgumentError(f"{name} got an unexpected keyword argument {option!r}")


_sgd = jit(rules.sgd, static_argnames=("nesterov", "maximize"))
_adam = jit(rules.adam, static_argnames=("decoupled", "maximize"))
_rmsprop = jit(rules.rmsprop, static_argnames=("maximize",))


class SGD(Optimizer):
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

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ):
        check_implementation("SGD", implementation)
        check_options("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueArgumentError("SGD: nesterov needs momentum, and no dampening")
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**options, "nesterov": nesterov, "maximize": maximize})

    def init_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """The momentum buffer; None before the first step."""
        return {"momentum_buffer": None}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> Tensor:
        """One step of gradient descent."""
        momentum, dampening = group["momentum"], group["dampening"]
        velocity = state["momentum_buffer"]
        if momentum and velocity is None:
            velocity, dampening = zeros_like(parameter), 0.0
        result, state["momentum_buffer"] = _sgd(
            parameter,
            gradient,
            velocity if momentum else None,
            float(group["lr"]),
            float(momentum),
            float(dampening),
            float(group["weight_decay"]),
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        return result


class Adam(Optimizer):
    """Adam: steps by averages of the gradients, divided by the root of averages of their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the two averages a step keeps.
        eps: a number added to the root.
        weight_decay: a factor of the parameter that is added to its gradient.
        amsgrad: whether to divide by the largest average of the squares so far.
        maximize: whether to go up.
        implementation: PyTorch's ``foreach``, ``fused`` and ``capturable``, which change nothing.
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ):
        name = type(self).__name__
        check_implementation(name, implementation)
        check_options(name, lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(name, betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "amsgrad": amsgrad, "maximize": maximize})

    def init_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """Zeros, and no steps yet."""
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        return {"step": 0, **{name: zeros_like(parameter) for name in names}}

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> Tensor:
        """One step of Adam."""
        step = state["step"] = state["step"] + 1
        beta1, beta2 = group["betas"]
        result, state["exp_avg"], state["exp_avg_sq"], largest = _adam(
            parameter,
            gradient,
            state["exp_avg"],
            state["exp_avg_sq"],
            state.get("max_exp_avg_sq"),
            float(group["lr"]),
            float(beta1),
            float(beta2),
            float(group["eps"]),
            float(group["weight_decay"]),
            1.0 - beta1**step,
            math.sqrt(1.0 - beta2**step),
            decoupled=self.decoupled,
            maximize=group["maximize"],
        )
        if largest is not None:
            state["max_exp_avg_sq"] = largest
        return result


class AdamW(Adam):
    """Adam with a weight decay of the parameter itself; the arguments are those of :class:`Adam`."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **implementation)


class RMSprop(Optimizer):
    """RMSprop: steps by gradients divided by the root of an average of their squares.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        alpha: how much of the average a step keeps.
        eps: a number added to the root.
        weight_decay: a factor of the parameter that is added to its gradient.
        momentum: the share of the velocity that is kept.
        centered: whether to divide by the deviation from the average gradient.
        maximize: whether to go up.
        implementation: PyTorch's ``foreach``, ``fused`` and ``capturable``, which change nothing.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **implementation: bool | None,
    ):
        check_implementation("RMSprop", implementation)
        check_options("RMSprop", lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, {**options, "centered": centered, "maximize": maximize})

    def init_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """Zeros, and no steps yet."""
        state = {"step": 0, "square_avg": zeros_like(parameter)}
        if group["centered"]:
            state["grad_avg"] = zeros_like(parameter)
        if group["momentum"]:
            state["momentum_buffer"] = zeros_like(parameter)
        return state

    def update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group) -> Tensor:
        """One step of RMSprop."""
        state["step"] += 1
        result, *slots = _rmsprop(
            parameter,
            gradient,
            state["square_avg"],
            state.get("grad_avg"),
            state.get("momentum_buffer"),
            float(group["lr"]),
            float(group["alpha"]),
            float(group["eps"]),
            float(group["weight_decay"]),
            float(group["momentum"]),
            maximize=group["maximize"],
        )
        names = ("square_avg", "grad_avg", "momentum_buffer")
        state.update({name: slot for name, slot in zip(names, slots) if slot is not None})
        return result
