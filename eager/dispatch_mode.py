"""DispatchMode: Python code that sees every operator call of a thread, and may change it.

A mode sits at one of two places. At the Mode key it sees what the user called. Opened below autograd, at the Python key
(:mod:`.subclass`), it sees what autograd, autocast and the transforms have made of that. While its handler runs the
mode is off, so that what the handler calls goes to the next outer mode and then on as usual.

A mode that is interested in a few operators costs the others nothing: the keys of those operators get the mode's key,
the thread's key sets stay as they are.

Source: ``TorchFunctionMode`` and ``TorchDispatchMode`` of PyTorch.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from ..errors import ArgumentError, ValueArgumentError
from ..operators.declare import LIBRARY
from ..registry.function import OperatorFunction
from ..registry.keys import DispatchKey, below
from ..registry.library import find_overloads
from ..registry.namespace import Packet
from ..registry.operator import Operator, lock
from ..registry.state import Carried, carried, set_keys, state
from .tensor import Tensor

MODE, PYTHON = 1 << DispatchKey.Mode, 1 << DispatchKey.Python
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
M = TypeVar("M", bound="DispatchMode")

# What ``below`` may be, and the key at which such modes sit.
PLACES: dict[str | None, int] = {None: MODE, "Autograd": PYTHON}


class _Stacks(threading.local):
    """The modes that are on in this thread, outermost first, for each of the two keys.

    A stack holds a mode once for each ``with`` block, together with the operators that it is interested in.
    """

    def __init__(self) -> None:
        self.of: dict[int, tuple[tuple[DispatchMode, frozenset[Operator] | None], ...]] = {
            MODE: (),
            PYTHON: (),
        }


stacks = _Stacks()
_watchers: Counter[tuple[Operator, int]] = Counter()  # how many modes are interested in an operator, by key


def _set_stack(
    key: int, stack: tuple[tuple[DispatchMode, frozenset[Operator] | None], ...]
) -> tuple[tuple[DispatchMode, frozenset[Operator] | None], ...]:
    """Put a stack in force, include its key in every call if a mode in it wants them all; gives the former one."""
    before = stacks.of[key]
    stacks.of[key] = stack
    wants_all = any(interest is None for _, interest in stack)
    set_keys(state.include | key if wants_all else state.include & ~key, state.exclude)
    return before


def _watch(interest: frozenset[Operator] | None, key: int, step: int) -> None:
    """Count a mode that is interested in some operators in (1) or out (-1)."""
    with lock:
        for op in interest or ():
            _watchers[op, key] += step
            wanted = op.extra_keys | key if _watchers[op, key] else op.extra_keys & ~key
            if not _watchers[op, key]:
                del _watchers[op, key]
            if wanted != op.extra_keys:
                op.extra_keys = wanted
                op.recompute()  # native entries of the operator step aside, or come back


def watching() -> bool:
    """Whether a mode that is interested in some operators is open in any thread."""
    return bool(_watchers)


def active() -> bool:
    """Whether a mode is on in this thread."""
    return any(stacks.of.values())


# -- the handlers ------------------------------------------------------------------------------------------------------
def innermost(op: Operator, key: int) -> int | None:
    """The place in a stack of the innermost mode that wants to see calls of an operator, or None."""
    stack = stacks.of[key]
    for place in range(len(stack) - 1, -1, -1):
        interest = stack[place][1]
        if interest is None or op in interest:
            return place
    return None


def handle(place: int, key: int, op: Operator, args: Args, kwargs: Kwargs) -> Any:
    """Give a call to a mode; meanwhile it and the modes inside of it are off."""
    mode = stacks.of[key][place][0]
    before = _set_stack(key, stacks.of[key][:place])
    try:
        return mode.__tandem_dispatch__(op, overriding(args, kwargs), args, kwargs)
    finally:
        _set_stack(key, before)


def overriding(args: Args, kwargs: Kwargs) -> tuple[type, ...]:
    """The classes among a call's tensors that handle operators themselves: derived classes first, then in order."""
    found: list[type] = []
    for value in (*args, *kwargs.values()):
        for item in value if type(value) is tuple else (value,):
            kind = type(item)
            if kind is not Tensor and isinstance(item, Tensor) and item._keys & PYTHON and kind not in found:
                place = next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found))
                found.insert(place, kind)
    return tuple(found)


def mode_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> Any:
    """Give the call to the innermost mode that wants it, else pass it on; the fallback of the Mode key."""
    place = innermost(op, MODE)
    if place is None:
        return op.dispatch(keyset & below(DispatchKey.Mode), args, kwargs)
    return handle(place, MODE, op, args, kwargs)


