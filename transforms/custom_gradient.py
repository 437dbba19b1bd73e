"""``custom_gradient``: a function that gives its value and its own reverse rule."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .arguments import check_callable
from .custom_function import pair
from .custom_vjp import custom_vjp


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is differentiated by the rule that it gives along with its value.

    Args:
        fun: gives ``(value, vjp)``; ``vjp(cotangent)`` gives the gradients of the arguments, a tuple of them where
            there are several. It may reach what ``fun`` has computed.

    Returns:
        A function that gives the value alone.

    Raises:
        ArgumentError: ``fun`` is no function.
        RuleError: it gives no such pair, or ``vjp`` gives other gradients than wanted (when called).

    >>> import tandem as td
    >>> @td.custom_gradient
    ... def log1pexp(x):
    ...     e = td.exp(x)
    ...     return td.log(1 + e), lambda g: g * (1 - 1 / (1 + e))
    >>> td.grad(log1pexp)(100.0)
    tensor(1.)
    """
    check_callable("custom_gradient", fun)
    name = getattr(fun, "__qualname__", repr(fun))

    def both(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return pair(name, "a custom_gradient gives a pair (value, vjp)", fun(*args, **kwargs))

    def value_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return both(args, kwargs)[0]

    def backward(vjp: Callable[[Any], Any], cotangent: Any) -> Any:
        found = vjp(cotangent)
        return found if isinstance(found, tuple) else (found,), None

    value_of.__qualname__ = name
    ruled = custom_vjp(value_of)
    ruled.defvjp(both, backward)

    @functools.wraps(fun)
    def value(*args: Any, **kwargs: Any) -> Any:
        return ruled(args, kwargs)

    return value
