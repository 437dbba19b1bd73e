"""Per-thread dispatch state: keys included in and excluded from every call, and who is told when they change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ContextDecorator
from threading import get_ident
from types import TracebackType
from typing import Any, NamedTuple

from ..errors import ArgumentError
from .keys import DispatchKey, DispatchKeySet, bits_of, from_bits
from .text import shown


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

# Called with the sets included and excluded after each change, in the thread concerned; native code mirrors them so.
listeners: list[Callable[[int, int], None]] = []


def set_keys(include: int, exclude: int) -> tuple[int, int]:
    """Set the thread's key sets and return the former ones."""
    mine = state.__dict__  # looking the thread up costs more than the rest
    before = mine.get("include", 0), mine.get("exclude", 0)
    if before != (include, exclude):
        mine["include"], mine["exclude"] = include, exclude
        try:
            _tell(include, exclude)
        except MemoryError:
            _tell(include, exclude)  # once more, for this may be the way back to the former sets
    return before


def _tell(include: int, exclude: int) -> None:
    for listener in listeners:
        listener(include, exclude)


class adjusted(ContextDecorator):
    """Include and exclude key sets inside a ``with`` block; the later word on a key wins.

    One object may be entered again, in other threads too. The end of a block changes back the keys that its beginning
    has changed and no other ones, for the blocks of generators and coroutines end in any order.
    Source: ``c10::impl::IncludeDispatchKeyGuard``.
    """

    __slots__ = ("_changes", "_exclude", "_include")

    def __init__(self, include: int = 0, exclude: int = 0):
        self._include, self._exclude = include, exclude
        # By thread, for each block that is open: the keys changed, and those of them that had been in, of both sets.
        self._changes: dict[int, list[tuple[int, int, int, int]]] = {}

    def __enter__(self) -> None:
        include, exclude = state.include, state.exclude
        included = (include | self._include) & ~self._exclude
        excluded = (exclude | self._exclude) & ~self._include
        one, other = include ^ included, exclude ^ excluded
        self._changes.setdefault(get_ident(), []).append((one, include & one, other, exclude & other))
        set_keys(included, excluded)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        one, include, other, exclude = self._changes[get_ident()].pop()
        set_keys(state.include & ~one | include, state.exclude & ~other | exclude)


def include_keys(*keys: str | DispatchKey | DispatchKeySet) -> AbstractContextManager[None]:
    """Context manager that adds keys to those of the arguments, in this thread.

    Args:
        keys: dispatch keys, names of keys and aliases, or key sets.

    Returns:
        A context manager, and a decorator; it may be entered again.

    Raises:
        ArgumentError: something is none of these.
        ValueArgumentError: no key has that name.

    >>> import tandem as td
    >>> with td.include_keys("Mode"):  # no mode is open, so calls pass
    ...     (td.asarray([1.0]) + 1).tolist()
    [2.0]
    """
    return adjusted(include=bits_of(keys))


def exclude_keys(*keys: str | DispatchKey | DispatchKeySet) -> AbstractContextManager[None]:
    """Context manager that removes keys from those of the arguments, in this thread.

    Args:
        keys: dispatch keys, names of keys and aliases, or key sets.

    Returns:
        A context manager, and a decorator; it may be entered again.

    Raises:
        ArgumentError: something is none of these.
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
    *,
    include: Iterable[str | DispatchKey | DispatchKeySet] = (),
    exclude: Iterable[str | DispatchKey | DispatchKeySet] = (),
) -> AbstractContextManager[None]:
    """Context manager that sets this thread's included and excluded keys, whatever they were outside.

    Source: ``c10::impl::ForceDispatchKeyGuard``.

    Args:
        include: the keys to add to those of the arguments: dispatch keys, or names of keys and aliases; one name alone
            also stands for itself.
        exclude: the keys to remove from them.

    Returns:
        A context manager, and a decorator; it may be entered again.

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
    return _Forced(_several(include), _several(exclude))


def _several(keys: Iterable[str | DispatchKey | DispatchKeySet]) -> int:
    if isinstance(keys, (str, DispatchKey)):
        return bits_of([keys])
    if not isinstance(keys, Iterable):
        raise ArgumentError(
            f"force_keys takes sequences of dispatch keys, such as ['CPU'], not {shown(keys)}"
        )
    return bits_of(keys)


class _Forced(ContextDecorator):
    """What :func:`force_keys` returns."""

    __slots__ = ("_before", "_keys")

    def __init__(self, include: int, exclude: int):
        self._keys = include, exclude
        self._before: dict[int, list[tuple[int, int]]] = {}  # by thread: the key sets to go back to

    def __enter__(self) -> None:
        self._before.setdefault(get_ident(), []).append(set_keys(*self._keys))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        set_keys(*self._before[get_ident()].pop())


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
