"""A trace in progress: the graph being made, and who is making it in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import LeakedTracerError
from ..registry.keys import DispatchKey
from ..registry.source import source_line
from ..registry.state import adjusted
from ..registry.values import TensorBase, describe
from .graph import Graph, Value

TRACER = 1 << DispatchKey.Tracer


class Trace:
    """One trace.

    Attributes:
        graph: what has been recorded.
        name: the traced function, for messages.
        origin: where the trace was started.
        names: what inputs are called in messages, in step with ``graph.inputs``.
        finished: whether it is over, so that its tracers must not be used any more.
        outer: the trace within which this one runs, or None.
        writes_states: whether who runs the graph writes the states of generators back.
        states: by the id of a generator's state what stands for it.
    """

    __slots__ = ("finished", "graph", "name", "names", "origin", "outer", "states", "writes_states")

    def __init__(self, name: str, outer: Trace | None = None):
        self.graph = Graph()
        self.name = name
        self.names: list[str] = []
        self.origin = source_line()
        self.finished = False
        self.outer = outer
        self.writes_states = False
        self.states: dict[int, Any] = {}

    def capture(self, tensor: Any) -> Value:
        """The Value of a tensor that the function did not get as an argument.

        Raises:
            LeakedTracerError: it belongs to a trace that is over.
        """
        check_alive(tensor)
        return self.graph.capture(tensor, tensor.spec)

    def capture_number(self, number: Any) -> Value:
        """The Value of a traced number of a trace around this one."""
        return self.graph.capture(number, number._value.spec, number._value.weak)

    def where_made(self, value: Value) -> str:
        """Where a value comes from, in words."""
        if value.node is not None:
            return f"the result of {value.node.op.schema.name} at {value.node.source or 'an unknown line'}"
        for inputs, names in ((self.graph.inputs, self.names),):
            if value.index < len(inputs) and inputs[value.index] is value:
                name = names[value.index] if value.index < len(names) else f"number {value.index}"
                return f"the argument {name} of {self.name}"
        return (
            f"computed from the arguments of {self.name}"
            if value.weak
            else f"a tensor captured by {self.name}"
        )


class _Current(threading.local):
    trace: Trace | None = None


_current = _Current()


def current_trace() -> Trace | None:
    """The trace in progress in this thread, or None."""
    return _current.trace


@contextmanager
def tracing(name: str) -> Iterator[Trace]:
    """Record every call in this thread inside a ``with`` block.

    Args:
        name: what is being traced, for messages.

    Returns:
        A context manager that yields the :class:`Trace`.
    """
    trace = Trace(name, _current.trace)
    _current.trace = trace
    try:
        with adjusted(include=TRACER):
            yield trace
    finally:
        trace.finished = True
        _current.trace = trace.outer


def check_alive(value: Any) -> None:
    """Raise LeakedTracerError if a value belongs to a trace that is over, or to one of another thread."""
    trace = getattr(value, "_trace", None)
    if trace is None or (not trace.finished and _is_open(trace)):
        return
    what = describe(value) if isinstance(value, TensorBase) else repr(value)
    raise LeakedTracerError(
        f"the traced value {what} was used after its trace had ended\n"
        f"  made:    {trace.where_made(value._value)}\n"
        f"  traced:  {trace.name}, from {trace.origin or 'an unknown line'}\n"
        f"  used:    at {source_line() or 'an unknown line'}\n"
        "A traced value stands for data that exist only while the compiled function runs. Return it from the function "
        "instead of keeping it in an attribute, a global, a list or a generator."
    )


def _is_open(trace: Trace) -> bool:
    """Whether a trace is in progress in this thread, itself or around the current one."""
    found = _current.trace
    while found is not None and found is not trace:
        found = found.outer
    return found is trace
