"""Per-thread dispatch state: keys included in and excluded from every call, and who is told when they change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, NamedTuple

from .keys import DispatchKey, bits_of, from_bits


class ThreadState(threading.local):
    """The dispatch state of this thread.

    Attributes:
        include: key set added to the keys of the arguments.
        exclude: key set removed from them (after ``include``).
        depth: nesting of printed calls, for the dispatch trace.
    """

    include: int = 0
    exclude: int = 0
    depth: int = 0
    entered: list[tuple[Any, ...]] | None = None  # what to go back to, one for each snapshot entered


state = ThreadState()

# Called with the thread's state after each change, in the thread concerned; native code mirrors the state so.
listeners: list[Callable[[ThreadState], None]] = []


def set_keys(include: int, exclude: int) -> tuple[int, int]:
    """Set the thread's key sets and return the former ones."""
    before = state.include, state.exclude
    if before != (include, exclude):
        state.include, state.exclude = include, exclude
        for listener in listeners:
            listener(state)
    return before


@contextmanager
def adjusted(include: int = 0, exclude: int = 0) -> Iterator[None]:
    """Include and exclude key sets inside a ``with`` block; the later word on a key wins."""
    before = state.include, state.exclude
    set_keys((before[0] | include) & ~exclude, (before[1] | exclude) & ~include)
    try:
        yield
    finally:
        set_keys(*before)


def include_keys(*keys: str | DispatchKey) -> AbstractContextManager[None]:
    """Context manager that adds keys to those of the arguments, in this thread.

    Args:
        keys: dispatch keys, or names of keys and aliases.

    Returns:
        A context manager.

    Raises:
        ArgumentError: something is neither a key nor a name.
        ValueArgumentError: no key has that name.

    >>> import tandem as td
    >>> with td.include_keys("Mode"):  # no mode is open, so calls pass
    ...     (td.asarray([1.0]) + 1).tolist()
    [2.0]
    """
    return adjusted(include=bits_of(keys))


def exclude_keys(*keys: str | DispatchKey) -> AbstractContextManager[None]:
    """Context manager that removes keys from those of the arguments, in this thread.

    Args:
        keys: dispatch keys, or names of keys and aliases.

    Returns:
        A context manager.

    Raises:
        ArgumentError: something is neither a key nor a name.
        ValueArgumentError: no key has that name.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.exclude_keys("Autograd"):
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    return adjusted(exclude=bits_of(keys))


def force_keys(
    *, include: Iterable[str | DispatchKey] = (), exclude: Iterable[str | DispatchKey] = ()
) -> AbstractContextManager[None]:
    """Context manager that sets this thread's included and excluded keys, whatever they were outside.

    Source: ``c10::impl::ForceDispatchKeyGuard``.

    Args:
        include: the keys to add to those of the arguments: dispatch keys, or names of keys and aliases; one name alone
            also stands for itself.
        exclude: the keys to remove from them.

    Returns:
        A context manager.

    Raises:
        ArgumentError: something is neither a key nor a name.
        ValueArgumentError: no key has that name.

    >>> import tandem as td
    >>> x = td.asarray([1.0, 2.0], requires_grad=True)
    >>> with td.no_grad(), td.force_keys():  # back to the default state
    ...     y = x * x
    >>> y.requires_grad
    True
    """
    return _forced(_several(include), _several(exclude))


def _several(keys: Iterable[str | DispatchKey]) -> int:
    return bits_of([keys] if isinstance(keys, (str, DispatchKey)) else keys)


@contextmanager
def _forced(include: int, exclude: int) -> Iterator[None]:
    before = set_keys(include, exclude)
    try:
        yield
    finally:
        set_keys(*before)


class Carried(NamedTuple):
    """A part of a thread's state, beside the key sets, that snapshots carry to other threads.

    Attributes:
        take: gives the part as it is in this thread.
        put: makes it so in this thread.
    """

    take: Callable[[], Any]
    put: Callable[[Any], object]


# The parts that layers keep: modes, levels, settings. Whoever has one adds it here.
carried: list[Carried] = []


class DispatchState:
    """The dispatch state of a thread at one moment, to enter elsewhere; made by :func:`dispatch_state`.

    Inside a ``with`` block the thread's state is the snapshot's, whatever it was outside. One snapshot may be entered
    again, and by several threads at once.
    """

    __slots__ = ("_parts", "exclude", "include")

    def __init__(self) -> None:
        self.include, self.exclude = state.include, state.exclude
        self._parts = [(part, part.take()) for part in carried]

    def __enter__(self) -> DispatchState:
        before = [(part, part.take()) for part, _ in self._parts]
        for part, value in self._parts:
            part.put(value)
        if state.entered is None:
            state.entered = []
        state.entered.append((set_keys(self.include, self.exclude), before))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        keys, before = (state.entered or []).pop()
        set_keys(*keys)
        for part, value in before:
            part.put(value)

    def __repr__(self) -> str:
        return f"DispatchState(include={from_bits(self.include)}, exclude={from_bits(self.exclude)})"


def dispatch_state() -> DispatchState:
    """A snapshot of this thread's dispatch state: the keys that it includes and excludes, and what layers keep beside.

    Returns:
        A context manager: ``with snapshot:`` makes the state that of the snapshot, in any thread.

    >>> import tandem as td
    >>> import threading
    >>> seen = []
    >>> with td.no_grad():
    ...     snapshot = td.dispatch_state()
    >>> def work():
    ...     with snapshot:
    ...         seen.append(td.is_grad_enabled())
    >>> thread = threading.Thread(target=work)
    >>> thread.start(); thread.join(); seen
    [False]
    """
    return DispatchState()
