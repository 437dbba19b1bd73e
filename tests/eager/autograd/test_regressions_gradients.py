"""Regressions: wrong gradients."""

import numpy as np
import pytest
import tandem as td


@pytest.mark.parametrize("wrap", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_equal_gradients_do_not_share_memory(wrap):
    both = wrap(lambda a, b: td.grad(lambda a, b: (a + b).sum(), argnums=(0, 1))(a, b))
    x = td.asarray(np.array([1.0, 2.0]))
    for _ in range(40):
        one, two = both(x, x)
        one.add_(1.0)
        assert two.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("f", [td.floor, td.sign, td.round, lambda x: x // 2, lambda x: td.trunc(x * 2) + 1])
def test_a_gradient_of_zeros_is_not_missing(f):
    x = td.asarray([0.5, 1.5], requires_grad=True)
    f(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    (found,) = td.autograd.grad(f(x).sum(), [x])
    assert found.tolist() == [0.0, 0.0]
    assert td.grad(lambda v: f(v).sum())(x.detach()).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("way", [lambda f: f, td.jit], ids=["eager", "jit"])
def test_quotients_by_the_number_zero_have_infinite_derivatives(way):
    x = td.asarray([1.0, -2.0])
    assert way(td.grad(lambda x: (x / 0).sum()))(x).tolist() == [np.inf, np.inf]
    assert way(td.grad(lambda x: (x / -0.0).sum()))(x).tolist() == [-np.inf, -np.inf]
    assert way(td.grad(lambda x: x.mean(axis=0).sum()))(td.zeros((0, 3))).shape == (0, 3)
    assert np.isnan(way(td.grad(lambda x: x.std(dim=1).sum()))(td.asarray([[3.0]])).item())
