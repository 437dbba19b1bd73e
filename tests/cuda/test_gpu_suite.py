"""The command of the GPU suite, on the test double of the driver: every row is measured or reports why not.

The sizes are small and the times mean nothing: no GPU is used.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tandem as td

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL = {"elements": 1 << 10, "softmax": (3, 64), "layer_norm": (5, 32), "matmul": 8}
PROMISED = [
    "gelu(x*w+b), 1024 float32, w and b of shape ()",
    "gelu(x*w+b), 1024 float32, w and b of shape (1024,)",
    "softmax 3x64, float32",
    "softmax 3x64, bfloat16",
    "layer_norm 5x32, float32",
    "layer_norm 5x32, bfloat16",
    "matmul 8^3, bfloat16: speed",
    "matmul 8^3, float32: speed",
    "jitted 30-op chain on 16 elements: host time",
    "eager add on 16 elements: host time",
    "digits, forward and backward",
    "GPT block, forward and backward",
]


@pytest.fixture
def suite(cuda, monkeypatch):
    """The modules of the suite, with small sizes and few calls; nothing else is run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = {name: importlib.import_module(name) for name in ("gpu", "gpu_rows", "gpu_models", "gpu_smoke")}
    rows, models = found["gpu_rows"], found["gpu_models"]
    monkeypatch.setattr(rows, "SIZES", SMALL)
    for name in ("seconds", "host_seconds"):
        monkeypatch.setattr(rows, name, lambda run, wait: (run(), run(), run(), wait(), 1e-3)[-1])
    small = lambda: models.block_arguments(batch=1, length=4, width=16, vocabulary=8)  # noqa: E731
    monkeypatch.setitem(models.MODELS, "GPT block", (models.block, small))
    few = lambda: tuple(part if part is given[0] else part[:8] for part in given)  # noqa: E731
    given = models.digits_arguments()
    monkeypatch.setitem(models.MODELS, "digits", (models.digits, few))
    return found


def run_main(suite, monkeypatch, folder, *words):
    monkeypatch.setattr(suite["gpu"], "commit", lambda: "abcdef1")
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--into", str(folder), *words])
    return suite["gpu"].main()


def rows_of(folder):
    (path,) = folder.glob("gpu-abcdef1.jsonl")
    refuse = lambda name: pytest.fail(f"{name} is no JSON")  # noqa: E731
    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def test_every_promise_has_a_row(suite):
    found = [one for measure in suite["gpu_rows"].rows().values() for one in measure()]
    assert set(PROMISED) <= {one.what for one in found}
    measured = [one for one in found if one.beside in ("copy bandwidth", "the CPU")]
    assert len(measured) == 8
    assert all(one.value is not None for one in measured)
    errors = [one for one in found if one.beside == "the CPU"]
    assert all(one.kept for one in errors), errors
    for one in found:
        if one.value is None:
            assert "has no GPU here" in one.note or "failed" in one.note


# One thread of the system stands for each of the device: the rows' own sizes take minutes there.
SHAPES = {"elementwise": (16, 999), "reductions": (70, 520), "positions": (10, 5, 99), "jitted": (5, 130)}


@pytest.mark.parametrize("name", ["transfers", "product", "streams", *SHAPES])
def test_smoke_rows_pass_on_the_double(suite, monkeypatch, name):
    monkeypatch.setattr(suite["gpu_smoke"], "SHAPES", SHAPES)
    suite["gpu_smoke"].ROWS[name]()


@pytest.mark.full
@pytest.mark.parametrize("name", SHAPES)
def test_smoke_rows_pass_at_their_own_sizes(suite, name):
    suite["gpu_smoke"].ROWS[name]()


@pytest.mark.parametrize("name", SHAPES)
def test_smoke_rows_notice_wrong_results(suite, monkeypatch, name):
    def wrong(x):
        return td.asarray(x * 2 if x.dtype.kind == "f" else x, device="cuda")

    monkeypatch.setattr(suite["gpu_smoke"], "SHAPES", SHAPES)
    monkeypatch.setattr(suite["gpu_smoke"], "_there", wrong)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        suite["gpu_smoke"].ROWS[name]()


def test_rows_are_saved_one_by_one_and_resumed(suite, monkeypatch, tmp_path, capsys):
    calls, smoke = [], suite["gpu_smoke"]

    def row(name, fault=None):
        def work():
            assert not calls or calls[-1] in {r["name"] for r in rows_of(tmp_path)}, (
                "the last row is not saved"
            )
            calls.append(name)
            if fault is not None:
                raise fault

        return work

    missing = ModuleNotFoundError("No module named 'scipy'", name="scipy")
    rows = {
        "one": row("one"),
        "two": row("two", RuntimeError("it is broken\nin two lines")),
        "three": row("three"),
    }
    monkeypatch.setattr(smoke, "ROWS", rows | {"four": row("four", missing)})
    assert run_main(suite, monkeypatch, tmp_path, "--part", "smoke") == 1
    said = capsys.readouterr().out
    assert "smoke: 2 passed, 1 skipped, 1 failed" in said
    assert "FAILED two: RuntimeError: it is broken" in said
    rows["two"] = row("two")
    monkeypatch.setattr(smoke, "ROWS", rows | {"four": row("four", missing)})
    assert run_main(suite, monkeypatch, tmp_path, "--part", "smoke") == 0
    assert calls == ["one", "two", "three", "four", "two"]
    assert "smoke: 3 passed, 1 skipped, 0 failed" in (tmp_path / "gpu-abcdef1.txt").read_text()


