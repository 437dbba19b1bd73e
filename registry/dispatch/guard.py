"""Guards: context managers that also decorate functions, generators, coroutines and asynchronous generators.

The body of a generator or coroutine runs in steps, between which its caller goes on. A decorator therefore enters the
guard at each step and leaves it when the body is suspended. Guards that the body has open at that point are closed for
the caller, and open again at the next step.

Source: ``torch.utils._contextlib`` of PyTorch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ArgumentError
from ..formatting import short_repr
from .state import Guards, current, install

if TYPE_CHECKING:
    from ..types import Function

F = TypeVar("F", bound=Callable[..., Any])


class Guard:
    """Base class of context managers that may be entered again and decorate functions of any kind."""

    __slots__ = ()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def __call__(self, function: F) -> F:
        """Decorate a function, generator, coroutine or asynchronous generator, so that it runs inside this guard.

        Raises:
            ArgumentError: it is not callable, or it is a class, which a function cannot replace.
        """
        if not callable(function) or isinstance(function, type):
            raise ArgumentError(f"{type(self).__name__} decorates functions, not {short_repr(function)}")
        return functools.wraps(function)(_wrapper(self, function))  # type: ignore[return-value]


def _wrapper(guard: Guard, function: Function) -> Function:
    if inspect.isasyncgenfunction(function):

        async def generate_async(*args: object, **kwargs: object) -> AsyncGenerator[object, object]:
            inner, body = function(*args, **kwargs), _Body(guard)
            step = inner.__anext__()
            while True:
                try:
                    value = await body.awaiting(step)
                except StopAsyncIteration:
                    return
                try:
                    step = inner.asend((yield value))
                except GeneratorExit:
                    await body.awaiting(inner.aclose())
                    raise
                except BaseException as fault:
                    step = inner.athrow(fault)

        return generate_async
    if inspect.iscoroutinefunction(function):

        async def run_async(*args: object, **kwargs: object) -> object:
            return await _Body(guard).awaiting(function(*args, **kwargs))

        return run_async
    if inspect.isgeneratorfunction(function):

        def generate(*args: object, **kwargs: object) -> Generator[object, object, object]:
            return (yield from _Body(guard).steps(function(*args, **kwargs)))

        return generate

    def run(*args: object, **kwargs: object) -> Any:
        before = current()
        try:
            with guard:
                return function(*args, **kwargs)
        except BaseException:  # an interrupt may come between the beginning of the block and its end
            install(before)
            raise

    return run


class _Body:
    """The body of a generator or coroutine, run inside a guard step by step."""

    __slots__ = ("_guard", "_held")

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._held: Guards | None = None  # the state of a body that was suspended inside its own guards

    def awaiting(self, awaitable: Awaitable[object]) -> _Steps:
        """An awaitable that runs another one."""
        return _Steps(self.steps(awaitable.__await__()))

    def steps(self, inner: Any) -> Generator[Any, Any, Any]:
        """A generator that runs another one: values, exceptions and the result pass through."""
        call: Callable[..., Any] = inner.send
        given: Any = None
        while True:
            try:
                value = self._step(call, given)
            except StopIteration as end:
                return end.value
            try:
                call, given = inner.send, (yield value)
            except BaseException as fault:
                call, given = inner.throw, fault

    def _step(self, call: Function, given: object) -> Any:
        with self._guard:
            entered = current()
            if self._held is not None:
                install(self._held)
            try:
                return call(given)
            finally:
                left = current()
                self._held = None if left.blocks is entered.blocks else left
                if left is not entered:
                    install(entered)


class _Steps:
    """An awaitable that runs a generator."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Generator[object, object, object]) -> None:
        self._steps = steps

    def __await__(self) -> Generator[object, object, object]:
        return self._steps
