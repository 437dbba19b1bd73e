"""Compilations that take long are reported on the standard error."""

import time

import pytest
import tandem as td
from tandem import config


def slow(x):
    time.sleep(1.3)
    return x + 1


@pytest.fixture
def progress():
    with config.override(compile_progress=1):
        yield


@pytest.mark.usefixtures("progress")
def test_slow_compilation_is_reported(capsys):
    td.jit(slow)(td.ones(3))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "tandem: compiling slow takes more than 1 s"
    assert second.startswith("tandem: compiled slow in ") and second.endswith(" s (1 operators)")


def test_fast_compilation_is_not_reported(capsys):
    td.jit(lambda x: x + 2)(td.ones(3))
    with config.override(compile_progress=0):
        td.jit(slow)(td.ones(3))
    assert capsys.readouterr().err == ""