def test_exit_status_tells_nothing_passed_and_time_up(suite, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(suite["gpu_smoke"], "ROWS", {})
    assert run_main(suite, monkeypatch, tmp_path, "--part", "smoke") == 1
    slow = {"one": lambda: time.sleep(0.3), "two": lambda: None}
    monkeypatch.setattr(suite["gpu_smoke"], "ROWS", slow)
    assert run_main(suite, monkeypatch, tmp_path, "--part", "smoke", "--seconds", "0.2") == 3
    assert "time was up in smoke" in capsys.readouterr().out
    assert run_main(suite, monkeypatch, tmp_path, "--part", "smoke", "--seconds", "60") == 0
    monkeypatch.setattr(suite["gpu"].toolkit, "missing_requirements", lambda: ["there is no GPU"])
    assert run_main(suite, monkeypatch, tmp_path) == 2


def test_parts_take_half_an_hour_in_all(suite):
    gpu = suite["gpu"]
    assert set(gpu.SECONDS) == set(gpu.PARTS) == {"smoke", "eager", "jit", "bench", "sanitizer"}
    assert sum(gpu.SECONDS.values()) <= 1800
    assert max(gpu.SECONDS.values()) <= gpu.LONGEST == 600


@pytest.mark.parametrize("status", [0, 9])
def test_sanitizer_finds_are_failures(suite, monkeypatch, tmp_path, status):
    gpu, asked = suite["gpu"], []

    def command(words, seconds, **environment):
        asked.append((words, environment))
        return status, "abcdef1"

    monkeypatch.setattr(gpu, "run_command", command)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: f"/there/{name}")
    assert run_main(suite, monkeypatch, tmp_path, "--part", "sanitizer") == (1 if status else 0)
    assert [words[words.index("--tool") + 1] for words, _ in asked] == ["memcheck", "racecheck", "synccheck"]
    for words, given in asked:
        assert words[words.index("--error-exitcode") + 1] == "9"
        assert "gpu and not full" in words
        assert given == {"TANDEM_CUDA_CACHING": "0"}


TESTS = """
import os, time, pytest
pytestmark = pytest.mark.gpu
def test_passes(): pass
def test_needs_more(): raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
def test_fails(): assert os.environ.get("MENDED")
@pytest.mark.full
def test_takes_hours(): raise SystemExit
def test_last():
    if not os.environ.get("MENDED"): os._exit(7)
"""


def test_tests_are_rows_and_resumed(suite, monkeypatch, tmp_path, capsys):
    (tmp_path / "test_few.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu: x\n    full: x\n")
    gpu = suite["gpu"]
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setitem(gpu.TESTS, "eager", "test_few.py")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(BENCHMARKS), *sys.path]))
    assert run_main(suite, monkeypatch, tmp_path, "--part", "eager") == 1
    said = capsys.readouterr().out
    for line in ("FAILED test_few.py::test_fails", "FAILED test_few.py::test_last: it ended the process"):
        assert line in said
    assert "eager: 1 passed, 1 skipped, 3 failed" in said, said
    monkeypatch.setenv("MENDED", "1")
    before = len(rows_of(tmp_path))
    run_main(suite, monkeypatch, tmp_path, "--part", "eager")
    names = [
        row["name"].rpartition("::")[2] for row in rows_of(tmp_path)[before:] if row["status"] == "passed"
    ]
    assert names == ["machine", "test_fails", "test_last"]
    assert "test_takes_hours" not in capsys.readouterr().out


FEW = """
import importlib.util, sys
hidden = ("hypothesis", "scipy", "ml_dtypes", "platformdirs", "click", "networkx", "rich", "matplotlib", "sklearn")
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in hidden else find(name, *rest)
sys.modules.update(dict.fromkeys(hidden))
sys.path.insert(0, "benchmarks")
import tandem as td
assert td.jit(lambda x: td.exp(x) @ x)(td.ones((2, 2))).shape == (2, 2)
import gpu, gpu_plugin, pytest
words = ["-q", "-p", "no:cacheprovider", "--collect-only", "-m", "gpu and not full"]
sys.exit(pytest.main([*words, *gpu.TESTS.values()], plugins=[gpu_plugin]))
"""


def test_suite_needs_few_packages():
    root = BENCHMARKS.parent
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-c", FEW]
    found = subprocess.run(words, cwd=root, env=alone, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    assert "test_cuda_gpu_jit.py" in found.stdout
