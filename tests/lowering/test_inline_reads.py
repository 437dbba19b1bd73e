"""Kernels compute values at the points where they read them: the same bits as eager calls, and fewer kernels."""

import re

import numpy as np
import pytest
import tandem as td
from movement_programs import draw_program
from tandem import config
from tandem.backends.cpu.codegen import vectors
from tandem.jax import lax
from tandem.lowering import cost_model
from tandem.lowering.fusion.affine_reads import AffineAxis, find_positions
from tandem.lowering.passes import inline_reads

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")


@pytest.fixture
def always(monkeypatch):
    """Inline wherever it is possible, also where it does not pay."""
    monkeypatch.setattr(inline_reads, "MIN_SPLIT_BYTES", 0)
    monkeypatch.setattr(cost_model, "CACHE_BYTES", 0)
    monkeypatch.setattr(cost_model, "MAX_EXTRA_COST", 100)


def neighbours(p):
    return p[1:-1, 1:-1] + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]


def rolled(a):
    return a + td.roll(a, 1, 0) + td.roll(a, -1, 0) + td.roll(a, 1, 1) + td.roll(a, -1, 1)


# Programs of a 40 x 30 tensor, and the number of their kernels.
PROGRAMS = {
    "difference": (lambda a: (lambda b: b[1:] - b[:-1])(a * a), 1),
    "flip": (lambda a: (a * 2 + 1)[::-1] - a, 1),
    "flip columns": (lambda a: (a * 2 + 1)[:, ::-1] - a, 1),
    "transpose of a slice": (lambda a: (a * 2)[1:31].T + a[:30, :30].T, 1),
    "roll": (lambda a: (lambda b: b - td.roll(b, 1, 0))(a * 2 + 1), 2),
    "roll both": (lambda a: (lambda b: b - td.roll(b, (3, -2), (0, 1)))(a * 2 + 1), 4),
    "roll of an argument": (rolled, 9),
    "pad": (lambda a: neighbours(td.pad(a, 1)), 9),
    "pad of a computed value": (lambda a: neighbours(td.pad(a * 2, 1, constant_values=3.0)), 9),
    "pad of rows": (lambda a: (lambda p: p[2:] - p[:-2])(td.pad(a, ((1, 1), (0, 0)))), 3),
    "halves": (lambda a: td.concat([a * 2, a - 1]) * td.concat([a, td.exp(a)]), 3),
    "strided write": (lambda a: a.at[::2].set(0.0) + a, 3),
    "counted": (lambda a: (lambda b: b[:, 1:] + b[:, :-1])(td.arange(30) * 2 + a), 1),
    "used twice": (lambda a: (lambda b: (b[1:] - b[:-1], b[:, 1:] + 1.0))(a * 3), 2),
    "a result too": (lambda a: (lambda b: (b, b[1:] - b[:-1]))(a * 3), 2),
    "a sum too": (lambda a: (lambda b: (b[1:] - b[:-1], b.sum(0)))(a * 3), 2),
    "reshaped": (lambda a: (lambda b: b.reshape((30, 40)) + b[:30, :1])(a * 3), 2),
    "sum of a flip": (lambda a: ((a * 2 + 1)[::-1] * a).sum(1), 1),
    "softmax of a transpose": (lambda a: td.softmax((a * 2).T, -1), 1),
    "gathered rows backwards": (lambda a: a[td.argsort(a[:, 0])][::-1] * 2, 2),
    "sum of gathered rows backwards": (lambda a: (a[td.argsort(a[:, 0])][:, ::-1] * a).sum(1), 2),
}


@native
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_the_bits_of_eager_calls(name, always):
    program, kernels = PROGRAMS[name]
    a = td.asarray(np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32))
    jitted = td.jit(lambda a: program(a))
    for found, want in zip(td.tree.leaves(jitted(a)), td.tree.leaves(program(a)), strict=True):
        assert found.numpy().tobytes() == want.numpy().tobytes()
    assert len(jitted.lower(a).kernels().steps) == kernels


