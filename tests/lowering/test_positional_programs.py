"""Random programs of slices, joins, gathers, updates, loops and their gradients: jitted results are the eager ones."""

import numpy as np
import pytest
import tandem as td
from positional_programs import difference, drawn

TOGETHER = 3  # programs in one function: they share a compilation


def check(first, device="cpu"):
    given = []
    for seed in range(first, first + TOGETHER):
        ((program, arrays),) = drawn(seed)
        leaves = [td.asarray(array, device=device) for array in arrays]
        try:
            with np.errstate(all="ignore"):
                given.append((seed, program, leaves, program(*leaves)))
        except td.errors.UnsupportedError:  # an assignment of mapped values to a captured tensor
            continue

    @td.jit
    def jitted(lists):
        return [program(*leaves) for (_, program, _, _), leaves in zip(given, lists, strict=True)]

    results = jitted([leaves for _, _, leaves, _ in given])
    for (seed, program, _, want), got in zip(given, results, strict=True):
        assert difference(got, want) in ("", "signs of zeros"), (seed, program)


ENDED_LLVM = (60, 897, 2538)  # programs at which LLVM's pass VectorCombine ends the process


@pytest.mark.parametrize("first", [*range(0, 24, TOGETHER), *ENDED_LLVM])
def test_programs_agree_with_eager(first):
    check(first)


@pytest.mark.full
@pytest.mark.parametrize("first", range(24, 20_000, TOGETHER))
def test_more_programs_agree_with_eager(first):
    check(first)


@pytest.mark.full
@pytest.mark.parametrize("first", range(0, 400, TOGETHER))
def test_programs_agree_on_cuda(first, cuda):
    check(first, "cuda")
