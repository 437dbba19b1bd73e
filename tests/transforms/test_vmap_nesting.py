"""``td.vmap``: nested levels."""

import numpy as np
import pytest
import tandem as td
from tandem import errors
from vmap_harness import assert_close, draw, f64


# -- nesting -----------------------------------------------------------------------------------------------------------
def test_vmap_in_vmap():
    x, y = draw(3, 2), draw(4, 2, seed=1)
    distances = td.vmap(td.vmap(lambda p, q: ((p - q) ** 2).sum(), (None, 0)), (0, None))
    assert_close(distances(x, y), ((x.numpy()[:, None] - y.numpy()[None]) ** 2).sum(-1))
    captured = td.vmap(lambda p: td.vmap(lambda q: p @ q + p[0])(y))(x)
    assert_close(captured, x.numpy() @ y.numpy().T + x.numpy()[:, :1])
    assert_close(td.vmap(td.vmap(td.vmap(lambda v: v * 2)))(draw(2, 3, 4)), draw(2, 3, 4).numpy() * 2)


def test_gradients_and_batches_in_any_order():
    x, w = draw(3, 4), draw(4, seed=1)

    def f(w, x):
        return (td.tanh(w * x) ** 2).sum()

    def slope(w, x):
        t = np.tanh(w * x)
        return 2 * t * (1 - t * t) * x

    each = slope(w.numpy(), x.numpy())
    assert_close(td.vmap(td.grad(f), (None, 0))(w, x), each)
    assert_close(td.grad(lambda w: td.vmap(lambda v: f(w, v))(x).sum())(w), each.sum(0))
    assert_close(td.vmap(lambda v: td.grad(f)(w, v))(x), each)
    values, grads = td.vmap(td.value_and_grad(f), (None, 0))(w, x)
    assert_close(values, (np.tanh(w.numpy() * x.numpy()) ** 2).sum(1))
    assert_close(grads, each)


def test_grad_of_vmap_of_grad():
    x = draw(3, 4)
    # per example g = 3 v^2; the sum of g * g over all is 9 v^4, whose slope is 36 v^3
    cubes = td.vmap(td.grad(lambda v: (v**3).sum()))
    assert_close(td.grad(lambda x: (cubes(x) ** 2).sum())(x), 36 * x.numpy() ** 3)
    nested = td.vmap(td.grad(lambda v: td.vmap(td.grad(lambda s: s**4))(v).sum()))
    assert_close(nested(x), 12 * x.numpy() ** 2)
    assert td.vmap(td.grad(lambda x: x * td.grad(lambda y: x + y)(1.0)))(td.ones(3)).tolist() == [1, 1, 1]


def test_hessian_by_vmap():
    x, eye = draw(3), td.eye(3, dtype=td.float64)
    slope = td.grad(lambda v: (v.sum() ** 3) + (v**4).sum())
    hessian = td.vmap(lambda e: td.grad(lambda v: (slope(v) * e).sum())(x))(eye)
    assert_close(hessian, 6 * x.numpy().sum() + np.diag(12 * x.numpy() ** 2))


def test_gradients_of_what_examples_share():
    x = draw(3, 2)
    got = td.vmap(td.grad(lambda w, v: (w * 0 + v).sum(), (0, 1)), (None, 0))(td.ones(2, dtype=td.float64), x)
    assert (got[0].tolist(), got[1].tolist()) == ([[0, 0]] * 3, [[1, 1]] * 3)
    assert td.vmap(td.grad(lambda v: 1.0))(x).tolist() == [[0, 0]] * 3


def test_eager_backward_through_vmap():
    w = td.asarray([2.0, 3.0], requires_grad=True)
    x = td.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    td.vmap(lambda v: (v * v * w).sum())(x).sum().backward()
    assert w.grad.tolist() == [10.0, 20.0]
    assert x.grad.tolist() == [[4.0, 12.0], [12.0, 24.0]]
    with td.no_grad():
        assert not td.vmap(lambda v: v * w)(x).requires_grad


