"""``custom_gradient``: a function that returns its value and its own reverse rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .arguments import check_callable
from .custom_function import check_pair
from .custom_vjp import custom_vjp

if TYPE_CHECKING:
    from ..registry.types import Args, Function, Kwargs, Pytree

R = TypeVar("R")


def custom_gradient(fun: Callable[..., tuple[R, Function]]) -> Callable[..., R]:
    """Differentiate a function by the rule that it returns along with its value.

    Args:
        fun: returns ``(value, vjp)``; ``vjp(cotangent)`` returns the gradient of the argument, or a tuple of gradients
            if there are several. It may use what ``fun`` has computed.

    Returns:
        A function that returns the value alone.

    Raises:
        ArgumentError: ``fun`` is not a function.
        RuleError: it does not return such a pair, or ``vjp`` returns wrong gradients (when called).

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

    def both(args: Args, kwargs: Kwargs) -> Sequence[object]:
        return check_pair(name, "a custom_gradient must return a pair (value, vjp)", fun(*args, **kwargs))

    def value_of(args: Args, kwargs: Kwargs) -> R:
        result: Any = both(args, kwargs)[0]
        return result  # type: ignore[no-any-return]

    def backward(vjp: Function, cotangent: Pytree) -> tuple[object, ...]:
        result = vjp(cotangent)
        return result if isinstance(result, tuple) else (result,), None

    value_of.__qualname__ = name
    ruled = custom_vjp(value_of)
    ruled.defvjp(both, backward)

    @functools.wraps(fun)
    def value(*args: object, **kwargs: object) -> R:
        return ruled(args, kwargs)

    return value
