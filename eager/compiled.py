"""Functions of this package that run as compiled code when the same kinds of calls repeat."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import lazy
from ..registry.native_type import NativeCallable, accept_entries, bind_natively
from .hot_calls import HotCalls

if TYPE_CHECKING:
    from ..registry.types import Function

fastpath = lazy.Module(".backends.cpu.fastpath")

F = TypeVar("F", bound=Callable[..., Any])


@bind_natively
@accept_entries
class HotFunction(NativeCallable):  # type: ignore[misc]
    """A function whose hot calls are compiled; its native entry runs them.

    Args:
        fn: the function.
        writes: whether it writes into its arguments, or into the states of random generators; it is pure otherwise.
    """

    def __init__(self, fn: Function, writes: bool = False):
        functools.update_wrapper(self, fn)
        self._fn, self._writes = fn, writes
        self._run: Function | None = None

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        """Run a call that the native entry does not take."""
        run = self._run
        if run is None:
            is_native = not fastpath.why_off()
            calls = HotCalls(self, self._fn, self._fn, writes=self._writes) if is_native else None
            run = self._run = self._fn if calls is None else calls.call
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


def compile_writes_when_hot(fn: F) -> F:
    """As :func:`compile_when_hot`, of a function that writes into its arguments, or draws from random generators.

    The generators are arguments, or captured. Calls on tensors that require gradients run the function itself.
    """
    return cast(F, HotFunction(fn, writes=True))
