"""Collection with ``-k WORD`` selects what pytest would select, without creating the other tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[1]


def collect(*options):
    """The ids of the collected tests, and how many were made."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
    files = [
        str(FOLDER / "operators" / name)
        for name in ("test_ops_table.py", "numerics/test_function_accuracy.py")
    ]
    run = subprocess.run([*command, *files], cwd=FOLDER.parent, capture_output=True, text=True, check=True)
    ids = [line for line in run.stdout.splitlines() if "::" in line]
    return ids, int(re.search(r"(?:/|^)(\d+) tests collected", run.stdout, re.MULTILINE)[1])


def test_word_selects_without_making_every_test():
    every, _ = collect("-k", "test_")  # a word that every test has
    selected, made = collect("-k", "hypot")
    assert selected == [name for name in every if "hypot" in name]
    assert len(selected) > 5 and made < len(every) / 3
