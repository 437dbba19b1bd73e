"""Costly operands in loops over single numbers: computed where they are needed, with the same results."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from rotation import share_each_commit
from tandem import config
from tandem.errors import TandemError

rng = np.random.default_rng(2)
VALUES = np.concatenate(
    [rng.standard_normal(40), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 800.0, -800.0]]
)

STEPS = {
    "select": lambda x, v: td.where(v > 0, td.sin(x + v), x * 0.5),
    "both operands": lambda x, v: td.where(v > 0, td.sin(x + v), td.exp(-abs(x)) * v),
    "the second operand": lambda x, v: td.where(v > 0, x + 1, td.log(abs(v) + abs(x))),
    "nested": lambda x, v: td.where(
        v > 0, td.where(x > 0, td.sin(x), td.cos(v)), td.where(x > v, td.exp(-v), x)
    ),
    "shared": lambda x, v: td.where(v > 0, td.sin(x) + 1, td.sin(x) * v) + td.sin(x) * 0.25,
    "part of it is shared": lambda x, v: td.where(v > 0, td.exp(-td.sin(x) - 1), x) + td.sin(x),
    "condition": lambda x, v: td.where(td.exp(-abs(x)) < abs(v), v, x),
    "or": lambda x, v: td.where((v > 0) | (td.exp(x) < 2), -x, x + v),
    "and": lambda x, v: td.where((v > 0) & (td.exp(x) < 2), -x, x + v),
    "the first of or": lambda x, v: td.where((td.exp(x) < 2) | (v > 0), -x, x + v),
    "the first of and": lambda x, v: td.where((td.exp(x) < 2) & (v > 0), -x, x + v),
    "both of and": lambda x, v: td.where((td.exp(x) < 2) & (td.sin(v) > 0), td.tanh(x), x + v),
    "clipped": lambda x, v: td.clip(td.where(v > 0, td.pow(abs(x), abs(v)), x), -9, 9),
}


def in_loop(step, values):
    """The states of a step over some values, by a compiled scan and by eager calls."""
    values = td.asarray(values)
    start = td.asarray(0.5, dtype=values.dtype)
    found = td.jit(lambda x, vs: td.scan(lambda x, v: (step(x, v), x), x, vs))(start, values)[1]
    states = []
    for v in values:
        states.append(start)
        start = step(start, v)
    return found.numpy(), td.stack(states).numpy()


@pytest.mark.parametrize("dtype", ["float64", "float32", *share_each_commit(["float16", "bfloat16"], 2)])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_are_those_of_eager_steps(name, dtype):
    found, expected = in_loop(STEPS[name], td.asarray(VALUES).astype(getattr(td, dtype)))
    np.testing.assert_array_equal(found.astype("f8"), expected.astype("f8"))


@needs_native
@pytest.mark.parametrize("name", [name for name in STEPS if name not in ("shared", "condition")])
def test_costly_operands_are_computed_in_branches(name):
    def f(x, values):
        return td.scan(lambda x, v: (STEPS[name](x, v), None), x, values)[0]

    text = td.jit(f).lower(td.asarray(0.5), td.asarray(VALUES.astype("f4"))).llvm_ir()
    assert "br label %chosen" in text


@needs_native
def test_chains_of_nested_selects_are_emitted_once():
    def f(x):
        for _ in range(30):
            x = td.where(x > 0.1, td.sin(x), td.where((x < -0.1) | (td.exp(x) < 0.5), td.cos(x), td.exp(x)))
        return x

    text = td.jit(f).lower(td.asarray(0.3)).llvm_ir()
    assert text.count("br label %chosen") == 30 * 4  # the two ways of both selects
    assert td.jit(f)(td.asarray(0.3)).item() == f(td.asarray(0.3)).item()


@needs_native
def test_vectors_have_no_branches():
    text = td.jit(STEPS["select"]).lower(td.asarray(VALUES), td.asarray(VALUES)).llvm_ir()
    assert "br label %chosen" not in text


def test_positions_out_of_bounds_are_reported_wherever_they_are():
    def f(x, k):
        return td.fori_loop(0, 4, lambda i, s: td.where(s > 99, td.exp(x[i + k]), s + 1), x[0])

    x = td.asarray(VALUES)
    assert td.jit(f)(x, td.asarray(3)).tolist() == f(x, td.asarray(3)).tolist()
    for call in (f, td.jit(f)):
        with pytest.raises(TandemError, match="out of bounds"):
            call(x, td.asarray(len(VALUES)))


def draw(random, depth, leaves):
    """A random expression of two numbers."""
    if depth == 0 or random.random() < 0.15:
        return leaves[random.integers(len(leaves))]
    one, two, three = (draw(random, depth - 1, leaves) for _ in range(3))
    choice = random.integers(8)
    if choice < 3:
        condition = (one > two) if choice else (one > two) | (td.exp(-abs(three)) < 0.5)
        return td.where(condition & (td.sin(two) > -0.5) if choice == 2 else condition, two, three)
    return (td.sin(one), td.exp(-abs(one)), td.log(abs(one) + 1), one * two, one - two)[choice - 3]


@pytest.mark.parametrize("seed", share_each_commit(range(300), 10))
def test_random_expressions(seed):
    def step(x, v):
        return td.tanh(draw(np.random.default_rng(seed), 4, [x, v, x + v, td.cos(v)]))

    with config.override(verify=True):
        found, expected = in_loop(step, rng.standard_normal(20))
    assert found.tobytes() == expected.tobytes()
