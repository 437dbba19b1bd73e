"""Native calls of operators on values of levels of `vmap` and `jvp`: beside loops over examples and differences."""

import sys

import numpy as np
import pytest
import tandem as td
from tandem import config, errors
from tandem.control import hot_transforms
from tandem.eager.autograd import forward_mode
from tandem.eager.layers.vmap import kernel

RANDOM = np.random.default_rng(0)
X = td.asarray(RANDOM.standard_normal((4, 3, 5)))
W = td.asarray(RANDOM.standard_normal((5, 5)))
V = td.asarray(RANDOM.standard_normal(5))
S = td.asarray(2.0)
needs_native = pytest.mark.skipif(not config.flags.native, reason="native code is off")
CALLS = [0]  # functions that write it are not compiled as a whole

DIFFERENTIABLE = {
    "numbers": lambda x: 2.0 - x / 3.0 + x**2,
    "elementwise": lambda x: td.tanh(x) * td.exp(-x) + td.maximum(x, 0.25),
    "shared operand": lambda x: V - x * S,
    "ranks": lambda x: x[0] + x,
    "scalar of the batch": lambda x: x * x[0, 0],
    "where": lambda x: td.where(x > 0, x, x * 0.1),
    "sum": lambda x: x.sum(),
    "sum of an axis": lambda x: x.sum(0),
    "sum of a negative axis": lambda x: x.sum(-1, keepdims=True),
    "sum of axes": lambda x: x.sum((0, 1)),
    "mean": lambda x: x.mean(axis=1),
    "max": lambda x: x.max(1),
    "prod": lambda x: x.prod(0),
    "cumsum": lambda x: x.cumsum(1),
    "matrix": lambda x: x @ W,
    "vector": lambda x: x @ V,
    "vector of the batch": lambda x: W @ x[0],
    "vectors": lambda x: V @ x[0] + x[0] @ x[1],
    "matrices of the batch": lambda x: x @ x.T,
    "select": lambda x: x[1] * x[-1, 2],
    "slices": lambda x: x[..., 1:4] + x[None, :, ::2],
    "reshape": lambda x: x.reshape(-1) * x.reshape(15),
    "reshape to a tuple": lambda x: x.reshape((5, -1)),
    "permute": lambda x: td.permute(x, (1, 0)) + td.permute(x, (-1, 0)),
    "stack": lambda x: td.stack([x, x * 2.0, W[:3]], -1),
    "stack of numbers": lambda x: td.stack([x.sum(), 1.0]),
    "softmax": lambda x: td.softmax(x) + td.log_softmax(x, 0),
    "cast": lambda x: x.astype(td.float64).clone(),
}
OTHERS = {
    "compare": lambda x: (x > V) == (x < 0),
    "argmax": lambda x: x.argmax(0) + x.argmax() + x.argmax(1, keepdims=True),
    "any": lambda x: (x > 0).any(1),
    "integers": lambda x: x.astype(td.int32) // 2,
}


def counted(function):
    """The function, with an effect that keeps its calls from being compiled as a whole."""

    def call(*args):
        CALLS[0] += 1
        return function(*args)

    return call


@pytest.fixture(autouse=True)
def hot_operators():
    """Operators have their native entries from the second call on."""
    with config.override(hot_calls=1):
        yield


def assert_close(result, expected):
    assert result.dtype is expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", DIFFERENTIABLE | OTHERS)
def test_vmap_is_a_loop(name):
    function = (DIFFERENTIABLE | OTHERS)[name]
    expected = td.stack([function(x) for x in X])
    for _ in range(3):
        assert_close(td.vmap(counted(function))(X), expected)
        assert_close(
            td.vmap(counted(function), 1, -1)(td.permute(X, (1, 0, 2))), td.moveaxis(expected, 0, -1)
        )


@pytest.mark.parametrize("name", DIFFERENTIABLE | OTHERS)
def test_nested_vmap_is_a_loop(name):
    function, batches = (DIFFERENTIABLE | OTHERS)[name], td.stack([X, X * 0.5])
    expected = td.stack([td.stack([function(x) for x in batch]) for batch in batches])
    for _ in range(2):
        assert_close(td.vmap(td.vmap(counted(function)))(batches), expected)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_jvp_is_a_difference(name):
    function, x, t, step = counted(DIFFERENTIABLE[name]), X[1], X[2], 1e-6
    expected = (function(x + t * step) - function(x - t * step)) / (2 * step)
    for _ in range(2):
        value, tangent = td.jvp(function, (x,), (t,))
        assert_close(value, function(x))
        np.testing.assert_allclose(tangent.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_nested_transforms_agree(name):
    function = counted(DIFFERENTIABLE[name])

    def total(x):
        return (function(x) * 1.5).sum()

    t = X * 0.5
    rows = [td.jvp(total, (x,), (d,))[1] for x, d in zip(X, t)]
    assert_close(td.vmap(lambda x, d: td.jvp(total, (x,), (d,))[1])(X, t), td.stack(rows))
    assert_close(td.jvp(td.vmap(total), (X,), (t,))[1], td.stack(rows))
    gradients = td.stack([td.grad(total)(x) for x in X])
    assert_close(td.vmap(td.grad(total))(X), gradients)
    products = td.stack([td.jvp(td.grad(total), (x,), (d,))[1] for x, d in zip(X, t)])
    assert_close(td.vmap(lambda x, d: td.jvp(td.grad(total), (x,), (d,))[1])(X, t), products)


def test_two_batches_of_different_levels():
    rows, columns = X[0], X[1]
    table = td.vmap(lambda x: td.vmap(counted(lambda y: ((x - y) ** 2).sum() + x @ y))(columns))(rows)
    expected = td.stack([td.stack([((x - y) ** 2).sum() + x @ y for y in columns]) for x in rows])
    assert_close(table, expected)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: x + td.ones(4), errors.ShapeError, r"\(3, 5\) and \(4,\)"),
        (lambda x: x @ td.ones(4), errors.ShapeError, r"\(3, 5\) and \(4,\)"),
        (lambda x: x.sum(2), errors.OutOfBoundsError, "axis 2 .* 2 dimensions"),
        (lambda x: x[3], errors.OutOfBoundsError, "3"),
        (lambda x: x.reshape(4, 5), errors.ShapeError, "15 elements"),
        (lambda x: td.permute(x, (0, 0)), errors.ShapeError, "permutation"),
        (lambda x: td.softmax(x, 2), errors.OutOfBoundsError, "softmax: axis 2"),
        (lambda x: td.stack([x, x[0]]), errors.ShapeError, "stack: the shapes differ"),
        (lambda x: td.stack([x, x], 3), errors.OutOfBoundsError, "stack: axis 3"),
    ],
)
def test_errors_are_about_one_example(function, error, text):
    for _ in range(3):
        with pytest.raises(error, match=text):
            td.vmap(counted(function))(X)


