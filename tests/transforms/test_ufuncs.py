"""``td.add.outer``, ``reduce`` and the other methods of NumPy's ufuncs, and ``frompyfunc``, against NumPy."""

import functools
import itertools

import numpy as np
import pytest
import tandem as td

X = np.random.default_rng(0).integers(1, 6, (4, 5)).astype(np.float64)
PARTS = (slice(0, 3), slice(3, 4), slice(1, None))  # of reduceat at 0, 3, 1
NAMES = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "arctan2")


def check(ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype.np == theirs.dtype
    np.testing.assert_allclose(ours.numpy(), theirs)


def fold(function, x, axis):
    """The reduction by single calls: NumPy 2.4's power.reduce and arctan2.reduce are wrong with AVX-512."""
    return functools.reduce(function, np.moveaxis(x, axis, 0))


def scan(function, x, axis):
    return np.stack(list(itertools.accumulate(np.moveaxis(x, axis, 0), function)), axis)


@pytest.mark.parametrize("name", NAMES)
def test_methods_are_those_of_ufuncs(name):
    ours, theirs, x = getattr(td, name), getattr(np, name), td.asarray(X)
    check(ours.outer(x, x[0]), theirs.outer(X, X[0]))
    for transform in (lambda f: f, td.jit):
        check(transform(ours.reduce)(x), fold(theirs, X, 0))
        check(
            transform(lambda x: ours.reduce(x, axis=1, keepdims=True))(x),
            fold(theirs, X, 1)[:, None],
        )
        check(transform(lambda x: ours.accumulate(x, 1))(x), scan(theirs, X, 1))
    check(ours.reduceat(x, [0, 3, 1], axis=1), np.stack([fold(theirs, X[:, part], 1) for part in PARTS], 1))
    y, want, at = td.asarray(X.copy()), X.copy(), np.array([0, 2, 0])
    assert ours.at(y, (td.asarray(at), 1), 2.0) is None
    theirs.at(want, (at, 1), 2.0)
    check(y, want)
    check(ours.at(x, (td.asarray(at), 1), 2.0, inplace=False), want)


def test_reductions_have_the_options_of_numpy():
    x, mask = td.asarray(X), X > 2
    check(td.add.reduce(x, axis=None, initial=5.0), np.asarray(np.add.reduce(X, axis=None, initial=5.0)))
    check(td.multiply.reduce(x, where=td.asarray(mask)), np.multiply.reduce(X, where=mask))
    check(td.maximum.reduce(x[:0], initial=1.0), np.maximum.reduce(X[:0], initial=1.0))
    check(td.add.reduce(td.asarray(X > 2)), np.add.reduce(X > 2))
    assert td.logical_or.reduce(td.asarray(mask)).tolist() == np.logical_or.reduce(mask).tolist()
    with pytest.raises(ValueError, match="identity"):
        td.subtract.reduce(x[:0])
    with pytest.raises(ValueError, match="not within"):
        td.add.reduceat(x, [9])
    with pytest.raises(AttributeError, match="two arguments"):
        td.exp.reduce(x)
    with pytest.raises(AttributeError, match="elementwise"):
        td.matmul.outer(x, x)


def test_functions_of_python_are_ufuncs():
    x = td.asarray(X)
    f = td.frompyfunc(lambda x, y: td.where(x > y, x * 1.0, y), 2, 1)
    assert (f.nin, f.nout, f.nargs) == (2, 1, 3)
    check(f(x, x[0]), np.maximum(X, X[0]))
    check(f.reduce(x, axis=(0, 1)), np.asarray(X.max()))
    check(td.jit(lambda x: f.accumulate(x))(x), np.maximum.accumulate(X))
    two = td.frompyfunc(lambda x: (x, x + 1), 1, 2)(x)
    check(two[1], X + 1)
    with pytest.raises(TypeError, match="2 arguments"):
        f(x)


def test_unary_functions_apply_at_every_occurrence():
    y = td.asarray(X.copy())
    td.negative.at(y, td.asarray([0, 0, 1]))
    want = X.copy()
    np.negative.at(want, [0, 0, 1])
    check(y, want)
