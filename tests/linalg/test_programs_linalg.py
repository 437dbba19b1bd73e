"""Derivatives of factorizations at sizes and structures beyond the op table's samples."""

import zlib

import numpy as np
import pytest
import tandem as td

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seed_by_name(request):
    """Draw the same matrices in any order of tests: differences of an ill-conditioned one are too inexact."""
    seed = zlib.crc32(request.node.name.encode())
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def f64(values):
    return td.asarray(values, dtype=td.float64)


def draw(*shape):
    return f64(RNG.normal(size=shape))


def drawn_complex(*shape):
    return td.asarray(RNG.normal(size=shape) + 1j * RNG.normal(size=shape))


def definite(x):
    """A positive definite matrix that follows smoothly from any."""
    return td.einsum("...ij,...kj->...ik", x, td.conj(x)) + 2 * td.eye(x.shape[-1], dtype=td.float64)


def everywhere(f, *args):
    td.check_grads(f, args, order=2, atol=1e-5, rtol=1e-5)
    td.check_grads(td.jit(f), args, order=1, atol=1e-5, rtol=1e-5)


MATRICES = pytest.mark.parametrize("draw", [draw, drawn_complex], ids=["real", "complex"])


# -- Cholesky ----------------------------------------------------------------------------------------------------------
@MATRICES
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(draw, upper):
    x = draw(2, 3, 3)
    factor = td.linalg.cholesky(definite(x), upper=upper)
    wanted = np.linalg.cholesky(definite(x).numpy(), upper=upper)
    np.testing.assert_allclose(factor.numpy(), wanted, atol=1e-12)
    everywhere(lambda x: td.linalg.cholesky(definite(x), upper=upper), x)
    each = td.vmap(lambda x: td.linalg.cholesky(definite(x), upper=upper))(x)
    np.testing.assert_allclose(each.numpy(), wanted, atol=1e-12)


def test_cholesky_has_symmetric_gradients():
    a = definite(draw(3, 3))
    g = td.grad(lambda a: td.linalg.cholesky(a).sum())(a).numpy()
    np.testing.assert_allclose(g, g.T, atol=1e-13)


def test_what_is_not_positive_definite_raises():
    for f in (td.linalg.cholesky, td.jit(td.linalg.cholesky)):
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            f(f64([[1.0, 2.0], [2.0, 1.0]]))


# -- eigenvalues and singular values -----------------------------------------------------------------------------------
@MATRICES
def test_functions_of_symmetric_matrices(draw):
    def root(x):
        values, vectors = td.linalg.eigh(definite(x))
        return (vectors * td.sqrt(values)) @ td.conj(vectors).mT

    x = draw(3, 3)
    np.testing.assert_allclose((root(x) @ root(x)).numpy(), definite(x).numpy(), atol=1e-12)
    everywhere(root, x)


def test_equal_eigenvalues_keep_basis_independent_gradients_finite():
    a = f64(np.diag([1.0, 1.0, 2.0]))
    assert (
        td.grad(lambda a: (td.linalg.eigvalsh(a) ** 2).sum())(a).tolist() == np.diag([2.0, 2.0, 4.0]).tolist()
    )


@MATRICES
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)], ids=str)
def test_singular_values(draw, shape):
    def whitened(x):
        u, s, vh = td.linalg.svd(x, full_matrices=False)
        return (u * td.log(s)[..., None, :]) @ vh

    everywhere(whitened, draw(*shape))
    everywhere(lambda x: td.linalg.norm(x, "nuc", axis=(-2, -1)), draw(*shape))


def test_vectors_that_are_any_have_no_derivative():
    with pytest.raises(td.errors.NotDifferentiableError, match="full_matrices=False"):
        td.grad(lambda x: td.linalg.svd(x)[0].sum())(draw(3, 2))
    with pytest.raises(td.errors.NotDifferentiableError, match="mode='reduced'"):
        td.grad(lambda x: td.linalg.qr(x, mode="complete")[0].sum())(draw(3, 2))


@MATRICES
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)], ids=str)
def test_qr(draw, shape):
    def log_volume(x):
        return td.log(td.abs(td.linalg.diagonal(td.linalg.qr(x)[1])))

    x = draw(*shape)
    q, r = td.linalg.qr(x)
    np.testing.assert_allclose((q @ r).numpy(), x.numpy(), atol=1e-13)
    everywhere(log_volume, x)
    everywhere(lambda x: (lambda q, r: q @ r @ r.mT)(*td.linalg.qr(x)), x)


# -- solving -----------------------------------------------------------------------------------------------------------
@MATRICES
def test_solving(draw):
    a, b = draw(3, 3), draw(3, 2)
    everywhere(td.linalg.solve, a, b)
    everywhere(td.linalg.inv, a)
    everywhere(td.linalg.det, a)
    everywhere(lambda a: td.linalg.slogdet(a), a)
    everywhere(td.linalg.pinv, draw(4, 2))
    everywhere(lambda a: td.linalg.matrix_power(a, -2), a)


def test_singular_matrix_raises_without_side_effects():
    a = f64([[1.0, 2.0], [2.0, 4.0]])
    for f in (td.linalg.inv, td.jit(td.linalg.inv), td.grad(lambda a: td.linalg.inv(a).sum())):
        with pytest.raises(td.errors.LinearAlgebraError, match="Singular"):
            f(a)
    assert td.jit(td.linalg.inv)(2 * td.eye(2)).tolist() == [[0.5, 0.0], [0.0, 0.5]]


