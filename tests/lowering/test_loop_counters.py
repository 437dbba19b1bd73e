"""Loops that count to a bound have a known number of iterations; others evaluate their condition."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native

LOOPS = {
    "less": (lambda i, n: i < n, lambda i: i + 1),
    "greater": (lambda i, n: n > i, lambda i: 1 + i),
    "by three": (lambda i, n: i < 17, lambda i: i + 3),
    "down": (lambda i, n: i > n, lambda i: i - 1),
    "down by five": (lambda i, n: i > -17, lambda i: i - 5),
    "down from": (lambda i, n: n < i, lambda i: i + -1),
    "constant": (lambda i, n: i < 9, lambda i: i + 1),
    "other way": (lambda i, n: (i > n) & (i < 100), lambda i: i + 1),
    "reaches": (lambda i, n: i != n, lambda i: i + 1),
    "doubles": (lambda i, n: i < n, lambda i: i + i + 1),
    "at most": (lambda i, n: i <= n, lambda i: i + 1),
}
FIRSTS = [-20, 0, 8, 9, 17]


def run(name, first, n, dtype, x):
    holds, step = LOOPS[name]

    def body(s):
        i, n, k, x = s
        return step(i).astype(dtype), n, k + 1, x.at[i % 7].add(1.0)

    first = td.asarray(first, dtype=dtype) if not isinstance(first, int) else first
    return td.while_loop(lambda s: holds(s[0], s[1]), body, (first, n, 0, x))


def assert_same(program, *given):
    for one, two in zip(
        td.tree.leaves(td.jit(program)(*given)), td.tree.leaves(program(*given)), strict=True
    ):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one.numpy(), two.numpy())


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("name", LOOPS)
def test_traced_bounds(name, dtype):
    x = td.zeros(7)
    for first in FIRSTS if dtype != "uint8" else FIRSTS[2:]:
        if dtype == "uint8" and ("down" in name or name in ("reaches", "other way")):
            continue
        if name == "reaches" or (name == "doubles" and first < 0):
            continue
        given = td.asarray(first, dtype=dtype), td.asarray(9, dtype=dtype), x
        assert_same(lambda i, n, x: run(name, i, n, dtype, x), *given)


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in ("reaches", "doubles")])
def test_first_values_that_are_constants(name):
    x, n = td.zeros(7), td.asarray(9)
    for first in FIRSTS:
        assert_same(lambda n, x, first=first: run(name, first, n, "int64", x), n, x)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_bounds_near_the_ends_of_a_dtype(dtype):
    info = np.iinfo(dtype)

    def up(first, stop):
        return td.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 1, s[1], s[2] + 1), (first, stop, 0))

    def down(first, stop):
        return td.while_loop(lambda s: s[0] > s[1], lambda s: (s[0] - 1, s[1], s[2] + 1), (first, stop, 0))

    high, low = (td.asarray(number, dtype=dtype) for number in (info.max, info.min))
    near, above = td.asarray(info.max - 5, dtype=dtype), td.asarray(info.min + 5, dtype=dtype)
    for program, first, stop in ((up, near, high), (up, high, low), (down, above, low), (down, low, high)):
        assert_same(program, first, stop)


def test_counter_that_overflows():
    def program(i):
        step = lambda s: (s[0] + 50, s[1] + 1)  # noqa: E731
        return td.while_loop(lambda s: s[0] < 120, step, (i, 0))

    assert_same(program, td.asarray(0, dtype=td.int8))


@pytest.mark.parametrize("bound", [0, 1, 4, 5])
@pytest.mark.parametrize("first", [1, 2, 9, 10, 255])
def test_unsigned_counter_that_passes_0(first, bound):
    def program(i):
        return td.while_loop(lambda s: s[0] > bound, lambda s: (s[0] - 5, s[1] + 1), (i, 0))

    counter, steps = first, 0
    while counter > bound:
        counter, steps = (counter - 5) % 256, steps + 1
    for run in (program, td.jit(program)):
        assert [int(x) for x in run(td.asarray(first, dtype=td.uint8))] == [counter, steps]


def test_bound_that_is_a_carry_that_changes():
    def program(i, n):
        return td.while_loop(lambda s: s[0] < s[1], lambda s: (s[0] + 2, s[1] + 1), (i, n))

    assert_same(program, td.asarray(0), td.asarray(9))


def test_loops_over_traced_ranges():
    def program(a, n):
        def row(i, s):
            return td.fori_loop(0, i, lambda j, s: s.at[i].add(a[i, j] * s[j]), s)

        return td.fori_loop(n - 3, n, row, a[0])

    a = td.asarray(np.random.default_rng(0).normal(size=(9, 9)))
    for n in (2, 3, 9):
        assert_same(program, a, td.asarray(n))


@needs_native
@pytest.mark.parametrize(
    ("condition", "is_known"),
    [(lambda i, n: i < n, True), (lambda i, n: i > n, False), (lambda i, n: i * 2 < n, False)],
)
def test_known_number_of_iterations(condition, is_known):
    def program(x, n):
        return td.while_loop(
            lambda s: condition(s[0], n), lambda s: (s[0] + 1, s[1].at[s[0]].add(1.0)), (0, x)
        )

    text = td.jit(program).lower(td.zeros(9), td.asarray(3)).llvm_ir()
    assert ("l0_ask" not in text and "_all = icmp uge" in text) is is_known
