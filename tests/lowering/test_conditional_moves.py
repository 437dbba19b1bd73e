"""Scalars that data selects are conditional moves in compiled loops, not branches."""

import numpy as np
import pytest
import tandem as td
from tandem.backends.cpu import fastpath, target
from tandem.backends.cpu.fastpath.compiler import engine
from tandem.backends.cpu.fastpath.compiler.passes import run_passes

pytestmark = [
    pytest.mark.skipif(bool(fastpath.why_off()), reason=fastpath.why_off() or "native code is on"),
    pytest.mark.skipif(not target.IS_X86, reason="conditional moves of x86"),
]


def find_longest_subsequence(a, b):
    """The length of the longest common subsequence of two sequences."""

    def fill_row(i, table):
        def fill(j, table):
            longer = td.maximum(table[i, j + 1], table[i + 1, j])
            return table.at[i + 1, j + 1].set(td.where(a[i] == b[j], table[i, j] + 1, longer))

        return td.fori_loop(0, len(b), fill, table)

    table = td.zeros((len(a) + 1, len(b) + 1), dtype="int64")
    return td.fori_loop(0, len(a), fill_row, table)[len(a), len(b)]


def test_extremum_that_a_loop_waits_for_is_no_branch():
    a, b = td.asarray(np.random.default_rng(0).integers(0, 4, (2, 300)))
    text = td.jit(find_longest_subsequence).lower(a, b).llvm_ir()

    def emit(module):
        run_passes(module, engine._machine(), engine.Passes.UNROLL)
        return engine._machine().emit_assembly(module)

    assembly = engine.background.run(lambda: engine.parse_ir(text, emit))
    body = assembly[assembly.index("tandem_main") :]
    assert body.count("cmovg") + body.count("cmovl") >= 1
    assert "\tjg\t" not in body and "\tjl\t" not in body


def test_lengths_are_those_of_a_table():
    rng = np.random.default_rng(1)
    for n, m in ((1, 1), (7, 20), (40, 33)):
        a, b = rng.integers(0, 3, n), rng.integers(0, 3, m)
        table = np.zeros((n + 1, m + 1), int)
        for i in range(n):
            for j in range(m):
                longer = max(table[i, j + 1], table[i + 1, j])
                table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else longer
        assert int(td.jit(find_longest_subsequence)(td.asarray(a), td.asarray(b))) == table[n, m]
