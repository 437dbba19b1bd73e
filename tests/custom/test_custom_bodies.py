"""Custom operators that are bodies or composites."""

import numpy as np
import pytest
import tandem as td
from custom_harness import X, close
from tandem import errors

# --- bodies -----------------------------------------------------------------------------------------------


@pytest.fixture
def bend():
    op = td.elementwise_op(
        "outside::bend",
        lambda x, y: x / (1 + td.scalar.abs(y)),
        derivative={
            "x": lambda y: 1 / (1 + abs(y)),
            "y": lambda x, y: -x * td.sign(y) / td.square(1 + abs(y)),
        },
    )
    yield op
    op.remove()


def test_elementwise_operators_are_like_tandems_own(bend):
    def f(x, y):
        return bend(x, y) * 2

    x, y = td.asarray([[1.0], [2.0]]), X
    wanted = 2 * x.numpy() / (1 + np.abs(y.numpy()))
    close(f(x, y), wanted)
    close(td.jit(f)(x, y), wanted)
    rows = list(td.jit(f).lower(x, y).kernels())
    assert {row.choice for row in rows} <= {"fused", "interpreted"}
    assert len({row.group for row in rows}) == 1
    for _ in range(5):
        close(bend(x, y), wanted / 2)
    close(td.vmap(bend)(td.stack([X, X]), td.stack([X, X * 2]))[0], bend(X, X))
    found = td.grad(lambda x, y: bend(x, y).sum())(X, X)
    close(found, 1 / (1 + np.abs(X.numpy())))
    assert bend(td.empty((2, 1), device="meta"), td.empty(3, device="meta")).shape == (2, 3)
    with pytest.raises(errors.DTypeError, match="bend does not take int64"):
        bend(td.asarray([1]), td.asarray([2]))


def test_elementwise_definitions_are_checked():
    with pytest.raises(errors.ValueArgumentError, match="one entry"):
        td.elementwise_op("outside::e", lambda x, y: x + y, derivative={"x": 1})
    with pytest.raises(errors.ValueArgumentError, match="one to three"):
        td.elementwise_op("outside::e", lambda: 1)
    with pytest.raises(errors.ValueArgumentError, match="result is"):
        td.elementwise_op("outside::e", lambda x: x, result="int")
    op = td.elementwise_op("outside::e", lambda x: x * 2, dtypes=[td.int32, td.float32])
    assert op(td.asarray([1], dtype=td.int32)).tolist() == [2]
    x = td.asarray([1.0], requires_grad=True)
    with pytest.raises(errors.NotDifferentiableError, match="derivative="):
        op(x).sum().backward()
    op.remove()


def test_composites_decompose():
    @td.composite_op("outside::energy(Tensor x, Scalar k=2) -> Tensor")
    def energy(x, k):
        return (x * x).sum() * k

    assert energy(X).tolist() == (X * X).sum().tolist() * 2
    names = [node.op.schema.name for node in td.jit(lambda x: energy(x, 3)).trace(X).ir.nodes]
    assert "energy" not in names
    close(td.grad(energy)(X), 4 * X.numpy())
    energy.remove()
    with pytest.raises(errors.ValueArgumentError, match="namespace"):
        td.composite_op("energy(Tensor x) -> Tensor", lambda x: x)
