"""Optimizers as pairs of pure functions over pytrees, as in optax: ``init`` and ``update``.

>>> import tandem as td
>>> optimizer = td.optim.chain(td.optim.clip_by_global_norm(1.0), td.optim.adam(0.1))
>>> params = {"w": td.ones(2)}
>>> state = optimizer.init(params)
>>> @td.jit
... def step(params, state):
...     grads = td.grad(lambda p: (p["w"] ** 2).sum())(params)
...     updates, state = optimizer.update(grads, state, params)
...     return td.optim.apply_updates(params, updates), state
>>> params, state = step(params, state)
>>> [round(x, 3) for x in params["w"].tolist()]
[0.9, 0.9]
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..errors import ArgumentError
from ..named_tuple import NamedTuple
from ..operators.creation.full import zeros
from ..operators.declare.shape_rules import is_tensor
from ..operators.elementwise.casting import astype
from ..operators.elementwise.exponential import sqrt
from ..operators.elementwise.selection import clip, minimum
from ..operators.reductions.folds import sum
from ..operators.shape.joining import stack
from ..registry.dtypes import float64, int32
from .rule_optimizer import first_value
from .rules import RULES, Rule

if TYPE_CHECKING:
    from ..registry.types import Pytree, Tensor

Schedule = Callable[["Tensor"], "Tensor"]
Rate = float | Schedule


class GradientTransformation(NamedTuple):
    """A pair of pure functions.

    Attributes:
        init: ``init(params)`` returns the first state, a pytree of tensors.
        update: ``update(grads, state, params)`` returns ``(updates, state)``; :func:`apply_updates` adds the updates.
    """

    init: Callable[[Pytree], Any]
    update: Callable[..., tuple[Any, Any]]


class State(NamedTuple):
    """The state of an optimizer.

    Attributes:
        step: the number of steps so far.
        slots: for each tensor that the rule keeps, a tree of the structure of the parameters.
    """

    step: Tensor
    slots: tuple[Any, ...]


def apply_updates(params: Pytree, updates: Pytree) -> Any:
    """The parameters plus the updates, leaf by leaf."""
    return pytree.tree_map(lambda p, u: p + u, params, updates)


def _make_optimizer(rule: Rule, rate: Rate, options: dict[str, Any]) -> GradientTransformation:
    """The pure form of a rule."""
    rule.check(type(rule).__name__.lower(), {**options, **({} if callable(rate) else {"lr": rate})})
    first_rate = rate(zeros((), dtype=int32)) if callable(rate) else rate
    first_values = rule.slots({**options, "lr": first_rate})
    flags = rule.flags(options)

    def init(params: Pytree) -> State:
        return State(
            zeros((), dtype=int32),
            tuple(
                pytree.tree_map(partial(first_value, first=first), params) for first in first_values.values()
            ),
        )

    def update(grads: Pytree, state: State, params: Pytree) -> tuple[Any, State]:
        lr = rate(state.step) if callable(rate) else rate
        step = state.step + 1
        numbers = rule.numbers({**options, "lr": lr}, step.to(float64), step == 1, lambda number: number)
        leaves, treedef = pytree.flatten(params)
        others = [treedef.flatten_up_to(tree) for tree in (grads, *state.slots)]
        updates, slots = [], []
        for p, g, *old in zip(leaves, *others, strict=True):
            cast = {name: astype(x, p.dtype) if is_tensor(x) else x for name, x in numbers.items()}
            new, *kept = rule.run(p, g, dict(zip(first_values, old)), cast, flags)
            updates.append(new - p)
            slots.append(kept)
        trees = [treedef.unflatten(column) for column in zip(*slots)] if leaves else list(state.slots)
        return treedef.unflatten(updates), State(step, tuple(trees))

    return GradientTransformation(init, update)


def _pure_form(name: str) -> Callable[..., GradientTransformation]:
    """The function that makes the pure form of a rule from its options."""
    rule = RULES[name]

    def make(learning_rate: Rate = rule.defaults["lr"], **options: Any) -> GradientTransformation:
        unknown = [option for option in options if option not in rule.defaults or option == "lr"]
        if unknown:
            raise ArgumentError(f"{name.lower()} got an unexpected keyword argument {unknown[0]!r}")
        return _make_optimizer(rule, learning_rate, {**rule.defaults, **options})

    make.__name__ = make.__qualname__ = name.lower()
    make.__module__ = __name__
    make.__doc__ = f"""The pure form of :class:`tandem.optim.{name}`.

    Args:
        learning_rate: a number, or a function of the number of steps so far.
        options: as for :class:`tandem.optim.{name}`, by name.
    """
    return make


asgd = _pure_form("ASGD")
rprop = _pure_form("Rprop")
adagrad = _pure_form("Adagrad")
adadelta = _pure_form("Adadelta")
rmsprop = _pure_form("RMSprop")
adamax = _pure_form("Adamax")
nadam = _pure_form("NAdam")
radam = _pure_form("RAdam")


def sgd(
    learning_rate: Rate,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    *,
    dampening: float = 0.0,
    maximize: bool = False,
) -> GradientTransformation:
    """The pure form of :class:`tandem.optim.SGD`.

    Args:
        learning_rate: a number, or a function of the number of steps so far.
        momentum, nesterov, weight_decay, dampening, maximize: as for :class:`tandem.optim.SGD`.
    """
    options = {"momentum": momentum, "nesterov": nesterov, "weight_decay": weight_decay}
    options.update(dampening=dampening, maximize=maximize)
    return _make_optimizer(RULES["SGD"], learning_rate, options)


def momentum(learning_rate: Rate, decay: float = 0.9, nesterov: bool = False) -> GradientTransformation:
    """Gradient descent with momentum: :func:`sgd` with ``momentum=decay``."""
    return sgd(learning_rate, decay, nesterov)


def adam(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    *,
    decoupled: bool = False,
    amsgrad: bool = False,
    maximize: bool = False,
) -> GradientTransformation:
    """The pure form of :class:`tandem.optim.Adam`.

    Args:
        learning_rate: a number, or a function of the number of steps so far.
        b1, b2: how much of the two averages a step keeps.
        eps, weight_decay, amsgrad, maximize: as for :class:`tandem.optim.Adam`.
        decoupled: whether the weight decay is that of :class:`tandem.optim.AdamW`.
    """
    options = {"betas": (b1, b2), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
    options.update(decoupled_weight_decay=decoupled, maximize=maximize)
    return _make_optimizer(RULES["Adam"], learning_rate, options)


def adamw(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-2
) -> GradientTransformation:
    """Adam with a weight decay of the parameter itself; see :class:`tandem.optim.AdamW`."""
    return adam(learning_rate, b1, b2, eps, weight_decay, decoupled=True)


# -- clipping, chains --------------------------------------------------------------------------------------------------
def global_norm(tree: Pytree) -> Tensor:
    """The root of the sum of the squares of all elements."""
    return sqrt(sum(stack([sum(leaf * leaf) for leaf in pytree.leaves(tree)])))


def clip_by_global_norm(max_norm: float) -> GradientTransformation:
    """Scale the gradients so that their :func:`global_norm` is at most ``max_norm``."""

    def update(grads: Pytree, state: tuple[()], params: Pytree = None) -> tuple[Any, tuple[()]]:
        factor = minimum(max_norm / (global_norm(grads) + 1e-6), 1.0)
        return pytree.tree_map(lambda g: g * factor, grads), state

    return GradientTransformation(lambda params: (), update)


def clip_by_value(max_delta: float) -> GradientTransformation:
    """Clip the elements of the gradients to the interval from ``-max_delta`` to ``max_delta``."""

    def update(grads: Pytree, state: tuple[()], params: Pytree = None) -> tuple[Any, tuple[()]]:
        return pytree.tree_map(lambda g: clip(g, -max_delta, max_delta), grads), state

    return GradientTransformation(lambda params: (), update)


def chain(*transforms: GradientTransformation) -> GradientTransformation:
    """Apply transformations one after the other, each to the updates of the one before."""

    def init(params: Pytree) -> tuple[Any, ...]:
        return tuple(transform.init(params) for transform in transforms)

    def update(grads: Pytree, state: tuple[Any, ...], params: Pytree = None) -> tuple[Any, tuple[Any, ...]]:
        states = []
        for transform, old in zip(transforms, state, strict=True):
            grads, new = transform.update(grads, old, params)
            states.append(new)
        return grads, tuple(states)

    return GradientTransformation(init, update)
