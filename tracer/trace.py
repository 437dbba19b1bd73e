"""Trace: the graph being traced, and the current trace of each thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..eager.tensor.tensor import has_array
from ..errors import LeakedTracerError, UnsupportedError
from ..locks import ThreadLocal
from ..operators.creation.devices import assumed_device
from ..operators.indexing.masks import constant_mask_hooks
from ..registry.dispatch import unwinding
from ..registry.dispatch.guards import adjust_keys
from ..registry.dispatch.keys import DispatchKey
from ..registry.dispatch.state import state
from ..registry.function import functions
from ..registry.source import source_line
from ..registry.values import TensorBase, describe, number_listeners
from .graph import Graph, Value

if TYPE_CHECKING:
    from ..registry.types import Array, Tensor

TRACER = 1 << DispatchKey.Tracer
FUNCTIONALIZE = 1 << DispatchKey.Functionalize


class Trace:
    """One trace.

    Attributes:
        graph: the graph.
        name: the traced function, for messages.
        origin: the line of the user's code that started the trace.
        numbers: the tensors without axes that the function has made of numbers, by their ids.
        names: names of the inputs in messages, parallel to ``graph.inputs``.
        finished: whether it has ended, so that its tracers must not be used any more.
        outer: the enclosing trace, or None.
        writes_states: whether the caller of the graph writes captured tensors back, such as the states of generators.
        states: the traced tensor of each generator state, and of each captured tensor that is written or has views, by
            the id of the state or tensor.
        masks: captured masks whose positions the trace relies on, with their elements.
        writable: the captured tensors that may be written, by their ids: guards find out when others take their places.
        read: arrays whose elements Python code has read during the trace.
        written: writes into external memory: the number of nodes before the write, the memory, and its new value.
    """

    __slots__ = (
        "finished",
        "graph",
        "masks",
        "name",
        "names",
        "numbers",
        "origin",
        "outer",
        "read",
        "states",
        "writable",
        "writes_states",
        "written",
    )

    def __init__(self, name: str, outer: Trace | None = None):
        self.graph = Graph()
        self.name = name
        self.names: list[str] = []
        self.numbers: dict[int, Any] = {}
        self.origin = source_line()
        self.finished = False
        self.outer = outer
        self.writes_states = False
        self.states: dict[int, Any] = {}
        self.masks: list[tuple[Any, Array]] = []
        self.writable: dict[int, Tensor] = {}
        self.read: list[Array] = []
        self.written: list[tuple[int, Any, Value]] = []

    def is_tracked(self, array: Array) -> bool:
        """Whether an array shares memory with a captured tensor that is written, or of which a view was taken."""
        held = [self.writable[key] for key in self.states if key in self.writable]
        return any(np.may_share_memory(array, tensor._array) for tensor in held)

    def note_write(self, tensor: Any) -> None:
        """Record a write into a traced tensor whose memory is external to the trace."""
        memory = tensor._aliases
        if memory is not None and memory.origin:
            self.written.append((len(self.graph.nodes), memory, memory.root))

    def capture(self, tensor: Any) -> Value:
        """The Value of a tensor that the function did not get as an argument.

        Raises:
            LeakedTracerError: it belongs to a trace that is over.
        """
        check_alive(tensor)
        held = self.states.get(id(tensor))
        if held is not None:
            return held._value  # type: ignore[no-any-return]
        maker = self._find_maker(tensor)
        if maker is not None:
            held = maker.states.get(id(tensor))  # it was written in a trace around this one
            if held is not None:
                return self.capture(held)
            constant = self.make_constant(tensor)
            if constant is not None:
                return constant._value  # type: ignore[no-any-return]
        cached = _current.instead.get(id(tensor))
        if cached is not None and cached[1] is not tensor:
            return self._standing_in(cached[1])
        spec = tensor.spec
        device = assumed_device(spec.device)
        return self.graph.capture(tensor, spec if device is None else spec._replace(device=device))

    def make_constant(self, tensor: Any) -> Any:
        """The traced tensor of a number of which a function has made a tensor; None while another trace is current."""
        if _current.trace is not self:
            return None
        return functions["td::full"]((), tensor._array.item(), dtype=tensor.dtype)

    def _find_maker(self, tensor: Any) -> Trace | None:
        """The trace of the function, or of one around it, that has made a tensor of a number."""
        trace: Trace | None = self
        while trace is not None and id(tensor) not in trace.numbers:
            trace = trace.outer
        return trace

    def _standing_in(self, other: Any) -> Value:
        """The Value of a tensor's substitute; level wrappers are removed, because the tensor is held constant."""
        other = _unwrap_payload(other)
        return other._value if getattr(other, "_trace", None) is self else self.capture(other)

    def capture_number(self, number: Any) -> Value:
        """The Value of a traced number of a trace around this one."""
        return self.graph.capture(number, number._value.spec, number._value.weak)

    def describe_origin(self, value: Value) -> str:
        """Describe the node, input or constant that a value comes from."""
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


