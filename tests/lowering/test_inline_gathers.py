"""Elements of computed values at integer positions are computed where they are read, if these are few."""

import numpy as np
import pytest
import tandem as td
from kernel_harness import needs_native

rng = np.random.default_rng(4)
X = td.asarray(rng.standard_normal((60, 12)).astype(np.float32))
FEW, MANY = td.asarray(rng.integers(-60, 60, 9)), td.asarray(rng.integers(0, 60, 50))

PROGRAMS = {
    "rows of products": lambda x, i: (x * 2 + 1)[i],
    "rows of exponentials": lambda x, i: td.exp(x)[i],
    "elements": lambda x, i: (x.reshape(-1) * 3)[i],
    "columns": lambda x, i: (x.T * 3)[:, i],
    "log_softmax": lambda x, i: td.log_softmax(x, -1)[i],
    "two readers": lambda x, i: ((x * 2)[i], (x * 2)[i] + 1),
    "also a result": lambda x, i: (x * 2, (x * 2)[i]),
    "sums of rows": lambda x, i: (x * x)[i].sum(1),
    "after an update": lambda x, i: (x.at[i].add(1.0) * 2)[i],
}


@pytest.mark.parametrize("positions", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_those_of_eager_calls(name, positions):
    program = PROGRAMS[name]
    for one, other in zip(
        td.tree.leaves(td.jit(program)(X, positions)), td.tree.leaves(program(X, positions)), strict=True
    ):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)


def test_positions_are_checked():
    program = td.jit(PROGRAMS["rows of products"])
    for bad in (60, -61):
        with pytest.raises(td.errors.OutOfBoundsError):
            program(X, td.asarray([0, bad]))


@needs_native
def test_a_value_is_stored_where_most_of_it_is_read():
    program = td.jit(PROGRAMS["rows of exponentials"])
    counts = [len(program.lower(X, positions).kernels().steps) for positions in (FEW, MANY)]
    assert counts == [1, 2]


def test_gradient_of_an_addition_at_positions():
    loss = td.grad(lambda v, x, i: (x.at[i].add(v) ** 2).sum())
    v = X[:9] * 0.5
    np.testing.assert_allclose(td.jit(loss)(v, X, FEW).numpy(), loss(v, X, FEW).numpy(), rtol=1e-5)
