"""Tensors on the GPU's test double: their attributes, writes, and the layers of eager calls."""

import copy
import pickle

import numpy as np
import pytest
import tandem as td
from tandem import errors

pytestmark = pytest.mark.usefixtures("cuda")


# -- what a tensor is --------------------------------------------------------------------------------------------------
def test_round_trip():
    x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    assert (x.device, x.shape, x.dtype, x.stride()) == ("cuda:0", (2, 2), td.float32, (2, 1))
    assert x.to("cuda") is x
    assert x.to("cuda:0") is x
    assert x.to("cpu").device == "cpu"
    assert x.cpu().tolist() == x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert td.ones(2).cuda().device == "cuda:0"
    assert td.ones(2).cuda(1).device == "cuda:1"
    assert x.to("cuda:1").device == "cuda:1"
    assert x.T.to("cuda:1").tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert td.zeros((2, 3), device="cuda:1").device == "cuda:1"
    assert td.asarray([1, 2]).to(device="cuda", dtype=td.float64).dtype is td.float64
    assert x.to("meta").shape == (2, 2)


def test_printing_and_numbers():
    x = td.asarray([1.5, 2.5], device="cuda")
    assert repr(x) == "tensor([1.5, 2.5], device='cuda:0')"
    assert str(x) == "[1.5 2.5]"
    assert x[1].item() == 2.5
    assert float(x[0]) == 1.5
    assert bool(td.all(x > 0))
    assert f"{x[0]:.2f}" == "1.50"
    assert [row.item() for row in x] == [1.5, 2.5]
    assert 2.5 in x


def test_numpy_gets_nothing_by_itself():
    x = td.asarray([1.0], device="cuda")
    for call in (x.numpy, lambda: np.asarray(x), lambda: np.frompyfunc(abs, 1, 1)(x)):
        with pytest.raises(errors.ArgumentError, match=r'x\.to\("cpu"\)'):
            call()
    assert np.add(x, 1).device == np.add.reduce(x).device == np.mean(x).device == "cuda:0"


def test_pickles_and_copies():
    x = td.asarray([1.0, 2.0], device="cuda:1", requires_grad=True)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert made.device == "cuda:1"
        assert made.requires_grad
        assert made.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_copied_views_share_memory(again):
    x = td.arange(12, device="cuda:1", dtype=td.float32).reshape((3, 4))
    whole, part, turned = again((x, x[1:, ::2], td.flip(x, 0).T))
    assert whole.device == part.device == "cuda:1" and whole.storage() is part.storage() is not x.storage()
    assert (part.stride(), turned.stride()) == ((4, 2), (1, -4))
    whole[1, 2] = 99.0
    assert part.tolist() == [[4.0, 99.0], [8.0, 10.0]] and turned.tolist()[2] == [10.0, 99.0, 2.0]
    assert x.tolist()[1] == [4.0, 5.0, 6.0, 7.0]


def test_views_share_memory():
    x = td.arange(12, device="cuda", dtype=td.float32).reshape((3, 4))
    row, column = x[1], x[:, 2]
    assert column.stride() == (4,)
    assert (x.T.stride(), x.T.is_contiguous()) == ((1, 4), False)
    assert row.storage() is x.storage()
    x[1, 2] = 50.0
    assert row.tolist() == [4.0, 5.0, 50.0, 7.0]
    assert column.tolist() == [2.0, 50.0, 10.0]
    column.add_(1)
    assert x[1, 2].item() == 51.0
    assert x.storage().version == 2
    assert x.T.reshape((12,)).storage() is not x.storage()
    assert td.flip(x, 0)[0].tolist() == x[2].tolist()
    assert x[::-1, ::-2].tolist() == x.to("cpu")[::-1, ::-2].tolist()


def test_results_keep_the_order_of_axes():
    x = td.ones((3, 4), device="cuda").T
    assert (x + x).stride() == (1, 4)
    assert (x + td.ones((4, 3), device="cuda")).stride() == (3, 1)


# -- writing -----------------------------------------------------------------------------------------------------------
def test_in_place():
    x = td.asarray([1.0, 2.0, 3.0], device="cuda")
    y = x
    x += 1
    x.mul_(td.asarray([1.0, 2.0, 3.0], device="cuda"))
    assert y.tolist() == [2.0, 6.0, 12.0]
    x[td.asarray([0, 2])] = 0.0
    assert x.tolist() == [0.0, 6.0, 0.0]
    x[[1, 1]] = td.asarray([7.0, 8.0], device="cuda")
    assert x.tolist() == [0.0, 8.0, 0.0]
    x[1:] = x[:2]  # the parts overlap
    assert x.tolist() == [0.0, 0.0, 8.0]
    assert x.at[td.asarray([0, 0])].add(2.0).tolist() == [4.0, 0.0, 8.0]
    assert x.at[0].set(5.0).tolist() == [5.0, 0.0, 8.0]
    m = td.arange(4, device="cuda", dtype=td.float32).reshape((2, 2))
    m.add_(m.T)
    assert m.tolist() == [[0.0, 3.0], [3.0, 6.0]]
    with pytest.raises(errors.UnsupportedError, match="broadcast view"):
        td.broadcast_to(x, (2, 3)).add_(1)
    with pytest.raises(errors.ShapeError, match="does not fit"):
        x.add_(td.ones((2, 3), device="cuda"))
    with pytest.raises(errors.DTypeError, match="cannot be written"):
        td.ones(2, device="cuda", dtype=td.int32).add_(0.5)
    wide = td.asarray([0.5, 2.0], dtype=td.float64).to("cuda")
    for _ in range(3):
        narrow = td.ones(2, device="cuda", dtype=td.float32)
        assert narrow.add_(wide).tolist() == [1.5, 3.0] and narrow.dtype is td.float32  # the result is cast


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float16", "bfloat16", "float32", "float64", "int64", "complex64"]
)
def test_adding_at_positions(dtype):
    dtype = getattr(td, dtype if dtype != "bool" else "bool_")
    x = td.zeros(4, dtype=dtype)
    at, value = td.asarray([3, 0, 3, -1]), td.asarray([1, 1, 1, 0]).astype(dtype)
    want = x.at[at].add(value)
    assert x.to("cuda").at[at].add(value.to("cuda")).tolist() == want.tolist()


