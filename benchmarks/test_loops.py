"""The promises of ``loops.py``, held: ``pytest benchmarks/test_loops.py``."""

import pytest
from loops import ROWS
from rows import check


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_bound(row, benchmark):
    findings = benchmark.pedantic(row.measure, args=(2.0,), rounds=1)
    check(findings, benchmark.extra_info)
    if all(found.ratio is None for found in findings):
        pytest.skip("; ".join(found.note for found in findings))
