"""``td.vmap``: indexing, and in-place writes into batched and newly created values."""

import gc
import weakref

import numpy as np
import pytest
import tandem as td
from tandem import errors
from vmap_harness import assert_close, draw, f64


# -- indexing and writing ----------------------------------------------------------------------------------------------
def test_indexing():
    x, i = draw(3, 4, 5), td.asarray([2, 0, -1])
    n, rows = x.numpy(), np.arange(3)
    assert_close(td.vmap(lambda v, k: v[k])(x, i), n[rows, i.numpy()])
    assert_close(td.vmap(lambda v, k: v[:, k])(x, i), n[rows, :, i.numpy()])
    assert_close(td.vmap(lambda v, k: v[k, 1:3], (None, 0))(x[0], i), n[0][i.numpy()][:, 1:3])
    assert_close(td.vmap(lambda v, k: v[..., k, None], (None, 0))(x[0], i), n[0][:, i.numpy()].T[..., None])
    assert_close(td.vmap(lambda v: v[[0, 2], ::2])(x), n[:, [0, 2], ::2])
    assert_close(
        td.vmap(lambda v, k: v.at[k].set(0.0))(x, i)[0], np.where(np.arange(4)[:, None] == 2, 0, n[0])
    )


def test_writing_into_a_batched_value():
    x, i, u = draw(3, 4), td.asarray([2, 0, 1]), draw(3, seed=1)

    def f(v, k, u):
        y = v * 2.0
        y[0] = u
        y += 1.0
        y[1:] *= u
        y[k] = 7.0
        part = y[2:]
        part.add_(0.5)
        return y

    got, want = td.vmap(f)(x, i, u), []
    for v, k, s in zip(x.numpy(), i.numpy(), u.numpy(), strict=True):
        y = v * 2
        y[0] = s
        y += 1
        y[1:] *= s
        y[k] = 7
        y[2:] += 0.5
        want.append(y)
    assert_close(got, want)


def test_writing_under_gradients():
    x = draw(3, 4)

    def f(v):
        y = v * 2.0
        y[0] = v[1] * v[1]
        y *= v
        return (y * y).sum()

    def plain(v):
        y = v * 2
        y[0] = v[1] ** 2
        return ((y * v) ** 2).sum()

    eps = np.eye(4) * 1e-6
    want = [[(plain(v + e) - plain(v - e)) / 2e-6 for e in eps] for v in x.numpy()]
    np.testing.assert_allclose(td.vmap(td.grad(f))(x).numpy(), want, rtol=1e-6, atol=1e-8)
    got = td.grad(lambda x: td.vmap(f)(x).sum())(x)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-8)


def test_writing_along_later_axes():
    x, k, u = draw(3, 2, 4), td.asarray([2, 0, -1]), draw(3, 2, seed=1)

    def f(v, k, u):
        y = v * 2.0
        y[:, k] = u
        y[:, [0, 1]] += v[:, k, None]
        z = td.zeros((2, 4), dtype=td.float64)
        z[:, k] = 1.0
        return y * z + y

    def plain(v, k, u):
        y = v * 2
        y[:, k] = u
        y[:, [0, 1]] += v[:, k, None]
        z = np.zeros((2, 4))
        z[:, k] = 1
        return y * z + y

    rows = list(zip(x.numpy(), k.numpy(), u.numpy(), strict=True))
    assert_close(td.vmap(f)(x, k, u), [plain(*row) for row in rows])
    slopes = td.vmap(td.grad(lambda v, k, u: (f(v, k, u) ** 2).sum(), (0, 2)))(x, k, u)
    together = td.grad(lambda x, u: (td.vmap(f)(x, k, u) ** 2).sum(), (0, 1))(x, u)
    for got, other in zip(slopes, together, strict=True):
        assert_close(got, other.numpy())
    one = np.array(
        [[(plain(v + e, k, u) ** 2).sum() for e in 1e-6 * np.eye(8).reshape(8, 2, 4)] for v, k, u in rows]
    )
    base = np.array([(plain(*row) ** 2).sum() for row in rows])
    np.testing.assert_allclose(
        slopes[0].numpy().reshape(3, 8), (one - base[:, None]) / 1e-6, rtol=1e-3, atol=1e-3
    )


def test_eager_gradients_through_writes():
    w, x = td.asarray([2.0, 3.0], requires_grad=True), draw(3, 2)

    def f(v):
        y = v * w
        y[0] = v[1] * w[1]
        y *= v
        z = td.zeros(2, dtype=td.float64)
        z[1] = y.sum()
        return (z * z).sum() + y.sum()

    td.vmap(f)(x).sum().backward()
    found, w.grad = w.grad, None
    sum(f(v) for v in x).backward()
    np.testing.assert_allclose(found.numpy(), w.grad.numpy(), rtol=1e-6)


