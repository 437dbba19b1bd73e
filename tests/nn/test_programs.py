"""Programs of PyTorch: they run with the import of tandem, and with torch's they compute the same."""

import re
from pathlib import Path

import numpy as np
import pytest

PROGRAMS = sorted(Path(__file__).parent.glob("programs/*.py"))


def initialize(model):
    """Draw every parameter from NumPy's generator, so that both frameworks start alike."""
    rng = np.random.default_rng(0)
    for name, value in model.state_dict().items():
        if "running" not in name and "num_batches" not in name:
            draw = rng.normal(0.0, 0.3 if value.ndim > 1 else 0.1, tuple(value.shape)).astype(np.float32)
            is_scale = value.ndim == 1 and name.endswith("weight")
            np.asarray(value)[...] = draw + 1 if is_scale else draw  # shares the parameter's memory


def run(path, framework):
    source = re.sub(r"^(import|from) tandem\b", rf"\1 {framework}", path.read_text(), flags=re.MULTILINE)
    source = source.replace("import torch as torch", "import torch")
    namespace = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), namespace)
    return namespace["main"](initialize)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_learns(path):
    losses, _ = run(path, "tandem")
    assert np.isfinite(losses).all()
    assert np.mean(losses[-3:]) < np.mean(losses[:3])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_agrees_with_torch(path):
    pytest.importorskip("torch")
    losses, last = run(path, "tandem")
    expected, expected_last = run(path, "torch")
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-5)
    if isinstance(last, list) and not isinstance(last[0], str):
        np.testing.assert_allclose(last, expected_last, rtol=1e-4, atol=1e-5)
    else:
        assert last == expected_last
