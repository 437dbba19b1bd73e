"""Ranges that loops capture are counted in the kernels of their bodies; other values stay captured."""

import numpy as np
import pytest
import tandem as td
from lowering_harness import graph_of
from tandem.lowering.passes.loop_passes import is_scan, scan_of
from tandem.lowering.passes.sink_ranges import sink_ranges

X = np.random.default_rng(0).standard_normal(60)


def filtered(positions):
    """A filter whose window is at positions that are computed outside of the loop."""

    def run(x):
        ks = positions()

        def step(i, out):
            return out.at[i].set((x[i - ks] * (ks + 1)).sum())

        return td.fori_loop(10, 60, step, td.zeros_like(x))

    return run


POSITIONS = {
    "range": lambda: td.arange(7),
    "stepped": lambda: td.arange(1, 9, 2),
    "computed": lambda: 8 - td.arange(5) * 2,
    "reversed": lambda: td.flip(td.arange(5), 0),
    "column": lambda: td.arange(6).reshape(2, 3),
    "single": lambda: td.arange(1),
    "long": lambda: td.arange(2000),
    "part of a long one": lambda: td.arange(2000)[:7],
}


@pytest.mark.parametrize("name", [name for name in POSITIONS if name != "long"])
def test_loops_return_the_same(name):
    run, x = filtered(POSITIONS[name]), td.asarray(X)
    expected = np.zeros(60)
    ks = POSITIONS[name]().numpy()
    for i in range(10, 60):
        expected[i] = (X[i - ks] * (ks + 1)).sum()
    np.testing.assert_allclose(td.jit(run)(x).numpy(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(td.jit(run)(x).numpy(), run(x).numpy())
    slope = td.jit(td.grad(lambda x: run(x).sum()))(x)
    np.testing.assert_allclose(slope.numpy(), td.grad(lambda x: run(x).sum())(x).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "count"), [("range", 0), ("computed", 0), ("column", 0), ("long", 1), ("part of a long one", 1)]
)
def test_only_few_elements_are_moved(name, count):
    graph = sink_ranges(graph_of(filtered(POSITIONS[name]), X))
    (scan,) = filter(is_scan, graph.nodes)
    integers = [value for value in scan_of(scan).consts if value.spec.dtype.is_integer and value.spec.shape]
    assert len(integers) == count


def test_nested_loops_return_the_same():
    def run(x):
        ks, offsets = td.arange(3), td.arange(4) * 5

        def row(i, out):
            return td.fori_loop(0, 4, lambda j, out: out.at[i, j].set(x[i + ks + offsets[j]].sum()), out)

        return td.fori_loop(0, 8, row, td.zeros((8, 4), dtype=td.float64))

    x = td.asarray(X)
    expected = [[X[i + 5 * j : i + 5 * j + 3].sum() for j in range(4)] for i in range(8)]
    np.testing.assert_allclose(td.jit(run)(x).numpy(), expected, rtol=1e-12)


def test_values_of_other_readers_stay_captured():
    def run(x):
        ks = td.arange(5)

        def step(carry, i):
            return carry + td.sort((ks * i) % 7)[0] + ks.sum(), td.take(x, ks + i)

        return td.scan(step, td.asarray(0), td.arange(9))

    x = td.asarray(X)
    total, rows = td.jit(run)(x)
    want_total, want_rows = run(x)
    assert int(total) == int(want_total)
    np.testing.assert_array_equal(rows.numpy(), want_rows.numpy())


@pytest.mark.parametrize(
    ("step", "count"),
    [
        (lambda ks, i, s: s + ks % (i + 1), 0),
        (lambda ks, i, s: td.where((ks >= i * i) & (ks % (i + 2) == 0), 0, s), 0),
        (lambda ks, i, s: s + ks // (s + i + 1), 0),
        (lambda ks, i, s: s + ks % 7, 1),
        (lambda ks, i, s: s + ks % (i + 1) + ks % 7, 1),
        (lambda ks, i, s: s.at[i].add((ks * 2)[i]), 1),
        (lambda ks, i, s: s + ks * i, 1),
        (lambda ks, i, s: s + i // (ks + 1), 1),
    ],
)
def test_long_ranges_are_moved_where_steps_divide_them(step, count):
    def run(x):
        ks = td.arange(3000)
        return td.fori_loop(1, 9, lambda i, s: step(ks, i, s), x)

    x = np.arange(3000)
    (scan,) = filter(is_scan, sink_ranges(graph_of(run, x)).nodes)
    found = [value for value in scan_of(scan).consts if value.spec.shape == (3000,)]
    assert len(found) == count
    np.testing.assert_array_equal(td.jit(run)(td.asarray(x)).numpy(), run(td.asarray(x)).numpy())
