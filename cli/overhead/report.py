"""The report for a terminal: tables of the comparisons and of the layers."""

from typing import Any

from ... import lazy
from ...units import format_duration
from .measure import Timing
from .results import Comparison, Report, Split

rich_table = lazy.Module("rich.table")


def format_count(elements: int) -> str:
    """16, 1k, 100k, 1M."""
    for suffix, size in (("M", 10**6), ("k", 10**3)):
        if elements >= size:
            return f"{elements // size}{suffix}"
    return str(elements)


def format_spread(timing: Timing) -> str:
    """The median and half the distance of the quartiles."""
    return f"{format_duration(timing.median)} [dim]±{50 * timing.spread:.0f}%[/dim]"


def format_calls(number: float | None) -> str:
    """A number of calls, or never."""
    return "never" if number is None else f"{number:,.0f}"


def _contender_names(comparisons: list[Comparison]) -> list[str]:
    return list(dict.fromkeys(name for comparison in comparisons for name in comparison.times))


def comparison_table(title: str, comparisons: list[Comparison], *, chains: bool) -> Any:
    """One row for each workload, one column for each contender."""
    names = _contender_names(comparisons)
    table = rich_table.Table(title=title, caption="time per call, median ± half the interquartile range")
    for format_heading in ("ops", "elements") if chains else ("workload",):
        table.add_column(format_heading, justify="right" if chains else "left")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("first jit call", justify="right")
    table.add_column("break-even calls", justify="right")
    for before, one in zip([None, *comparisons], comparisons, strict=False):
        if before is not None and before.elements != one.elements:
            table.add_section()
        head = (str(one.ops), format_count(one.elements)) if chains else (one.workload,)
        cells = [format_spread(one.times[name]) if name in one.times else "" for name in names]
        table.add_row(
            *head, *cells, format_duration(one.first_call["tandem jit"]), format_calls(one.break_even())
        )
    return table


def split_table(splits: list[Split]) -> Any:
    """Make the table of the parts of a call's time, with a section for each path."""
    table = rich_table.Table(
        title="where one call's time goes",
        caption="native: the layers are taken away one after another; Python: each is measured by itself, so that the "
        "sum of the parts is a check",
    )
    for heading in ("path", "layer", "time", "share"):
        table.add_column(heading, justify="right" if heading in ("time", "share") else "left")
    for split in splits:
        table.add_section()
        if split.whole is None:
            table.add_row(split.path, split.note, "", "")
            continue
        table.add_row(f"{split.path}: {split.call}", "whole", format_spread(split.whole), "")
        for name, ns in split.parts.items():
            table.add_row("", name, format_duration(ns), f"{100 * ns / split.whole.median:.0f} %")
        if split.closure is not None:
            total = sum(split.parts.values())
            share = f"[dim]{100 * split.closure:.0f} %[/dim]"
            table.add_row("", "[dim]sum of the parts[/dim]", f"[dim]{format_duration(total)}[/dim]", share)
    return table


def format_heading(report: Report) -> str:
    """Machine, versions and native paths in a few lines."""
    machine = report.machine
    versions = "  ".join(f"{name} {version}" for name, version in report.versions.items())
    paths = "  ".join(f"{name}: {state}" for name, state in report.native.items())
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}\n{versions}\n{paths}"


def show(report: Report, console: Any) -> None:
    """Print the whole report."""
    console.print(format_heading(report), highlight=False)
    console.print(comparison_table("chains of additions and products, float32", report.chains, chains=True))
    console.print(comparison_table("one training step with gradient", [report.step], chains=False))
    console.print(split_table(report.splits))
    console.print(
        f"[dim]measured in {report.seconds:.0f} s, everything interleaved in one process, one thread[/dim]"
    )