def test_nothing_stays_behind():
    seen = []

    def f(v):
        y = v * 2
        y[0] = 1.0
        z = td.zeros(2, dtype=td.float64)
        z[0] = v[0]
        seen.extend([weakref.ref(y), weakref.ref(z), weakref.ref(y._payload)])
        return y.sum()

    x = draw(3, 2)
    gc.collect()
    gc.disable()
    try:
        td.vmap(f)(x)
        td.vmap(td.grad(f))(x)
        td.grad(lambda x: td.vmap(f)(x).sum())(x)
        assert len(seen) == 9
        assert all(ref() is None for ref in seen)
    finally:
        gc.enable()


def test_writing_into_an_argument_writes_the_batch():
    x = td.zeros((2, 3))
    td.vmap(lambda v, u: v.add_(u))(x, td.asarray([1.0, 2.0]))
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_writing_a_batch_into_what_all_share():
    outside, x = td.zeros(2), td.ones((3, 2))
    for write in (
        lambda v: outside.add_(v),
        lambda v: outside.__setitem__(0, v[0]),
        lambda v: outside.__setitem__((v > 0).astype(td.int64), 1.0),
    ):
        with pytest.raises(errors.UnsupportedError, match=r"(?s)same for all.*\.at\["):
            td.vmap(write)(x)
    assert outside.tolist() == [0, 0]
    td.vmap(lambda v: outside.add_(1.0))(x)
    assert outside.tolist() == [1, 1]


def fill(v, k):
    y = td.zeros(3, dtype=td.float64)
    y[0] = 1.0  # still the same for all
    y[k] = v.sum()
    y[1:] += v[0]
    z = td.ones(3, dtype=td.float64) * 2.0
    z *= y
    return z + y * v[1]


def filled(v, k):
    y = np.array([1.0, 0.0, 0.0])
    y[k] = v.sum()
    y[1:] += v[0]
    return 2 * y + y * v[1]


def test_tensors_made_inside_become_batches_when_written():
    x, k = draw(4, 2), td.asarray([0, 1, 2, 0])
    want = [filled(v, i) for v, i in zip(x.numpy(), k.numpy(), strict=True)]
    assert_close(td.vmap(fill)(x, k), want)
    assert_close(td.jit(td.vmap(fill))(x, k), want)
    assert_close(td.vmap(td.vmap(fill, (0, None)), (None, 0))(x, k)[1], [filled(v, 1) for v in x.numpy()])
    assert_close(td.vmap(lambda v: fill(v, 1))(x), [filled(v, 1) for v in x.numpy()])


def test_tensors_made_inside_under_gradients():
    x, k = draw(4, 2), td.asarray([0, 1, 2, 0])
    each = [td.grad(lambda v, i=i: (fill(v, i) ** 2).sum())(x[at]).numpy() for at, i in enumerate(k.tolist())]

    def loss(v, i):
        return (fill(v, i) ** 2).sum()

    for transform in (
        td.vmap(td.grad(loss)),
        td.grad(lambda x, k: td.vmap(loss)(x, k).sum()),
        td.jit(td.vmap(td.grad(loss))),
        td.jit(td.grad(lambda x, k: td.vmap(loss)(x, k).sum())),
    ):
        assert_close(transform(x, k), each)


def test_tensors_made_between_levels():
    def f(v):
        y = td.zeros(2, dtype=td.float64) + 0.0 * v[0]  # of the outer level
        td.vmap(lambda u: u * y[0])(v)

        def inner(u):
            y[0] = u

        with pytest.raises(errors.UnsupportedError, match="was not made inside"):
            td.vmap(inner)(v)
        y[0] = v[1]
        return y

    assert td.vmap(f)(f64([[1, 2], [3, 4]])).tolist() == [[2, 0], [4, 0]]


def test_views_of_what_was_made_inside():
    def f(v):
        y = td.zeros(3)
        row = y[:1]
        y[0] = v
        return row

    assert td.vmap(f)(td.asarray([1.0, 2.0])).tolist() == [[1], [2]]


def test_writing_what_does_not_fit():
    x = draw(3, 4)
    for write in (
        lambda v: (v * 1).add_(td.ones((2, 4), dtype=td.float64)),
        lambda v: (v * 1).add_(td.ones((1, 4), dtype=td.float64)),
        lambda v: v[0].clone().add_(v),
        lambda v: (v * 1).__setitem__(0, v),
    ):
        with pytest.raises(ValueError, match=r"fit|broadcast"):
            td.vmap(write)(x)


def test_views_share_memory():
    def f(v):
        y = v.clone()
        row = y[0]
        row += 10.0
        return y, y.reshape(-1), y.T

    y, flat, turned = td.vmap(f)(draw(2, 2, 3))
    assert np.shares_memory(y.numpy(), flat.numpy())
    assert_close(y[:, 0], draw(2, 2, 3).numpy()[:, 0] + 10)
    assert_close(turned, y.numpy().transpose(0, 2, 1))
