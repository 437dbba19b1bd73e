"""DispatchMode: Python code that intercepts the operator calls of a thread.

A mode runs at one of two keys. At the Mode key it sees the operators that the user called. Opened below autograd, at
the Python key (:mod:`.subclass`), it sees the calls that autograd, autocast and the transforms make. While its handler
runs, the mode is off, so that calls of the handler go to the next outer mode and then on as usual.

A mode restricted to a few operators costs the others nothing: the key sets of those operators get the mode's key, and
the thread's key sets do not change.

Source: ``TorchFunctionMode`` and ``TorchDispatchMode`` of PyTorch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ArgumentError, ValueArgumentError
from ...operators.declare.declaration import LIBRARY
from ...registry.dispatch.guard import Guard
from ...registry.dispatch.keys import DispatchKey, below
from ...registry.dispatch.state import current, pop_block, push_block, replace_part, set_state
from ...registry.function import OperatorFunction
from ...registry.library import find_overloads
from ...registry.namespace import OverloadPacket
from ...registry.operator import Operator, lock
from ..tensor.tensor import Tensor

if TYPE_CHECKING:
    from ...registry.types import Args, Kwargs

MODE, PYTHON = 1 << DispatchKey.Mode, 1 << DispatchKey.Python
M = TypeVar("M", bound="DispatchMode")
Stack = tuple[tuple["DispatchMode", "Interest | None"], ...]

# By the value of ``below``: the key at which such modes run.
KEYS: dict[str | None, int] = {None: MODE, "Autograd": PYTHON}


class _Stacks:
    """The active modes, outermost first, for each of the two keys: a part of the dispatch state.

    A stack contains a mode once for each ``with`` block, together with the operators of interest.
    """

    __slots__ = ()

    @property
    def of(self) -> dict[int, Stack]:
        """The stacks by their keys."""
        return current().parts.get("modes") or _NO_MODES


stacks = _Stacks()
_NO_MODES: dict[int, Stack] = {MODE: (), PYTHON: ()}
_interest_counts: Counter[tuple[Operator, int]] = (
    Counter()
)  # by operator and key: the number of open modes interested in it


class Interest(frozenset[Operator]):
    """The operators of interest of an open mode. They have the mode's key while a stack refers to this object."""

    key = 0  # the key that the operators have been given

    def __del__(self) -> None:
        if self.key:
            lock.call_when_free(partial(_count_interest, frozenset(self), self.key, -1))


def _register_interest(ops: Iterable[object] | None, key: int) -> Interest | None:
    """Give the operators of interest the key and return them; None for all operators."""
    if ops is None:
        return None
    result = Interest(op for item in ops for op in _resolve(item))
    _count_interest(result, key, 1)
    result.key = key
    return result


def _set_stack(key: int, stack: Stack) -> Stack:
    """Set the stack of a key, include the key if a mode in it intercepts all operators; return the former stack."""
    now, of = current(), stacks.of
    wants_all = any(interest is None for _, interest in stack)
    include = now.include | key if wants_all else now.include & ~key
    changed = {**of, key: stack}
    set_state(
        include,
        now.exclude,
        replace_part(now.parts, "modes", changed if any(changed.values()) else None),
        now.blocks,
    )
    return of[key]


def _count_interest(interest: frozenset[Operator], key: int, step: int) -> None:
    """Add (1) or remove (-1) a mode that is interested in some operators."""
    with lock:
        for op in interest:
            _interest_counts[op, key] += step
            wanted = op.extra_keys | key if _interest_counts[op, key] else op.extra_keys & ~key
            if not _interest_counts[op, key]:
                del _interest_counts[op, key]
            if wanted != op.extra_keys:
                op.extra_keys = wanted
                op.recompute()  # disables or re-enables native entries of the operator


def watching() -> bool:
    """Whether a mode that is interested in some operators is open in any thread."""
    return bool(_interest_counts)


def active() -> bool:
    """Whether a mode is active in this thread."""
    return any(stacks.of.values())


# -- the handlers ------------------------------------------------------------------------------------------------------
def innermost(op: Operator, key: int) -> int | None:
    """The index in the stack of the innermost mode that intercepts an operator, or None."""
    stack = stacks.of[key]
    for position in range(len(stack) - 1, -1, -1):
        interest = stack[position][1]
        if interest is None or op in interest:
            return position
    return None


def handle(position: int, key: int, op: Operator, args: Args, kwargs: Kwargs) -> object:
    """Pass a call to a mode; the mode and those inside it are off meanwhile."""
    mode = stacks.of[key][position][0]
    before = _set_stack(key, stacks.of[key][:position])
    try:
        result = mode.__tandem_dispatch__(op, overriding(args, kwargs), args, kwargs)
        return op.contract.checked(result, f"the mode {type(mode).__name__}")
    finally:
        _set_stack(key, before)


