"""The dispatch trace: every call and redispatch, nested, with the key that was reached and the kernel that ran.

Source: PyTorch's ``TORCH_SHOW_DISPATCH_TRACE``. Off, it costs the dispatcher one test of a module variable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..config import flags
from ..errors import ArgumentError
from .keys import DispatchKey
from .state import state
from .values import describe

Line = Callable[[str], Any]
active: bool = flags.show_dispatch_trace
_writers: list[Line] = []


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def run(operator: Any, bits: int, entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Print one line and run the kernel."""
    verb = "call" if state.depth == 0 else "redispatch"
    given = ", ".join([describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()])
    key = DispatchKey(bits.bit_length() - 1).name
    name = entry.registration.name if entry.registration is not None else entry.kind
    (_writers[-1] if _writers else _to_stderr)(
        f"{'  ' * state.depth}[{verb}] {operator.name}({given}) key={key} kernel={name} ({entry.kind})"
    )
    state.depth += 1
    try:
        return entry.fn(operator, bits, args, kwargs) if entry.boxed else entry.fn(*args, **kwargs)
    finally:
        state.depth -= 1


@contextmanager
def show_dispatch_trace(write: Line | None = None) -> Iterator[None]:
    """Print every call and redispatch inside a ``with`` block.

    Args:
        write: called with each line; None prints to standard error.

    Returns:
        A context manager.

    Raises:
        ArgumentError: ``write`` is not callable.

    >>> import tandem as td
    >>> lines = []
    >>> with td.show_dispatch_trace(lines.append):
    ...     _ = td.exp(td.asarray([0.0]))
    >>> "td::exp" in lines[0] and "key=CPU" in lines[0]
    True
    """
    global active
    if write is not None and not callable(write):
        raise ArgumentError(
            f"show_dispatch_trace takes a function that is called with each line, not {write!r}"
        )
    before = active
    _writers.append(write or _to_stderr)
    active = True
    state_changed()
    try:
        yield
    finally:
        _writers.pop()
        active = before
        state_changed()


# Native entries do not print: whoever keeps some adds a function here and sends calls to Python while ``active``.
listeners: list[Callable[[], None]] = []


def state_changed() -> None:
    """Tell the listeners that ``active`` has changed."""
    for listener in listeners:
        listener()
