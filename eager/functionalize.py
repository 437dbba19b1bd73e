"""``functionalize``: a function without its mutations.

The machinery (:mod:`.functionalize_run`) is loaded with the first call, not with the package.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import lazy
from ..errors import ArgumentError, ValueArgumentError

REMOVE = ("mutations", "mutations_and_views")


def functionalize(function: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The same function without mutation: no operator that it calls writes into memory.

    Inside, operators that write and views of what is written run as operators that make new tensors. At the end, what
    the function has written into its arguments, or into tensors that it captures, is written there; if it raises,
    nothing is. Results that are views of arguments are views of them.

    Args:
        function: a function of trees of tensors and anything else.
        remove: ``"mutations"``, or ``"mutations_and_views"``: then no two tensors inside share memory either.

    Returns:
        A function with the same arguments and results.

    Raises:
        ArgumentError: ``function`` is not callable.
        ValueArgumentError: there is no such thing to remove.

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
        raise ValueArgumentError(f"functionalize removes {' or '.join(map(repr, REMOVE))}, not {remove!r}")

    @functools.wraps(function)
    def pure(*args: Any, **kwargs: Any) -> Any:
        machinery = lazy.functionalize_machinery()
        return machinery.run_functionalized(function, remove == REMOVE[1], args, kwargs)

    return pure