# -- what users derive from --------------------------------------------------------------------------------------------
class DispatchMode:
    """Base class of modes: context managers whose ``__tandem_dispatch__`` sees every operator call of the thread.

    The handler gets the operator, the classes of the tensors that handle calls themselves, and the arguments as the
    schema has them, defaults filled in. It may call ``op(*args, **kwargs)``, with other arguments, or not at all; what
    it returns is the result of the call. While it runs the mode is off.

    Args:
        ops: the operators of interest: operators, their functions, or names (``"add"`` stands for all its overloads);
            None for all. Calls of other operators run as if there were no mode. May be a class attribute.
        below: ``"Autograd"`` to see what autograd, autocast and the transforms make of a call, and the operators that
            composites consist of; None to see what the user calls. May be a class attribute.

    Raises:
        ValueArgumentError: ``below`` is neither.
        ArgumentError: ``ops`` holds something else (when the mode is entered).
        UnknownOperatorError: there is no operator of that name (when the mode is entered).

    >>> import tandem as td
    >>> class Log(td.DispatchMode):
    ...     def __tandem_dispatch__(self, op, types, args, kwargs):
    ...         print(op.schema.name)
    ...         return op(*args, **kwargs)
    >>> x = td.asarray([1.0, 2.0])
    >>> with Log():
    ...     y = td.softmax(x) + 1
    softmax
    add
    >>> with Log(ops=[td.exp], below="Autograd"):
    ...     y = td.softmax(x) + 1
    exp
    """

    ops: Iterable[Any] | None = None
    below: str | None = None

    def __init__(self, *, ops: Iterable[Any] | None = None, below: str | None = None):
        if ops is not None:
            self.ops = ops
        if below is not None:
            self.below = below
        self._key()

    def __tandem_dispatch__(self, op: Operator, types: tuple[type, ...], args: Args, kwargs: Kwargs) -> Any:
        """Answer a call.

        Args:
            op: the operator.
            types: the classes among the arguments' tensors that handle calls themselves.
            args: the positional arguments of the schema.
            kwargs: the keyword-only ones.

        Returns:
            The result of the call.
        """
        return op(*args, **kwargs)

    def _key(self) -> int:
        try:
            return PLACES[self.below]
        except (KeyError, TypeError):
            raise ValueArgumentError(
                f"{type(self).__name__}: below is None or 'Autograd', not {self.below!r}"
            ) from None

    def __enter__(self: M) -> M:
        key = self._key()
        interest = None if self.ops is None else frozenset(op for item in self.ops for op in _resolve(item))
        _watch(interest, key, 1)
        _set_stack(key, (*stacks.of[key], (self, interest)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        key = self._key()
        stack = stacks.of[key]
        place = max((i for i, (mode, _) in enumerate(stack) if mode is self), default=None)
        if place is not None:  # a generator that is closed late may leave the blocks in another order
            _set_stack(key, stack[:place] + stack[place + 1 :])
            _watch(stack[place][1], key, -1)


def _resolve(item: Any) -> Iterable[Operator]:
    """The operators that an item of ``ops`` stands for."""
    if isinstance(item, Operator):
        return (item,)
    if isinstance(item, OperatorFunction):
        return (item.operator,)
    if isinstance(item, Packet):
        return find_overloads(item._namespace, item._name)
    if isinstance(item, str):
        namespace, _, name = item.rpartition("::")
        found = find_overloads(namespace or "td", name.partition(".")[0])
        return [op for op in found if "." not in name or op.name == f"{namespace or 'td'}::{name}"]
    raise ArgumentError(
        f"a mode's ops are operators, their functions (td.add) or names ('add', 'td::add.Tensor'), not {item!r}"
    )


@contextmanager
def no_dispatch() -> Iterator[None]:
    """Context manager: modes are off in this thread, and calls go past ``__tandem_dispatch__`` of tensor subclasses.

    Returns:
        A context manager.

    >>> import tandem as td
    >>> class Never(td.DispatchMode):
    ...     def __tandem_dispatch__(self, op, types, args, kwargs):
    ...         raise AssertionError(op.name)
    >>> with Never(), td.no_dispatch():
    ...     (td.asarray([1.0]) + 1).tolist()
    [2.0]
    """
    keys = _set_stack(MODE, ()), _set_stack(PYTHON, ())
    before = set_keys(state.include, state.exclude | MODE | PYTHON)
    try:
        yield
    finally:
        set_keys(*before)
        for key, stack in zip((MODE, PYTHON), keys):
            _set_stack(key, stack)


def _restore(of: dict[int, Any]) -> None:
    stacks.of = dict(of)


carried.append(Carried(lambda: dict(stacks.of), _restore))

Handler = Callable[[Operator, tuple[type, ...], Args, Kwargs], Any]

LIBRARY.fallback(mode_kernel, DispatchKey.Mode)
