"""Programs written for PyTorch run when their import lines name ``tandem.torch``, and compute the same numbers."""

import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(FOLDER.glob("*.py"))
EXPECTED = FOLDER / "expected.json"  # PyTorch's numbers: python tests/spellings/test_torch_programs.py


def make_data(name, shape, *, high=None, permutation=False):
    """Numbers that depend on a name only: normal ones, integers below ``high``, or a permutation."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if permutation:
        return rng.permutation(*shape)
    return rng.standard_normal(shape) if high is None else rng.integers(0, high, shape)


def initialize(model):
    """Write the same numbers into the parameters of a module of either library."""
    for name, value in model.named_parameters():
        draw = make_data(name, tuple(value.shape)) * (0.3 if value.ndim > 1 else 0.1)
        is_scale = value.ndim == 1 and name.endswith("weight")
        value.data.copy_(value.data.new_tensor(draw + is_scale))


def run(path, library):
    source = re.sub(r"\btandem\.torch\b", library, path.read_text())
    source = source.replace("import torch as torch", "import torch")
    namespace = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), namespace)
    return namespace["main"](make_data, initialize)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_computes_recorded_numbers(path):
    expected = json.loads(EXPECTED.read_text())[path.stem]
    np.testing.assert_allclose(run(path, "tandem.torch"), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # of PyTorch
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_agrees_with_torch(path):
    pytest.importorskip("torch")
    np.testing.assert_allclose(run(path, "tandem.torch"), run(path, "torch"), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    numbers = {path.stem: [float(f"{value:.9g}") for value in run(path, "torch")] for path in PROGRAMS}
    EXPECTED.write_text(json.dumps(numbers) + "\n")