@pytest.mark.parametrize("part", range(10))
def test_random_programs_have_the_bits_of_eager_calls(part, always):
    for seed in range(part * 12, part * 12 + 12):
        program, arrays = draw_program(seed)
        tensors = [td.asarray(array) for array in arrays]
        found, want = (td.tree.leaves(f(*tensors)) for f in (td.jit(program), program))
        for one, other in zip(found, want, strict=True):
            assert one.shape == other.shape, seed
            assert one.numpy().tobytes() == other.numpy().tobytes(), seed


@native
def test_reversed_windows_are_not_stored():
    def step(k, out):
        window = lax.dynamic_slice(x, (k,), (7,))[::-1]
        return out.at[k].set((window * h).sum())

    x, h = td.asarray(np.random.default_rng(0).normal(size=50)), td.asarray(np.arange(7.0))
    loop = td.jit(lambda: td.fori_loop(0, 44, step, td.zeros(50, dtype=td.float64)))
    want = np.append(np.convolve(x.numpy(), h.numpy(), "valid"), np.zeros(6))
    np.testing.assert_allclose(loop().numpy(), want, rtol=1e-13)
    assert "b0_k1" not in loop.lower().llvm_ir()  # the kernel that would store the window


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[1:], np.s_[::2]])
def test_positions_that_are_not_used_are_checked(view):
    read = td.jit(lambda x, at: (x[at][view] * 2).sum())
    x = td.arange(5.0)
    np.testing.assert_allclose(read(x, td.asarray([4, 0, 1])).numpy(), (x.numpy()[[4, 0, 1]][view] * 2).sum())
    with pytest.raises(IndexError, match="7"):
        read(x, td.asarray([7, 0, 1]))


@native
@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?", "c8"])
def test_rows_are_read_backwards(dtype, masks, monkeypatch):
    target = vectors.vector_target()
    monkeypatch.setattr(vectors, "vector_target", lambda: target._replace(masks=target.masks and masks))
    for size in (1, 2, 7, 16, 17, 33, 64):
        x = td.asarray((np.random.default_rng(size).normal(size=(3, size)) * 50).astype(dtype))
        flipped = td.jit(lambda x: td.where(x[:, ::-1] == x, x[::-1], x[:, ::-1]))
        want = np.where(x.numpy()[:, ::-1] == x.numpy(), x.numpy()[::-1], x.numpy()[:, ::-1])
        assert flipped(x).numpy().tobytes() == want.tobytes()
        if vectors.vector_target().masks and dtype == "f4" and size == 64:
            assert "shufflevector" in flipped.lower(x).llvm_ir()


@native
@pytest.mark.skipif(not vectors.vector_target().masks, reason="partial vectors are copied")
def test_reversed_rows_with_partial_vectors_reverse_no_mask():
    flipped = td.jit(lambda x: x[:, ::-1] * 2 + 1)
    for columns in (1, 7, 8, 15, 17, 1000):
        x = td.asarray(np.arange(5.0 * columns, dtype=np.float32).reshape(5, columns))
        assert flipped(x).numpy().tobytes() == (x.numpy()[:, ::-1] * np.float32(2) + np.float32(1)).tobytes()
        assert not re.search(r"shufflevector <\d+ x i1>", flipped.lower(x).llvm_ir())


@native
def test_dear_values_are_stored():
    a = td.zeros((1000, 300), dtype=td.float32)
    dear = td.jit(lambda a: (lambda b: b[1:] - b[:-1])(td.exp(a)))
    assert len(dear.lower(a).kernels().steps) == 2
    cheap = td.jit(lambda a: (lambda b: b[1:] - b[:-1])(a * a))
    (step,) = cheap.lower(a).kernels().steps
    assert step.endswith("mul, sub")  # both nodes belong to the kernel


@native
def test_small_values_are_not_split():
    rolls = td.jit(lambda a: a - td.roll(a, 1, 0))
    assert len(rolls.lower(td.zeros((8, 8))).kernels().steps) == 3
    assert len(rolls.lower(td.zeros((800, 800))).kernels().steps) == 2


