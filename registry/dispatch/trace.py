"""The dispatch trace: print every call and redispatch, nested, with its dispatch key and its kernel.

Source: PyTorch's ``TORCH_SHOW_DISPATCH_TRACE``. Off, it costs the dispatcher two tests of a module variable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ...config import flags
from ...errors import ArgumentError
from ...locks import ThreadLocal
from ...named_tuple import NamedTuple
from ..formatting import short_repr
from ..lock import lock
from ..values import SCALARS, describe
from .guard import Guard
from .keys import keys_of
from .precedence import Entry, choose_entry, run_entry

if TYPE_CHECKING:
    from ..operator import Operator
    from ..types import Args, Kwargs

Line = Callable[[str], Any]
R = TypeVar("R")
_always: bool = flags.show_dispatch_trace
active: bool = _always
_writers: list[Line] = []


class Call(NamedTuple):
    """A call of an operator, with its original and its bound arguments.

    Attributes:
        operator: the operator.
        given, named: the original arguments.
        keyset: the key set of the call.
        args, kwargs: the bound arguments.
    """

    operator: Any
    given: tuple[Any, ...]
    named: dict[str, object]
    keyset: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Nesting(ThreadLocal):
    """The nesting depth of the printed calls of this thread, and its innermost operator call."""

    depth: int = 0
    call: Call | None = None


_nesting = _Nesting()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def call(call: Call) -> Any:
    """Dispatch a call and remember its original arguments, which native entries take."""
    outer, _nesting.call = _nesting.call, call
    try:
        return call.operator.dispatch(call.keyset, call.args, call.kwargs)
    finally:
        _nesting.call = outer


def run(operator: Operator, bits: int, entry: Entry, args: Args, kwargs: Kwargs, verb: str = "") -> Any:
    """Print one line and run the kernel of a table entry.

    The line says how the dispatcher was entered: ``call`` (the operator was called), ``redispatch`` (from the kernel of
    a higher key) or ``callForKey``; ``Boxed`` is appended if the kernel is boxed. If a native entry replaces the kernel
    for this call, the native entry runs, and the line names it.
    """
    entry = choose_entry(entry, operator, args, kwargs)
    verb = (verb or _verb(sys._getframe(2))) + ("Boxed" if entry.boxed else "")
    given = ", ".join([describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()])
    key, *rest = [key.name for key in keys_of(bits)]
    name = entry.registration.name if entry.registration is not None else entry.kind
    below = f" below={{{', '.join(rest)}}}" if rest else ""
    line = f"[{verb}] {operator.name}({given}) key={key} kernel={name} ({entry.kind})"
    written = _nesting.call
    native = None
    if (
        answer_natively is not None
        and key == "CPU"
        and written is not None
        and _is_bound_as(written, operator, args, kwargs)
    ):
        native = answer_natively(written, entry)
    if native is None:
        return run_nested(line + below, lambda: run_entry(entry, operator, bits, args, kwargs))
    write(f"{line} native={native[0]}{below}")
    return native[1]


def _is_bound_as(call: Call, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a kernel receives the arguments of a call unchanged; a layer may have replaced them."""
    return call.operator is operator and _same((call.args, call.kwargs), (args, kwargs))


def _same(x: Any, y: Any) -> bool:
    if x is y or type(x) is not type(y):
        return x is y
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(_same(value, y[name]) for name, value in x.items())
    if isinstance(x, (tuple, list)):
        return len(x) == len(y) and all(map(_same, x, y))
    return isinstance(x, SCALARS) and repr(x) == repr(y)


Natively = Callable[[Call, Entry], "tuple[str, Any] | None"]
answer_natively: Natively | None = None
"""Runs a call by the native entry that replaces a kernel; returns the entry's name and the result, or None.

The CPU backend sets it.
"""


def write(line: str) -> None:
    """Print a line, indented by the number of open calls."""
    (_writers[-1] if _writers else _to_stderr)(f"{'  ' * _nesting.depth}{line}")


def run_nested(line: str, run: Callable[[], R]) -> R:
    """Print a line, then call ``run``; lines printed inside are indented."""
    write(line)
    _nesting.depth += 1
    try:
        return run()
    finally:
        _nesting.depth -= 1


def _verb(frame: FrameType) -> str:
    """Whether the dispatcher was entered by a call or a redispatch, from the calling frame."""
    return "call" if frame.f_code is call.__code__ else "redispatch"


class _ShowTrace(Guard):
    """The guard of :func:`show_dispatch_trace`; it may be entered again."""

    __slots__ = ("_write",)

    def __init__(self, write: Line):
        self._write = write

    def __enter__(self) -> None:
        with lock:
            _writers.append(self._write)
            _update_active()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        with lock:  # blocks of several threads may end in any order
            _writers.remove(self._write)
            _update_active()


def _update_active() -> None:
    global active
    active = _always or bool(_writers)
    notify_listeners()


def show_dispatch_trace(write: Line | None = None) -> Guard:
    """Print every call and redispatch inside a ``with`` block.

    Args:
        write: called with each line; None prints to standard error.

    Returns:
        A context manager, and a decorator; it may be entered again.

    Raises:
        ArgumentError: ``write`` is not callable.

    >>> import tandem as td
    >>> lines = []
    >>> with td.show_dispatch_trace(lines.append):
    ...     _ = td.exp(td.asarray([0.0]))
    >>> "td::exp" in lines[0] and "key=CPU" in lines[0]
    True
    """
    if write is not None and not callable(write):
        raise ArgumentError(
            f"show_dispatch_trace takes a function that is called with each line, not {short_repr(write)}"
        )
    return _ShowTrace(_to_stderr if write is None else write)


# Native entries do not print: a backend that installs them adds a function here and removes them while ``active``.
listeners: list[Callable[[], None]] = []


def notify_listeners() -> None:
    """Call the listeners after ``active`` has changed."""
    for listener in listeners:
        listener()
