"""The examples reach their results: with one seed by default, with five by ``pytest -m full``."""

import importlib.util
import statistics
import warnings
from pathlib import Path

import numpy as np
import pytest
from tandem.registry.dispatch.keys import BACKEND_OF_DEVICE

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    pytest.importorskip("sklearn" if name == "digits" else "rich")
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_an_operator_and_a_backend_from_outside(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "outside"))
    spec = importlib.util.spec_from_file_location("outside_demo", ROOT / "examples" / "outside" / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec.loader.exec_module(demo)
        demo.main()
    printed = capsys.readouterr().out
    assert printed.count("ok  ") == 15
    assert "SUCCESS" in printed
    assert "add (kernel), neg (kernel), exp (fallback)" in printed
    assert "toy" not in BACKEND_OF_DEVICE
    demo.softclip.remove()


def coordinates(point):
    return np.array([float(np.asarray(c)[0]) for c in (point.x, point.y, point.z)])


def test_digits(tmp_path, capsys):
    digits = load("digits")
    (runs,) = digits.main(["--epochs", "4", "--plot", str(tmp_path / "digits.png")])
    eager, jit, by_hand = runs
    assert len(eager.losses) == len(jit.losses) == len(by_hand.losses)
    assert digits.disagreement(jit, eager) < 1e-4
    assert digits.disagreement(by_hand, eager) < 1e-2
    assert min(run.accuracy for run in runs) > 0.93
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert "time per step" in capsys.readouterr().out


@pytest.mark.full
def test_digits_over_five_seeds(capsys):
    digits = load("digits")
    results = digits.main(["--seeds", "5", "--plot", ""])
    eager, jit, by_hand = (statistics.mean(run.accuracy for run in way) for way in zip(*results, strict=True))
    assert min(eager, jit) >= 0.965
    assert max(abs(eager - by_hand), abs(jit - by_hand)) <= 0.003
    assert max(digits.disagreement(runs[1], runs[0]) for runs in results) <= 1e-4


def test_ode(capsys):
    """Three hundred steps stay close together; after some thousand the system is chaotic."""
    ode = load("ode")
    results = ode.main(["--steps", "300", "--rounds", "1"])
    ends = {way: coordinates(point) for way, (point, _) in results.items()}
    np.testing.assert_allclose(ends["eager"], ends["NumPy"], rtol=1e-9)
    np.testing.assert_allclose(ends["jit"], ends["NumPy"], rtol=1e-6)
    assert "beside NumPy" in capsys.readouterr().out
