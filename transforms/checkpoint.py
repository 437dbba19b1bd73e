"""``checkpoint``: recompute residuals in the backward pass instead of saving them; and policies that save some."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from .. import lazy
from ..eager.layers.level_stack import stack
from ..errors import ArgumentError
from .arguments import check_callable

if TYPE_CHECKING:
    from ..registry.operator import Operator
    from ..registry.types import Args, Function, Kwargs, Pytree

custom_calls = lazy.Module(".control.custom_calls")
recompute = lazy.Module(".eager.autograd.recompute")

P = ParamSpec("P")
R = TypeVar("R")
Policy = Callable[..., bool]


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Iterable[int] = (),
) -> Callable[P, R]: ...


@overload
def checkpoint(
    fun: None = None,
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Iterable[int] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Function | None = None,
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Iterable[int] = (),
) -> Function:
    """Trade time for memory: drop the residuals of a function and recompute them in the backward pass.

    Works with ``grad``, ``vjp`` and ``backward()``, nests with all transforms, and works under ``jit``, where common
    subexpression elimination does not merge the recomputation with the forward pass.

    Args:
        fun: a deterministic function of pytrees of tensors that does not write to tensors created outside it; None to
            use this with options as a decorator. It may capture tensors in its closure.
        policy: which results of operators are saved instead of recomputed: one of ``td.checkpoint_policies``, or a
            function ``policy(op, args, kwargs)`` of an operator's call that returns a bool; None saves none.
        prevent_cse, static_argnums: accepted for compatibility with JAX, without effect. The recomputation is never
            merged with the forward pass, and arguments of any type are passed to ``fun`` unchanged.

    Returns:
        A function with the same arguments, results and derivatives.

    Raises:
        ArgumentError: ``fun`` or ``policy`` is not callable.
        VersionError: an argument was written in place before the backward pass (raised there).
        AutogradError: the recomputation called other operators than the forward pass (raised in the backward pass).

    Source: ``jax.checkpoint``.

    >>> import tandem as td
    >>> layer = td.checkpoint(lambda w, x: td.tanh(x @ w))
    >>> w, x = td.ones((2, 2)), td.ones((1, 2))
    >>> td.grad(lambda w: layer(w, layer(w, x)).sum())(w).shape
    (2, 2)
    """
    if fun is None:
        return lambda function: checkpoint(
            function, policy=policy, prevent_cse=prevent_cse, static_argnums=static_argnums
        )
    check_callable("checkpoint", fun)
    if policy is not None and not callable(policy):
        raise ArgumentError(f"checkpoint: policy is a function policy(op, args, kwargs), not {policy!r}")
    function = fun

    @functools.wraps(function)
    def checkpointed(*args: Pytree, **kwargs: Pytree) -> Pytree:
        if policy is everything_saveable:
            return function(*args, **kwargs)
        saved = None if policy is nothing_saveable else policy
        if stack.in_body and len(stack.levels) <= stack.floor:
            return custom_calls.call_checkpointed(function, args, kwargs, saved)
        return recompute.RematFrame(function, args, kwargs, saved).run()

    return checkpointed


# -- policies ----------------------------------------------------------------------------------------------------------
def nothing_saveable(op: Operator, args: Args, kwargs: Kwargs) -> bool:
    """Recompute every result, as without a policy."""
    return False


def everything_saveable(op: Operator, args: Args, kwargs: Kwargs) -> bool:
    """Save every result, as without ``checkpoint``."""
    return True


def dots_saveable(op: Operator, args: Args, kwargs: Kwargs) -> bool:
    """Save the results of matrix products; recompute all others."""
    return getattr(op.decl, "kind", "") == "contraction"


def dots_with_no_batch_dims_saveable(op: Operator, args: tuple[Any, ...], kwargs: Kwargs) -> bool:
    """Save the results of matrix products in which an operand has no batch dimensions; recompute all others."""
    return dots_saveable(op, args, kwargs) and min(len(args[0].shape), len(args[1].shape)) <= 2


def save_only_these_names(*names: str) -> Policy:
    """Create a policy that saves the values named by :func:`tandem.checkpoint_name` with one of these names."""
    saved = frozenset(names)
    return lambda op, args, kwargs: op.name == "td::checkpoint_name" and args[1] in saved


def save_any_names_but_these(*names: str) -> Policy:
    """Create a policy that saves the values named by :func:`tandem.checkpoint_name` with any other name."""
    excluded = frozenset(names)
    return lambda op, args, kwargs: op.name == "td::checkpoint_name" and args[1] not in excluded


def save_from_both_policies(one: Policy, two: Policy) -> Policy:
    """Create a policy that saves the results that at least one of two policies saves."""
    return lambda op, args, kwargs: one(op, args, kwargs) or two(op, args, kwargs)


# Aliases with the names of JAX.
remat = checkpoint
checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
