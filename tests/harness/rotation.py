"""The marker of tests whose rows of composite operators run as a sample that each commit rotates.

What a composite does under a transform or on another device follows from the operators that it calls. So those tests
run a fifth of the composites in each commit, and ``pytest -m full`` runs the others. What a composite computes is
tested in every commit.
"""

import pytest
from optable import table

rotating = pytest.mark.rotating(
    frozenset(name for name, op in table().items() if op.decl.kind == "composite")
)
