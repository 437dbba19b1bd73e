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
from typing import TYPE_CHECKING, Any

from .. import pytree
from ..named_tuple import NamedTuple
from ..operators.creation.full import zeros, zeros_like
from ..operators.elementwise.exponential import sqrt
from ..operators.elementwise.selection import clip, minimum
from ..operators.reductions.folds import sum
from ..operators.shape.joining import stack
from ..registry.dtypes import int32
from . import rules

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


def _zeros(params: Pytree) -> Any:
    return pytree.tree_map(zeros_like, params)


def _make_optimizer(
    slot_count: int, rule: Callable[..., tuple[Tensor, ...]], rate: Rate
) -> GradientTransformation:
    """The optimizer of ``rule(p, g, *slots, step, lr)``, which returns the new parameter and slots."""

    def init(params: Pytree) -> State:
        return State(zeros((), dtype=int32), tuple(_zeros(params) for _ in range(slot_count)))

    def update(grads: Pytree, state: State, params: Pytree) -> tuple[Any, State]:
        lr = rate(state.step) if callable(rate) else rate
        step = state.step + 1
        leaves, treedef = pytree.flatten(params)
        others = [treedef.flatten_up_to(tree) for tree in (grads, *state.slots)]
        updates, slots = [], []
        for p, g, *old in zip(leaves, *others, strict=True):
            new, *kept = rule(p, g, *old, step, lr)
            updates.append(new - p)
            slots.append(kept)
        trees = [treedef.unflatten(column) for column in zip(*slots)] if leaves else list(state.slots)
        return treedef.unflatten(updates), State(step, tuple(trees[:slot_count]))

    return GradientTransformation(init, update)


def sgd(
    learning_rate: Rate, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
) -> GradientTransformation:
    """Gradient descent; see :class:`.optimizer.SGD`.

    Args:
        learning_rate: a number, or a function of the number of steps so far.
        momentum, nesterov, weight_decay: as for :class:`.optimizer.SGD`.
    """

    def rule(p: Tensor, g: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        *slots, _, lr = rest
        velocity = slots[0] if slots else None
        return rules.sgd(p, g, velocity, lr, momentum, 0.0, weight_decay, nesterov)  # type: ignore[return-value]

    return _make_optimizer(1 if momentum else 0, rule, learning_rate)


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
) -> GradientTransformation:
    """Adam; see :class:`.optimizer.Adam`.

    Args:
        learning_rate: a number, or a function of the number of steps so far.
        b1, b2: how much of the two averages a step keeps.
        eps, weight_decay: as for :class:`.optimizer.Adam`.
        decoupled: whether the weight decay is that of :class:`.optimizer.AdamW`.
    """

    def rule(
        p: Tensor, g: Tensor, first: Tensor, second: Tensor, step: Tensor, lr: Any
    ) -> tuple[Tensor, ...]:
        count = step.to(p.dtype)
        corrections = (1 - b1**count, sqrt(1 - b2**count))
        result = rules.adam(
            p, g, first, second, None, lr, b1, b2, eps, weight_decay, *corrections, decoupled=decoupled
        )
        return result[:3]

    return _make_optimizer(2, rule, learning_rate)


def adamw(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-2
) -> GradientTransformation:
    """Adam with a weight decay of the parameter itself; see :class:`.optimizer.AdamW`."""
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
