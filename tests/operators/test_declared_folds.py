"""A fold that is declared in one place runs eagerly, natively, compiled, batched, on meta and as CUDA source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tandem.errors import DTypeError
from tandem.operators.declare.kinds import scan
from tandem.operators.scalar_ir import nodes as s
from tandem.operators.scalar_ir.fold import Fold, lowest
from tandem.registry import dtypes as dt

PROGRAM = Path(__file__).resolve().parents[1] / "harness" / "declared" / "declared_folds.py"
NAMES = ("sum_of_squares", "norm", "magnitude", "count", "logsum", "parity", "scan")


SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SAMPLED = {"sum_of_squares", NAMES[1 + SEED % (len(NAMES) - 1)]}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SAMPLED else pytest.mark.full) for n in NAMES]
)
def test_declared_fold_runs_everywhere(name, tmp_path):
    environment = {**os.environ, "TANDEM_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, str(PROGRAM), name], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr[-3000:]


def test_combine_keeps_the_dtype_of_accumulators():
    fold = Fold("compares", lambda a, b: a < b, lambda dtype: 0)
    with pytest.raises(DTypeError, match="combine returns bool for accumulators of float32"):
        fold.combined(dt.float32)


def test_folds_to_an_index_combine_by_an_extremum():
    with pytest.raises(ValueError, match="maximum or the minimum"):
        Fold("bad", lambda a, b: a + b, lambda dtype: 0, returns_index=True)
    with pytest.raises(ValueError, match="without a finish"):
        Fold("bad", s.maximum, lambda dtype: 0, returns_index=True, finish=s.sqrt)


def test_scans_of_an_index_are_rejected():
    fold = Fold("position", s.maximum, lowest, returns_index=True)
    with pytest.raises(ValueError, match=r"positions: the partial results .* not indices"):
        scan("positions", fold, doc="A scan of a test.", dtypes=dt.REAL, reference="numpy.argmax")
