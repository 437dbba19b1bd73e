"""``checkpoint``: recompute residuals in the backward pass instead of saving them; and policies that save some."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from .. import lazy
from ..eager.layers.level_stack import stack
from ..errors import ArgumentError
from .arguments import check_callable

Policy = Callable[..., bool]


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Iterable[int] = (),
) -> Any:
    """Trade time for memory: drop the residuals of a function and recompute them in the backward pass.

    Works with ``grad``, ``vjp`` and ``backward()``, nests with all transforms, and holds under ``jit`` as well, where
    the second computation is kept apart from the first.

    Args:
        fun: a function that gives the same result each time, and writes nothing from outside; None to use this with
            options as a decorator. It may reach tensors by closures.
        policy: which results of operators are kept nevertheless: one of ``td.checkpoint_policies``, or a function
            ``policy(op, args, kwargs)`` of an operator's call; None: none are.
        prevent_cse, static_argnums: accepted for the sake of programs written for JAX. The second computation is always
            kept apart from the first, and arguments of any kind are passed on as they are.

    Returns:
        A function with the same arguments, results and derivatives.

    Raises:
        VersionError: an argument was written in place before the backward pass (raised there).
        AutogradError: the function did something else the second time (raised in the backward pass).

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
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if policy is everything_saveable:
            return function(*args, **kwargs)
        kept = None if policy is nothing_saveable else policy
        if stack.in_body and len(stack.levels) <= stack.floor:
            return lazy.control_machinery("custom_calls").call_checkpointed(function, args, kwargs, kept)
        return lazy.recomputation().RematFrame(function, args, kwargs, kept).run()

    return checkpointed


# -- policies ----------------------------------------------------------------------------------------------------------
def nothing_saveable(op: Any, args: Any, kwargs: Any) -> bool:
    """Everything is computed again; as no policy."""
    return False


def everything_saveable(op: Any, args: Any, kwargs: Any) -> bool:
    """Nothing is computed again; as without ``checkpoint``."""
    return True


def dots_saveable(op: Any, args: Any, kwargs: Any) -> bool:
    """Products of matrices are kept, all else is computed again."""
    return getattr(op.decl, "kind", "") == "contraction"


def dots_with_no_batch_dims_saveable(op: Any, args: Any, kwargs: Any) -> bool:
    """Products with a matrix or a vector are kept, those of stacks of matrices with each other are computed again."""
    return dots_saveable(op, args, kwargs) and min(len(args[0].shape), len(args[1].shape)) <= 2


def save_only_these_names(*names: str) -> Policy:
    """What has one of these names (:func:`tandem.checkpoint_name`) is kept, all else is computed again."""
    wanted = frozenset(names)
    return lambda op, args, kwargs: op.name == "td::checkpoint_name" and args[1] in wanted


def save_any_names_but_these(*names: str) -> Policy:
    """What has a name, and none of these, is kept, all else is computed again."""
    others = frozenset(names)
    return lambda op, args, kwargs: op.name == "td::checkpoint_name" and args[1] not in others


def save_from_both_policies(one: Policy, two: Policy) -> Policy:
    """What one policy or the other keeps."""
    return lambda op, args, kwargs: one(op, args, kwargs) or two(op, args, kwargs)


# By the names that JAX has for them as well.
checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
