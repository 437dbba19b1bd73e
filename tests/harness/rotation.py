"""The marker of tests whose rows of composite operators run as a sample that each commit rotates.

What a composite does under a transform or on another device follows from the operators that it calls. So those tests
run an eighth of the composites in each commit, and ``pytest -m full`` runs the others. What a composite computes is
tested in every commit.
"""

import os
import zlib

import pytest
from optable import table

rotating = pytest.mark.rotating(
    frozenset(name for name, op in table().items() if op.decl.kind == "composite")
)

rotating_all = pytest.mark.rotating(frozenset(table()))
"""The same for all operators: tests of transforms under ``jit``, whose parts other tests try for each operator."""


def is_tried(op, share=8):
    """Whether this commit tries an operator in a test of what operators consist of: one share of the composites."""
    seed = int(os.environ.get("TANDEM_TEST_SEED", "0"))
    return op.decl.kind != "composite" or (zlib.crc32(op.name.encode()) + seed) % share == 0


def one_each_commit(*values):
    """Parameters of which each commit tries one; ``pytest -m full`` tries the others."""
    return share_each_commit(values, len(values))


def share_each_commit(values, share):
    """Parameters of which each commit tries one in ``share``; ``pytest -m full`` tries the others."""
    seed = int(os.environ.get("TANDEM_TEST_SEED", "0"))
    return [
        value if (number - seed) % share == 0 else pytest.param(value, marks=pytest.mark.full)
        for number, value in enumerate(values)
    ]
