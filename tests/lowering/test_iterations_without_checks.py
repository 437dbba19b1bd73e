"""Loops run without bounds checks while their counters are within limits, and check positions beyond them."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import errors
from tandem.backends.cpu.loop_frame import MAX_FIRST_POLL, UNROLLED
from tandem.jax import lax

SIZE = 40


def search(x, i, step=1):
    return td.while_loop(lambda i: x[i] < 5, lambda i: i + step, i)


def clamped_search(x, i):
    return td.while_loop(lambda i: (i < SIZE) & (x[td.minimum(i, SIZE - 1)] < 5), lambda i: i + 1, i)


def search_by_two_conditions(x, i):
    return td.while_loop(lambda i: (i < SIZE) & (x[i] != 7), lambda i: i + 1, i)


def running_sum(x, i):
    return td.while_loop(lambda s: s[1] < 9, lambda s: (s[0] + 1, s[1] + td.abs(x[s[0]])), (i, x[0] * 0))


def search_backwards(x, i):
    return td.while_loop(lambda i: x[i] < 5, lambda i: i - 1, i)


def shifting(x, i):
    def step(s):
        j, x = s
        return j - 1, x.at[j + 1].set(x[j])

    return td.while_loop(lambda s: (s[0] >= 0) & (s[1][s[0]] < 5), step, (i, x))


def scaled_positions(x, i):
    def step(s):
        i, k, x = s
        return i + 1, k - 2, x.at[2 * i - 3].add(x[5 - i] * 0.5 + x[k])

    return td.while_loop(lambda s: x[s[0] % SIZE] < 5, step, (i, i * 2, x))


def windows(x, i):
    def step(s):
        i, total = s
        return i + 1, total + lax.dynamic_slice(x, (i,), (4,)).sum()

    return td.while_loop(lambda s: (x[s[0]] < 5) & (s[1] < 50), step, (i, x[0] * 0))


def rows(x, i):
    a = x.reshape(8, 5)
    return td.while_loop(
        lambda s: a[s[0], 2] < 5, lambda s: (s[0] + 1, s[1].at[:, s[0] - 4].add(1)), (i % 8, a)
    )


def doubling(x, i):
    return td.while_loop(lambda i: x[i] < 5, lambda i: i * 2 + 1, i)


def chasing(x, i):
    following = (x * 1000).astype(td.int64) % (SIZE + 1)
    return td.while_loop(
        lambda s: (x[s[0]] < 5) & (s[1] < 30), lambda s: (following[s[0]], s[1] + 1), (i.astype(td.int64), 0)
    )


def compacting(x, i):
    def step(k, s):
        at, y = s
        return at + (x[k] > 0.5), y.at[at].set(x[k])

    return td.fori_loop(0, SIZE, step, (i.astype(td.int64), x * 0))


def bisecting(x, i):
    def step(s):
        low, high = s
        middle = (low + high) // 2
        return td.where(x[middle] < 0.5, middle + 1, low), td.where(x[middle] < 0.5, high, middle)

    return td.while_loop(lambda s: s[0] < s[1], step, (i.astype(td.int64), i.astype(td.int64) + SIZE - 3))


PROGRAMS = [
    doubling,
    chasing,
    compacting,
    bisecting,
    search,
    lambda x, i: search(x, i, 3),
    clamped_search,
    search_by_two_conditions,
    running_sum,
    search_backwards,
    shifting,
    scaled_positions,
    windows,
    rows,
]


def outcome(program, *given):
    try:
        leaves = td.tree.leaves(program(*given))
    except errors.OutOfBoundsError as error:
        return str(error)
    return [(one.dtype.name, one.numpy().tolist()) for one in leaves]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_same_results_and_errors_as_eager(number, dtype):
    program = PROGRAMS[number]
    compiled = td.jit(program)
    for found in (None, 0, 1, 17, SIZE - 1):
        values = np.random.default_rng(3).uniform(0, 1, SIZE).astype("float32")
        if found is not None:
            values[found] = 7
        for first in (0, 1, 3, 30, SIZE - 1, SIZE) + ((-1, -3, -SIZE, -SIZE - 1) if dtype != "uint8" else ()):
            given = td.asarray(values), td.asarray(first, dtype=dtype)
            if program is doubling and (first < 0 or "8" in dtype):
                continue  # -1 is 2 * -1 + 1
            assert outcome(compiled, *given) == outcome(program, *given), (found, first)


@pytest.mark.parametrize("distance", range(-UNROLLED - 1, UNROLLED + 2))
def test_searches_that_end_near_a_poll(distance):
    size = 4 * MAX_FIRST_POLL
    for at in (MAX_FIRST_POLL + distance, size - 1 + min(distance, 0)):
        x = td.zeros(size).at[at].set(9)
        for first in (0, 1, 2, 3):
            assert int(td.jit(search)(x, td.asarray(first))) == at
        assert int(td.jit(search_backwards)(td.flip(x, 0), td.asarray(size - 1))) == size - 1 - at


def test_search_that_leaves_the_array():
    x = td.zeros(3 * MAX_FIRST_POLL)
    for first in (0, 5, -7):
        with pytest.raises(errors.OutOfBoundsError, match=f"index {x.size} is out of bounds"):
            td.jit(search)(x, td.asarray(first))


def test_counter_of_a_narrow_dtype_that_wraps_around():
    x = td.zeros(300).at[180].set(9)  # at -120
    start = td.asarray(120, dtype=td.int8)
    assert outcome(td.jit(search), x, start) == outcome(search, x, start)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("step", [1, -1, 3, -2])
def test_scans_over_ranges_that_begin_out_of_bounds(step, reverse):
    def program(x):
        def body(x, i):
            return x.at[i].add(x[i - 2] * 0.5), x[i + 1]

        return td.scan(
            body, x, td.arange(-2, 20)[::step] if step > 0 else td.arange(20, -3, step), reverse=reverse
        )

    x = td.asarray(np.random.default_rng(0).normal(size=22))
    assert outcome(td.jit(program), x) == outcome(program, x)


def counted(x, i):
    return td.fori_loop(0, SIZE, lambda k, s: s + x[k], x[0] * 0)


@needs_native
@pytest.mark.parametrize(
    "program", [search, clamped_search, running_sum, shifting, windows, doubling, counted]
)
def test_loops_that_are_written_twice(program):
    text = td.jit(program).lower(td.zeros(SIZE), td.asarray(0)).llvm_ir()
    assert ("_u_head:" in text) is (program is not counted)


@needs_native
@pytest.mark.parametrize("step", [1, 3])
def test_stores_at_a_distance_are_not_vectorized(step):
    def program(x):
        return td.while_loop(lambda s: s[0] < SIZE, lambda s: (s[0] + step, s[1].at[s[0]].set(1)), (0, x))[1]

    x = td.zeros(SIZE)
    assert ("!llvm.loop" in td.jit(program).lower(x).llvm_ir()) is (step == 3)
    np.testing.assert_array_equal(td.jit(program)(x).numpy(), program(x).numpy())


@needs_native
@pytest.mark.parametrize(
    "step",
    [lambda x, y: -x * y, lambda x, y: x % 1 - y, lambda x, y: td.where(x < y, -y, x // 2)],
    ids=("negate", "remainder", "where"),
)
def test_loops_over_elements_hold_nothing_that_llvm_cannot_vectorize(step):
    """Fences, calls and branches would keep LLVM from it: each took three to nine times numba's time."""

    def program(x, y):
        return td.fori_loop(1, SIZE, lambda i, o: o.at[i].set(step(x[i], y[i - 1])), x)

    x, y = (td.asarray(np.random.default_rng(n).normal(size=SIZE).astype("float32")) for n in (0, 1))
    text = td.jit(program).lower(x, y).llvm_ir()
    assert "fence" not in text and "call float @fmod" not in text
    np.testing.assert_array_equal(td.jit(program)(x, y).numpy(), program(x, y).numpy())
