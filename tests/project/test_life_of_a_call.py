"""The calls that docs/architecture.md follows run through the functions that it names."""

import ast
import functools
import json
import os
import re
import subprocess
import sys

import pytest
from source_tree import ROOT
from tandem.backends.cpu import fastpath

PAGE = (ROOT / "docs" / "architecture.md").read_text()
REFERENCE = re.compile(r"`([\w/]+\.py):([A-Za-z_][\w.]*)`")
SECTIONS = {
    "add": PAGE.partition("### The life of `x + y`")[2].partition("\n## ")[0],
    "softmax": PAGE.partition("### The life of `td.jit")[2].partition("\nOn a GPU")[0],
    "backward": PAGE.partition("## The backward pass")[2].partition("\n## ")[0],
}
SHORT = {"add": 5, "softmax": 9}  # the most files that a reader opens
NATIVE_CODE = ("backends/cpu/fastpath/entries/", "backends/cpu/fastpath/runtime/")
NATIVE = pytest.mark.skipif(bool(fastpath.why_off()), reason="native code is off")


@functools.cache
def run_calls():
    """What each call runs, in a process that compiles all code anew."""
    program = ROOT / "tests" / "harness" / "life_of_a_call.py"
    environment = {**os.environ, "TANDEM_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def code_in(file):
    """The functions, classes and methods of a file; other names are data."""
    tree, kinds = ast.parse((ROOT / file).read_text()), (ast.FunctionDef, ast.ClassDef)
    top = [node for node in tree.body if isinstance(node, kinds)]
    methods = {f"{one.name}.{node.name}" for one in top for node in ast.walk(one) if isinstance(node, kinds)}
    return {node.name for node in top} | methods


def table_rows(section):
    """The references of each row of a section's tables, short path and all steps apart."""
    tables = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [[REFERENCE.findall(row) for row in table.splitlines()[2:]] for table in tables]


def steps_of(call):
    """The functions that the page names in a call's tables, with their files."""
    references = [pair for table in table_rows(SECTIONS[call]) for row in table for pair in row]
    return sorted({(file, name) for file, name in references if name in code_in(file)})


def is_run(done, file, name):
    if file.startswith(NATIVE_CODE):
        return name in done["compiled"]
    return any(one == f"{file}:{name}" or one.startswith(f"{file}:{name}.") for one in done["called"])


@NATIVE
@pytest.mark.parametrize("call", SECTIONS)
def test_steps_run(call):
    steps = steps_of(call)
    assert len(steps) > 10
    assert [step for step in steps if not is_run(run_calls()[call], *step)] == [], (
        "the call does not run these"
    )


@pytest.mark.parametrize("call", SHORT)
def test_short_path_is_short(call):
    rows = table_rows(SECTIONS[call])[0]
    files = [{file for file, _ in row} for row in rows]
    assert all(len(names) == 1 for names in files)
    assert len(set.union(*files)) == len(rows) <= SHORT[call]


@pytest.mark.parametrize("call", SHORT)
def test_short_path_is_connected(call):
    """Each file is named, or a function of it is used, by a file before it; the traced function is the caller's."""
    read = ""
    for row in table_rows(SECTIONS[call])[0]:
        file = row[0][0]
        names = [file.rpartition("/")[2], *(name.partition(".")[0] for _, name in row)]
        used = any(re.search(rf"\b{re.escape(name)}\b", read) for name in names)
        assert used or not read or file.startswith("operators/"), file
        read += (ROOT / file).read_text()


def test_missing_step_is_found():
    assert ("eager/tensor/tensor.py", "wrap") in steps_of("add")
    assert "wrap" in code_in("eager/tensor/tensor.py")
    assert "Tensor.item" in code_in("eager/tensor/tensor.py")
    assert "STAGES" not in code_in("lowering/lower.py")
