"""Elements, rows and columns that change places: updates in place whose values are read from the same memory."""

import numpy as np
import pytest
import tandem as td
from exchange_programs import Program
from rotation import share_each_commit
from tandem.lowering.loop_bodies import LoopThunk

ROWS = np.arange(24.0).reshape(6, 4)


def exchange(x, i, j):
    one, other = x[i], x[j]
    return x.at[i].set(other).at[j].set(one)


def exchange_columns(x, i, j):
    one, other = x[:, i], x[:, j]
    return x.at[:, i].set(other).at[:, j].set(one)


def rotate(x, i, j):
    first = x[0]
    return x.at[0].set(x[i]).at[i].set(x[j]).at[j].set(first)


STEPS = {
    "a fixed row and a counted one": lambda x, k: exchange(x, 0, k),
    "a counted row and a fixed one": lambda x, k: exchange(x, k, -1),
    "two counted rows": lambda x, k: exchange(x, k, (k + 2) % 4),
    "two fixed rows": lambda x, k: exchange(x, 1, 3),
    "columns": lambda x, k: exchange_columns(x, 0, k % 4),
    "elements": lambda x, k: exchange(x.reshape(-1), 0, k * 2).reshape(x.shape),
    "elements of a column": lambda x, k: x.at[0, 1].set(x[k, 1]).at[k, 1].set(x[0, 1]),
    "three rows": lambda x, k: rotate(x, k, (k + 1) % 6),
    "a row from a fixed row": lambda x, k: x.at[k].set(x[0] * 2),
    "a fixed row from a row": lambda x, k: x.at[0].set(x[k] * 2),
    "a part of a row from another": lambda x, k: x.at[k, 1:3].set(x[2, 1:3]),
    "added to a column": lambda x, k: x.at[:, k % 4].add(x[:, 2]),
    "a window that overlaps what is read": lambda x, k: x.at[1:5].set(x[0:4] + k),
    "a row that is a column": lambda x, k: x.at[k, :4].set(x[:4, 0]),
}
IN_PLACE = [
    name for name in STEPS if name not in ("a window that overlaps what is read", "a row that is a column")
]


@pytest.mark.parametrize("name", STEPS)
def test_results_are_those_of_eager_steps(name):
    step = STEPS[name]
    expected = td.asarray(ROWS)
    for k in range(1, 6):
        expected = step(expected, k)
    result = td.jit(lambda x: td.fori_loop(1, 6, lambda k, x: step(x, k), x))(td.asarray(ROWS))
    assert result.tolist() == expected.tolist()


@pytest.mark.skipif(not td.config.flags.native, reason="native code is off")
@pytest.mark.parametrize("name", IN_PLACE)
def test_exchanges_copy_parts_only(name):
    step = STEPS[name]
    loop = td.jit(lambda x: td.fori_loop(1, 6, lambda k, x: step(x, k), x)).lower(td.asarray(ROWS))
    (body,) = next(step.bodies for step in loop._lowered.steps if isinstance(step, LoopThunk))
    copies = [s for s in body.lowered.steps if "copy" in s.kernel.name or "saved" in s.kernel.name]
    assert sum(step.params[-1].spec.size for step in copies) <= max(ROWS.shape)


def test_several_carries_whose_old_values_are_read_later():
    """The parts of the old values that are saved before one loop have kernels of their own."""

    def f(a, b):
        a, b = a * 2, b * 2
        old_a, old_b = a, b
        a, b = td.fori_loop(
            0, 4, lambda i, s: (s[0].at[i].set(s[0][i] + 1), s[1].at[i].set(s[1][i] - 3)), (a, b)
        )
        return a, b, a[2] * old_a[3], b[1] * old_b[2]

    args = td.asarray(np.arange(40.0)), td.asarray(np.arange(50.0).reshape(5, 10))
    for got, want in zip(td.jit(f)(*args), f(*args), strict=True):
        assert got.tolist() == want.tolist()


def sum_from(x, k):
    """Sum elements 0, k, 2 k, ... of the first column with a loop."""
    n = x.shape[0]
    return td.while_loop(lambda s: s[0] < n, lambda s: (s[0] + k, s[1] + x[s[0], 0]), (td.asarray(0), 0.0))[1]


def write_from(x, k):
    n = x.shape[0]
    return td.while_loop(lambda s: s[0] < n, lambda s: (s[0] + k, s[1].at[s[0]].add(1.0)), (k, x))[1]