def test_under_jit():
    x, w = draw(3, 4), draw(4, 2, seed=1)

    @td.jit
    def f(w, x):
        return td.vmap(lambda v: td.softmax(v @ w))(x)

    logits = x.numpy() @ w.numpy()
    p = np.exp(logits - logits.max(1, keepdims=True))
    assert_close(f(w, x), p / p.sum(1, keepdims=True))
    g = td.jit(td.vmap(td.grad(lambda w, v: (v @ w).sum() ** 2), (None, 0)))
    want = 2 * (x.numpy() @ w.numpy()).sum(1)[:, None, None] * x.numpy()[:, :, None] * np.ones((1, 1, 2))
    assert_close(g(w, x), want)
    assert g.cache_info().specializations == 1


def test_vmap_of_jitted_functions():
    calls = []

    @td.jit
    def f(p, x, power=2, *, name="w"):
        calls.append(x.shape)
        return {"y": (p[name] * x) ** power, "sum": x.sum()}

    p, x = {"w": draw(4)}, draw(3, 4, seed=1)
    for _ in range(2):
        got = td.vmap(f, (None, 0))(p, x)
        assert_close(got["y"], (p["w"].numpy() * x.numpy()) ** 2)
        assert_close(got["sum"], x.numpy().sum(1))
    assert calls == [(4,)]  # traced once, for one example
    assert_close(td.vmap(lambda v, n: f({"w": v}, v, n)["y"], (1, None))(x, 3), x.numpy().T ** 6)
    assert_close(td.vmap(td.vmap(lambda v: f({"w": v}, v)["y"]))(x), x.numpy() ** 4)
    assert_close(td.vmap(lambda w: f({"w": w}, x[0])["y"])(x), x.numpy() ** 2 * x.numpy()[0] ** 2)
    hidden = []
    g = td.jit(lambda v: v * hidden[0])
    assert_close(td.vmap(lambda v: hidden.append(v) or g(x[0]))(x), x.numpy() * x.numpy()[0])
    with pytest.raises(errors.LeakedTracerError):
        f(p, hidden[0])


def test_jitted_methods():
    class Model:
        def __init__(self, w):
            self.w = w

        @td.jit
        def __call__(self, x):
            return x @ self.w

    x, model = draw(3, 4), Model(draw(4, 2, seed=1))
    assert_close(td.vmap(model)(x), x.numpy() @ model.w.numpy())
    other = Model(draw(4, 2, seed=2))
    assert_close(td.vmap(other)(x), x.numpy() @ other.w.numpy())


def test_jit_leaves_out_what_the_call_leaves_out():
    x = draw(3, 4)

    def f(v, power=2, *, apply=td.tanh, scale=3.0):
        return apply(v) ** power * scale

    want = np.tanh(x.numpy()) ** 2 * 3
    assert_close(td.vmap(f)(x), want)
    assert_close(td.jit(td.vmap(f))(x), want)
    assert_close(td.vmap(td.jit(f))(x), want)
    assert_close(td.jit(td.vmap(f, (0, None)))(x, 3), np.tanh(x.numpy()) ** 3 * 3)
    assert_close(td.jit(td.vmap(f, (0, None)))(x, 2), want)
    assert_close(td.jit(td.vmap(td.jit(f)))(x, scale=f64([1, 2, 3])), want / 3 * [[1], [2], [3]])


def test_jitted_functions_see_new_closures():
    x, factor = draw(3, 4), draw(4, seed=1)
    f = td.jit(lambda v: v * factor)
    assert_close(td.vmap(f)(x), x.numpy() * factor.numpy())
    factor = draw(4, seed=2)
    assert_close(td.vmap(f)(x), x.numpy() * factor.numpy())


def test_random_keys():
    keys = td.random.split(td.random.key(0), 3)
    got = td.vmap(lambda k: td.random.normal(k, (2,)))(keys)
    assert got.tolist() == [td.random.normal(k, (2,)).tolist() for k in keys]
    shared = td.vmap(lambda k, x: x + td.random.uniform(k), (None, 0))(keys[0], td.zeros(3))
    assert len(set(shared.tolist())) == 1
    folded = td.vmap(td.random.fold_in, (None, 0))(keys[0], td.arange(3))
    assert folded.words.tolist() == [td.random.fold_in(keys[0], i).words.tolist() for i in range(3)]
