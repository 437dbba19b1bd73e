"""Derivatives of sorting, einsum, powers at 0 and complex parts."""

import numpy as np
import pytest
import tandem as td
from tandem import lazy
from tandem.operators.contraction.einsum import _cached_path

RNG = np.random.default_rng(11)


def f64(values):
    return td.asarray(values, dtype=td.float64)


def draw(*shape):
    return f64(RNG.normal(size=shape))


def everywhere(f, *args, order=2):
    """Derivatives are right eager and under jit, and the jitted function gives the same numbers."""
    td.check_grads(f, args, order=order)
    td.check_grads(td.jit(f), args, order=order)
    for one, two in zip(td.pytree.leaves(f(*args)), td.pytree.leaves(td.jit(f)(*args)), strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-12, atol=1e-12)


# -- powers ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("exponent", "slopes"), [(0.0, (0, 0, 0)), (1.0, (1, 0, 0)), (2.0, (0, 2, 0)), (3.0, (0, 0, 6))]
)
def test_powers_have_all_derivatives_at_zero(exponent, slopes):
    f = lambda x: x ** f64(exponent)  # noqa: E731
    for wanted in slopes:
        f = td.grad(f)
        assert f(f64(0.0)).item() == wanted


def test_mixed_derivative_of_power_at_exponent_zero():
    slope = td.grad(td.grad(lambda x, y: x**y), 1)  # d/dy (y * x**(y-1)) = 1/x at y = 0
    assert slope(f64(2.0), f64(0.0)).item() == pytest.approx(0.5)


# -- parts of numbers --------------------------------------------------------------------------------------------------
def test_parts_of_real_numbers():
    x = f64([-2.0, 3.0])
    assert td.real(x).tolist() == [-2.0, 3.0]
    assert td.imag(x).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(td.angle(x).numpy(), [np.pi, 0.0])
    assert td.grad(lambda x: (td.real(x) * x + td.imag(x)).sum())(x).tolist() == [-4.0, 6.0]
    assert td.real(td.asarray([1, 2])).dtype is td.int64