class _Current(ThreadLocal):
    trace: Trace | None = None

    def __init__(self) -> None:
        self.instead: dict[int, tuple[Any, Any]] = {}  # id of a tensor -> (the tensor, its substitute)


_current = _Current()


def _note_number(tensor: Tensor) -> None:
    """Keep a tensor that was made of a number: it can be captured as a constant."""
    if _current.trace is not None:
        _current.trace.numbers[id(tensor)] = tensor


number_listeners.append(_note_number)


def _end_traces(before: tuple[Trace | None, dict[int, tuple[object, object]]]) -> None:
    """End the traces that were begun since ``before`` was taken."""
    outer, instead = before
    trace = _current.trace
    while trace is not None and trace is not outer:
        trace.finished = True
        trace = trace.outer
    _current.trace, _current.instead = outer, instead


unwinding.parts.append(unwinding.Part(lambda: (_current.trace, _current.instead), _end_traces))


def current_trace() -> Trace | None:
    """The trace in progress in this thread, or None."""
    return _current.trace


def list_open_traces() -> list[Trace]:
    """The traces in progress in this thread, the innermost first."""
    result, trace = [], _current.trace
    while trace is not None:
        result.append(trace)
        trace = trace.outer
    return result


def find_substitute(tensor: object) -> Any:
    """Return the tensor that is recorded in place of a captured one; None if there is none."""
    pair = _current.instead.get(id(tensor))
    return _unwrap_payload(pair[1]) if pair is not None and pair[1] is not tensor else None


def is_tracing() -> bool:
    """Whether calls in this thread are recorded; not where something runs again that has run outside of the trace."""
    return _current.trace is not None and bool(state.include & TRACER)


def read_constant_mask(mask: Any) -> Array | None:
    """The elements of a captured mask, of which the open traces take note; None outside of a trace and for others."""
    traces = list_open_traces()
    if not (traces and is_tracing() and has_array(type(mask))) or id(mask) in _current.instead:
        return None
    if any(trace.is_tracked(mask._array) for trace in traces):
        return None  # it may be written
    elements: Array = mask._array.copy()
    for trace in traces:
        trace.masks.append((mask, elements))
    return elements


constant_mask_hooks.append(read_constant_mask)


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
        # A traced value belongs to no run of td.functionalize that began before the trace.
        with adjust_keys(include=TRACER, exclude=FUNCTIONALIZE):
            yield trace
    finally:
        trace.finished = True
        _current.trace = trace.outer


def _unwrap_payload(other: Any) -> Any:
    """Unwrap all levels of a value; returns the innermost payload."""
    while hasattr(other, "_payload"):
        if other._level.run is not None:
            raise UnsupportedError(
                f"a rule written by hand reaches {describe(other)}, which differs from example to example of "
                f"{other._level.name}, by itself; pass it as an argument"
            )
        other = other._payload
    return other


def list_substituted(tensor: object) -> list[Any]:
    """A tensor, and the tensors that it currently represents."""
    items = [
        old for old, other in _current.instead.values() if other is tensor or _unwrap_payload(other) is tensor
    ]
    return [tensor, *items]


@contextmanager
def substitute_captures(tensors: Sequence[Sequence[Tensor]], others: Sequence[object]) -> Iterator[None]:
    """For a ``with`` block, have others recorded where a traced function reaches tensors by itself.

    Args:
        tensors: for each of the others those for which it stands.
        others: the others.
    """
    before = _current.instead
    added = {id(x): (x, other) for group, other in zip(tensors, others, strict=True) for x in group}
    _current.instead = {**before, **added}
    try:
        yield
    finally:
        _current.instead = before


def check_alive(value: Any) -> None:
    """Raise LeakedTracerError if a value belongs to a trace that is over, or to one of another thread."""
    trace = getattr(value, "_trace", None)
    if trace is None or (not trace.finished and _is_open(trace)):
        return
    what = describe(value) if isinstance(value, TensorBase) else repr(value)
    raise LeakedTracerError(
        f"the traced value {what} was used after its trace had ended\n"
        f"  made:    {trace.describe_origin(value._value)}\n"
        f"  traced:  {trace.name}, from {trace.origin or 'an unknown line'}\n"
        f"  used:    at {source_line() or 'an unknown line'}\n"
        "A traced value stands for data that exist only while the compiled function runs. Return it from the function "
        "instead of keeping it in an attribute, a global, a list or a generator."
    )


def _is_open(trace: Trace) -> bool:
    """Whether a trace is in progress in this thread, itself or around the current one."""
    value = _current.trace
    while value is not None and value is not trace:
        value = value.outer
    return value is trace
