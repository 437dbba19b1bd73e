"""Inner loops whose bounds depend on the counters of outer ones: their intervals replace tests while the loops run."""

import random

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import errors

N = 12


def python_loop(first, stop, step, carry, form="fori_loop"):
    """A loop without compiled code: the counter is a tensor as in ``td.fori_loop``."""
    kind = getattr(stop, "dtype", None) or getattr(first, "dtype", None) or td.int64
    for i in range(int(first), int(stop)):
        carry = step(td.asarray(i, dtype=kind), carry)
    return carry


def compiled_loop(first, stop, step, carry, form="fori_loop"):
    """The same loop as a ``fori_loop``, a ``while_loop`` that counts, one with a second condition, or backwards."""
    if form == "fori_loop":
        return td.fori_loop(first, stop, step, carry)
    first, stop = td.asarray(first), td.asarray(stop)
    last = first + td.maximum(stop - first, 0)

    def advance(s):
        i, left, carry = s
        return i + 1, left - 1, step(i, carry)

    holds = {
        "while_loop": lambda s: s[0] < last,
        "two conditions": lambda s: (s[0] < last) & (s[1] > 0),
        "backwards": lambda s: s[1] > 0,
    }[form]
    return td.while_loop(holds, advance, (first, last - first, carry))[2]


FORMS = ("fori_loop", "fori_loop", "while_loop", "two conditions", "backwards")


def lu(loop, a):
    def eliminate(k, a):
        def row(i, a):
            factor = a[i, k] / a[k, k]
            a = a.at[i, k].set(factor)
            return loop(k + 1, N, lambda j, a: a.at[i, j].add(-factor * a[k, j]), a)

        return loop(k + 1, N, row, a)

    return loop(0, N, eliminate, a)


def bubble_sort(loop, a):
    def swap(j, v):
        low, high = td.minimum(v[j], v[j + 1]), td.maximum(v[j], v[j + 1])
        return v.at[j].set(low).at[j + 1].set(high)

    size = N * N
    return loop(0, size - 1, lambda k, v: loop(0, size - 1 - k, swap, v), a.reshape(-1))


def triangle_sum(loop, a):
    return loop(0, N, lambda i, s: loop(0, i + 1, lambda j, s: s + a[i, j], s), a[0, 0] * 0)


def backward_substitution(loop, a):
    def row(k, x):
        i = N - 1 - k
        total = loop(i + 1, N, lambda j, s: s + a[i, j] * x[j], x[0] * 0)
        return x.at[i].set((a[i, 0] - total) / (a[i, i] + 20))

    return loop(0, N, row, a[0] * 0)


def blocks(loop, a):
    def block(b, o):
        return loop(4 * b, td.minimum(4 * b + 4, N - 1), lambda i, o: o.at[i].set(a[i, b] + a[i + 1, b]), o)

    return loop(0, 3, block, a[0] * 0)


def branches(loop, a):
    def item(i, o):
        return td.cond(
            i > 5, lambda i, o: loop(i, N, lambda j, o: o.at[j].add(a[i - 5, j]), o), lambda i, o: o, i, o
        )

    return loop(0, N, item, a[0] * 0)


def beyond_the_end(loop, a):
    return loop(0, N, lambda i, o: loop(i, N, lambda j, o: o.at[j + i].add(a[i, j]), o), a[0] * 0)


PROGRAMS = [lu, bubble_sort, triangle_sum, backward_substitution, blocks, branches]


def outcome(program, *given):
    """The results, or the kind of error: the messages of Python loops name other operators."""
    try:
        return [one.numpy() for one in td.tree.leaves(program(*given))]
    except errors.OutOfBoundsError as error:
        return type(error)


def assert_same(program, *given):
    want = outcome(lambda *given: program(python_loop, *given), *given)
    got = outcome(td.jit(lambda *given: program(compiled_loop, *given)), *given)
    if isinstance(want, list) and isinstance(got, list):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    else:
        assert got is want


def matrix():
    return td.asarray(
        np.random.default_rng(0).normal(size=(N, N)).astype("float32") + 4 * np.eye(N, dtype="float32")
    )


