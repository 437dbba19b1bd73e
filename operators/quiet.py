"""Running NumPy functions so that they never warn about overflow, division by zero or NaN.

``np.errstate`` costs three times what a small ufunc does, so each thread keeps a context in which errors are ignored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np


class _Silence(threading.local):
    """This thread's context."""

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_silence = _Silence()


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` with NumPy's floating-point errors ignored."""
    try:
        return _silence.run(function, *args)
    except RuntimeError:
        # a finalizer or a signal handler computes while this thread is inside the context, which admits one at a time
        with np.errstate(all="ignore"):
            return function(*args)
