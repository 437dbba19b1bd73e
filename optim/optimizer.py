"""Optimizer: the base class of optimizers with PyTorch's ``step()``: groups, state by parameter, hooks."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..eager.autograd.grad_modes import enable_grad, no_grad
from ..eager.tensor.construct import asarray
from ..eager.tensor.tensor import Tensor
from ..errors import ArgumentError, ValueArgumentError
from ..operators.creation.full import zeros_like
from ..registry.values import describe

Group = dict[str, Any]
Hook = Callable[..., Any]


class HookHandle:
    """A registered hook; :meth:`remove` removes it."""

    def __init__(self, hooks: dict[int, Hook], hook: Hook):
        self._hooks, self._key = hooks, max(hooks, default=0) + 1
        hooks[self._key] = hook

    def remove(self) -> None:
        """Call the hook no more."""
        self._hooks.pop(self._key, None)


def _run_with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` that calls the optimizer's hooks before and after."""

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for hook in list(self._pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in list(self._post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return run


class Optimizer:
    """The base class of optimizers.

    Args:
        params: parameters, pairs of name and parameter, or dicts with ``"params"`` and options of the group.
        defaults: options of groups that do not set them.

    Attributes:
        param_groups: dicts with ``"params"`` and the options, which may be changed between steps.
        state: for each parameter a dict of its slots.

    A subclass defines ``step``, or ``update_group``, which :meth:`step` calls.

    >>> import tandem as td
    >>> class SignDescent(td.optim.Optimizer):
    ...     def update_group(self, group):
    ...         for p in group["params"]:
    ...             p.sub_(td.sign(p.grad) * group["lr"])
    >>> x = td.asarray([1.0, -2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> SignDescent([x], {"lr": 0.5}).step()
    >>> x.tolist()
    [0.5, -1.5]
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _run_with_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, object]):
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self._pre_hooks: dict[int, Hook] = {}
        self._post_hooks: dict[int, Hook] = {}
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
        known_names = (*self.defaults, "params", "name", "initial_lr")  # the last is that of a schedule
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
                self.update_group(group)
        return loss

    def update_group(self, group: Group) -> None:
        """Update the parameters of a group; gradients are off."""
        raise NotImplementedError

    # -- hooks -------------------------------------------------------------------------------------------------------
    def register_step_pre_hook(self, hook: Hook) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other arguments.

        Returns:
            A handle whose ``remove()`` removes the hook.
        """
        return HookHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> HookHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step.

        Returns:
            A handle whose ``remove()`` removes the hook.
        """
        return HookHandle(self._post_hooks, hook)

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
        self.state = defaultdict(dict)
        for number, slots in state_dict["state"].items():
            self.state[by_number[int(number)]] = {
                name: int(value) if name == "step" else load_slot(value)
                for name, value in slots.items()
                if value is not None
            }

    def __repr__(self) -> str:
        options = (
            ", ".join(f"{name}={value}" for name, value in group.items() if name != "params")
            for group in self.param_groups
        )
        return f"{type(self).__name__}({'; '.join(options)})"


def load_slot(value: Any) -> Any:
    """A copy of a value of a state: tensors of arrays and tensors, numbers as these are."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [load_slot(item) for item in value]
    return asarray(value, copy=True)


Optimizer.step = _run_with_hooks(Optimizer.step)  # type: ignore[method-assign]
