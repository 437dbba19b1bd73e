"""Loops of elementwise steps run tile by tile, several steps at once: the bits of the loop step by step."""

import numpy as np
import pytest
import tandem as td
from rotation import share_each_commit
from tandem import config
from tandem.lowering.passes import tile_loops

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


@pytest.fixture(params=[512, 1024])
def small_tiles(request, monkeypatch):
    """Tiles of few elements."""
    monkeypatch.setattr(tile_loops, "TILE_BYTES", request.param)
    monkeypatch.setattr(tile_loops, "LEAST", 8)


def polynomial(steps, x, y, c):
    return td.fori_loop(0, steps, lambda i, s: s * x + c[i % 7], td.zeros_like(x))


def oscillator(steps, x, y, c):
    return td.fori_loop(0, steps, lambda i, s: (s[0] + c[0] * s[1], s[1] - c[1] * s[0]), (x, y))


def clock(steps, x, y, c):
    def step(i, state):
        time, position = state
        return time + 0.25, position + td.sin(time) * y

    return td.fori_loop(0, steps, step, (td.asarray(0.0, dtype=x.dtype), x))


def escape(steps, x, y, c):
    def step(i, state):
        a, b, count = state
        inside = a * a + b * b < 4
        return (
            td.where(inside, a * a - b * b + x, a),
            td.where(inside, 2 * a * b + y, b),
            count + inside.astype(td.int32),
        )

    return td.fori_loop(0, steps, step, (x, y, td.zeros(x.shape, dtype=td.int32)))


def backwards(steps, x, y, c):
    weights = td.arange(1.0 * steps).astype(x.dtype)
    return td.scan(lambda s, w: (s * 0.5 + w * y, None), x, weights, reverse=True)[0]


def exchange(steps, x, y, c):
    return td.fori_loop(0, steps, lambda i, s: (s[1], s[0] + s[1] * 0.5), (x, y))


def countdown(steps, x, y, c):
    return td.fori_loop(0, steps, lambda i, s: s - i * 0.5, x)


PROGRAMS = [polynomial, oscillator, clock, escape, backwards, exchange, countdown]


@native
@pytest.mark.parametrize("program", share_each_commit(PROGRAMS, 2), ids=lambda program: program.__name__)
def test_tiles_have_the_bits_of_single_steps(program, small_tiles, monkeypatch):
    rng = np.random.default_rng(0)
    for shape, dtype in (((384,), "f8"), ((401,), "f4"), ((24, 16), "f8"), ((5, 7, 31), "f4"), ((32,), "f8")):
        x, y = (td.asarray(rng.normal(size=shape).astype(dtype)) for _ in range(2))
        c = td.asarray(rng.normal(size=7).astype(dtype))
        for steps in (1, 4, 5, 16, 23):
            results = td.tree.leaves(td.jit(lambda x, y, c, n=steps: program(n, x, y, c))(x, y, c))
            with monkeypatch.context() as patch:
                patch.setattr(tile_loops, "MIN_STEPS", 1000)
                plain = td.jit(lambda x, y, c, n=steps: program(n, x, y, c))(x, y, c)
            for one, other in zip(results, td.tree.leaves(plain), strict=True):
                assert one.shape == other.shape and one.numpy().tobytes() == other.numpy().tobytes()


def count_loops(function, *args):
    graph = td.jit(function).lower(*args)._lowered.optimized
    (loop,) = (node for node in graph.nodes if node.op.name == "control::scan")
    inner = [node for node in loop.args[0].nodes if node.op.name == "control::scan"]
    return loop.kwargs["length"], [node.kwargs["length"] for node in inner]


@native
def test_loops_over_tiles_and_steps():
    def step(i, s):
        return s * 0.9 + 0.1

    assert count_loops(lambda x: td.fori_loop(0, 100, step, x), td.zeros(64_000)) == (16, [25])
    assert count_loops(lambda x: td.fori_loop(0, 100, step, x), td.zeros(1000)) == (25, [])
    assert count_loops(lambda x: td.fori_loop(0, 100, step, x), td.zeros(2)) == (100, [])
    assert count_loops(lambda x: td.fori_loop(0, 100, lambda i, s: td.tanh(s), x), td.zeros(1000)) == (
        100,
        [],
    )


@native
@pytest.mark.parametrize(
    "step",
    [
        lambda i, s: s - s.mean(),
        lambda i, s: td.roll(s, 1),
        lambda i, s: s[::-1] * 2,
        lambda i, s: s + s[i],
        lambda i, s: td.cumsum(s),
    ],
)
def test_steps_that_read_other_elements_are_not_tiled(step):
    x = td.asarray(np.random.default_rng(0).normal(size=64_000))
    loop = td.jit(lambda x: td.fori_loop(0, 8, step, x))
    np.testing.assert_allclose(loop(x).numpy(), td.fori_loop(0, 8, step, x).numpy(), rtol=1e-10, atol=1e-10)
    assert count_loops(lambda x: td.fori_loop(0, 8, step, x), x) == (8, [])


@native
def test_as_many_steps_as_elements(small_tiles):
    x = td.asarray(np.random.default_rng(0).normal(size=256))
    loop = td.jit(lambda x: td.scan(lambda s, v: (s * 0.5 + v * x, None), x, x)[0])
    want = x.numpy()
    for number in x.numpy():
        want = want * 0.5 + number * x.numpy()
    np.testing.assert_allclose(loop(x).numpy(), want, rtol=1e-12)


@native
def test_derivatives_and_batches(small_tiles):
    def total(x):
        return td.fori_loop(0, 6, lambda i, s: s * 0.5 + td.sin(x), x).sum()

    x = td.asarray(np.random.default_rng(0).normal(size=96))
    np.testing.assert_allclose(td.jit(td.grad(total))(x).numpy(), td.grad(total)(x).numpy(), rtol=1e-12)
    rows = td.reshape(x, (8, 12))
    np.testing.assert_allclose(td.jit(td.vmap(total))(rows).numpy(), td.vmap(total)(rows).numpy(), rtol=1e-12)


@native
def test_loops_without_carries(capsys):
    x = td.ones(8)
    programs = [
        lambda x: td.fori_loop(0, 4, lambda i, s: (td.debug.print("{}", i), s)[1], x),
        lambda x: (td.scan(lambda c, w: (td.debug.print("{}", w), (c, None))[1], x, td.arange(4.0)), x)[1],
        lambda x: td.fori_loop(0, 4, lambda i, s: td.fori_loop(0, 4, lambda j, s: (s[1], s[0]), s), (x, x))[
            0
        ],
    ]
    for program in programs:
        assert td.jit(program)(x).tolist() == [1.0] * 8
    assert len(capsys.readouterr().out.splitlines()) == 8
