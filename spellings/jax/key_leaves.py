"""Functions of pytrees for which random keys are leaves, as those of JAX; in tandem's they are containers of words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..operators.random.typed_keys import Key


def _is_key(node: object) -> bool:
    return type(node) is Key


def keep_keys(function: Any) -> Any:  # noqa: ANN401
    """The function with ``is_leaf``, if it takes one, true of keys too; anything else unchanged.

    >>> import tandem.jax as jax
    >>> keys = {"w": jax.random.key(0)}
    >>> jax.tree.map(lambda key, x: jax.random.normal(key, x.shape).shape, keys, {"w": jax.numpy.ones(2)})
    {'w': (2,)}
    """
    if not inspect.isfunction(function) or "is_leaf" not in inspect.signature(function).parameters:
        return function
    position = [*inspect.signature(function).parameters].index("is_leaf")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if len(args) > position and not _is_variadic(function):
            args = (*args[:position], _or_key(args[position]), *args[position + 1 :])
        else:
            kwargs["is_leaf"] = _or_key(kwargs.get("is_leaf"), kwargs.get("is_leaf_takes_path", False))
        return function(*args, **kwargs)

    return call


def _is_variadic(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)


def _or_key(is_leaf: Callable[..., bool] | None, takes_path: bool = False) -> Callable[..., bool]:
    """A predicate that is true of keys, and where another one is; called with a path first where that one is."""
    if is_leaf is None:
        return (lambda _, node: _is_key(node)) if takes_path else _is_key
    return lambda *args: _is_key(args[-1]) or is_leaf(*args)
