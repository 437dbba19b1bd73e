"""``profile``, the context manager that profiles a block, and the kernel of the Profiler key."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from .. import locks
from ..errors import ArgumentError, ProfilerError
from ..locks import ThreadLocal
from ..operators.declare.declaration import LIBRARY
from ..registry.dispatch.keys import AUTOGRAD, DispatchKey, below
from ..registry.dispatch.observers import PROFILER, current_observer, note_kernels, run_unobserved, watch
from ..registry.dispatch.state import set_keys, state
from ..registry.formatting import short_repr
from ..registry.function import functions
from ..registry.operator import Operator
from .averages import Averages, averages_of
from .chrome import chrome_trace
from .events import Event, tensors_in, user_frames
from .memory import Memory

if TYPE_CHECKING:
    from ..registry.types import Args, Kwargs

R = TypeVar("R")
BELOW = below(DispatchKey.Profiler)
_start_lock = locks.make_lock("profiler")


class _OpenEvents(ThreadLocal):
    """The events of this thread that have not ended, outermost first."""

    def __init__(self) -> None:
        self.events: list[Event] = []


class profile:
    """Context manager that records each operator call, jitted call and backward step of this thread.

    Calls use native code as they do without a profiler. The overhead of the profiler is between events, so it is part
    of the time of their parents. Another thread is profiled while it is in a :func:`tandem.dispatch_state` that was
    taken inside the block.

    Args:
        record_shapes: whether to record shapes and dtypes of the tensor arguments.
        with_stack: whether to record the user's frames of each call.
        profile_memory: whether to count the bytes of the tensors that calls create, and their peak.
        with_kernels: whether to record the kernels of jitted calls and their gradients on the CPU, with the names that
            ``kernels()`` prints. Such a call runs code that stores the time after each kernel.

    Raises:
        ProfilerError: another profiler is running.

    Source: ``torch.profiler.profile``.

    >>> import tandem as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> with td.profiler.profile(record_shapes=True) as prof:
    ...     y = td.exp(x) @ x
    >>> [event.name for event in prof.events()]
    ['td::exp', 'td::matmul']
    >>> prof.events()[1].shapes
    ((2, 2), (2, 2))
    """

    def __init__(
        self,
        *,
        record_shapes: bool = False,
        with_stack: bool = False,
        profile_memory: bool = False,
        with_kernels: bool = False,
    ):
        self.record_shapes, self.with_stack, self.kernels = record_shapes, with_stack, with_kernels
        self.memory = Memory() if profile_memory else None
        self._events: list[Event] = []
        self._open = _OpenEvents()
        self._before = 0
        self.start = self.end = 0

    # -- on and off ------------------------------------------------------------------------------------------------
    def __enter__(self) -> profile:
        with _start_lock:
            if watch.observer is not None:
                raise ProfilerError("a profiler is running already; profilers do not nest")
            watch.observer = self
        self.start = time.perf_counter_ns()
        self._before = state.exclude & PROFILER
        set_keys(state.include | PROFILER, state.exclude & ~PROFILER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        if watch.observer is not self:
            return  # it has not been entered, or it has ended
        set_keys(state.include & ~PROFILER, state.exclude | self._before)
        self.end = time.perf_counter_ns()
        watch.observer = None

    # -- recording -------------------------------------------------------------------------------------------------
    def span(self, name: str, kind: str, run: Callable[[], R], inputs: Args = ()) -> R:
        """Call ``run`` and record the call as an event."""
        note = self._note if self.kernels and kind in ("jit", "backward") else None
        with _RunningEvent(self, name, kind, inputs) as running, note_kernels(note):
            out = run()
            running.event.end = time.perf_counter_ns()
            running.results = out if isinstance(out, tuple) else (out,)
        return out

    def _note(self, kind: str, name: str, start: int, end: int) -> None:
        """Record a part of the current call."""
        event = self._begin(name, kind, ())
        event.start, event.end = start, end
        self._finish(event, (), ())

    def _begin(self, name: str, kind: str, inputs: Args) -> Event:
        open_events = self._open.events
        event = Event(name, kind, _thread.get_ident(), open_events[-1] if open_events else None)
        if self.record_shapes:
            tensors = tensors_in(inputs)
            event.shapes = tuple(tuple(tensor.shape) for tensor in tensors)
            event.dtypes = tuple(str(tensor.dtype.name) for tensor in tensors)
        if self.with_stack:
            event.stack = user_frames()
        self._events.append(event)
        open_events.append(event)
        return event

    def _finish(self, event: Event, inputs: Args, results: Args) -> None:
        event.end = event.end or time.perf_counter_ns()
        self._open.events.pop()
        if self.memory is not None:
            event.allocated = self.memory.take(inputs, results) + event.allocated_inside
        if event.parent is not None:
            event.parent.inside += event.total
            event.parent.allocated_inside += event.allocated

    # -- reading ---------------------------------------------------------------------------------------------------
    def events(self) -> list[Event]:
        """Return all events in the order of their start times."""
        return list(self._events)

    def key_averages(self, *, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """Sum the events by name: ``print(prof.key_averages().table())``.

        Args:
            group_by_input_shape: whether calls with different input shapes are separate rows.
            group_by_stack_n: the number of stack frames by which calls are separate rows.

        Returns:
            A list of rows that has ``table()``.

        Raises:
            ArgumentError: ``group_by_stack_n`` is not an integer.
        """
        if not isinstance(group_by_stack_n, int):
            raise ArgumentError(
                f"key_averages: group_by_stack_n is an int, not {short_repr(group_by_stack_n)}"
            )
        peak = None if self.memory is None else self.memory.peak
        return averages_of(self.events(), group_by_input_shape, group_by_stack_n, peak)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write the events as a JSON file that Perfetto (ui.perfetto.dev) and chrome://tracing open.

        Args:
            path: the path of the file, which is overwritten.

        Raises:
            ArgumentError: ``path`` is neither a string nor a ``Path``.
        """
        if not isinstance(path, (str, Path)):
            raise ArgumentError(f"export_chrome_trace takes the path of a file, not {short_repr(path)}")
        steps = () if self.memory is None else self.memory.steps
        Path(path).write_text(chrome_trace(self.events(), steps, self.start))


