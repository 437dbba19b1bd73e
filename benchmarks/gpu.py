"""The GPU suite: the tests that need a GPU, compute-sanitizer on the kernels, and the benchmarks; one table of results.

python benchmarks/gpu.py [--skip tests,sanitizer,benchmarks] [--into benchmarks/results]

Writes ``gpu-<date>-<commit>.json`` and ``.txt``. Exits with 0 where everything passes and every bound that could be
measured is kept, with 1 where not, and with 2, saying what is missing, where CUDA cannot be used.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpu_rows
import tandem as td
from tandem import lazy
from tandem.backends.cuda import toolkit
from tandem.overhead import machine

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 3 * 3600  # seconds of one command
SANITIZERS = ("memcheck", "racecheck", "synccheck")
# what compute-sanitizer finds is a failure; a driver's call that says no (is it memory of the device?) is none
SANITIZER = ("--error-exitcode", "9", "--report-api-errors", "no")
SANITIZED = ("-m", "pytest", "-q", "-x", "-m", "gpu", "-k", "sanitized", "tests/test_cuda_gpu_jit.py")


def command(words: list[str], **environment: str) -> dict[str, Any]:
    """Run a command in the repository: its status, and the end of what it prints; 124 if it takes too long."""
    try:
        found = subprocess.run(
            words,
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return {"status": 124, "output": [f"stopped after {LONGEST} seconds"]}
    return {"status": found.returncode, "output": (found.stdout + found.stderr).strip().splitlines()[-15:]}


def tests() -> dict[str, Any]:
    """The tests that need a GPU, whole."""
    return command([sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests"])


def sanitized() -> dict[str, Any]:
    """The generated kernels under compute-sanitizer, where it is installed."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return {"skipped": "compute-sanitizer is not on the path"}
    python = [sys.executable, *SANITIZED]
    return {
        name: command([tool, "--tool", name, *SANITIZER, *python], TANDEM_CUDA_CACHING="0")
        for name in SANITIZERS
    }


def about() -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    properties, driver = td.cuda.get_device_properties(), toolkit.toolkit().driver
    version = driver.get("cuDriverGetVersion", ctypes.c_int)
    commit = command(["git", "rev-parse", "--short", "HEAD"])
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": "unknown" if commit["status"] else commit["output"][0],
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory": properties.total_memory,
        "driver": f"{version // 1000}.{version % 1000 // 10}",
        "versions": machine.versions() | {"cupy": lazy.version("cupy-cuda13x") or "?"},
        "machine": machine.describe(),
    }


def benchmarks() -> list[dict[str, Any]]:
    """The rows that are promised, measured."""
    return [finding._asdict() | {"kept": finding.kept} for finding in gpu_rows.findings()]


def failed(report: dict[str, Any]) -> bool:
    """Whether a test, a sanitizer or a bound has failed."""
    runs = [
        report.get("tests", {}),
        *(r for r in report.get("sanitizer", {}).values() if isinstance(r, dict)),
    ]
    return any(run.get("status", 0) for run in runs) or any(
        row["kept"] is False or row["beside"] == "failed" for row in report.get("benchmarks", ())
    )


def text(report: dict[str, Any]) -> str:
    """The report for people."""
    about_ = report["about"]
    lines = [f"{about_['gpu']}, driver {about_['driver']}, {about_['date']}, commit {about_['commit']}"]
    lines += [", ".join(f"{name} {version}" for name, version in about_["versions"].items()), ""]
    for row in report.get("benchmarks", ()):
        sign, verdict = (
            (">=" if row["at_least"] else "<="),
            {True: "kept", False: "BROKEN", None: "not measured"},
        )
        value = "" if row["value"] is None else f"{row['value']:.3f}"
        bound = "" if row["bound"] is None else f"{sign} {row['bound']:g}"
        lines.append(
            f"{row['what']:58} {row['beside']:32} {value:>8} {bound:>8} {verdict[row['kept']]:12} {row['note']}"
        )
    for part in ("tests", "sanitizer"):
        if part in report:
            lines += ["", f"{part}: {json.dumps(report[part], indent=1)}"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--skip", default="", help="tests, sanitizer, benchmarks; with commas")
    parser.add_argument("--into", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of the memory
    missing = toolkit.missing()
    if missing:
        print(f"the GPU suite needs CUDA, and {'; '.join(missing)}")
        return 2
    report: dict[str, Any] = {"about": about()}
    options.into.mkdir(parents=True, exist_ok=True)
    place = options.into / f"gpu-{report['about']['date']}-{report['about']['commit']}"
    for name, part in (("benchmarks", benchmarks), ("tests", tests), ("sanitizer", sanitized)):
        if name not in options.skip.split(","):
            report[name] = part()
            place.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
            place.with_suffix(".txt").write_text(text(report))
    print(text(report))
    return 1 if failed(report) else 0


if __name__ == "__main__":
    sys.exit(main())
