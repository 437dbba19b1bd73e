"""Loops that change one row of a carry carry that row: the bits of the loop over arrays."""

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.lowering.passes import pipeline

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


def total(i, x, a):
    return td.fori_loop(0, 5, lambda j, a: a.at[i].add(x[j] - x[i]), a)


def average(i, x, a):
    return td.fori_loop(0, 5, lambda j, a: a.at[i].set(a[i] * 0.5 + x[j]), a)


def element(i, x, a):
    return td.fori_loop(0, 5, lambda j, a: a.at[i, i % 3].add(x[j, 0] * x[i, 1]), a)


def two_arrays(i, x, a):
    def step(j, state):
        a, b = state
        return a.at[i].add(x[j]), b.at[i].set(td.maximum(b[i], x[j]))

    a, b = td.fori_loop(0, 5, step, (a, a * 2))
    return a + b


def other_row_too(i, x, a):
    return td.fori_loop(0, 5, lambda j, a: a.at[i].add(a[j] * 0.5), a)


def moving_row(i, x, a):
    return td.fori_loop(0, 5, lambda j, a: a.at[j].add(x[i]), a)


def also_stacked(i, x, a):
    def step(a, row):
        a = a.at[i].add(row)
        return a, a[i]

    a, rows = td.scan(step, a, x)
    return a + rows.sum(0)


def broadcast(i, x, a):
    return td.fori_loop(0, 5, lambda j, a: a.at[i].add(x[j, 0]), a)


REPLACED = [total, average, element, two_arrays]
KEPT = [other_row_too, moving_row, also_stacked]


@pytest.mark.parametrize("program", [*REPLACED, *KEPT, broadcast], ids=lambda program: program.__name__)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c16"])
def test_rows_have_the_bits_of_arrays(program, dtype):
    if (dtype == "c16" and program is two_arrays) or (dtype == "i8" and program in (average, other_row_too)):
        pytest.skip("the program is for other dtypes")
    rng = np.random.default_rng(0)
    x, a = (td.asarray((rng.normal(size=(5, 3)) * 9).astype(dtype)) for _ in range(2))
    loop = td.jit(lambda x, a: td.fori_loop(0, 5, lambda i, a: program(i, x, a), a))
    want = a
    for i in range(5):
        want = program(i, x, want)
    if dtype == "c16":
        np.testing.assert_allclose(loop(x, a).numpy(), want.numpy(), rtol=1e-12)
    else:
        assert loop(x, a).numpy().tobytes() == want.numpy().tobytes()


@native
@pytest.mark.parametrize("program", [*REPLACED, *KEPT], ids=lambda program: program.__name__)
def test_which_carries_become_rows(program):
    x, i = td.zeros((5, 3)), td.asarray(2)
    graph = td.jit(lambda i, x, a: program(i, x, a)).lower(i, x, x)._lowered.graph
    shapes = []
    for node in pipeline.optimize(graph).nodes:
        if node.op.name == "control::scan":
            shapes += [value.shape for value in node.args[0].inputs[: len(node.args[1])]]
    assert ((5, 3) not in shapes) == (program in REPLACED)


@pytest.mark.parametrize("program", [total, average])
def test_rows_out_of_bounds_are_named(program):
    x = td.zeros((5, 3))
    with pytest.raises(IndexError, match="7"):
        td.jit(program)(td.asarray(7), x, x)


def test_loops_without_steps():
    x = td.ones((5, 3))
    loop = td.jit(lambda i, x: td.fori_loop(0, 0, lambda j, a: a.at[i].add(x[j]), x))
    assert loop(td.asarray(2), x).tolist() == x.tolist()


def test_derivatives():
    def value(x):
        return (average(td.asarray(1), x, x) ** 2).sum()

    x = td.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    np.testing.assert_allclose(td.jit(td.grad(value))(x).numpy(), td.grad(value)(x).numpy(), rtol=1e-10)
