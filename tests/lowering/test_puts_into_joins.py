"""Updates of concatenations: shift registers are concatenations of what is left and of the new value."""

import numpy as np
import pytest
import tandem as td
from hypothesis import given, settings
from hypothesis import strategies as st
from lowering_harness import lowered
from tandem.backends.cpu import fastpath


def draw(*shape, dtype=np.float32):
    return td.asarray((np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype))


def operators(function, *args):
    return [node.op.schema.name for node in lowered(function, *args).optimized.nodes]


def check(function, *args):
    wanted, result = function(*args), td.jit(function)(*args)
    assert (result.dtype, result.shape, result.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


SHIFTS = {
    "at the end": lambda x, v: td.roll(x, -1, 0).at[-1].set(v),
    "at the start": lambda x, v: td.roll(x, 1, 0).at[0].set(v),
    "one element": lambda x, v: td.roll(x, 1, 0).at[0:1].set(v[None]),
    "into a part": lambda x, v: (
        td.concat([x, x[:2], x]).at[x.shape[0] - 1 : x.shape[0] + 2].set(td.stack([v] * 3))
    ),
    "rows": lambda x, v: td.concat([x[1:], x[:1]]).at[-1].set(v),
}


@pytest.mark.parametrize("shape", [(5,), (5, 3), (40, 2)])
@pytest.mark.parametrize("name", SHIFTS)
def test_shift_registers_are_one_concatenation(name, shape):
    x, v = draw(*shape), draw(*shape[1:])
    assert "basic_put" not in operators(SHIFTS[name], x, v)
    check(SHIFTS[name], x, v)


def write_first(x, v):
    y = td.roll(x, 1)
    y[0] = v
    return y * 2 + x


def read_twice(x, v):
    y = td.roll(x, 1)
    return y.at[0].set(v) - y


OTHERS = {
    "in place": write_first,
    "read before": read_twice,
    "a number": lambda x, v: td.roll(x, 1).at[0].set(3.5),
    "another dtype": lambda x, v: td.roll(x, 1).at[0].set(v.astype(td.float64)),
    "added": lambda x, v: td.roll(x, 1).at[0].add(v),
    "repeated": lambda x, v: td.roll(x, 3).at[0:3].set(v),
    "steps": lambda x, v: td.roll(x, 3).at[0:3:2].set(v),
    "twice": lambda x, v: td.roll(x, 1).at[0].set(v).at[0].set(v * 2),
    "within a part": lambda x, v: td.roll(x, 1).at[3].set(v),
    "flattened": lambda x, v: td.concat([x[None], x[None]], None).at[:4].set(td.stack([v] * 4)),
    "gradient": lambda x, v: td.grad(lambda x, v: (td.roll(x, 1).at[0].set(v) ** 3).sum())(x, v),
    "batched": lambda x, v: td.vmap(lambda x: td.roll(x, 1).at[0].set(v))(td.stack([x, x + 1])),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_updates_equal_eager_calls(name):
    check(OTHERS[name], draw(7), draw())


@settings(max_examples=80)
@given(st.data())
def test_random_updates_equal_eager_calls(data):
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    rank = data.draw(st.integers(1, 2))
    axis = data.draw(st.integers(-rank, rank - 1))
    shapes = [[3] * rank for _ in sizes]
    for shape, size in zip(shapes, sizes):
        shape[axis] = size
    parts = [draw(*shape) + k for k, shape in enumerate(shapes)]
    total = sum(sizes)
    if not total:
        return
    start = data.draw(st.integers(0, total - 1))
    stop = data.draw(st.integers(start, total))
    key = [slice(None)] * rank
    key[axis] = slice(start, stop)
    shape = [3] * rank
    shape[axis] = stop - start
    check(lambda *args: td.concat(args[:-1], axis).at[tuple(key)].set(args[-1]), *parts, draw(*shape) - 20)


@pytest.mark.skipif(bool(fastpath.why_off()), reason="graphs are interpreted")
def test_loop_of_a_shift_register():
    def run(x, h):
        def step(b, x):
            b = td.roll(b, -1).at[-1].set(x)
            return b, b @ h

        return td.scan(step, td.zeros(16), x)[1]

    x, h = draw(300), draw(16)
    check(run, x, h)
