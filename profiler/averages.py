"""Averages: events summed by name, and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .. import lazy
from ..errors import ArgumentError, ValueArgumentError
from ..registry.formatting import short_repr
from ..units import format_duration, format_size
from .events import Event

io = lazy.Module("io")

rich_console = lazy.Module("rich.console")
rich_table = lazy.Module("rich.table")

# Events are summed by name, shapes of the arguments, and call stack.
Key = tuple[str, tuple[tuple[int, ...], ...], tuple[str, ...]]


@dataclass(frozen=True)
class Row:
    """The sums of the events of one name.

    Attributes:
        name: the name of the operator or the span.
        count: the number of calls.
        self_ns: the time of the calls in nanoseconds, excluding nested events.
        total_ns: the time of the calls in nanoseconds, including nested events; recursive calls are counted once.
        self_bytes: the bytes that the calls allocated, excluding nested events.
        total_bytes: the bytes that the calls allocated, including nested events.
        shapes: the shapes of the arguments, if rows are grouped by shape.
        stack: the stack of the call, if rows are grouped by stack.
    """

    name: str
    count: int
    self_ns: int
    total_ns: int
    self_bytes: int
    total_bytes: int
    shapes: tuple[tuple[int, ...], ...] = ()
    stack: tuple[str, ...] = ()

    @property
    def average_ns(self) -> float:
        """The average time of a call in nanoseconds."""
        return self.total_ns / self.count


SORTS: dict[str, Callable[[Row], float | str]] = {
    "total_time": lambda row: row.total_ns,
    "self_time": lambda row: row.self_ns,
    "average_time": lambda row: row.average_ns,
    "count": lambda row: row.count,
    "total_memory": lambda row: row.total_bytes,
    "self_memory": lambda row: row.self_bytes,
    "name": lambda row: row.name,
}
# PyTorch's names of the sort keys.
_OTHER_NAMES = {
    "cpu_time_total": "total_time",
    "self_cpu_time_total": "self_time",
    "cpu_time": "average_time",
    "cpu_memory_usage": "total_memory",
    "self_cpu_memory_usage": "self_memory",
}


class Averages(list[Row]):
    """A list of rows, in the order of the first event of each; ``table()`` formats it.

    Attributes:
        peak: the peak memory in bytes; None if memory was not profiled.
    """

    def __init__(self, rows: Iterable[Row], peak: int | None = None):
        super().__init__(rows)
        self.peak = peak

    @property
    def self_ns(self) -> int:
        """The time of all calls in nanoseconds."""
        return sum(row.self_ns for row in self)

    def table(self, sort_by: str = "self_time", row_limit: int = 100) -> str:
        """Format the rows as a table.

        Args:
            sort_by: ``"total_time" "self_time" "average_time" "count" "total_memory" "self_memory"``, largest first,
                or ``"name"``; PyTorch's names (``"self_cpu_time_total"``, ...) work as well.
            row_limit: the maximum number of rows.

        Returns:
            The table as text of fixed width; percentages are of the time of all calls.

        Raises:
            ValueArgumentError: ``sort_by`` is unknown, or ``row_limit`` is negative.
            ArgumentError: ``row_limit`` is not an integer.
        """
        key = _OTHER_NAMES.get(sort_by, sort_by) if isinstance(sort_by, str) else None
        if key not in SORTS:
            raise ValueArgumentError(f"sort_by={short_repr(sort_by)}; the orders are {', '.join(SORTS)}")
        if not isinstance(row_limit, int):
            raise ArgumentError(f"table: row_limit is an int, not {short_repr(row_limit)}")
        if row_limit < 0:
            raise ValueArgumentError(f"table: row_limit is at least 0, not {row_limit}")
        rows = sorted(self, key=SORTS[key], reverse=key != "name")
        return _render(self, rows[:row_limit], len(rows))

    def __str__(self) -> str:
        return self.table()


def averages_of(
    events: Iterable[Event], by_shape: bool = False, frames: int = 0, peak: int | None = None
) -> Averages:
    """Sum events by name, and optionally by shapes and by ``frames`` frames of the stack."""
    groups: dict[Key, list[Event]] = {}
    for event in events:
        key = (event.name, event.shapes if by_shape else (), event.stack[:frames])
        groups.setdefault(key, []).append(event)
    return Averages((_sum_events(key, members) for key, members in groups.items()), peak)


def _sum_events(key: Key, events: list[Event]) -> Row:
    outer = [event for event in events if not _is_inside_same(event)]
    return Row(
        key[0],
        len(events),
        sum(event.own for event in events),
        sum(event.total for event in outer),
        sum(event.allocated - event.allocated_inside for event in events),
        sum(event.allocated for event in outer),
        key[1],
        key[2],
    )


def _is_inside_same(event: Event) -> bool:
    parent = event.parent
    while parent is not None and parent.name != event.name:
        parent = parent.parent
    return parent is not None


# -- the table ---------------------------------------------------------------------------------------------------------
def _render(averages: Averages, rows: list[Row], count: int) -> str:
    whole = averages.self_ns or 1
    shapes, stacks = any(row.shapes for row in rows), any(row.stack for row in rows)
    heads = ["name", "self %", "self", "total %", "total", "average", "calls"]
    heads += (
        ["memory", "self memory"] * (averages.peak is not None)
        + ["shapes"] * shapes
        + ["called from"] * stacks
    )
    table = rich_table.Table(title="tandem profile")
    for head in heads:
        text = head in ("name", "shapes", "called from")
        table.add_column(head, justify="left" if text else "right", overflow="fold", no_wrap=not text)
    for row in rows:
        cells = [_escape_markup(row.name), _format_percent(row.self_ns, whole), format_duration(row.self_ns)]
        cells += [
            _format_percent(row.total_ns, whole),
            format_duration(row.total_ns),
            format_duration(row.average_ns),
            str(row.count),
        ]
        cells += [format_size(row.total_bytes), format_size(row.self_bytes)] * (averages.peak is not None)
        cells += [_escape_markup(", ".join(map(str, map(list, row.shapes))))] * shapes + [
            _escape_markup("\n".join(row.stack))
        ] * stacks
        table.add_row(*cells)
    console = rich_console.Console(width=_WIDTH + 40 * (shapes + stacks), file=io.StringIO())
    console.print(table)
    last = [f"all calls: {format_duration(averages.self_ns)}"]
    last += [f"{count - len(rows)} more rows"] * (count > len(rows))
    last += [f"peak memory of results: {format_size(averages.peak)}"] if averages.peak is not None else []
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join([*lines, "; ".join(last)])


_WIDTH = 120


def _escape_markup(text: str) -> str:
    return text.replace("[", "\\[")  # a bracket is markup to rich


def _format_percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}"
