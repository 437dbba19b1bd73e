"""CUDA C of random programs: compiled by NVRTC for one of four architectures, and run on the CPU."""

import os

import numpy as np
import pytest
from closeness import close_enough
from cuda_host.build import missing_compiler
from cuda_host.programs import ARCHITECTURES, Program, check_batch
from lowering_harness import eager, graph_of
from random_programs import drawn

pytestmark = pytest.mark.skipif(missing_compiler() is not None, reason=missing_compiler() or "")

SEED = int(os.environ.get("TANDEM_TEST_SEED", "0"))
SAMPLED, WHOLE, CHUNK = 24, 200, 24


def check_programs(chosen, architectures=None):
    found = []
    with np.errstate(all="ignore"):
        for number, (program, arrays) in enumerate(chosen):
            wanted = eager(program, *arrays)
            found.append((Program(graph_of(program, *arrays), f"n{number}"), program, arrays, wanted))
        module = check_batch([k for one, *_ in found for k in one.written()], architectures)
        for one, program, arrays, wanted in found:
            got = one.run(module, list(arrays))
            try:
                close_enough(got, wanted)
            except AssertionError as error:
                raise AssertionError(f"{program!r} on {arrays!r}") from error


def test_sampled_programs():
    check_programs(drawn(SAMPLED, SEED))


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, WHOLE, CHUNK))
def test_every_program(first):
    check_programs(drawn(min(CHUNK, WHOLE - first), 1000 + first), ARCHITECTURES)