@native
def test_carries_stay_in_place():
    def step(k, a):
        b = a * 0.5
        return a.at[1:-1].set(b[2:] + b[:-2])

    loop = td.jit(lambda a: td.fori_loop(0, 10, step, a))
    a = td.asarray(np.random.default_rng(0).normal(size=(300, 400)))
    assert loop(a).numpy().tobytes() == td.fori_loop(0, 10, step, a).numpy().tobytes()
    assert loop.lower(a).compile().memory_analysis()["temp"] <= 2 * a.nbytes


@native
def test_rolls_of_a_carry_are_not_stored():
    loop = td.jit(lambda a: td.fori_loop(0, 5, lambda k, a: 0.2 * rolled(a), a))
    a = td.asarray(np.random.default_rng(0).normal(size=(300, 200)))
    assert loop(a).numpy().tobytes() == td.fori_loop(0, 5, lambda k, a: 0.2 * rolled(a), a).numpy().tobytes()
    assert loop.lower(a).compile().memory_analysis()["temp"] <= 1.1 * a.nbytes


@native
@pytest.mark.parametrize(
    "step",
    [
        lambda a: td.roll(a, 1, 0) + td.roll(a, -1, 0) + td.roll(a, 1, 1) + td.roll(a, -1, 1),
        lambda a: td.concat([a[1:], a[:1]]) + 1,
        lambda a: (p := td.numpy.pad(a, 1))[2:, 1:-1] - p[:-2, 1:-1] + p[1:-1, 2:],
        lambda a: (td.roll(a, 1, 0) - td.roll(a, 1, 1)).at[0].set(0.0),
    ],
    ids=["rolls", "concat", "pad", "update"],
)
def test_results_of_neighbours_alone_take_one_more_array(step):
    """No part of the new carry is computed from the element at its own place: two arrays change places."""
    loop = td.jit(lambda a: td.fori_loop(0, 5, lambda k, a: 0.25 * step(a), a))
    a = td.asarray(np.random.default_rng(0).normal(size=(300, 200)))
    assert loop(a).numpy().tobytes() == td.fori_loop(0, 5, lambda k, a: 0.25 * step(a), a).numpy().tobytes()
    assert loop.lower(a).compile().memory_analysis()["temp"] <= 1.1 * a.nbytes


@native
def test_values_are_computed_in_the_loop_of_an_update():
    k = td.asarray([3, 1, 3])
    update = td.jit(lambda x, y: x.at[k].add(y[::-1] * 2 + 1))
    x, y = (td.asarray(np.random.default_rng(0).normal(size=shape)) for shape in ((5, 4), (3, 4)))
    assert update(x, y).numpy().tobytes() == x.at[k].add(y[::-1] * 2 + 1).numpy().tobytes()
    assert [step.split(":")[0] for step in update.lower(x, y).kernels().steps] == ["k1_copy", "k1"]
    own = td.jit(
        lambda x: (lambda x: x.at[k].add(x[:3] * 2 + 1))(x * 2)
    )  # the update is in place: x[:3] is read before
    assert own(x).numpy().tobytes() == (x * 2).at[k].add((x * 2)[:3] * 2 + 1).numpy().tobytes()


@pytest.mark.parametrize(
    ("shape", "sizes", "strides", "offset", "positions"),
    [
        ((3, 4), (3, 4), (4, 1), 0, [(0, 1, 0), (0, 1, 1)]),
        ((3, 4), (4, 3), (1, 4), 0, [(0, 1, 1), (0, 1, 0)]),
        ((3, 4), (2, 4), (-4, 1), 8, [(2, -1, 0), (0, 1, 1)]),
        ((3, 4), (5, 2), (0, 2), 5, [(1, 0, 0), (1, 2, 1)]),
        ((3, 1, 4), (3,), (4,), 3, [(0, 1, 0), (0, 0, 0), (3, 0, 0)]),
        ((3, 4), (12,), (1,), 0, None),
        ((4, 4), (4,), (5,), 0, None),
        ((3, 4), (2, 2), (1, 1), 0, None),
    ],
)
def test_positions_follow_from_strides(shape, sizes, strides, offset, positions):
    found = find_positions(shape, sizes, strides, offset)
    assert found == (None if positions is None else tuple(AffineAxis(*axis) for axis in positions))
