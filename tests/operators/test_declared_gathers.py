"""A gather declared in one place runs eagerly, natively, jitted, differentiated, batched, on meta, as CUDA source."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "harness" / "declared" / "declared_gathers.py"


def test_declared_gather_runs_everywhere(tmp_path):
    environment = {**os.environ, "TANDEM_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr[-3000:]
