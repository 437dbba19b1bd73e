"""Who watches the calls: the profiler that is running, if there is one.

The registry and what is above it mark the spans that are no operator calls (a jitted function, a step of the backward
pass) through here; the profiler itself is :mod:`tandem.profiler`.

Source: PyTorch's ``RecordFunction``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .keys import DispatchKey
from .state import set_keys, state

PROFILER = 1 << DispatchKey.Profiler


class Observer(Protocol):
    """What a profiler offers."""

    def span(self, name: str, kind: str, run: Callable[[], Any], inputs: tuple[Any, ...] = ()) -> Any:
        """Run something and note how long it took."""


class Watch:
    """The observer in force, for all threads that include the Profiler key."""

    observer: Observer | None = None


watch = Watch()


def observed() -> Observer | None:
    """The observer of this thread's calls, or None."""
    return watch.observer if state.include & PROFILER and not state.exclude & PROFILER else None


def unobserved(run: Callable[[], Any]) -> Any:
    """Run something without the Profiler key, so that compiled code runs as it does when nobody watches."""
    before = set_keys(state.include & ~PROFILER, state.exclude)
    try:
        return run()
    finally:
        set_keys(*before)
