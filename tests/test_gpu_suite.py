"""The GPU suite's command, on a double of the driver: every row is measured or says why not, and the table is whole.

The sizes are small and the times mean nothing: no GPU is used.
"""

import importlib
import json
import sys
from pathlib import Path

import pytest
from cuda_host.fixture import cuda  # noqa: F401

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
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
def suite(cuda, monkeypatch):  # noqa: F811
    """The modules of the suite, with small sizes and few calls; nothing else is run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = {name: importlib.import_module(name) for name in ("gpu", "gpu_rows", "gpu_models")}
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


def test_every_promise_has_a_row(suite):
    found = suite["gpu_rows"].findings()
    assert not [one for one in found if one.beside == "failed"]
    assert set(PROMISED) <= {one.what for one in found}
    measured = [one for one in found if one.beside in ("copy bandwidth", "the CPU")]
    assert len(measured) == 8
    assert all(one.value is not None for one in measured)
    errors = [one for one in found if one.beside == "the CPU"]
    assert all(one.kept for one in errors), errors
    for one in found:
        if one.value is None:
            assert "has no GPU here" in one.note or "failed" in one.note


def test_a_row_that_fails_does_not_hide_the_others(suite, monkeypatch):
    rows = suite["gpu_rows"]

    def broken(*args):
        raise RuntimeError("it is broken\nin two lines")

    monkeypatch.setattr(rows, "softmax", broken)
    monkeypatch.setattr(rows, "torch_peer", lambda: rows.Peer(broken, broken, broken))
    found = rows.findings()
    failed = [one for one in found if one.beside == "failed"]
    assert [(one.what, one.note, one.kept) for one in failed] == [
        ("softmax", "RuntimeError: it is broken", None)
    ]
    assert any("PyTorch failed: RuntimeError" in one.note for one in found)
    assert {"matmul 8^3, float32: speed", "GPT block, forward and backward"} <= {one.what for one in found}


@pytest.mark.parametrize("status", [0, 9])
def test_the_table(suite, monkeypatch, tmp_path, capsys, status):
    gpu, asked = suite["gpu"], []

    def command(words, **environment):
        asked.append((words, environment))
        return {"status": status if "tool" in "".join(words) else 0, "output": ["abcdef1"]}

    monkeypatch.setattr(gpu, "command", command)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: f"/there/{name}")
    monkeypatch.setattr(gpu.gpu_rows, "matmul", lambda: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--into", str(tmp_path)])
    assert gpu.main() == 1  # a row has failed
    (table,) = tmp_path.glob("gpu-*-abcdef1.json")
    report = json.loads(table.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert report["about"]["gpu"] == "host test double"
    assert report["about"]["driver"] == "13.0"
    assert set(report["sanitizer"]) == {"memcheck", "racecheck", "synccheck"}
    assert all(run["status"] == status for run in report["sanitizer"].values())
    text = table.with_suffix(".txt").read_text()
    assert text in capsys.readouterr().out
    for name in (
        *PROMISED[:6],
        "ZeroDivisionError",
        "BROKEN" if any(r["kept"] is False for r in report["benchmarks"]) else "",
    ):
        assert name in text
    checked = [(words, given) for words, given in asked if "--tool" in words]
    for words, given in checked:
        assert words[words.index("--error-exitcode") + 1] == "9"
        assert given == {"TANDEM_CUDA_CACHING": "0"}


def test_parts_can_be_left_out(suite, monkeypatch, tmp_path):
    gpu = suite["gpu"]
    monkeypatch.setattr(gpu, "command", lambda words, **environment: {"status": 0, "output": ["x"]})
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--skip", "benchmarks", "--into", str(tmp_path)])
    assert gpu.main() == 0
    (table,) = tmp_path.glob("*.json")
    report = json.loads(table.read_text())
    assert "benchmarks" not in report
    assert "not on the path" in report["sanitizer"]["skipped"]
