"""Components of stacked states: computed one by one, and loaded and stored as whole rows."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native
from lowering_harness import graph_of, run
from rotation import share_each_commit
from tandem import config
from tandem.lowering.passes.pipeline import optimize
from tandem.lowering.passes.split_stacks import MOST_NODES, MOST_PARTS

rng = np.random.default_rng(3)
STATE = rng.normal(size=(50, 2)).astype(np.float32)


def operators(function, *arrays):
    with config.override(verify=True):
        return [node.op.schema.name for node in optimize(graph_of(function, *arrays)).nodes]


def oscillate(state):
    place, speed = state[..., 0], state[..., 1]
    return td.stack([speed, -place * td.sin(place)], axis=-1)


def runge_kutta(state):
    one = oscillate(state)
    two = oscillate(state + 0.05 * one)
    three = oscillate(state + 0.05 * two)
    return state + 0.1 / 6 * (one + 2 * (two + three) + oscillate(state + 0.1 * three))


def check(function, *arrays):
    """Compare the compiled function with the eager one, bit for bit."""
    wanted = td.tree.leaves(function(*map(td.asarray, arrays)))
    for native in {config.flags.native, False}:
        for one, two in zip(run(function, *arrays, native=native), wanted, strict=True):
            np.testing.assert_array_equal(one, two.numpy(), strict=True)


@needs_native
def test_stages_of_a_method_read_components_where_they_were_computed():
    assert operators(runge_kutta, STATE).count("concat") == 1
    check(runge_kutta, STATE)
    check(runge_kutta, STATE[0])


def step_carts(x):
    new = td.stack([x[:, 0] + x[:, 1], x[:, 1] * 0.5], axis=1)
    fell = td.abs(new[:, 0]) > 1.0
    return td.where(fell[:, None], td.zeros_like(new), new), fell


@needs_native
def test_elementwise_operators_are_computed_on_parts():
    assert operators(step_carts, STATE)[-1] == "concat"
    check(step_carts, STATE)


PROGRAMS = {
    "another axis": lambda x: td.stack([x, x * 2], axis=0) + td.stack([x * 3, x], axis=1).mT.sum(),
    "stacks of two axes": lambda x: td.stack([x[0], x[1]], axis=0) * td.stack([x[:, 0], x[:, 1]], axis=1),
    "a broadcast stack": lambda x: td.stack([x[0, 0], x[0, 1]]) * x + 1,
    "a row": lambda x: td.stack([x[0], x[1]], axis=0) + td.asarray([1.0, 2.0]),
    "other tensors": lambda x: td.stack([x[:, 0], x[:, 1] * 2], axis=1) * td.exp(x),
    "mixed dtypes": lambda x: td.stack([x[:, 0], x[:, 1] * 2], axis=1) * td.arange(2) + td.asarray([2, 3.0]),
    "negative axis": lambda x: td.concat([x[:, :1], x[:, 1:]], axis=-1) * 2 + x,
    "several elements": lambda x: td.concat([x[:, :1], x], axis=1) * 2,
    "part of a part": lambda x: (td.stack([x, x + 1], axis=1) * 2)[1:, 1, ::-1],
    "two parts": lambda x: (td.stack([x, x + 1, x], axis=1) * 2)[:, 1:],
    "comparison": lambda x: td.where(td.stack([x[0], x[1]]) > 0, 1, td.stack([x[1], x[0]])),
    "new axis": lambda x: (td.stack([x[0], x[1]]) * 2)[0, None] + 1,
    "reduction": lambda x: (td.stack([x[0], x[1]]) * 2).sum(axis=0),
    "result and parts": lambda x: ((y := td.stack([x[0], x[1]]) * 2), y[0], y + y[1]),
    "integers": lambda x: td.stack([td.argmax(x), td.argmin(x)]) * 2 - 1,
    "complex": lambda x: td.stack([td.sqrt(x[0] + 0j), x[1] * 1j]) * 2,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay_the_same(name):
    check(PROGRAMS[name], rng.normal(size=(2, 2)).astype(np.float32))


def test_empty_parts_and_long_stacks_stay_as_they_are():
    check(lambda x: td.stack([x[:, 0], x[:, 1]], axis=1) * 2, STATE[:0])
    many = [1.0] * (MOST_PARTS + 1)
    assert operators(lambda x: td.stack([x * n for n in many]) + 1, STATE)[-1] != "concat"


def test_a_long_chain_stops_at_the_limit():
    def chain(x):
        y = td.stack([x[:, 0], x[:, 1]], axis=1)
        for _ in range(MOST_NODES):
            y = y * 1.5 - 0.5
        return y

    assert len(operators(chain, STATE)) <= 4 * MOST_NODES
    check(chain, STATE)


def test_parts_with_gradients_and_in_loops():
    def simulate(x):
        return td.fori_loop(0, 5, lambda i, y: runge_kutta(y), x)

    def gradient(x):
        return td.grad(lambda y: (simulate(y) ** 2).sum())(x)

    check(simulate, STATE)
    np.testing.assert_allclose(
        run(gradient, STATE)[0], gradient(td.asarray(STATE)).numpy(), rtol=1e-5, atol=1e-6
    )


# -- rows as a whole ---------------------------------------------------------------------------------------------------
def mix(x):
    """All columns from all columns."""
    columns = [x[:, number] for number in range(x.shape[1])]
    total = columns[0]
    for column in columns[1:]:
        total = total * 2 + column
    new = td.stack([column + total * (number + 1) for number, column in enumerate(columns)], axis=1)
    return td.where((new[:, 0] > 0)[:, None], new * 3 - x, 0), new[:, -1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "bfloat16"])
@pytest.mark.parametrize("width", share_each_commit(range(2, 10), 3))
def test_columns_of_rows(dtype, width):
    for rows in (1, 3, 8, 15, 16, 17, 33, 64, 100):
        x = td.asarray(rng.normal(size=(rows, width)) * 10).astype(dtype)
        for one, two in zip(td.jit(mix)(x), mix(x)):
            assert one.numpy().tobytes() == two.numpy().tobytes()


@needs_native
def test_rows_are_loaded_and_stored_whole():
    x = td.ones((64, 4))
    text = td.jit(mix).lower(x).llvm_ir()
    assert "@pack4" not in text and "@unpack4" not in text
    assert "masked.gather" not in text


@needs_native
@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x[:, 1:4], lambda x: x[::2], lambda x: x.T])
def test_views_and_writes_in_place(view):
    x = rng.normal(size=(64, 5)).astype(np.float32)

    def shift(x):
        y = view(x)
        return td.stack([y[:, 1], y[:, 2] + y[:, 0], y[:, 0] * 2], axis=1)

    check(shift, x)

    def rotate(i, x):
        return td.stack([x[:, 1], x[:, 2] * 0.5, x[:, 0]], axis=1)

    check(lambda x: td.fori_loop(0, 7, rotate, x[:, :3] * 2), x)


@needs_native
@pytest.mark.parametrize("size", [3, 4, 7])
def test_small_matrices_are_not_taken_apart_by_elements(size):
    """Vectors along the batch would access each matrix once for each of its elements."""
    x = rng.normal(size=(100, size, size)).astype(np.float32)

    def add_transposed(x):
        return (x + x.mT) * 0.5

    check(add_transposed, x)
    assert "@unpack4" not in td.jit(add_transposed).lower(td.asarray(x)).llvm_ir()
