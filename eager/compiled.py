"""Functions of this package that run as compiled code when the same kinds of calls repeat."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar, cast

from .. import lazy
from ..registry.native_type import NativeCallable, accept_entries
from .hot_calls import HotCalls

fastpath = lazy.Module(".backends.cpu.fastpath")

F = TypeVar("F", bound=Callable[..., Any])


@accept_entries
class HotFunction(NativeCallable):  # type: ignore[misc]
    """A pure function whose hot calls are compiled; its native entry runs them."""

    def __init__(self, fn: Callable[..., Any]):
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._run: Callable[..., Any] | None = None

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        """Run a call that the native entry does not take."""
        run = self._run
        if run is None:
            is_native = not fastpath.why_off()
            run = self._run = HotCalls(self, self._fn, self._fn).call if is_native else self._fn
        return run(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> object:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)


def compile_when_hot(fn: F) -> F:
    """Let calls of a function run as compiled code when they are hot, forward and backward pass.

    The function must be pure: its result depends on its arguments alone, and it writes into none of them. Calls that
    are traced, batched, observed or intercepted run the function itself.

    Args:
        fn: the function; its arguments are tensors, constants, functions, and tuples of those.

    >>> import tandem as td
    >>> from tandem.eager.compiled import compile_when_hot
    >>> @compile_when_hot
    ... def scale(x, factor):
    ...     return x * factor
    >>> scale(td.asarray([1.0, 2.0]), 3.0).tolist()
    [3.0, 6.0]
    """
    return cast(F, HotFunction(fn))