class _RunningEvent:
    """Context manager that records its block as an event of a profile.

    Attributes:
        event: the event.
        results: the results of the call, for counting memory.
    """

    __slots__ = ("_inputs", "_profile", "event", "results")

    def __init__(self, into: profile, name: str, kind: str, inputs: Args = ()):
        self._profile, self._inputs = into, inputs
        self.results: Args = ()
        self.event = into._begin(name, kind, inputs)

    def __enter__(self) -> _RunningEvent:
        self.event.start = time.perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        self.event.failed = kind is not None
        self._profile._finish(self.event, self._inputs, self.results)


def profiler_kernel(op: Operator, keyset: int, args: Args, kwargs: Kwargs) -> object:
    """Record an event for a call and run the next lower key; the fallback of the Profiler key."""
    observer = current_observer()
    if observer is None:
        return op.dispatch(keyset & BELOW, args, kwargs)
    inputs = (*args, *kwargs.values())
    if _is_leaf(op):  # through the native entry, if that is what answers when nobody watches
        function = functions[op.name]
        return run_unobserved(
            lambda: observer.span(op.name, "operator", lambda: function(*args, **kwargs), inputs)
        )
    return observer.span(op.name, "operator", lambda: op.dispatch(keyset & BELOW, args, kwargs), inputs)


def _is_leaf(op: Operator) -> bool:
    """Return whether the operator calls no other operators, and no layer but the profiler is active in this thread."""
    decl = op.decl
    usual = state.include == PROFILER and not state.exclude & ~AUTOGRAD
    return usual and op.name in functions and decl is not None and decl.kind not in ("composite", "custom")


@contextmanager
def record_function(name: str) -> Iterator[None]:
    """Context manager that records a block as an event with a name, if a profiler is running.

    Args:
        name: the name of the event.

    Raises:
        ArgumentError: ``name`` is not a string.

    >>> import tandem as td
    >>> with td.profiler.profile() as prof, td.profiler.record_function("the sum"):
    ...     _ = td.sum(td.asarray([1.0, 2.0]))
    >>> [(event.name, event.parent and event.parent.name) for event in prof.events()]
    [('the sum', None), ('td::sum', 'the sum')]
    """
    if not isinstance(name, str):
        raise ArgumentError(f"record_function takes a name, not {short_repr(name)}")
    observer = current_observer()
    if not isinstance(observer, profile):
        yield
        return
    with _RunningEvent(observer, name, "user"):
        yield


LIBRARY.fallback(profiler_kernel, DispatchKey.Profiler)
