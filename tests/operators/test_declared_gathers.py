"""A gather or a join declared in one place runs eagerly, natively, jitted, differentiated, batched, as CUDA source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[1] / "harness" / "declared"


@pytest.mark.parametrize("name", ["declared_gathers", "declared_joins"])
def test_declared_operator_runs_everywhere(name, tmp_path):
    environment = {**os.environ, "TANDEM_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, str(PROGRAMS / f"{name}.py")], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr[-3000:]
