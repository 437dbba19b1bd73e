"""The command line: ``tandem overhead``, ``tandem doctor``, ``tandem trace`` and ``tandem ops``."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .. import lazy
from ..errors import UnknownOperatorError
from ..registry.dispatch.trace import show_dispatch_trace
from ..registry.operator import operators
from . import catalogue
from . import doctor as examination
from .overhead import peers as rivals
from .overhead import report as reports
from .overhead.picture import draw
from .overhead.results import Report
from .overhead.run import QUICK, Settings, run

rich_console = lazy.Module("rich.console")
rich_progress = lazy.Module("rich.progress")

WIDTH = 150  # of what is written to a file or a pipe


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tandem-dispatch", prog_name="tandem")
def main() -> None:
    """Look into tandem: its operators, what runs in a call, and what a call costs."""


def _peer_names(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    if value == "auto":
        return rivals.list_installed()
    names = tuple(name.strip() for name in value.split(",") if name.strip() not in ("", "none"))
    unknown = [name for name in names if name not in rivals.PEERS]
    if unknown:
        raise click.BadParameter(
            f"{', '.join(unknown)}: the peers are {', '.join(rivals.PEERS)}, auto and none"
        )
    missing = [name for name in names if not lazy.is_installed(name)]
    if missing:
        raise click.BadParameter(f"not installed: {', '.join(missing)}")
    return names


def _picture_path(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a picture that cannot be drawn before anything is measured."""
    if value is not None and not lazy.is_installed("matplotlib"):
        raise click.BadParameter('needs matplotlib: pip install "tandem-dispatch[viz]"')
    return value


@main.command()
@click.option("--quick", is_flag=True, help="Fewer sizes and shorter rounds: a few seconds.")
@click.option(
    "--peers", default="auto", callback=_peer_names, help="torch,jax,numba; auto (installed ones); none."
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path, dir_okay=False), help="Write the numbers here."
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_picture_path,
    help="Draw the picture here.",
)
def overhead(quick: bool, peers: tuple[str, ...], json_path: Path | None, plot: Path | None) -> None:
    """Measure what a call costs, eager and compiled, and where the time goes."""
    console = _console()
    base = QUICK if quick else Settings()
    report = _measure(Settings(base.lengths, base.sizes, base.seconds, peers), console)
    reports.show(report, console)
    if json_path is not None:
        json_path.write_text(json.dumps(report.as_dict(), indent=2) + "\n")
        console.print(f"numbers: {json_path}")
    if plot is not None:
        draw(report, str(plot))
        console.print(f"picture: {plot}")


def _console() -> Any:
    """A console; wide enough for the tables where the output goes to a file or a pipe."""
    console = rich_console.Console()
    return console if console.is_terminal else rich_console.Console(width=WIDTH)


def _measure(settings: Settings, console: object) -> Report:
    columns = (
        rich_progress.TextColumn("{task.description:>28}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
    )
    # The bar is drawn between measurements, not by a thread that runs during them.
    with rich_progress.Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("measuring", total=settings.comparisons)

        def advance(done: str) -> None:
            bar.update(task, advance=1, description=done)
            bar.refresh()

        return run(settings, advance)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say what is on, what is off, and why."""
    findings = examination.examine()
    if as_json:
        json.dump(findings, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        examination.show(findings, _console())


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o",
    "--output",
    type=click.File("w"),
    help="Write the trace here instead of to standard error.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Stop printing after so many lines.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(output: Any, limit: int | None, script: str, arguments: tuple[str, ...]) -> None:
    """Run a Python SCRIPT with its ARGUMENTS and print every call and redispatch, nested."""
    printed = 0

    def write(line: str) -> None:
        nonlocal printed
        printed += 1
        if limit is None or printed <= limit:
            click.echo(line, file=output, err=output is None)

    with _program(script, arguments), show_dispatch_trace(write):
        runpy.run_path(script, run_name="__main__")
    if limit is not None and printed > limit:
        click.echo(f"... and {printed - limit} more lines", file=output, err=output is None)


@contextmanager
def _program(script: str, arguments: tuple[str, ...]) -> Iterator[None]:
    """Set ``sys.argv`` and ``sys.path`` as ``python script`` does, and restore them at the end."""
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = [script, *arguments], [str(Path(script).resolve().parent), *path]
    try:
        yield
    finally:
        sys.argv, sys.path = argv, path


@main.command()
@click.argument("name", required=False)
@click.option("--namespace", default="", help="List the operators of one namespace only.")
def ops(name: str | None, namespace: str) -> None:
    """List the operators; or, with a NAME such as add or add.Tensor, say all that is known about one."""
    if name is None:
        known = sorted({op.schema.namespace for op in operators.values()})
        if namespace not in ("", *known):
            raise click.BadParameter(f"no namespace {namespace!r}; there are {', '.join(known)}")
        catalogue.list_operators(namespace, _console())
        return
    try:
        result = catalogue.find_operators(name)
    except UnknownOperatorError as fault:
        raise click.BadParameter(str(fault)) from None
    for op in result:
        catalogue.show_operator(op, _console())
