"""Jitted operators and random programs on CUDA tensors, sampled in the default run, on the driver's test double."""

import os
import zlib

import pytest
from cuda_jit_harness import CHECKED, OPS, check_programs, run_rows
from optable import rows
from random_programs import drawn

pytestmark = pytest.mark.usefixtures("cuda")
SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SHARE = 16  # of the operators are tried in one default run


def chosen(name):
    return zlib.crc32(f"{SEED} jit {name}".encode()) % SHARE == 0


@pytest.mark.parametrize("part", range(4))
def test_operators_agree_with_their_references(part):
    """A sample: one row of some of the operators."""
    for name in CHECKED[part::4]:
        if chosen(name):
            found = list(rows(OPS[name]))
            first = zlib.crc32(f"{SEED} row {name}".encode()) % len(found)
            run_rows(OPS[name], [found[first]])


@pytest.mark.full
@pytest.mark.parametrize("name", CHECKED)
def test_every_row_agrees_with_its_reference(name):
    found = list(rows(OPS[name]))
    for first in range(0, len(found), 24):
        run_rows(OPS[name], found[first : first + 24])


def test_programs_agree_with_eager():
    check_programs(drawn(4, SEED + 40))


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_every_program(first):
    check_programs(drawn(20, 2000 + first))
