"""Carries of loops that change places: pointers are exchanged, and nothing is copied."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem.lowering.loop_bodies import LoopThunk

LENGTHS = [0, 1, 2, 3, 4, 5, 8]
SIZES = [4, 20]  # the first fit into registers
MOVES = {
    "exchange": lambda k, a, b, c: (b, a, c),
    "exchange and write": lambda k, a, b, c: (b.at[k % 4].add(1.0), a, c),
    "exchange and write both": lambda k, a, b, c: (b.at[k % 4].add(a[0]), a.at[1].set(2.0), c),
    "rotate": lambda k, a, b, c: (b, c, a),
    "rotate and write": lambda k, a, b, c: (b, c.at[k % 4].set(a[2]), a),
    "a step of two earlier values": lambda k, a, b, c: (b, 2 * b - a, c),
    "a step of three earlier values": lambda k, a, b, c: (b, c, a * 0.5 + b - c),
    "reverse the other": lambda k, a, b, c: (b, b[::-1] + a, c),
    "reverse the first": lambda k, a, b, c: (b, a[::-1] + b, c),
    "a step and a write": lambda k, a, b, c: (b.at[k % 4].add(1.0), a + b, c),
    "a value that two carries take": lambda k, a, b, c: (b, b, a),
    "a value that is kept and taken": lambda k, a, b, c: (b, b.at[k % 4].add(1.0), a),
    "one result twice": lambda k, a, b, c: (b, s := a + c, s),
    "two exchanges in turn": lambda k, a, b, c: (c.at[0].add(1.0), b * 2, a),
    "a constant": lambda k, a, b, c: (b, c, td.ones_like(a)),
}


def arrays(size):
    return [td.asarray(np.arange(size) + 10.0 * n + 1) for n in range(3)]


def run_fori(step, length):
    return lambda *xs: td.fori_loop(0, length, lambda k, s: step(k, *s), xs)


def run_while(step, length):
    def f(n, *xs):
        return td.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, *step(s[0], *s[1:])), (td.asarray(0), *xs)
        )[1:]

    return lambda *xs: f(td.asarray(length), *xs)


def run_scan(step, length):
    def f(*xs):
        def body(s, k):
            new = step(k, *s)
            return new, (new[1], s[0])

        return td.scan(body, xs, td.arange(length))

    return f


RUNS = {"fori_loop": run_fori, "while_loop": run_while, "scan": run_scan}


def check(program, xs, device="cpu", donated=False):
    want = program(*xs)
    given = [td.clone(x).to(device) for x in xs]
    got = td.jit(lambda a, b, c: program(a, b, c), donate_argnums=(0, 1, 2) if donated else ())(*given)
    for one, other in zip(td.tree.leaves(got), td.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(one.to("cpu").numpy(), other.numpy())


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("run", share_each_commit(RUNS, 3))
@pytest.mark.parametrize("size", SIZES)
def test_results_are_those_of_eager_loops(name, run, size):
    for length in LENGTHS:
        check(RUNS[run](MOVES[name], length), arrays(size), donated=length % 2 == 0)


@pytest.mark.parametrize("run", RUNS)
def test_captured_values_become_carries(run):
    def program(*xs):
        fixed = xs[0] * 3
        return RUNS[run](lambda k, a, b, c: (b, fixed, c.at[k % 4].add(a[0])), 5)(*xs)

    check(program, arrays(20))


def test_same_value_for_several_carries():
    check(lambda a, b, c: run_fori(MOVES["exchange and write"], 3)(a, a, a), arrays(20))
    check(lambda a, b, c: (s := a + b, run_fori(MOVES["rotate and write"], 4)(s, s, c)), arrays(20))


def draw_program(seed):
    """A random loop: each next carry is a carry, an updated one, a sum or a constant."""
    rng = np.random.default_rng(seed)
    kinds, picks = rng.integers(0, 5, 4), rng.integers(0, 4, (4, 2))
    length, run = int(rng.integers(0, 8)), list(RUNS)[rng.integers(3)]

    def step(k, *s):
        def make(kind, i, j):
            if kind < 2:
                return s[i]
            if kind == 2:
                return s[i].at[k % 4].set(s[j][1] + 1)
            return s[i] * 0.5 + s[j] if kind == 3 else td.full_like(s[0], 2.0)

        return tuple(make(kind, i, j) for kind, (i, j) in zip(kinds, picks))

    def program(*xs):
        d = xs[0] * xs[1]
        return RUNS[run](step, length)(*xs, d)

    return program


@pytest.mark.parametrize("seed", [*range(20), *share_each_commit(range(20, 1000), 30)])
def test_random_moves(seed):
    check(draw_program(seed), arrays(20), donated=seed % 2 == 0)


@pytest.mark.parametrize("seed", share_each_commit(range(400), 20))
def test_random_moves_on_cuda(seed, cuda):
    check(draw_program(seed), arrays(20), device="cuda")


def find_loop(program, *args):
    lowered = td.jit(program).lower(*args)._lowered
    return next(step for step in lowered.steps if isinstance(step, LoopThunk))


def count_arrays(loop):
    """The arrays of 1,000 elements that a loop writes: its results, and its own memory."""
    return len([value for value in (*loop.node.outputs, *loop.temporaries) if value.spec.size == 1000])


@needs_native
@pytest.mark.parametrize("name", ["exchange and write", "rotate and write", "reverse the other"])
def test_counted_rotations_have_one_buffer_for_each_carry(name):
    loop = find_loop(run_fori(MOVES[name], 5), *arrays(1000))
    assert count_arrays(loop) == sum(output.spec.size == 1000 for output in loop.node.outputs)
    assert loop.moves.sources


@needs_native
def test_exchanged_carries_need_no_memory():
    loop = find_loop(run_while(MOVES["exchange"], 5), *arrays(1000))
    assert count_arrays(loop) == 2


@needs_native
@pytest.mark.parametrize("run", ["fori_loop", "while_loop"])
def test_values_that_cannot_be_written_in_place_have_one_buffer_more(run):
    loop = find_loop(RUNS[run](MOVES["reverse the first"], 5), *arrays(1000))
    (pool,) = loop.moves.pools.values()
    assert len(pool) == 3


@pytest.mark.parametrize("dtype", ["complex64", "float32", "float64"])
@pytest.mark.parametrize("length", [4, 6])
def test_copied_arguments_of_unrolled_loops(dtype, length):
    """LLVM repeated a load of a copied part after the same memory held the copy of the next argument."""
    a, b = (td.asarray((np.arange(32) + first).astype(dtype))[::2] for first in (1, 101))

    def program(a, b):
        def body(s, k):
            new = s[1].at[(k + 6) % 16].add(b[(3 + k) % 16])
            return (new, b), new

        return td.scan(body, (b, a), td.arange(length), reverse=True)

    for got, want in zip(td.tree.leaves(td.jit(program)(a, b)), td.tree.leaves(program(a, b)), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 10_000, 100))
def test_more_random_moves(first):
    for seed in range(first, first + 100):
        check(draw_program(seed), arrays(20), donated=seed % 2 == 0)
