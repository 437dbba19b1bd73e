"""scikit-learn, SciPy and array-api-extra with tensors: the calls of array-api-strict work, with NumPy's results."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rotation import one_each_commit

CALLS = Path(__file__).with_name("calls")
RUNNER = Path(__file__).parents[1] / "harness" / "array_api_calls.py"


@pytest.mark.parametrize("case", one_each_commit("array_api_extra 1", "scikit_learn 1", "scipy 1", "scipy 0"))
def test_calls_work_as_with_other_arrays(case):
    library, flag = case.split()
    for package in ("array_api_strict", "array_api_extra", "array_api_compat", "sklearn"):
        pytest.importorskip(package)
    environment = {**os.environ, "SCIPY_ARRAY_API": flag, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, RUNNER, CALLS / f"{library}.txt"], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert not run.stdout, run.stdout
