"""Arrays that are updated on a condition are updated in place with a chosen value."""

import numpy as np
import pytest
import tandem as td
from tandem import config
from tandem.lowering.passes import pipeline

native = pytest.mark.skipif(not config.flags.native, reason="native code is off")

# Programs of a condition, a position and an array of 6 x 4.
REWRITTEN = {
    "row": lambda c, i, a: td.where(c, a.at[i].set(a[0] * 2), a),
    "not": lambda c, i, a: td.where(c, a, a.at[i].set(a[0] * 2)),
    "element": lambda c, i, a: td.where(c, a.at[i, i % 4].set(7), a),
    "sum": lambda c, i, a: td.where(c, a.at[i].add(a[1]), a),
    "static": lambda c, i, a: td.where(c, a.at[2, 1].add(3), a),
    "slice": lambda c, i, a: td.where(c, a.at[1:2, 1:3].set(a[0, 0]), a),
    "two": lambda c, i, a: td.where(c, a.at[i].set(a[0]).at[1].add(a[i]), a),
    "exchange": lambda c, i, a: td.where(c, a.at[0].set(a[i]).at[i].set(a[0]), a),
    "equal positions": lambda c, i, a: td.where(
        c, a.at[td.stack([i, i]), td.stack([i % 4, i % 4])].add(a[0, :2]), a
    ),
}
KEPT = {
    "array of conditions": lambda c, i, a: td.where(a > 1, a.at[i].set(a[0]), a),
    "another array": lambda c, i, a: td.where(c, a.at[i].set(a[0]), a + 1),
    "most of the array": lambda c, i, a: td.where(c, a.at[1:].set(a[:-1]), a),
}


@pytest.mark.parametrize("name", [*REWRITTEN, *KEPT])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
def test_programs_have_the_bits_of_eager_calls(name, dtype):
    program = (REWRITTEN | KEPT)[name]
    numbers = np.random.default_rng(0).integers(-3, 4, (6, 4)) * 1.5
    a = td.asarray(np.where(numbers == 0, -0.0, numbers).astype("f8")).numpy()
    a = td.asarray(np.abs(a).astype(dtype) if dtype == "u1" else a.astype(dtype))
    for condition in (True, False):
        for position in (0, 3, -1):
            args = td.asarray(condition), td.asarray(position), a
            assert td.jit(program)(*args).numpy().tobytes() == program(*args).numpy().tobytes()


@native
@pytest.mark.parametrize("name", [*REWRITTEN, *KEPT])
def test_which_programs_select_arrays(name):
    program = (REWRITTEN | KEPT)[name]
    lowered = td.jit(program).lower(td.asarray(True), td.asarray(2), td.zeros((6, 4)))
    selects = [n for n in pipeline.optimize(lowered._lowered.graph).nodes if n.op.name == "td::where"]
    assert any(n.outputs[0].shape == (6, 4) for n in selects) == (name in KEPT)


def test_positions_are_checked_on_both_conditions():
    program = td.jit(REWRITTEN["row"])
    for condition in (True, False):
        with pytest.raises(IndexError, match="9"):
            program(td.asarray(condition), td.asarray(9), td.zeros((6, 4)))


@native
def test_loops_update_in_place():
    def step(k, state):
        buffer, seed = state
        seed = (seed * 1103515245 + 12345) % 2147483648
        at = seed % (k + 1)
        return td.where(at < 1000, buffer.at[at % 1000].set(k), buffer), seed

    loop = td.jit(lambda b: td.fori_loop(0, 500, step, (b, td.asarray(7)))[0])
    buffer = td.zeros(1000)
    seed, want = 7, np.zeros(1000, np.float32)
    for k in range(500):
        seed = (seed * 1103515245 + 12345) % 2147483648
        want[seed % (k + 1) % 1000] = k
    np.testing.assert_array_equal(loop(buffer).numpy(), want)
    assert loop.lower(buffer).compile().memory_analysis()["temp"] <= 1.2 * buffer.nbytes
