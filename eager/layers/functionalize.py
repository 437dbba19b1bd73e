"""``functionalize``: run a function without in-place mutation.

The implementation (:mod:`.functionalize_kernel`) is loaded at the first call, not with the package.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ... import lazy
from ...errors import ArgumentError, ValueArgumentError

if TYPE_CHECKING:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

functionalize_kernel = lazy.Module(".eager.layers.functionalize_kernel")

REMOVE = ("mutations", "mutations_and_views")


def functionalize(function: Callable[P, R], *, remove: str = "mutations") -> Callable[P, R]:
    """Return the same function without mutation: no operator that it calls writes into memory.

    Inside, operators that write, and views of written tensors, run as operators that return new tensors. At the end,
    the new values of mutated arguments and captured tensors are copied into them; if the function raises, they stay
    unchanged. Results that are views of arguments remain views of them.

    Args:
        function: a function of pytrees of tensors and other values.
        remove: ``"mutations"``, or ``"mutations_and_views"`` to turn views into copies too.

    Returns:
        A function with the same arguments and results.

    Raises:
        ArgumentError: ``function`` is not callable.
        ValueArgumentError: ``remove`` has another value.

    >>> import tandem as td
    >>> def f(x):
    ...     y = x * 2
    ...     y[0].add_(1)
    ...     return y
    >>> lines = []
    >>> with td.show_dispatch_trace(lines.append):
    ...     td.functionalize(f)(td.asarray([1.0, 2.0])).tolist()
    [3.0, 4.0]
    >>> any("add_" in line and "key=CPU" in line for line in lines)
    False
    """
    if not callable(function):
        raise ArgumentError(f"functionalize takes a function, not {function!r}")
    if remove not in REMOVE:
        raise ValueArgumentError(f"functionalize: remove is {' or '.join(map(repr, REMOVE))}, not {remove!r}")

    @functools.wraps(function)
    def pure(*args: P.args, **kwargs: P.kwargs) -> R:
        result: R = functionalize_kernel.run_functionalized(function, remove == REMOVE[1], args, kwargs)
        return result

    return pure