def test_the_last_of_several_values_stays():
    x = td.zeros((50, 3), device="cuda")
    at = td.asarray([7] * 40 + [9, 7])
    values = td.arange(42 * 3, dtype=td.float32).reshape((42, 3))
    want = td.zeros((50, 3)).at[at].set(values)
    assert x.at[at].set(values.to("cuda")).tolist() == want.tolist()


# -- layers ------------------------------------------------------------------------------------------------------------
def test_gradients():
    x = td.asarray([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
    w = td.asarray([2.0, 0.5, 1.0], requires_grad=True)
    y = (x * w.to("cuda")).exp().sum()
    y.backward()
    assert x.grad.device == "cuda:0"
    assert w.grad.device == "cpu"
    np.testing.assert_allclose(
        x.grad.tolist(), np.array([2.0, 0.5, 1.0]) * np.exp([2.0, 1.0, 3.0]), rtol=1e-6
    )
    np.testing.assert_allclose(
        w.grad.tolist(), np.array([1.0, 2.0, 3.0]) * np.exp([2.0, 1.0, 3.0]), rtol=1e-6
    )
    assert repr(y).startswith("tensor(") and "grad_fn" in repr(y) and "device='cuda:0'" in repr(y)


def test_gradients_through_views_and_writes():
    def f(x):
        y = x * 2
        y[0] = y[1] * 3
        return (y[::2] * td.asarray([1.0, 3.0], device=x.device)).sum()

    x = td.asarray([1.0, 2.0, 3.0], requires_grad=True)
    f(x).backward()
    z = td.asarray([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
    f(z).backward()
    assert z.grad.tolist() == x.grad.tolist()
    with pytest.raises(errors.AutogradError, match="leaf"):
        z.add_(1)


def test_transforms():
    def f(x):
        return td.tanh(x @ x.T).sum()

    x = td.asarray([[0.1, 0.2], [0.3, 0.4]])
    z = x.to("cuda")
    assert td.grad(f)(z).device == "cuda:0"
    np.testing.assert_allclose(td.grad(f)(z).tolist(), td.grad(f)(x).tolist(), rtol=1e-6)
    np.testing.assert_allclose(td.jvp(f, (z,), (z,))[1].item(), td.jvp(f, (x,), (x,))[1].item(), rtol=1e-6)
    g = td.vmap(lambda row: (row * row).sum())
    assert g(z).device == "cuda:0"
    np.testing.assert_allclose(g(z).tolist(), g(x).tolist(), rtol=1e-6)
    assert td.vmap(td.grad(lambda v: (v**3).sum()))(z).shape == (2, 2)


def test_tensors_made_inside_a_transform_are_written():
    def f(x):
        y = td.zeros(3, device=x.device)
        y[0] = x[0] * x[1]
        y[1:] = x[:2]
        return (y * y).sum()

    x = td.asarray([1.0, 2.0, 3.0])
    z = x.to("cuda")
    assert td.grad(f)(z).tolist() == td.grad(f)(x).tolist()
    assert td.vmap(f)(td.stack([z, z])).tolist() == td.vmap(f)(td.stack([x, x])).tolist()
    outside = td.zeros(3, device="cuda")

    def g(v):
        outside[0] = v[0]
        return v.sum()

    with pytest.raises(errors.UnsupportedError, match="was not made inside"):
        td.grad(g)(z)


def test_derivatives_of_higher_order():
    f = lambda v: (v**3).sum()  # noqa: E731
    x = td.asarray([1.0, 2.0])
    for transform in (td.hessian, td.jacrev, td.jacfwd):
        got = transform(f)(x.to("cuda"))
        assert got.device == "cuda:0"
        assert got.tolist() == transform(f)(x).tolist()


def test_autocast_takes_float16():
    x = td.ones((2, 2), device="cuda")
    with td.autocast("cuda"):
        assert (x @ x).dtype is td.float16
    with td.autocast("cpu"):
        assert (x @ x).dtype is td.float32


def test_functionalize():
    def f(x):
        y = x.clone()
        y[0] = 5.0
        y.add_(1)
        return y

    x = td.asarray([1.0, 2.0], device="cuda")
    assert td.functionalize(f)(x).tolist() == f(x).tolist() == [6.0, 3.0]


def test_random_numbers_are_those_of_the_cpu():
    key = td.random.key(7)
    there = key.to("cuda")
    for draw in (
        lambda k: td.random.bits(k, (33,)),
        lambda k: td.random.key_data(td.random.split(k, 5)),
        lambda k: td.random.key_data(td.random.fold_in(k, 3)),
        lambda k: td.random.uniform(k, (17,)),
        lambda k: td.random.randint(k, (9,), 0, 100) if hasattr(td.random, "randint") else td.random.bits(k),
        lambda k: td.random.permutation(k, 10),
    ):
        got = draw(there)
        assert got.device == "cuda:0"
        assert got.tolist() == draw(key).tolist()
    np.testing.assert_allclose(
        td.random.normal(there, (50,)).tolist(), td.random.normal(key, (50,)).tolist(), rtol=1e-5
    )
