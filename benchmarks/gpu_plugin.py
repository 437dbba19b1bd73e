"""pytest plugin of the GPU suite: save each test's result as a row when the test ends.

Tests that have passed before are left out, no test begins after the part's time, and tests that need a package which is
not installed are skipped.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

OPTIONAL = ("hypothesis", "ml_dtypes", "scipy")
ROWS, PART, UNTIL = "TANDEM_GPU_ROWS", "TANDEM_GPU_PART", "TANDEM_GPU_UNTIL"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The saved rows; a truncated line is skipped."""
    result = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            result.append(json.loads(line))
        except ValueError:
            continue
    return result


def save_row(path: Path, row: dict[str, Any]) -> None:
    """Append a row and flush it to disk."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


def latest_rows(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The last row of each part and name."""
    return {(row["part"], row["name"]): row for row in rows}


def _settings() -> tuple[Path, str] | None:
    path = os.environ.get(ROWS)
    return None if path is None else (Path(path), os.environ[PART])


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Deselect tests that have passed or were skipped before; run other earlier tests last."""
    known = _settings()
    if known is None:
        return
    path, part = known
    rows = latest_rows(read_rows(path))
    known_rows = {name: row["status"] for (its_part, name), row in rows.items() if its_part == part}
    done = [item for item in items if known_rows.get(item.nodeid) in ("passed", "skipped")]
    left = [item for item in items if known_rows.get(item.nodeid) not in ("passed", "skipped")]
    config.hook.pytest_deselected(items=done)
    items[:] = sorted(left, key=lambda item: item.nodeid in known_rows)


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    """Save the start of a test, so that a test that ends the process is known."""
    known = _settings()
    if known is not None:
        save_row(known[0], {"part": known[1], "name": nodeid, "status": "began"})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Skip a test that needs a package which is not installed."""
    try:
        return (yield)
    except ModuleNotFoundError as fault:
        if (fault.name or "").partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{fault.name} is not installed")


def pytest_runtest_logreport(report: Any) -> None:
    """Save the row of a test: its first failure, or that it has passed."""
    known = _settings()
    if known is None or (report.when != "call" and report.outcome == "passed"):
        return
    if report.when == "teardown" and report.outcome == "skipped":
        return
    path, part = known
    note = "" if report.outcome == "passed" else str(report.longreprtext).strip().splitlines()[-1:]
    row = {
        "part": part,
        "name": report.nodeid,
        "status": report.outcome,
        "seconds": round(report.duration, 3),
    }
    save_row(path, row | {"note": "".join(note)[:300]})


def pytest_runtest_teardown(item: Any, nextitem: Any) -> None:
    """Stop the session when the part's time is over."""
    until = os.environ.get(UNTIL)
    if until is not None and nextitem is not None and time.time() > float(until):
        item.session.shouldstop = "the part's time is over"
