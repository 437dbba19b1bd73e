"""Sparse tensors: derivatives, ``jit``, ``vmap``, copies."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from sparse_programs import EACH, numbers
from tandem.eager.sparse.tensor import SparseTensor
from tandem.errors import ArgumentError, DTypeError, NotDifferentiableError, TandemError, UnsupportedError

pytestmark = pytest.mark.usefixtures("no_fallback")

# -- gradients ---------------------------------------------------------------------------------------------------------
LOSSES = {
    "matmul": lambda x, w: ((x @ w) ** 2).sum(),
    "vector": lambda x, w: ((x @ w[:, 0]) ** 2).sum(),
    "right": lambda x, w: ((w.T @ x.T) ** 2).sum(),
    "vector_right": lambda x, w: ((w[:, 0] @ x.T) ** 2).sum(),
    "sparse_product": lambda x, w: ((x @ x.T).to_dense() ** 3).sum() + (w * w).sum(),
    "mul": lambda x, w: ((x * w[:, 0]) ** 2 if type(x) is td.Tensor else (x * w[:, 0]) * (x * w[:, 0])).sum(),
    "add": lambda x, w: ((x + x * 2 + x.T.T) @ w).sum() + ((x + (w @ w.T)[:4]) ** 2).sum(),
    "sum": lambda x, w: (x.sum(0) * w[:, 0]).sum() + (x.sum(1, keepdims=True) ** 2).sum(),
    "unary": lambda x, w: (td.sin(x) * td.tanh(x) @ w).sum(),
    "scale": lambda x, w: (((x * w[0, 0]) / w[1, 1] - x) @ w).sum(),
    "convert": lambda x, w: ((x.to_sparse_csr() if x.layout != td.strided else x).to_dense() @ w).sum(),
    "reshape": lambda x, w: (x.reshape(2, 10).sum(0) ** 2).sum() + w.sum(),
}


def pair(seed, layout):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.6)
    return a, td.asarray(a).to_sparse(layout), td.asarray(rng.normal(size=(5, 3)))


@EACH
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_dense_at_the_places(layout, name):
    a, x, w = pair(16, layout)
    loss = LOSSES[name]
    want, by_w = td.grad(loss, (0, 1))(td.asarray(a), w)
    got, by_w_too = td.grad(loss, (0, 1))(x, w)
    assert isinstance(got, SparseTensor)
    assert got.layout == layout
    assert got._pattern is x._pattern
    assert np.allclose(numbers(got), want.numpy() * (a != 0), atol=1e-12)
    assert np.allclose(by_w_too.numpy(), by_w.numpy(), atol=1e-12)

    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    value = loss(x, w)
    assert np.isclose(value.item(), loss(td.asarray(a), w.detach()).item())
    value.backward()
    assert (x.requires_grad, x.is_leaf, x.grad.layout) == (True, True, layout)
    assert np.allclose(numbers(x.grad), want.numpy() * (a != 0), atol=1e-12)
    assert w.grad is None or np.allclose(w.grad.numpy(), by_w.numpy(), atol=1e-12)


@EACH
@pytest.mark.parametrize("name", ["matmul", "right", "sparse_product", "vector", "unary"])
def test_second_order(layout, name):
    a, x, w = pair(17, layout)
    loss = LOSSES[name]
    mask = td.asarray((a != 0).astype(float))

    def slope(x, w):
        found = td.grad(loss)(x, w)
        return (found.to_dense() * mask * td.asarray(np.arange(20.0).reshape(4, 5))).sum()

    got, want = td.grad(slope)(x, w), td.grad(slope)(td.asarray(a), w)
    assert np.allclose(numbers(got), want.numpy() * (a != 0), atol=1e-9)
    got, want = td.grad(slope, 1)(x, w), td.grad(slope, 1)(td.asarray(a), w)
    assert np.allclose(got.numpy(), want.numpy(), atol=1e-9)


def test_gradients_reach_the_values():
    values = td.asarray([1.0, 2.0, 3.0]).requires_grad_()
    x = td.sparse_coo_tensor([[0, 1, 1], [0, 2, 2]], values, (2, 3))
    assert (x.requires_grad, x.is_leaf) == (True, True)
    (x @ td.asarray([1.0, 10.0, 100.0])).sum().backward()
    assert values.grad.tolist() == [1.0, 100.0, 100.0]
    y = td.sparse_csr_tensor([0, 1], [0], [2.0], requires_grad=True)
    (y * y).sum().backward()
    assert y.grad.values().tolist() == [4.0]
    y.grad = None
    assert y.grad is None
    y.backward(y.detach())
    assert y.grad.values().tolist() == [2.0]
    assert y.detach().requires_grad is False
    assert y.requires_grad_(False).requires_grad is False
    with pytest.raises(ArgumentError, match="same"):
        y.grad = x.detach()
    dense = td.ones((2, 2)).requires_grad_()
    (dense.to_sparse() * 3).sum().backward()
    assert dense.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_integers_have_no_gradient():
    x = td.asarray([[1, 0]]).to_sparse()
    with pytest.raises(DTypeError):
        x.requires_grad_()
    with pytest.raises((DTypeError, NotDifferentiableError)):
        td.grad(lambda v: (v @ td.ones(2)).sum())(x)


# -- transforms --------------------------------------------------------------------------------------------------------
@EACH
@pytest.mark.parametrize("name", ["matmul", "right", "sum", "mul", "unary"])
def test_under_jit(layout, name):
    _, x, w = pair(18, layout)
    loss = LOSSES[name]
    f = td.jit(loss)
    assert np.isclose(f(x, w).item(), loss(x, w).item())
    assert np.isclose(f(x * 2, w).item(), loss(x * 2, w).item())
    assert f.cache_info().specializations == 1  # the same places
    slope = td.jit(td.grad(loss))
    got = slope(x, w)
    assert isinstance(got, SparseTensor)
    assert np.allclose(got.values().numpy(), td.grad(loss)(x, w).values().numpy())
    inside = td.jit(lambda w: x @ w)
    assert np.allclose(inside(w).numpy(), (x @ w).numpy())
    assert np.allclose(
        td.grad(lambda w: (x @ w).sum())(w).numpy(), numbers(x).sum(0)[:, None] * np.ones((1, 3))
    )


@EACH
def test_under_vmap(layout):
    a, x, _ = pair(20, layout)
    batch = td.asarray(np.random.default_rng(0).normal(size=(7, 5)))
    got = td.vmap(lambda v: x @ v)(batch)
    assert np.allclose(got.numpy(), batch.numpy() @ a.T)
    sums = td.vmap(lambda v: (x * v).sum(1))(batch)
    assert np.allclose(sums.numpy(), batch.numpy() @ a.T)
    slopes = td.vmap(td.grad(lambda v: ((x @ v) ** 2).sum()))(batch)
    assert np.allclose(slopes.numpy(), 2 * batch.numpy() @ a.T @ a)
    by_x = td.vmap(lambda v: td.grad(lambda m: ((m @ v) ** 2).sum())(x).values())(batch)
    want = np.stack([(2 * np.outer(a @ v, v))[a != 0] for v in batch.numpy()])
    assert np.allclose(by_x.numpy(), want)
    with pytest.raises(UnsupportedError, match="in_axes=None"):
        td.vmap(lambda m: m @ batch[0])(x)


def test_what_follows_from_data_is_refused_under_jit():
    with pytest.raises(TandemError, match="data"):
        td.jit(lambda x: x.to_sparse())(td.ones((2, 2)))


@EACH
def test_copies_and_pickles(layout):
    a, x, _ = pair(19, layout)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (y.layout, y.nnz, y.is_coalesced) == (layout, x.nnz, True)
        assert np.array_equal(numbers(y), a)
    x.requires_grad_()
    assert pickle.loads(pickle.dumps(x)).requires_grad