def overriding(args: Args, kwargs: Kwargs) -> tuple[type, ...]:
    """The classes of a call's tensors that handle operators themselves: derived classes first, then by position."""
    kinds: list[type] = []
    for value in (*args, *kwargs.values()):
        for item in value if type(value) is tuple else (value,):
            kind = type(item)
            if kind is not Tensor and isinstance(item, Tensor) and item._keys & PYTHON and kind not in kinds:
                position = next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
                kinds.insert(position, kind)
    return tuple(kinds)


def mode_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Pass a call to the innermost mode that intercepts it, else to the keys below; the fallback of the Mode key."""
    position = innermost(op, MODE)
    if position is None:
        return op.dispatch(keyset & below(DispatchKey.Mode), args, kwargs)
    return handle(position, MODE, op, args, kwargs)


# -- what users derive from --------------------------------------------------------------------------------------------
class DispatchMode(Guard):
    """Base class of modes: context managers whose ``__tandem_dispatch__`` intercepts every operator call inside.

    A mode decorates functions, generators and coroutines too.

    The handler receives the operator, the classes of the tensors that handle calls themselves, and the arguments as in
    the schema, defaults filled in. It may call ``op(*args, **kwargs)``, with other arguments, or not at all; its return
    value is the result of the call. While it runs, the mode is off.

    Args:
        ops: the operators of interest: operators, their functions, or names (``"add"`` means all its overloads);
            None for all. Calls of other operators are not intercepted. May be a class attribute.
        below: ``"Autograd"`` to intercept the calls that autograd, autocast and the transforms make, and the operators
            that composites consist of; None to intercept the calls of the user. May be a class attribute.

    Raises:
        ValueArgumentError: ``below`` has another value.
        ArgumentError: an item of ``ops`` is not an operator (when the mode is entered).
        UnknownOperatorError: no operator has that name (when the mode is entered).

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

    ops: Iterable[object] | None = None
    below: str | None = None

    def __init__(self, *, ops: Iterable[object] | None = None, below: str | None = None):
        if ops is not None:
            self.ops = ops
        if below is not None:
            self.below = below
        self._key()

    def __tandem_dispatch__(self, op: Operator, types: tuple[type, ...], args: Args, kwargs: Kwargs) -> Any:
        """Handle a call.

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
            return KEYS[self.below]
        except (KeyError, TypeError):
            raise ValueArgumentError(
                f"{type(self).__name__}: below is None or 'Autograd', not {self.below!r}"
            ) from None

    def __enter__(self: M) -> M:
        key = self._key()
        _set_stack(key, (*stacks.of[key], (self, _register_interest(self.ops, key))))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        key = self._key()
        stack = stacks.of[key]
        position = max((i for i, (mode, _) in enumerate(stack) if mode is self), default=None)
        if position is not None:  # a generator that is closed late may exit the blocks in another order
            _set_stack(key, stack[:position] + stack[position + 1 :])


def _resolve(item: object) -> Iterable[Operator]:
    """The operators that an item of ``ops`` refers to."""
    if isinstance(item, Operator):
        return (item,)
    if isinstance(item, OperatorFunction):
        return (item.operator,)
    if isinstance(item, OverloadPacket):
        return find_overloads(item._namespace, item._name)
    if isinstance(item, str):
        namespace, _, name = item.rpartition("::")
        result = find_overloads(namespace or "td", name.partition(".")[0])
        return [op for op in result if "." not in name or op.name == f"{namespace or 'td'}::{name}"]
    raise ArgumentError(
        f"a mode's ops are operators, their functions (td.add) or names ('add', 'td::add.Tensor'), not {item!r}"
    )


class _NoDispatch(Guard):
    """The guard that :func:`no_dispatch` returns."""

    __slots__ = ()

    def __enter__(self) -> None:
        now = current()
        off = MODE | PYTHON
        undo = now.include & off, now.exclude & off, now.parts.get("modes")
        parts = replace_part(now.parts, "modes", None)
        set_state(now.include & ~off, now.exclude | off, parts, push_block(self, undo, now.blocks))

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        now = current()
        undo, rest = pop_block(self, now.blocks)
        if undo is not None:
            included, excluded, modes = undo
            off = ~(MODE | PYTHON)
            parts = replace_part(now.parts, "modes", modes)
            set_state(now.include & off | included, now.exclude & off | excluded, parts, rest)


def no_dispatch() -> Guard:
    """Context manager or decorator: disable modes and the ``__tandem_dispatch__`` of tensor subclasses.

    Returns:
        A context manager, and a decorator.

    >>> import tandem as td
    >>> class Never(td.DispatchMode):
    ...     def __tandem_dispatch__(self, op, types, args, kwargs):
    ...         raise AssertionError(op.name)
    >>> with Never(), td.no_dispatch():
    ...     (td.asarray([1.0]) + 1).tolist()
    [2.0]
    """
    return _NoDispatch()


Handler = Callable[[Operator, tuple[type, ...], "Args", "Kwargs"], Any]

LIBRARY.fallback(mode_kernel, DispatchKey.Mode)
