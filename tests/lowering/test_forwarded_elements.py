"""Loops that read elements which an earlier step has stored: LLVM keeps them in registers between two polls."""

import re

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from tandem import errors
from tandem.backends.cpu.loop_frame import MAX_FIRST_POLL

SIZE = 40
RANDOM = np.random.default_rng(0)


def counted(start, stop, step):
    return lambda x, b: td.fori_loop(start, stop, lambda i, x: step(i, x, b), x)


def stepping_down(x, b):
    def step(x, i):
        return x.at[i].set(x[i + 1] * 0.5 + b[i]), x[i]

    return td.scan(step, x, td.arange(SIZE - 2, -1, -1))


def by_threes(x, b):
    def step(s):
        i, x = s
        return i + 3, x.at[i].set(x[i - 3] * 0.5 + b[i])

    return td.while_loop(lambda s: s[0] < SIZE, step, (td.asarray(3), x))


def one_array_as_two_carries(x, b):
    def step(i, s):
        x, y = s
        return x.at[i].set(y[i - 1] * 0.5 + b[i]), y.at[i].set(x[i - 1] + 1)

    return td.fori_loop(1, SIZE, step, (x, x))


def exchanged_carries(x, b):
    return td.fori_loop(1, SIZE, lambda i, s: (s[1], s[0].at[i].set(s[1][i - 1] * 0.5)), (x, b))


def triangle(x, b):
    a = x[:36].reshape(6, 6)
    return td.fori_loop(
        1, 6, lambda i, a: td.fori_loop(0, i, lambda j, a: a.at[i, j].add(a[i, j - 1] * a[j, i]), a), a
    )


def stops_early(x, b):
    def step(s):
        i, x = s
        return i + 1, x.at[i].set(x[i - 1] * 0.5 + b[i])

    return td.while_loop(lambda s: (s[0] < SIZE) & (s[1][s[0] - 1] < 2), step, (td.asarray(1), x))


PROGRAMS = {
    "one": counted(1, SIZE, lambda i, x, b: x.at[i].set(x[i - 1] * 0.9 + b[i])),
    "two": counted(2, SIZE, lambda i, x, b: x.at[i].set(x[i - 1] * 0.5 + x[i - 2] * 0.25)),
    "wraps": counted(0, SIZE, lambda i, x, b: x.at[i].set(x[i - 1] * 0.5 + x[i - 7])),
    "distant": counted(SIZE - 3, SIZE, lambda i, x, b: x.at[i].set(x[i - 20] + b[i])),
    "no step": counted(5, 5, lambda i, x, b: x.at[i].set(x[i - 1])),
    "one step": counted(5, 6, lambda i, x, b: x.at[i].set(x[i - 1] + 1)),
    "ahead": counted(0, SIZE - 1, lambda i, x, b: x.at[i].set(x[i + 1] + 1)),
    "stored ahead": counted(0, SIZE - 1, lambda i, x, b: x.at[i + 1].set(x[i] * b[i])),
    "negative": counted(1, SIZE, lambda i, x, b: x.at[i - SIZE].set(x[i - SIZE - 1] * 0.5 + b[i])),
    "added": counted(1, SIZE, lambda i, x, b: x.at[i].add(x[i - 1] * 0.5)),
    "clamped": counted(
        0, SIZE + 5, lambda i, x, b: x.at[td.minimum(i, SIZE - 1)].add(x[td.clip(i - 1, 0, 9)])
    ),
    "same element": counted(0, SIZE, lambda i, x, b: x.at[3].set(x[3] * 0.5 + b[i])),
    "stored twice": counted(1, SIZE, lambda i, x, b: x.at[i].set(x[i - 1] + 1).at[i].add(x[i] * 0.5)),
    "two stores": counted(1, SIZE, lambda i, x, b: x.at[i].set(x[i - 1] * 0.5).at[i - 1].set(b[i])),
    "sometimes": counted(
        1, SIZE, lambda i, x, b: td.cond(b[i] > 0, lambda: x.at[i].set(x[i - 1]), lambda: x)
    ),
    "by value": counted(1, SIZE, lambda i, x, b: x.at[i].set(td.where(b[i] > 0, x[i - 1], x[i]))),
    "from both ends": counted(0, SIZE, lambda i, x, b: x.at[SIZE - 1 - i].set(x[i] * 0.5 + x[SIZE - 1 - i])),
    "computed position": counted(0, SIZE, lambda i, x, b: x.at[i * 7 % SIZE].add(x[i * 3 % SIZE] * 0.5)),
    "of a column": counted(
        1, 8, lambda i, x, b: x.reshape(5, 8).at[:, i].add(x.reshape(5, 8)[:, i - 1]).ravel()
    ),
    "down": stepping_down,
    "by threes": by_threes,
    "two carries": one_array_as_two_carries,
    "exchanged": exchanged_carries,
    "triangle": triangle,
    "stops early": stops_early,
}


