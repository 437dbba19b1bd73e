"""The dispatch trace: every call and redispatch, nested, with the key that was reached and the kernel that ran.

Source: PyTorch's ``TORCH_SHOW_DISPATCH_TRACE``. Off, it costs the dispatcher one test of a module variable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator
from types import FrameType, TracebackType
from typing import Any

from ..config import flags
from ..errors import ArgumentError
from .keys import keys_of
from .lock import lock
from .precedence import Entry, chosen, run_entry
from .state import state
from .text import shown
from .values import describe

Line = Callable[[str], Any]
_always: bool = flags.show_dispatch_trace
active: bool = _always
_writers: list[Line] = []


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def run(
    operator: Any, bits: int, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], verb: str = ""
) -> Any:
    """Print one line and run what fills a slot.

    The line says how the dispatcher was entered: ``call`` (the operator was called), ``redispatch`` (a kernel passes on
    to a lower key) or ``callForKey``; with ``Boxed`` where the kernel is boxed.
    """
    entry = chosen(entry, operator, args, kwargs)
    verb = (verb or _verb(sys._getframe(2))) + ("Boxed" if entry.boxed else "")
    given = ", ".join([describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()])
    key, *rest = [key.name for key in keys_of(bits)]
    name = entry.registration.name if entry.registration is not None else entry.kind
    below = f" below={{{', '.join(rest)}}}" if rest else ""
    (_writers[-1] if _writers else _to_stderr)(
        f"{'  ' * state.depth}[{verb}] {operator.name}({given}) key={key} kernel={name} ({entry.kind}){below}"
    )
    state.depth += 1
    try:
        return run_entry(entry, operator, bits, args, kwargs)
    finally:
        state.depth -= 1


def _verb(frame: FrameType) -> str:
    """How the dispatcher was entered, by the function that did so: costs nothing as long as nobody traces."""
    called = frame.f_code.co_name == "__call__" and frame.f_globals.get("__name__") == _OPERATOR
    return "call" if called else "redispatch"


_OPERATOR = __name__.rpartition(".")[0] + ".operator"


class _Shown(ContextDecorator):
    """What :func:`show_dispatch_trace` returns; it may be entered again."""

    __slots__ = ("_write",)

    def __init__(self, write: Line):
        self._write = write

    def __enter__(self) -> None:
        with lock:
            _writers.append(self._write)
            _switch()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        with lock:  # blocks of several threads may end in any order
            _writers.remove(self._write)
            _switch()


def _switch() -> None:
    global active
    active = _always or bool(_writers)
    state_changed()


def show_dispatch_trace(write: Line | None = None) -> AbstractContextManager[None]:
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
            f"show_dispatch_trace takes a function that is called with each line, not {shown(write)}"
        )
    return _Shown(_to_stderr if write is None else write)


# Native entries do not print: whoever keeps some adds a function here and sends calls to Python while ``active``.
listeners: list[Callable[[], None]] = []


def state_changed() -> None:
    """Tell the listeners that ``active`` has changed."""
    for listener in listeners:
        listener()
