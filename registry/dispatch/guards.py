"""Guards of the dispatch keys: ``include_keys``, ``exclude_keys``, ``force_keys``, and snapshots of the whole state."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from ...errors import ArgumentError
from ..formatting import short_repr
from .guard import Guard
from .keys import DispatchKey, DispatchKeySet, bits_of, from_bits
from .state import current, pop_block, push_block, set_state


class adjust_keys(Guard):
    """Include and exclude key sets inside a ``with`` block; the innermost block decides about a key.

    One object may be entered again, in other threads and tasks too. The end of a block restores only the keys that its
    start has changed, because the blocks of generators end in any order.
    Source: ``c10::impl::IncludeDispatchKeyGuard``.
    """

    __slots__ = ("_exclude", "_include")

    def __init__(self, include: int = 0, exclude: int = 0):
        self._include, self._exclude = include, exclude

    def __enter__(self) -> None:
        now = current()
        included = (now.include | self._include) & ~self._exclude
        excluded = (now.exclude | self._exclude) & ~self._include
        one, other = now.include ^ included, now.exclude ^ excluded
        # For both sets: the keys that change, and those of them that were in the set.
        undo = one, now.include & one, other, now.exclude & other
        set_state(included, excluded, now.parts, push_block(self, undo, now.blocks))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        now = current()
        undo, rest = pop_block(self, now.blocks)
        if undo is not None:
            one, include, other, exclude = undo
            set_state(now.include & ~one | include, now.exclude & ~other | exclude, now.parts, rest)


def include_keys(*keys: str | DispatchKey | DispatchKeySet) -> Guard:
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
    return adjust_keys(include=bits_of(keys))


def exclude_keys(*keys: str | DispatchKey | DispatchKeySet) -> Guard:
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
    return adjust_keys(exclude=bits_of(keys))


def force_keys(
    *,
    include: Iterable[str | DispatchKey | DispatchKeySet] = (),
    exclude: Iterable[str | DispatchKey | DispatchKeySet] = (),
) -> Guard:
    """Context manager that sets this thread's included and excluded keys, regardless of the enclosing state.

    Source: ``c10::impl::ForceDispatchKeyGuard``.

    Args:
        include: the keys to add to those of the arguments: one or more dispatch keys, or names of keys and aliases.
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
    return _ForceKeys(_parse_keys(include), _parse_keys(exclude))


def _parse_keys(keys: Iterable[str | DispatchKey | DispatchKeySet]) -> int:
    if isinstance(keys, (str, DispatchKey)):
        return bits_of([keys])
    if not isinstance(keys, Iterable):
        raise ArgumentError(
            f"force_keys takes sequences of dispatch keys, such as ['CPU'], not {short_repr(keys)}"
        )
    return bits_of(keys)


class _ForceKeys(Guard):
    """The guard of :func:`force_keys`."""

    __slots__ = ("_keys",)

    def __init__(self, include: int, exclude: int):
        self._keys = include, exclude

    def __enter__(self) -> None:
        now = current()
        include, exclude = self._keys
        set_state(include, exclude, now.parts, push_block(self, (now.include, now.exclude), now.blocks))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        now = current()
        undo, rest = pop_block(self, now.blocks)
        if undo is not None:
            include, exclude = undo
            set_state(include, exclude, now.parts, rest)


class DispatchState(Guard):
    """A snapshot of a thread's dispatch state; made by :func:`dispatch_state`.

    Inside a ``with`` block the current state is the snapshot's. One snapshot may be entered again, and by several
    threads at once.
    """

    __slots__ = ("_keys", "_parts")

    def __init__(self) -> None:
        now = current()
        self._keys, self._parts = (now.include, now.exclude), now.parts

    @property
    def include(self) -> DispatchKeySet:
        """The keys that are added to those of the arguments."""
        return from_bits(self._keys[0])

    @property
    def exclude(self) -> DispatchKeySet:
        """The keys that are removed."""
        return from_bits(self._keys[1])

    def __enter__(self) -> DispatchState:
        now = current()
        undo = now.include, now.exclude, now.parts
        set_state(*self._keys, self._parts, push_block(self, undo, now.blocks))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        undo, rest = pop_block(self, current().blocks)
        if undo is not None:
            include, exclude, parts = undo
            set_state(include, exclude, parts, rest)

    def __repr__(self) -> str:
        return f"DispatchState(include={self.include}, exclude={self.exclude})"


def dispatch_state() -> DispatchState:
    """A snapshot of this thread's dispatch state: its included and excluded keys, and the settings of layers.

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
