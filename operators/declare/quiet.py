"""Run NumPy functions without warnings about overflow, division by zero or NaN.

``np.errstate`` costs three times as much as a small ufunc, so each thread has a context in which errors are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any

import numpy as np

from ...locks import ThreadLocal

if TYPE_CHECKING:
    from ...registry.types import T


class _Silence(ThreadLocal):
    """The context of this thread in which NumPy ignores floating-point errors."""

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_silence = _Silence()


def call_quietly(function: Callable[..., T], *args: object) -> T:
    """``function(*args)`` with NumPy's floating-point errors ignored."""
    try:
        result: T = _silence.run(function, *args)
        return result
    except RuntimeError:
        # a finalizer or a signal handler runs while this thread is inside the context, which cannot be re-entered
        with np.errstate(all="ignore"):
            return function(*args)
