"""mypy and pyright on users' programs: a typed program passes, mistakes are reported, the examples pass."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tandem
from source_tree import ROOT

pytestmark = pytest.mark.once

PROGRAMS = Path(__file__).parent / "programs"
TYPED, WRONG = PROGRAMS / "typed.py", PROGRAMS / "wrong.py"


def package_path(tmp_path):
    """Folders that a type checker must search for the package; none if it is installed."""
    folder = Path(tandem.__file__).parent
    if folder.resolve() != ROOT:
        return []
    if folder.name == "tandem":
        return [folder.parent]
    (tmp_path / "tandem").symlink_to(ROOT)
    return [tmp_path]


def run_mypy(files, searched):
    """Run mypy --strict with the cache of the project's own check; returns its output."""
    pytest.importorskip("mypy", reason="mypy is in the dev extra")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--explicit-package-bases",
        "--cache-dir",
        ".mypy_cache",
    ]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, searched))}
    run = subprocess.run(
        [*command, *map(str, files)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.stdout


def reported_codes(output):
    """{line: error codes} of mypy's output for the wrong program."""
    codes = {}
    for line, code in re.findall(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]$", output, re.MULTILINE):
        codes.setdefault(int(line), set()).add(code)
    return codes


def mistakes():
    """{line: mypy's error code} of the wrong program."""
    lines = enumerate(WRONG.read_text().splitlines(), 1)
    return {number: line.rpartition("  # ")[2] for number, line in lines if "  # " in line}


def test_mypy_accepts_typed_program_and_reports_mistakes(tmp_path):
    output = run_mypy([TYPED, WRONG], [*package_path(tmp_path), PROGRAMS])
    codes, wanted = reported_codes(output), mistakes()
    assert "typed.py" not in output
    assert codes.keys() == wanted.keys()
    assert not {number: code for number, code in wanted.items() if code not in codes[number]}


def test_typed_program_runs():
    spec = importlib.util.spec_from_file_location("typed_program", TYPED)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main()


def run_pyright(folder):
    """Run pyright's basic check on copies of the programs and the examples; returns its output."""
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed; it needs node")
    shutil.copytree(PROGRAMS, folder / "programs")
    shutil.copytree(ROOT / "examples", folder / "examples")
    config = {
        "include": ["programs", "examples"],  # paths relative to the file of the configuration
        "extraPaths": list(map(str, package_path(folder))),
        "typeCheckingMode": "basic",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [pyright, "--pythonpath", sys.executable, "--level", "error", "--project", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_pyright_accepts_typed_program_and_examples(tmp_path):
    errors = re.findall(r"(\w+\.py):(\d+):\d+ - error", run_pyright(tmp_path))
    assert {name for name, _ in errors} == {"wrong.py"}
    assert {int(line) for _, line in errors} == mistakes().keys()