# -- models ------------------------------------------------------------------------------------------------------------
def evidence(params, x, y):
    """The logarithm of a Gaussian process's marginal likelihood."""
    scale, length, noise = td.exp(params["scale"]), td.exp(params["length"]), td.exp(params["noise"])
    kernel = scale * td.exp(-0.5 * ((x[:, None] - x[None, :]) / length) ** 2)
    factor = td.linalg.cholesky(kernel + noise * td.eye(len(x), dtype=td.float64))
    half = td.linalg.solve(factor, y)
    return -0.5 * (half * half).sum() - td.log(td.linalg.diagonal(factor)).sum()


def test_a_gaussian_process():
    x, y = f64(np.linspace(-1, 1, 7)), draw(7)
    params = {"scale": f64(0.1), "length": f64(-0.5), "noise": f64(-1.0)}
    everywhere(lambda params: evidence(params, x, y), params)
    fit = td.jit(td.value_and_grad(lambda params: -evidence(params, x, y)))
    first = fit(params)[0].item()
    for _ in range(20):
        params = td.pytree.tree_map(lambda p, g: p - 0.05 * g, params, fit(params)[1])
    assert fit(params)[0].item() < first
    hessian = td.hessian(lambda v: evidence(dict(zip(("scale", "length", "noise"), v)), x, y))(
        f64([0.1, -0.5, -1.0])
    )
    np.testing.assert_allclose(hessian.numpy(), hessian.numpy().T, atol=1e-10)


def test_densities():
    def log_beta(x, a, b):
        s = td.special
        return s.xlogy(a - 1, x) + s.xlog1py(b - 1, -x) - s.betaln(a, b)

    x, a, b = f64([0.2, 0.7]), f64([1.5, 2.5]), f64([3.0, 0.5])
    everywhere(log_beta, x, a, b)
    # the distribution function is the integral of the density
    cdf = td.grad(lambda x: td.special.betainc(a, b, x).sum())(x)
    np.testing.assert_allclose(cdf.numpy(), np.exp(log_beta(x, a, b).numpy()), rtol=1e-12)


def test_incomplete_functions_say_what_has_no_derivative():
    with pytest.raises(td.errors.NotDifferentiableError):
        td.grad(lambda a: td.special.gammainc(a, f64(1.0)))(f64(2.0))


# -- eigenvalues -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "x", [draw(4, 4), drawn_complex(4, 4), draw(2, 3, 3)], ids=["real", "complex", "stack"]
)
def test_eigenvectors_but_for_their_phase(x):
    def invariant(x):
        values, vectors = td.linalg.eig(x)
        return td.real(values**2).sum(), td.abs(values), td.abs(vectors)

    values, vectors = td.linalg.eig(x)
    np.testing.assert_allclose((x @ vectors).numpy(), (vectors * values[..., None, :]).numpy(), atol=1e-12)
    np.testing.assert_allclose(td.linalg.vector_norm(vectors, axis=-2).numpy(), 1.0)
    everywhere(invariant, x)


def test_eigenvalues_that_are_equal():
    turn = f64([[0.0, 1.0], [-1.0, 0.0]])
    assert td.grad(lambda x: td.linalg.eigvals(x).sum().real)(turn).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    slope = td.grad(lambda x: td.real(td.linalg.eig(x)[1][0]).sum())(f64(np.eye(2)))
    assert np.isnan(slope.numpy()).any()


# -- Fourier -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [4, 5])
def test_a_convolution_by_fourier_transforms(n):
    def convolved(x, y):
        return td.fft.irfft(td.fft.rfft(x) * td.fft.rfft(y), n)

    x, y = draw(n), draw(n)
    wanted = [sum(x[j].item() * y[(i - j) % n].item() for j in range(n)) for i in range(n)]
    np.testing.assert_allclose(convolved(x, y).numpy(), wanted, atol=1e-12)
    everywhere(convolved, x, y)


def test_signal_power_equals_power_of_transform():
    x = drawn_complex(2, 6)

    def power(x):
        return (td.abs(td.fft.fft(x, norm="ortho")) ** 2).sum()

    np.testing.assert_allclose(td.grad(power)(x).numpy(), 2 * np.conj(x.numpy()), atol=1e-12)
    everywhere(lambda x: td.fft.fft2(x, (3, 5)), x)


def test_a_holomorphic_derivative_of_a_transform():
    x = drawn_complex(3)
    found = td.jacrev(lambda x: td.fft.fft(x), holomorphic=True)(x)
    np.testing.assert_allclose(found.numpy(), np.fft.fft(np.eye(3)), atol=1e-12)


def test_cholesky_ex_reports_failures():
    """The order of the first leading minor that is not positive definite, and NaN in that matrix alone."""
    good = [[4.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]]
    stack = f64([good, np.diag([1.0, 1.0, -1.0]), np.diag([0.0, 1.0, 1.0]), -np.eye(3)])
    factors, info = td.linalg.cholesky_ex(stack)
    assert info.tolist() == [0, 3, 1, 1] and info.dtype is td.int32
    assert np.isnan(factors[1:].numpy()).all()
    np.testing.assert_array_equal(factors[0], td.linalg.cholesky(f64(good)))
    for upper in (False, True):
        one = td.jit(lambda x, upper=upper: td.linalg.cholesky_ex(x, upper=upper))(stack)
        np.testing.assert_array_equal(one[0][0], td.linalg.cholesky(f64(good), upper=upper))
        assert one[1].tolist() == info.tolist()


def test_cholesky_ex_gradient_equals_that_of_cholesky():
    everywhere(lambda x: td.linalg.cholesky_ex(definite(x))[0], draw(3, 3))
    x = draw(2, 3, 3)
    with_info = td.grad(lambda x: td.linalg.cholesky_ex(definite(x))[0].sum())(x)
    wanted = td.grad(lambda x: td.linalg.cholesky(definite(x)).sum())(x)
    np.testing.assert_allclose(with_info, wanted, rtol=1e-12)