def arguments(dtype):
    return [td.asarray(RANDOM.normal(size=SIZE).astype(dtype)) for _ in range(2)]


def assert_same(program, *given):
    found, wanted = td.jit(program)(*given), program(*given)
    for one, two in zip(td.tree.leaves(found), td.tree.leaves(wanted), strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one.numpy(), two.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_return_what_eager_loops_return(name, dtype):
    x, b = arguments(dtype)
    assert_same(PROGRAMS[name], x, b)
    assert_same(PROGRAMS[name], x, x)
    if dtype == "float64":
        assert_same(td.vmap(PROGRAMS[name]), td.stack([x, b]), td.stack([b, x]))


@pytest.mark.parametrize("steps", [MAX_FIRST_POLL + d for d in (-1, 0, 1)] + [3 * MAX_FIRST_POLL + 7])
def test_elements_are_forwarded_across_polls(steps):
    x = td.asarray(RANDOM.normal(size=steps + 1).astype(np.float32))
    assert_same(lambda x: td.fori_loop(1, steps + 1, lambda i, x: x.at[i].set(x[i - 1] * 0.5 + x[i]), x), x)

    def step(s):
        return s[0] + 1, s[1].at[s[0]].set(s[1][s[0] - 1] * 0.5 + 1)

    assert_same(lambda x: td.while_loop(lambda s: s[0] <= steps, step, (td.asarray(1), x)), x)


@pytest.mark.parametrize("start", [-3, 0, 5])
def test_donated_argument_is_written_in_place(start):
    x, b = arguments("float32")
    program = counted(start, SIZE, lambda i, x, b: x.at[i].set(x[i - 1] * 0.9 + b[i]))
    wanted = program(x, b).numpy()
    np.testing.assert_array_equal(td.jit(program, donate_argnums=0)(x, b).numpy(), wanted)


@pytest.mark.parametrize("program", ["counted", "while"])
def test_index_out_of_bounds_after_some_steps(program):
    def step(s):
        return s[0] + 1, s[1].at[s[0]].set(s[1][s[0] - 1] * 0.5)

    programs = {
        "counted": lambda x: td.fori_loop(1, SIZE + 9, lambda i, x: x.at[i].set(x[i - 1]), x),
        "while": lambda x: td.while_loop(lambda s: s[0] < SIZE + 9, step, (td.asarray(1), x)),
    }
    x = arguments("float32")[0]
    before, messages = x.numpy().copy(), []
    for call in (programs[program], td.jit(programs[program])):
        with pytest.raises(errors.OutOfBoundsError) as fault:
            call(x)
        messages.append(str(fault.value))
    assert messages[0] == messages[1]
    np.testing.assert_array_equal(x.numpy(), before)


@needs_native
def test_polls_are_outside_of_the_loop_over_steps():
    program = counted(1, 10**6, lambda i, x, b: x.at[i].set(x[i - 1] * 0.9 + b[i]))
    text = td.jit(program).lower(td.zeros(10**6), td.zeros(10**6)).llvm_ir()
    (name,) = re.findall(r"%(\w+)_later = call i64 @gil_poll", text)
    inner = text[text.index(f"{name}_head:") : text.index(f"{name}_pause:")]
    assert "gil_poll" not in inner
    assert f"br label %{name}_head" in inner
