"""Check the bounds of ``must_show.py``: ``pytest benchmarks/test_bounds.py``, ``-k calls:`` for one group."""

import pytest
from must_show import GROUPS
from rows import check

ROWS = {f"{group}: {row.name}": row for group, rows in GROUPS.items() for row in rows}


@pytest.mark.parametrize("name", ROWS)
def test_bound(name, benchmark):
    findings = benchmark.pedantic(ROWS[name].measure, args=(2.0,), rounds=1)
    check(findings, benchmark.extra_info)
    if all(value.ratio is None for value in findings):
        pytest.skip("; ".join(value.note for value in findings))
