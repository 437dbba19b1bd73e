"""The GPU suite: parts of at most ten minutes, 30 minutes in all; an interrupted part resumes at its next row.

python benchmarks/gpu.py [--part smoke|eager|jit|bench|sanitizer] [--into benchmarks/results] [--seconds N]

It takes NumPy, llvmlite, cupy and pytest; rows that need more (ml_dtypes, SciPy, hypothesis) are skipped.
Every row is saved when it ends, in ``gpu-<commit>.jsonl``; those that have passed are not run again. Exits with 0 where
all that was run has passed, with 1 where something failed or nothing has passed, with 3 where time was up before the
end (run it again), and with 2, saying what is missing, where CUDA cannot be used.
"""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpu_rows
import gpu_smoke
import tandem as td
from gpu_plugin import OPTIONAL, PART, ROWS, UNTIL, latest_rows, read_rows, save_row
from tandem import lazy
from tandem.backends.cuda.runtime import toolkit
from tandem.cli.overhead import machine

ROOT = Path(__file__).resolve().parent.parent
SECONDS = {"smoke": 120, "eager": 480, "jit": 480, "bench": 420, "sanitizer": 300}
"""The time of each part; 30 minutes in all."""
LONGEST = 600
TESTS = {"eager": "tests/cuda/test_cuda_gpu.py", "jit": "tests/cuda/jit/test_cuda_gpu_jit.py"}
SANITIZERS = ("memcheck", "racecheck", "synccheck")
# what compute-sanitizer finds is a failure; a driver's call that says no (is it memory of the device?) is none
SANITIZER = ("--error-exitcode", "9", "--report-api-errors", "no")
SANITIZED = ("-m", "pytest", "-q", "-x", "-m", "gpu and not full", "-k", "sanitized", TESTS["jit"])
DONE = ("passed", "skipped")


