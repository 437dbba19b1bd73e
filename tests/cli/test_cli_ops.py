"""``tandem ops`` and ``tandem trace``."""

import pytest
import tandem as td
from click.testing import CliRunner
from tandem.cli.commands import main
from tandem.registry.dispatch import trace
from tandem.registry.operator import operators


def run(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def test_ops_lists_every_operator():
    found = run("ops", "--namespace", "td")
    assert found.exit_code == 0
    for name in ("td::add.Tensor", "td::softmax", "td::add_.Tensor"):
        assert name in found.output
    rows = {line.split("│")[1].strip(): line for line in found.output.splitlines() if "│ td::" in line}
    assert set(rows) == {name for name in operators if name.startswith("td::")}
    assert "in place" in rows["td::add_.Tensor"] and "that of add" in rows["td::add_.Tensor"]


def test_ops_of_one_name():
    found = run("ops", "softmax")
    for text in (str(td.ops.td.softmax.default.schema), "Args:", "kind: composite", "composite_implicit"):
        assert text in found.output
    assert "kind: binary" in run("ops", "add.Tensor").output


def test_ops_from_outside():
    with td.Library("cliops", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x, "CompositeImplicit")
        assert "cliops::twice" in run("ops", "--namespace", "cliops").output
        assert "defined without a declaration" in run("ops", "cliops::twice").output


@pytest.mark.parametrize("arguments", [("ops", "no_such_operator"), ("ops", "--namespace", "nowhere")])
def test_ops_unknown(arguments):
    found = run(*arguments)
    assert found.exit_code == 2 and "no" in found.output


SCRIPT = """
import sys
import tandem as td
from tandem.registry.dispatch import trace
import beside
print(sys.argv[1:], __name__, td.mean(td.asarray([1.0, 2.0]) + beside.ONE).item())
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("ONE = 1\n")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_trace_prints_nested_calls(script):
    found = run("trace", script, "--flag", "7")
    assert "['--flag', '7'] __main__ 2.5" in found.stdout
    lines = found.stderr.splitlines()
    assert "td::add.Tensor" in lines[0] and not lines[0].startswith(" ")
    assert any(line.startswith("  ") and "td::sum" in line for line in lines)


def test_trace_into_a_file_with_a_limit(script, tmp_path):
    path = tmp_path / "trace.txt"
    found = run("trace", "--limit", "2", "-o", str(path), script)
    assert found.exit_code == 0
    lines = path.read_text().splitlines()
    assert len(lines) == 3 and "more lines" in lines[2]


def test_a_failing_script_fails(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("raise KeyError('it')\n")
    with pytest.raises(KeyError, match="it"):
        run("trace", str(path))
    assert not trace.active