def test_gradient_of_real_part():
    def energy(x):
        return td.real(td.conj(x) * x).sum()

    assert td.grad(energy)(f64([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert td.grad(energy)(td.asarray([1 + 2j])).tolist() == [2 - 4j]


def test_sinc_has_its_derivatives_at_zero():
    f = td.sinc
    found = []
    for _ in range(5):
        found.append(f(f64(0.0)).item())
        f = td.grad(f)
    square = np.pi**2
    np.testing.assert_allclose(found, [1, 0, -square / 3, 0, square**2 / 5], atol=1e-12)
    everywhere(td.sinc, f64([-1.5, -0.1, 0.0, 0.15, 0.2, 2.0]))


def test_nan_to_num_stops_gradients_of_replaced_values():
    x = f64([np.nan, 2.0, np.inf])
    assert td.grad(lambda x: (td.nan_to_num(x, posinf=1.0) * 3).sum())(x).tolist() == [0.0, 3.0, 0.0]


# -- einsum ------------------------------------------------------------------------------------------------------------
EQUATIONS = [
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,k", (2, 3), (2,)),
    ("...ij,...jk->...ik", (2, 3), (4, 3, 2)),
    ("...,...->...", (4, 1), (3, 4, 2)),
    ("iij,jl->li", (2, 2, 3), (3, 2)),
    ("mnd,mdo->mno", (1, 2, 3), (4, 3, 2)),
    ("i,j->", (2,), (3,)),
    ("ijk,lji,lli->lki", (3, 2, 2), (2, 2, 3), (2, 2, 3)),
    ("ab,bc,cd,de,ea->", (2, 3), (3, 4), (4, 5), (5, 6), (6, 2)),
    ("...ij,jk,...kl->...il", (2, 3, 4), (4, 5), (1, 5, 6)),
]


@pytest.mark.parametrize(
    ("equation", "shapes"), [(e, s) for e, *s in EQUATIONS], ids=[e for e, *_ in EQUATIONS]
)
def test_einsum(equation, shapes):
    operands = [draw(*shape) for shape in shapes]
    wanted = np.einsum(equation, *[x.numpy() for x in operands])
    np.testing.assert_allclose(td.einsum(equation, *operands).numpy(), wanted, atol=1e-13)
    np.testing.assert_allclose(td.einsum(equation, operands).numpy(), wanted, atol=1e-13)
    everywhere(lambda *xs: td.einsum(equation, *xs), *operands)
    batched = td.vmap(lambda x: td.einsum(equation, x, *operands[1:]))(td.stack([operands[0]] * 2))
    np.testing.assert_allclose(batched.numpy(), np.stack([wanted] * 2), atol=1e-13)


@pytest.mark.parametrize("is_installed", [True, False])
def test_einsum_multiplies_in_the_cheapest_order(monkeypatch, is_installed):
    sizes = []

    class Sizes(td.DispatchMode):
        def __tandem_dispatch__(self, op, types, args, kwargs):
            result = op(*args, **kwargs)
            sizes.append(result.size)
            return result

    monkeypatch.setattr(lazy, "is_installed", lambda name: is_installed)
    _cached_path.cache_clear()
    x, y, v = draw(9, 9), draw(9, 9), draw(9)
    with Sizes(ops=[td.matmul], below="Autograd"):
        result = td.einsum("ij,jk,k->i", x, y, v)
    _cached_path.cache_clear()
    np.testing.assert_allclose(result.numpy(), x.numpy() @ y.numpy() @ v.numpy(), atol=1e-13)
    assert sizes == ([9, 9] if is_installed else [81, 9])


def test_einsum_says_what_is_wrong():
    with pytest.raises(TypeError, match="the equation is a str"):
        td.einsum(td.ones((2, 2)), td.ones((2, 2)))
    with pytest.raises(ValueError, match="label 'j' of 'ij,jk' has an axis of length 3 and one of 2"):
        td.einsum("ij,jk", td.ones((2, 3)), td.ones((2, 2)))


# -- order, parts and products -----------------------------------------------------------------------------------------
def test_sorting_permutes_gradients():
    x = f64([3.0, 1.0, 2.0])
    weights = f64([1.0, 10.0, 100.0])
    assert td.grad(lambda x: (td.sort(x) * weights).sum())(x).tolist() == [100.0, 1.0, 10.0]
    assert td.grad(lambda x: (td.sort(x, descending=True) * weights).sum())(x).tolist() == [1.0, 100.0, 10.0]
    everywhere(lambda x: td.sort(x, axis=0), draw(4, 3))


def test_equal_elements_keep_their_order():
    x = td.asarray([1, 0, 1, 0, 1])
    assert td.argsort(x).tolist() == [1, 3, 0, 2, 4]
    assert td.argsort(x, descending=True).tolist() == [0, 2, 4, 1, 3]
    assert td.jit(td.argsort)(x).tolist() == [1, 3, 0, 2, 4]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: td.split(x, [1, 2], 1),
        lambda x: td.diff(x, n=2, axis=1),
        lambda x: td.diag(x[0], -1),
        lambda x: td.trace(x, 1),
        lambda x: td.diagonal(x, -1),
        lambda x: td.kron(x, x[:2]),
        lambda x: td.cross(x[:, :3], x[::-1, 1:]),
        lambda x: x.flatten(),
        lambda x: td.swapaxes(x, 0, 1).ravel(),
        lambda x: x[(0, 2, 0), (3, 3, 1)],
        lambda x: td.concat(td.split(x, 2, 1)[::-1], 0),
    ],
    ids="split diff diag trace diagonal kron cross flatten ravel tuples halves".split(),
)
def test_rearranging(f):
    everywhere(f, draw(3, 4))


def test_tuples_of_ints_are_index_arrays():
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(f64(x)[(0, 2), (3, 1)].numpy(), x[(0, 2), (3, 1)])
    np.testing.assert_array_equal(f64(x)[:, (3, 1)].numpy(), x[:, (3, 1)])
