"""``no_grad`` and ``enable_grad``: switch the recording of gradients off and on."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar, overload

from ...registry.dispatch.guard import Guard
from ...registry.dispatch.keys import AUTOGRAD
from ...registry.dispatch.state import current, pop_block, push_block, set_state, state

F = TypeVar("F", bound=Callable[..., object])


class GradMode(Guard):
    """Context manager and decorator; one object may be entered again, in other threads and tasks too."""

    __slots__ = ("_enabled",)

    def __init__(self, enabled: bool):
        self._enabled = enabled

    def __enter__(self) -> None:
        now = current()
        before = now.exclude
        exclude = before & ~AUTOGRAD if self._enabled else before | AUTOGRAD
        # The autograd keys changed, and those of them that had been excluded.
        undo = before ^ exclude, before & ~exclude
        set_state(now.include, exclude, now.parts, push_block(self, undo, now.blocks))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        # Undo only what this block has changed: blocks of generators end in any order.
        now = current()
        undo, rest = pop_block(self, now.blocks)
        if undo is not None:
            changed, excluded = undo
            set_state(now.include, now.exclude & ~changed | excluded, now.parts, rest)


class SetGradMode(GradMode):
    """The result of :func:`set_grad_enabled`: recording is switched already, and a block restores it at its end."""

    __slots__ = ("_before",)

    def __init__(self, enabled: bool):
        super().__init__(enabled)
        self._before = is_grad_enabled()
        _switch(enabled)

    def __enter__(self) -> None:
        _switch(self._before)
        super().__enter__()

    def __call__(self, function: F) -> F:
        _switch(self._before)
        return GradMode(self._enabled)(function)


def _switch(enabled: bool) -> None:
    now = current()
    exclude = now.exclude & ~AUTOGRAD if enabled else now.exclude | AUTOGRAD
    set_state(now.include, exclude, now.parts, now.blocks)


def set_grad_enabled(mode: bool) -> SetGradMode:
    """Switch the recording of gradients on or off, from now on, or for a block or a decorated function.

    Args:
        mode: whether gradients are recorded.

    Returns:
        A context manager that restores the former mode, which is also a decorator.

    >>> import tandem as td
    >>> with td.set_grad_enabled(False):
    ...     td.is_grad_enabled()
    False
    >>> td.is_grad_enabled()
    True
    """
    return SetGradMode(bool(mode))


@overload
def inference_mode(mode: F) -> F: ...
@overload
def inference_mode(mode: bool = True) -> GradMode: ...
def inference_mode(mode: F | bool = True) -> F | GradMode:
    """Context manager or decorator: nothing is recorded for gradients; the same as :func:`no_grad`.

    Args:
        mode: False: gradients are recorded; or the function to decorate.

    Returns:
        A context manager that is also a decorator; the decorated function if one is given.

    >>> import tandem as td
    >>> with td.inference_mode():
    ...     td.is_grad_enabled()
    False
    """
    return GradMode(not mode) if isinstance(mode, bool) else GradMode(False)(mode)


@overload
def no_grad(function: F) -> F: ...
@overload
def no_grad() -> GradMode: ...
def no_grad(function: F | None = None) -> F | GradMode:
    """Context manager or decorator: nothing is recorded for gradients, in this thread or asyncio task.

    A decorated generator or coroutine records nothing while it runs; code that runs between its steps does.

    Args:
        function: the function to decorate, if used without parentheses: ``@td.no_grad``.

    Returns:
        A context manager that is also a decorator; the decorated function if ``function`` is given.

    >>> import tandem as td
    >>> w = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.no_grad():
    ...     y = w * 2
    >>> y.requires_grad
    False
    """
    return GradMode(False) if function is None else GradMode(False)(function)


@overload
def enable_grad(function: F) -> F: ...
@overload
def enable_grad() -> GradMode: ...
def enable_grad(function: F | None = None) -> F | GradMode:
    """Context manager or decorator: gradients are recorded, also inside :func:`no_grad`.

    Args:
        function: the function to decorate, if used without parentheses: ``@td.enable_grad``.

    Returns:
        A context manager that is also a decorator; the decorated function if ``function`` is given.

    >>> import tandem as td
    >>> w = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.no_grad(), td.enable_grad():
    ...     y = w * 2
    >>> y.requires_grad
    True
    """
    return GradMode(True) if function is None else GradMode(True)(function)


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require gradients are recorded in this thread.

    Returns:
        True unless inside :func:`no_grad`.

    >>> import tandem as td
    >>> with td.no_grad():
    ...     td.is_grad_enabled()
    False
    """
    return not state.exclude & AUTOGRAD
