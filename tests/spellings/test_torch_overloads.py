"""Overloads that PyTorch's keywords select: values with indices, and variances divided by N - 1."""

import numpy as np
import pytest
import tandem as td
from tandem.operators.declare.named_results import MinAndMax, ValuesAndIndices

X = td.asarray([[1.0, 5.0, 2.0], [7.0, 4.0, 9.0]])
NAMES = ("max", "min", "median", "nanmedian", "sort")


@pytest.mark.parametrize("name", NAMES)
def test_dim_selects_values_with_indices(name):
    for result in (getattr(X, name)(dim=1), getattr(td, name)(X, dim=1), getattr(td, name)(input=X, dim=1)):
        assert type(result) is ValuesAndIndices and result.indices.dtype is td.int64
        picked = np.take_along_axis(X.numpy(), result.indices.numpy().reshape(2, -1), 1)
        assert np.array_equal(picked, result.values.numpy().reshape(2, -1))


@pytest.mark.parametrize("name", NAMES)
def test_axis_selects_values_alone(name):
    assert isinstance(getattr(X, name)(axis=1), td.Tensor) and isinstance(
        getattr(td, name)(X, axis=1), td.Tensor
    )
    assert isinstance(getattr(X, name)(), td.Tensor)


def test_hot_calls_select_the_same_overload():
    for _ in range(100):
        assert X.max(dim=1).indices.tolist() == [1, 2] and X.max(axis=1).tolist() == [5.0, 9.0]
        assert td.max(X, 1).tolist() == [5.0, 9.0] and X.var(dim=1).tolist() != X.var(axis=1).tolist()


def test_keepdim_selects_the_overload_too():
    assert X.max(1, keepdim=True).values.shape == (2, 1) and X.max(dim=0, keepdims=True).indices.shape == (
        1,
        3,
    )
    assert X.max(1, keepdims=True).shape == (2, 1)


@pytest.mark.parametrize("name", ["var", "std"])
def test_dim_and_unbiased_select_the_sample_variance(name):
    function, exact = getattr(X, name), getattr(np, name)
    for result, ddof in (
        (function(dim=1), 1),
        (function(dim=1, correction=0), 0),
        (function(dim=1, unbiased=False), 0),
        (function(axis=1, unbiased=True), 1),
        (function(axis=1), 0),
        (function(axis=1, ddof=1), 1),
        (function(1, keepdim=True).reshape(2), 1),
    ):
        assert np.allclose(result.numpy(), exact(X.numpy(), axis=1, ddof=ddof))
    assert np.allclose(function(unbiased=True).numpy(), exact(X.numpy(), ddof=1))
    assert np.allclose(function().numpy(), exact(X.numpy()))
    with pytest.raises(TypeError, match="not both"):
        function(dim=1, unbiased=True, correction=1)


CALLS = {
    "max": lambda x: x.max(dim=1),
    "sort": lambda x: x.sort(dim=1, descending=True),
    "median": lambda x: x.median(dim=1),
    "topk": lambda x: x.topk(2),
    "kthvalue": lambda x: x.kthvalue(2, dim=1),
    "mode": lambda x: x.mode(dim=1),
    "cummax": lambda x: x.cummax(dim=1),
    "cummin": lambda x: td.cummin(x, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_keep_their_names_in_jit_vmap_and_grad(name):
    call = CALLS[name]
    wanted = call(X)
    jitted, mapped = td.jit(call)(X), td.vmap(call)(td.stack([X, X + 1.0]))
    assert type(wanted) is type(jitted) is type(mapped) is ValuesAndIndices
    for one, two, three in zip(wanted, jitted, mapped):
        assert np.array_equal(one.numpy(), two.numpy()) and np.array_equal(one.numpy(), three.numpy()[0])
    gradient = td.grad(lambda x: call(x).values.sum())(X)
    counts = np.zeros((2, 3), np.float32)
    np.add.at(counts, (np.array([[0], [1]]), wanted.indices.numpy().reshape(2, -1)), 1.0)
    assert np.array_equal(gradient.numpy(), counts)
    primal, tangent = td.jvp(lambda x: call(x).values, (X,), (td.ones_like(X),))
    assert np.array_equal(primal.numpy(), wanted.values.numpy()) and set(tangent.numpy().ravel()) == {1.0}


def test_gradient_of_ties_goes_to_the_first():
    ties = td.ones((3,))
    assert td.grad(lambda x: x.max(dim=0).values)(ties).tolist() == [1.0, 0.0, 0.0]
    assert td.grad(lambda x: x.max(axis=0))(ties).tolist() == pytest.approx([1 / 3] * 3)


def test_aminmax_names_both():
    result = td.aminmax(X, dim=1)
    assert (
        type(result) is MinAndMax and result.min.tolist() == [1.0, 4.0] and result.max.tolist() == [5.0, 9.0]
    )


def test_methods_with_names_behave_as_methods():
    assert X.topk(1).values.tolist() == td.Tensor.topk(X, 1).values.tolist() == td.topk(X, 1).values.tolist()
    assert (
        td.topk is td.Tensor.__dict__["topk"]
        and td.topk.__name__ == "topk"
        and "k" in str(td.topk.__signature__)
    )


def test_wrong_calls_raise():
    for call, text in (
        (lambda: X.max(dim=1, largest=True), "no argument 'largest'"),
        (lambda: X.max(dim=2), "out of bounds"),
        (lambda: X.max(0, dim=1), "twice"),
        (lambda: X.topk(4), "between 0 and 3"),
    ):
        with pytest.raises((TypeError, IndexError, ValueError), match=text):
            call()
