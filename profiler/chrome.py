"""Export of events as a Chrome trace.

Source: the "Trace Event Format" of Chrome's tracing, which Perfetto reads: complete events (``ph: X``) with times in
microseconds, counters (``ph: C``) for memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from .. import lazy
from .events import Event

json = lazy.Module("json")


def chrome_trace(events: Iterable[Event], memory: Iterable[tuple[int, int]], origin: int) -> str:
    """Return the JSON text of a trace.

    Args:
        events: the events of the trace.
        memory: pairs of time in nanoseconds and live bytes.
        origin: the time in nanoseconds at which the trace starts.
    """
    process = os.getpid()
    rows = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "tandem"}},
        *(_event_row(event, process, origin) for event in events),
        *(_counter_row(at, live, process, origin) for at, live in memory),
    ]
    return str(json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"}))


def _event_row(event: Event, process: int, origin: int) -> dict[str, object]:
    details: dict[str, object] = {}
    if event.shapes:
        details["shapes"] = [list(shape) for shape in event.shapes]
        details["dtypes"] = list(event.dtypes)
    if event.stack:
        details["stack"] = list(event.stack)
    if event.allocated:
        details["allocated bytes"] = event.allocated
    if event.failed:
        details["failed"] = True
    return {
        "ph": "X",
        "name": event.name,
        "cat": event.kind,
        "pid": process,
        "tid": event.thread,
        "ts": (event.start - origin) / 1e3,
        "dur": event.total / 1e3,
        "args": details,
    }


def _counter_row(at: int, live: int, process: int, origin: int) -> dict[str, object]:
    name = "memory of results"
    return {"ph": "C", "name": name, "pid": process, "ts": (at - origin) / 1e3, "args": {"bytes": live}}
