"""Switching the recording of gradients off and on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Any, TypeVar

from ..registry.keys import AUTOGRAD
from ..registry.state import set_keys, state

F = TypeVar("F", bound=Callable[..., Any])


class GradMode:
    """Context manager and decorator; one object may be entered again, in other threads too."""

    __slots__ = ("_before", "_enabled")

    def __init__(self, enabled: bool):
        self._enabled = enabled
        self._before: dict[int, list[int]] = {}  # by thread: the autograd keys that were excluded

    def __enter__(self) -> None:
        exclude = state.exclude
        self._before.setdefault(get_ident(), []).append(exclude & AUTOGRAD)
        set_keys(state.include, exclude & ~AUTOGRAD if self._enabled else exclude | AUTOGRAD)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        # What else has changed since stays: the blocks of generators and coroutines end in any order.
        set_keys(state.include, state.exclude & ~AUTOGRAD | self._before[get_ident()].pop())

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with GradMode(self._enabled):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]


def no_grad() -> GradMode:
    """Context manager or decorator: nothing is recorded for gradients, in this thread.

    Returns:
        An object for ``with``, or to decorate a function with.

    >>> import tandem as td
    >>> w = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.no_grad():
    ...     y = w * 2
    >>> y.requires_grad
    False
    """
    return GradMode(False)


def enable_grad() -> GradMode:
    """Context manager or decorator: gradients are recorded, also inside :func:`no_grad`.

    Returns:
        An object for ``with``, or to decorate a function with.

    >>> import tandem as td
    >>> w = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.no_grad(), td.enable_grad():
    ...     y = w * 2
    >>> y.requires_grad
    True
    """
    return GradMode(True)


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
