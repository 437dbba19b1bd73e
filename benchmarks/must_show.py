"""All speed bounds as one table: the measured ratio, the bound, and whether it holds.

python benchmarks/must_show.py [--seconds 2] [--only calls,kernels]
"""

import argparse

import calls
import dispatcher
import first_calls
import gradients
import kernels
import loops
import native_operators
import positions
import programs
import starts
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rows import Finding, Row
from tandem.cli.overhead import machine

GROUPS = {
    "starts": starts.ROWS,
    "calls": calls.ROWS,
    "kernels": kernels.ROWS,
    "dispatcher": dispatcher.ROWS,
    "gradients": gradients.ROWS,
    "loops": loops.ROWS,
    "positions": positions.ROWS,
    "programs": programs.ROWS,
    "first_calls": first_calls.ROWS,
    "native_operators": native_operators.ROWS,
}
VERDICTS = {True: "[green]kept[/green]", False: "[red]broken[/red]", None: "not measured"}


def row_cells(found: Finding) -> tuple[str, ...]:
    ratio = "" if found.ratio is None else f"{found.ratio:.3f}"
    return found.beside, ratio, f"{found.bound:g}", VERDICTS[found.kept], found.note


def findings(row: Row, seconds: float) -> list[Finding]:
    """Run a row and return its findings; an exception becomes a finding, so that the other rows still run."""
    try:
        return row.measure(seconds)
    except Exception as fault:
        return [Finding("failed", None, float("nan"), f"{type(fault).__name__}: {fault}".splitlines()[0])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row, about")
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, with commas (all by default)")
    options = parser.parse_args()
    table = Table(title=f"{machine.cpu_model()}, one thread")
    for heading in ("what", "beside", "ratio", "bound", "", "measured"):
        table.add_column(heading, overflow="fold")
    rows = [row for group in options.only.split(",") for row in GROUPS[group]]
    for row in track(rows, description="measuring"):
        for index, value in enumerate(findings(row, options.seconds)):
            table.add_row(row.name if index == 0 else "", *row_cells(value))
    console = Console()
    (console if console.is_terminal else Console(width=150)).print(table)


if __name__ == "__main__":
    main()