class Part:
    """One part of a run: its rows and its time.

    Args:
        name: of the part.
        path: where rows are saved.
        seconds: how long it may take.
    """

    def __init__(self, name: str, path: Path, seconds: float):
        self.name, self.path, self.end = name, path, time.time() + seconds
        self.is_cut_off = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.time()

    def unfinished(self, names: Any) -> Iterator[str]:
        """The names of rows that have not passed, as long as there is time; those that were tried before come last."""
        known = {name: row["status"] for (part, name), row in self.latest().items() if part == self.name}
        for name in sorted(names, key=lambda one: one in known):
            if known.get(name) in DONE:
                continue
            if self.left <= 0:
                self.is_cut_off = True
                return
            yield name

    def latest(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The last row of each part and name."""
        return latest_rows(read_rows(self.path))

    def save(self, name: str, status: str, note: str = "", **more: Any) -> None:
        """Save the row of a name."""
        save_row(self.path, {"part": self.name, "name": name, "status": status, "note": note} | more)

    def run(self, name: str, work: Callable[[], dict[str, Any]]) -> None:
        """Run a row and save what came of it; ``work`` returns what is saved besides."""
        self.save(name, "began")
        begin = time.perf_counter()
        try:
            more = {"status": "passed"} | work()
        except ModuleNotFoundError as fault:
            missing = (fault.name or "").partition(".")[0] in OPTIONAL
            more = {"status": "skipped" if missing else "failed", "note": str(fault)}
        except Exception as fault:
            more = {"status": "failed", "note": f"{type(fault).__name__}: {fault}".splitlines()[0]}
        self.save(name, **({"seconds": round(time.perf_counter() - begin, 3)} | more))


def run_command(words: list[str], seconds: float, **environment: str) -> tuple[int, str]:
    """Run a command in the repository: its status (124: it took too long), and the end of what it prints."""
    options: dict[str, Any] = {
        "cwd": ROOT,
        "env": os.environ | environment,
        "capture_output": True,
        "text": True,
    }
    try:
        result = subprocess.run(words, check=False, timeout=max(seconds, 1), **options)
    except subprocess.TimeoutExpired:
        return 124, f"stopped after {seconds:.0f} seconds"
    return result.returncode, "\n".join((result.stdout + result.stderr).strip().splitlines()[-15:])


def smoke(part: Part) -> None:
    """A minute of first things."""
    for name in part.unfinished(gpu_smoke.ROWS):
        part.run(name, lambda name=name: gpu_smoke.ROWS[name]() or {})  # type: ignore[misc,func-returns-value]


def tests(part: Part) -> None:
    """The tests that need a GPU, each a row, by pytest and its plugin."""
    pytest = ("-m", "pytest", "-q", "-p", "gpu_plugin", "-m", "gpu and not full", TESTS[part.name])
    settings = {ROWS: str(part.path), PART: part.name, UNTIL: str(part.end)}
    paths = [str(ROOT / "benchmarks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    status, text = run_command(
        [sys.executable, *pytest], part.left + 30, **settings, PYTHONPATH=os.pathsep.join(paths)
    )
    part.is_cut_off = time.time() >= part.end
    if status not in (0, 1, 5) and not (part.is_cut_off and status in (2, 124)):
        part.save("pytest", "failed", f"status {status}: {text}"[-2000:])


def bench(part: Part) -> None:
    """The rows that are promised, measured."""
    rows = gpu_rows.rows()
    for name in part.unfinished(rows):
        part.run(name, lambda name=name: measured(rows[name]()))  # type: ignore[misc]
        td.cuda.empty_cache()


def measured(findings: list[gpu_rows.Finding]) -> dict[str, Any]:
    """Return the measurements of a row for the results file, with a fault if a bound is broken."""
    broken = [one.what for one in findings if one.kept is False]
    note = f"bounds broken: {', '.join(broken)}" if broken else ""
    items = [one._asdict() | {"kept": one.kept} for one in findings]
    return {"status": "failed" if broken else "passed", "note": note, "findings": items}


def sanitizer(part: Part) -> None:
    """The generated kernels under compute-sanitizer, where it is installed."""
    tool = shutil.which("compute-sanitizer")
    for name in part.unfinished(SANITIZERS):
        if tool is None:
            part.save(name, "skipped", "compute-sanitizer is not on the path")
        else:
            part.run(name, lambda name=name: sanitized(tool, name, part))  # type: ignore[misc]


def sanitized(tool: str, name: str, part: Part) -> dict[str, Any]:
    """One tool of compute-sanitizer over the tests that are made for it."""
    words = [tool, "--tool", name, *SANITIZER, sys.executable, *SANITIZED]
    status, text = run_command(words, part.left, TANDEM_CUDA_CACHING="0")
    part.is_cut_off = part.is_cut_off or status == 124
    return {"status": "failed" if status else "passed", "note": f"status {status}: {text}" if status else ""}


PARTS: dict[str, Callable[[Part], None]] = {
    "smoke": smoke,
    "eager": tests,
    "jit": tests,
    "bench": bench,
    "sanitizer": sanitizer,
}


def about() -> dict[str, Any]:
    """Describe the machine and the versions on which the numbers depend."""
    properties = td.cuda.get_device_properties()
    version = toolkit.toolkit().cupy().cuda.runtime.driverGetVersion()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory": properties.total_memory,
        "driver": f"{version // 1000}.{version % 1000 // 10}",
        "versions": machine.versions() | {"cupy": lazy.version("cupy-cuda13x") or "?"},
        "machine": machine.describe(),
    }


def commit() -> str:
    """The commit that is run, for the name of the results."""
    status, text = run_command(["git", "rev-parse", "--short", "HEAD"], 60)
    return "unknown" if status else text.strip()


def verdict(row: dict[str, Any]) -> str:
    """A finding for people."""
    sign = ">=" if row["at_least"] else "<="
    said = {True: "kept", False: "BROKEN", None: "not measured"}[row["kept"]]
    value = "" if row["value"] is None else f"{row['value']:.3f}"
    bound = "" if row["bound"] is None else f"{sign} {row['bound']:g}"
    return f"{row['what']:58} {row['beside']:32} {value:>8} {bound:>8} {said:12} {row['note']}"


def summary(rows: dict[tuple[str, str], dict[str, Any]], names: list[str]) -> tuple[str, int, int]:
    """The rows for people, how many have passed, and how many have not; a row that only began ended the process."""
    lines, passed, failed = [], 0, 0
    for part in names:
        mine = [row for (its, _), row in rows.items() if its == part]
        counts = {status: sum(row["status"] == status for row in mine) for status in ("passed", "skipped")}
        bad = [row for row in mine if row["status"] not in DONE]
        passed, failed = passed + counts["passed"], failed + len(bad)
        lines.append(f"{part}: {counts['passed']} passed, {counts['skipped']} skipped, {len(bad)} failed")
        for row in bad:
            note = "it ended the process, or was cut off" if row["status"] == "began" else row.get("note", "")
            lines.append(f"  FAILED {row['name']}: {note}")
        lines += [f"  {verdict(one)}" for row in mine for one in row.get("findings", ())]
    return "\n".join(lines) + "\n", passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=list(PARTS), help="one part; without it all, one after the other")
    parser.add_argument("--seconds", type=float, help=f"of a part, at most {LONGEST}")
    parser.add_argument("--into", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of the memory
    missing = toolkit.missing_requirements()
    if missing:
        print(f"the GPU suite needs CUDA, and {'; '.join(missing)}")
        return 2
    options.into.mkdir(parents=True, exist_ok=True)
    path = options.into / f"gpu-{commit()}.jsonl"
    save_row(path, {"part": "about", "name": "machine", "status": "passed"} | about())
    names, cut_off = [options.part] if options.part else list(PARTS), []
    for name in names:
        part = Part(name, path, min(options.seconds or SECONDS[name], LONGEST))
        PARTS[name](part)
        if part.is_cut_off:
            cut_off.append(name)
    text, passed, failed = summary(latest_rows(read_rows(path)), names)
    text += f"time was up in {', '.join(cut_off)}: run it again to go on\n" if cut_off else ""
    path.with_suffix(".txt").write_text(text)
    print(text)
    if failed or not passed:
        return 1
    return 3 if cut_off else 0


if __name__ == "__main__":
    sys.exit(main())