def test_shapes_of_an_empty_batch_are_checked():
    empty = td.zeros((0, 3, 5))
    assert td.vmap(counted(lambda x: x.reshape(5, 3) @ x))(empty).shape == (0, 5, 5)
    with pytest.raises(errors.ShapeError):
        td.vmap(counted(lambda x: x.reshape(4, 4)))(empty)


def test_registered_rules_take_precedence():
    def double(x):
        return td.tanh(x) + 1.0

    expected = td.tanh(X) + 1.0
    assert_close(td.vmap(counted(double))(X), expected)
    handle = td.register_vmap("td::tanh", lambda info, in_dims, x: (x * 0.0, 0))
    try:
        assert_close(td.vmap(counted(double))(X), td.ones_like(X))
    finally:
        handle.remove()
    assert_close(td.vmap(counted(double))(X), expected)


def test_values_of_an_ended_level_raise():
    leaked = []
    td.vmap(lambda x: leaked.append(x) or x * 2.0)(X)
    for call in (lambda x: x * 2.0, lambda x: x.sum(), lambda x: x[0], lambda x: x @ W, td.tanh):
        with pytest.raises(errors.LeakedTracerError):
            call(leaked[0])


def test_results_of_the_batch_may_be_written():
    def write(x):
        y = x * 2.0
        y[0] = 1.0
        z = td.zeros(5) + x[1]
        z += y[0]
        return y.sum() + z.sum()

    expected = td.stack([write(x) for x in X])
    assert_close(td.vmap(counted(write))(X), expected)
    assert_close(td.vmap(td.vmap(counted(write)))(td.stack([X, X])), td.stack([expected, expected]))


def test_shared_parameters_get_gradients():
    w = td.asarray(W.numpy(), requires_grad=True)
    td.vmap(counted(lambda x: td.tanh(x @ w) * w[0]))(X).sum().backward()
    v = td.asarray(W.numpy(), requires_grad=True)
    td.stack([td.tanh(x @ v) * v[0] for x in X]).sum().backward()
    assert_close(w.grad, v.grad)


@needs_native
def test_hot_operators_do_not_reach_the_batched_kernel(monkeypatch):
    def chain(x):
        return (td.tanh(x * 2.0 + V)[1:] @ W).sum(0).reshape(5, 1)

    for _ in range(40):
        result = td.vmap(counted(chain))(X)

    def refuse(*args):
        raise AssertionError("an operator ran in Python")

    monkeypatch.setattr(kernel, "run", refuse)
    assert_close(td.vmap(counted(chain))(X), result)
    assert_close(td.vmap(td.vmap(counted(lambda x: x * 2.0)))(X), X * 2.0)


@needs_native
def test_hot_operators_at_levels_of_jvp_are_not_dispatched(monkeypatch):
    def chain(x):
        return (td.tanh(x * 2.0 + V) @ W).sum(0)

    for _ in range(40):
        result = td.jvp(counted(chain), (X[0],), (X[1],))[1]

    def refuse(*args):
        raise AssertionError("an operator was dispatched")

    monkeypatch.setattr(forward_mode, "tangents_of", refuse)
    assert_close(td.jvp(counted(chain), (X[0],), (X[1],))[1], result)


@needs_native
def test_references_do_not_grow():
    def chain(x):
        y = (td.tanh(x * 2.0 + V)[1:] @ W).sum(0, keepdims=True).reshape(5)
        return td.stack([y, W[0]]).max() + (W @ x[0]).sum()

    def run():
        td.vmap(counted(chain))(X)
        td.jvp(counted(chain), (X[0],), (X[1],))
        with pytest.raises(errors.ShapeError):
            td.vmap(counted(lambda x: x + td.ones(4)))(X)

    for _ in range(40):
        run()
    objects = [X, W, V, td.tanh, 1.0, errors.ShapeError, "keepdims"]
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(40):
        run()
    assert [sys.getrefcount(one) for one in objects] == before


@needs_native
def test_modules_in_variables_of_functions_are_recognized(monkeypatch):
    module = td

    def function(x):
        return module.tanh(x) + module.special.erf(x)

    mapped, expected = td.vmap(function), td.tanh(X) + td.special.erf(X)

    def refuse(*args):
        raise AssertionError("the key of the call was made again")

    with config.override(hot_loops=0):
        for _ in range(3):
            mapped(X)
        monkeypatch.setattr(hot_transforms, "_find_call", refuse)
        np.testing.assert_allclose(mapped(X).numpy(), expected.numpy(), rtol=1e-12)
