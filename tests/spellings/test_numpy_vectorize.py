"""``vectorize`` of ``tandem.numpy``: functions that are traced, and functions that need values."""

import math

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import ConcretizationError, ValueArgumentError

X = np.array([[1.5, -2.0, 3.0], [0.0, 5.0, -6.5]])
INTEGERS = np.array([1, -2, 3, 4])
CALLS = {
    "branch": lambda m: m.vectorize(lambda a: 1 if a > 0 else -1)(m.asarray(X)),
    "branch of floats": lambda m: m.vectorize(lambda a: a if a > 0 else 0.0)(m.asarray(X)),
    "first dtype": lambda m: m.vectorize(lambda a: 1 if a > 0 else 0.5)(m.asarray(X)),
    "math": lambda m: m.vectorize(math.gcd)(m.asarray(INTEGERS), 6),
    "broadcast": lambda m: m.vectorize(math.gcd)(m.asarray(INTEGERS)[:, None], [6, 9]),
    "two results": lambda m: m.vectorize(math.frexp)(m.asarray(X)),
    "number": lambda m: m.vectorize(math.gcd)(4, 6),
    "bools": lambda m: m.vectorize(lambda a: bool(a > 0))(m.asarray(X)),
    "otypes": lambda m: m.vectorize(lambda a: a * 2, otypes=[float])(m.asarray(INTEGERS)),
    "otypes of a loop": lambda m: m.vectorize(lambda a: 1 if a > 0 else 2, otypes="f")(m.asarray(X)),
    "otypes of two": lambda m: m.vectorize(math.frexp, otypes=["float32", int])(m.asarray(X)),
    "otypes of nothing": lambda m: m.vectorize(math.gcd, otypes=[int])(m.zeros((0, 2), dtype=int), 6),
    "traced": lambda m: m.vectorize(lambda a, b: a * b + 1)([1.0, 2.0], m.asarray(X)[:, :1]),
    "excluded": lambda m: m.vectorize(lambda a, p: sum(c if a > 0 else -c for c in p), excluded=[1])(
        m.asarray(X), [1.0, 2.0]
    ),
    "named": lambda m: m.vectorize(lambda a, base=2: int(a) % base)(m.asarray(INTEGERS), base=3),
    "signature": lambda m: m.vectorize(m.dot, signature="(n),(n)->()")(m.asarray(X), m.asarray(X[0])),
}


def check(got, want):
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for one, two in zip(got, want):
            check(one, two)
        return
    assert type(got) is td.Tensor and got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    check(CALLS[name](tnp), CALLS[name](np))


def test_decorators_and_names():
    @tnp.vectorize
    def sign(a):
        """The sign."""
        return 1 if a > 0 else -1

    @tnp.vectorize(otypes=[float], doc="Half.")
    def half(a):
        return a // 2 if a > 0 else 0

    assert sign([2, -2]).tolist() == [1, -1] and sign.__doc__ == "The sign." and sign.__name__ == "sign"
    check(half([2, -2]), np.array([1.0, 0.0]))
    assert half.__doc__ == "Half." and callable(half.pyfunc)


def test_traced_functions_have_gradients():
    f = tnp.vectorize(lambda a: a * a)
    check(td.jit(f)(tnp.asarray(X)), X * X)
    check(td.grad(lambda x: f(x).sum())(tnp.asarray(X)), 2 * X)


def test_errors():
    branch = tnp.vectorize(lambda a: 1 if a > 0 else -1)
    with pytest.raises(ConcretizationError):
        td.jit(branch)(tnp.asarray(X))
    with pytest.raises(ConcretizationError):
        branch(td.asarray(X, requires_grad=True))
    with pytest.raises(ValueArgumentError, match="otypes"):
        tnp.vectorize(math.gcd)(tnp.zeros(0, dtype=int), 6)
    with pytest.raises(ZeroDivisionError):
        tnp.vectorize(lambda a: 1 // int(a))([0])