READ_BY_LOOPS = {
    "a while loop": lambda x, k: (x.at[k].add(1.0), sum_from(x, k)),
    "a counted loop": lambda x, k: (x.at[k].add(1.0), td.fori_loop(0, k, lambda i, s: s + x[i, 1], 0.0)),
    "a scan": lambda x, k: (
        x.at[k].add(1.0),
        td.scan(lambda s, i: (s + x[i, 2], None), 0.0, td.arange(2) + k)[0],
    ),
    "a branch": lambda x, k: (x.at[k].add(1.0), td.cond(x[k, 1] > 5, lambda: x[0, 0], lambda: x[k, 3] * 2)),
    "a loop before a loop that writes": lambda x, k: (write_from(x, k), sum_from(x, k)),
    "a loop that needs another kernel": lambda x, k: (
        x.at[k].add(1.0),
        td.fori_loop(0, td.sum(x[k] > 4), lambda i, s: s + x[i, 1], 0.0),
    ),
    "a loop that needs another loop": lambda x, k: (
        x.at[k].add(1.0),
        td.fori_loop(0, 2, lambda i, s: s * 0.5 + x[i, 3], sum_from(x, k)),
    ),
    "a loop that needs the update": lambda x, k: (
        new := x.at[k].add(1.0),
        td.fori_loop(0, 2, lambda i, s: s + x[i, 1] - new[i, 1], 0.0),
    ),
}
LOOPS_IN_PLACE = [name for name in READ_BY_LOOPS if name != "a loop that needs the update"]


def repeat_and_sum(step, x):
    def body(k, state):
        new, total = step(state[0], k)
        return new, state[1] * 0.5 + total

    return td.fori_loop(1, 5, body, (x, td.zeros((), dtype=x.dtype)))


@pytest.mark.parametrize("name", READ_BY_LOOPS)
def test_loops_that_read_what_is_updated_later(name):
    want = repeat_and_sum(READ_BY_LOOPS[name], td.asarray(ROWS))
    got = td.jit(lambda x: repeat_and_sum(READ_BY_LOOPS[name], x))(td.asarray(ROWS))
    for one, other in zip(got, want, strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.skipif(not td.config.flags.native, reason="native code is off")
@pytest.mark.parametrize("name", LOOPS_IN_PLACE)
def test_loops_run_before_updates_of_what_they_read(name):
    loop = td.jit(lambda x: repeat_and_sum(READ_BY_LOOPS[name], x)).lower(td.asarray(ROWS))
    (body,) = next(step.bodies for step in loop._lowered.steps if isinstance(step, LoopThunk))
    assert not any(s.kernel.name.endswith("copy") for s in body.lowered.steps if hasattr(s, "kernel"))


def write_where_positive(x, k):
    return td.cond(x[k, 0] > 4, lambda y: y.at[k].set(x[0] * 2), lambda y: y, x)


def test_branches_that_capture_what_they_update():
    want = td.fori_loop(1, 6, lambda k, x: write_where_positive(x, k), td.asarray(ROWS))
    got = td.jit(lambda x: td.fori_loop(1, 6, lambda k, x: write_where_positive(x, k), x))(td.asarray(ROWS))
    assert got.tolist() == want.tolist()


@pytest.mark.skipif(not td.config.flags.native, reason="native code is off")
def test_branches_that_capture_what_they_update_copy_nothing():
    lowered = td.jit(write_where_positive).lower(td.asarray(ROWS), td.asarray(1))._lowered
    branch = next(step for step in lowered.steps if isinstance(step, LoopThunk))
    assert branch.in_place and not branch.copies
    assert [value.shape for value in branch.reads].count(ROWS.shape) == 1


@pytest.mark.parametrize("seed", [*range(20), *share_each_commit(range(20, 400), 30)])
def test_random_programs(seed):
    check(Program(seed), "cpu", donated=seed % 2 == 0)


@pytest.mark.full
@pytest.mark.parametrize("first", range(400, 10_000, 100))
def test_more_random_programs(first):
    for seed in range(first, first + 100):
        check(Program(seed), "cpu", donated=seed % 2 == 0)


@pytest.mark.parametrize("seed", share_each_commit(range(400), 100))
def test_random_programs_on_cuda(seed, cuda):
    check(Program(seed), "cuda", donated=seed % 2 == 0)


def check(program, device, donated):
    k = td.asarray(3, device=device)
    want = program(td.asarray(program.array, device=device), k)
    jitted = td.jit(program, donate_argnums=(0,) if donated else ())
    found = jitted(td.asarray(program.array, device=device), k)
    for one, other in zip(td.tree.leaves(found), td.tree.leaves(want), strict=True):
        assert one.to("cpu").tolist() == other.to("cpu").tolist(), program.steps
