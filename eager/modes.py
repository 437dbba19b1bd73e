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

    __slots__ = ("_changes", "_enabled")

    def __init__(self, enabled: bool):
        self._enabled = enabled
        # By thread, for each block that is open: the autograd keys changed, and those of them that had been excluded.
        self._changes: dict[int, list[tuple[int, int]]] = {}

    def __enter__(self) -> None:
        before = state.exclude
        exclude = before & ~AUTOGRAD if self._enabled else before | AUTOGRAD
        self._changes.setdefault(get_ident(), []).append((before ^ exclude, before & ~exclude))
        set_keys(state.include, exclude)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        # What the block has not changed itself stays: those of generators and coroutines end in any order.
        changed, excluded = self._changes[get_ident()].pop()
        set_keys(state.include, state.exclude & ~changed | excluded)

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