@pytest.mark.parametrize("program", [*PROGRAMS, beyond_the_end], ids=lambda program: program.__name__)
def test_same_as_loops_in_python(program):
    assert_same(program, matrix())


@needs_native
@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda program: program.__name__)
def test_no_loop_is_written_twice(program):
    text = td.jit(lambda a: program(td.fori_loop, a)).lower(matrix()).llvm_ir()
    assert "_u_head:" not in text


@needs_native
def test_tests_remain_where_positions_may_be_out_of_bounds():
    text = td.jit(lambda a: beyond_the_end(td.fori_loop, a)).lower(matrix()).llvm_ir()
    assert "call i64 @b0" in text and "missing" in text


@needs_native
def test_short_inner_loops_do_not_poll():
    def count(depth, size, stop, x):
        if not depth:
            return x + 1
        return td.fori_loop(0, stop, lambda i, x: count(depth - 1, size, i + size, x), x)

    polls = [
        td.jit(lambda x, depth=depth: count(depth, 20, 20, x))
        .lower(td.zeros(()))
        .llvm_ir()
        .count("call i64 @gil_poll")
        for depth in (1, 2, 3, 4, 5)
    ]
    assert polls[:2] == [0, 0] and polls == sorted(polls)
    assert polls[-1] > 0  # five loops of 20 iterations and more take long


def test_narrow_counters_that_overflow():
    def program(loop, a):
        stop = td.asarray(9, dtype=td.int8)
        return loop(
            td.asarray(0, dtype=td.int8),
            stop,
            lambda i, o: loop(i * 30, i + 100, lambda j, o: o + 1, o),
            a[0, 0],
        )

    assert_same(program, matrix())


# -- random programs ---------------------------------------------------------------------------------------------------
class Draw:
    """Draws nested loops over the counters of the outer ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def integer(self, counters, depth=2):
        """A function of counters to an integer."""
        choose = self.random
        if not counters or choose.random() < 0.2:
            number = choose.randint(-2, N)
            return lambda at: number
        one, number = choose.randrange(len(counters)), choose.randint(1, 4)
        if depth == 0 or choose.random() < 0.3:
            return lambda at: at[one]
        left, right = self.integer(counters, depth - 1), self.integer(counters, depth - 1)
        return choose.choice(
            [
                lambda at: left(at) + right(at),
                lambda at: left(at) - right(at),
                lambda at: left(at) * number - number,
                lambda at: td.minimum(td.asarray(left(at)), number + 4),
                lambda at: td.maximum(td.asarray(left(at)), right(at)),
                lambda at: td.asarray(left(at)) // number,
                lambda at: td.asarray(left(at)) % (number + 5),
            ]
        )

    def position(self, counters):
        """A function of counters to a position, mostly in bounds; a constant beyond the end is refused."""
        number, is_clipped = self.integer(counters), self.random.random() < 0.75

        def find(at):
            value = number(at)
            if isinstance(value, int):
                return value % N
            return td.clip(value, 0, N - 1) if is_clipped else value

        return find

    def nest(self, depth, counters):
        """A function of the loop, the values of the counters and a vector to the vector."""
        if not depth:
            target, *sources = (self.position(counters) for _ in range(3))
            return lambda loop, at, x: x.at[target(at)].set(0.5 * x[sources[0](at)] - x[sources[1](at)])
        first, stop, form = self.integer(counters), self.integer(counters), self.random.choice(FORMS)
        inner = self.nest(depth - 1, [*counters, depth])
        more = self.nest(0, counters) if counters and self.random.random() < 0.3 else None

        def write(loop, at, x):
            if more is not None:
                x = more(loop, at, x)
            return loop(first(at), stop(at), lambda i, x: inner(loop, [*at, i], x), x, form)

        return write


def check(seed):
    draw = Draw(seed)
    nest = draw.nest(draw.random.randint(2, 3), [])
    assert_same(lambda loop, x: nest(loop, [], x), td.asarray(np.random.default_rng(seed).normal(size=N)))


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_random_nests_of_loops(first):
    for seed in range(first, first + 4):
        check(seed)


@pytest.mark.full
@pytest.mark.parametrize("first", range(24, 2024, 20))
def test_more_random_nests_of_loops(first):
    for seed in range(first, first + 20):
        check(seed)
