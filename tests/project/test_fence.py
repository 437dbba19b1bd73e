"""The memory fence accepts accesses within arrays and stops those beyond them."""

import shutil
import subprocess
import sys
from pathlib import Path

import fence
import pytest

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="the fence needs Linux and a C compiler"
)

WRITE = """
import ctypes, sys
import numpy as np
import fence
fence.raise_fence()
assert fence.is_raised()
x = np.zeros(int(sys.argv[1]), np.uint8)
ctypes.memset(x.ctypes.data + int(sys.argv[2]), 7, 1)
x = np.resize(x, 100)
del x
print("alive")
"""


@pytest.mark.parametrize(
    ("size", "place", "word"),
    [(17, 16, "alive"), (17, 17, "behind an array of 17 bytes"), (17, 31, "behind"), (33, -1, "before")],
)
def test_a_write_outside_of_an_array_is_met(size, place, word):
    found = subprocess.run(
        [sys.executable, "-c", WRITE, str(size), str(place)],
        cwd=Path(fence.__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert word in found.stdout + found.stderr
    assert (found.returncode == 0) == (word == "alive")


def test_a_write_far_behind_is_a_fault():
    found = subprocess.run(
        [sys.executable, "-c", WRITE, "32", "32"],
        cwd=Path(fence.__file__).parent,
        capture_output=True,
        check=False,
    )
    assert found.returncode < 0
