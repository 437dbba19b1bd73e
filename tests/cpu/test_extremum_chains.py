"""Loops that carry a minimum or a maximum: NaNs, zeros of both signs, and numbers in registers."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from rotation import share_each_commit

SPECIAL = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
DTYPES = [td.float16, td.bfloat16, td.float32, td.float64]


def running(np_, fori_loop, a):
    """The minimum so far, that of sums, and sums between bounds."""

    def step(i, carry):
        low, high, between, lows = carry
        low = np_.minimum(low, a[i])
        high = np_.maximum(high + a[i], a[i])
        between = np_.maximum(np_.minimum(between + a[i], a[0]), a[1])
        return low, high, between, lows.at[i].set(low)

    return fori_loop(0, a.shape[0], step, (a[0], a[0], a[0] * 0, td.zeros_like(a)))


def sort_neighbours(np_, fori_loop, a):
    def swap(j, v):
        low, high = np_.minimum(v[j], v[j + 1]), np_.maximum(v[j], v[j + 1])
        return v.at[j].set(low).at[j + 1].set(high)

    return fori_loop(0, a.shape[0] - 1, swap, a)


def iterate(start, stop, step, carry):
    for i in range(start, stop):
        carry = step(i, carry)
    return carry


def bits(tree):
    """The bits of all numbers; those of a NaN depend on the order of the operands of a sum."""
    arrays = [np.asarray(x.astype(td.float64)) for x in td.tree.leaves(tree)]
    return [np.where(np.isnan(x), np.nan, x).tobytes() for x in arrays]


@pytest.mark.parametrize("seed", share_each_commit(range(24), 6))
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("program", [running, sort_neighbours])
def test_loops_of_special_values_equal_eager_steps(program, dtype, seed):
    random = np.random.default_rng(seed)
    values = SPECIAL if seed % 2 else SPECIAL[:-1]
    a = td.asarray(random.choice(values, size=int(random.integers(2, 9)))).astype(dtype)
    with np.errstate(invalid="ignore"):
        expected = program(td, iterate, a)
    compiled = td.jit(lambda a: program(td, td.fori_loop, a))
    assert bits(compiled(a)) == bits(expected)


@needs_native
@pytest.mark.parametrize("dtype", [td.float32, td.complex64, td.float64], ids=lambda dtype: dtype.name)
def test_carried_numbers_are_copied_as_numbers(dtype):
    a = td.ones(8, dtype=dtype)
    program = td.jit(lambda a: td.fori_loop(0, 8, lambda i, s: s + a[i], a[0]))
    assert "@llvm.memcpy" not in program.lower(a).llvm_ir()
    assert program(a).item() == 9
