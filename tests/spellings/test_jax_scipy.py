"""``tandem.jax.scipy`` compared with JAX: densities, special functions, linear algebra."""

import numpy as np
import pytest
import tandem as td
import tandem.jax as tj

jax = pytest.importorskip("jax")

X = np.array([-1.5, 0.0, 0.2, 0.5, 0.9, 1.0, 2.3, 4.0])
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 5.0])
Q = np.array([-0.1, 0.01, 0.1, 0.5, 0.8, 0.99])
CONTINUOUS = {
    "beta": (2.0, 3.5), "cauchy": (), "chi2": (3.0,), "expon": (), "gamma": (2.5,), "laplace": (), "logistic": (),
    "norm": (), "pareto": (1.7,), "t": (4.0,), "uniform": (),
}  # fmt: skip
DISCRETE = {"bernoulli": (0.3,), "binom": (4, 0.3), "geom": (0.4,), "nbinom": (3.0, 0.4), "poisson": (2.2,)}
FUNCTIONS = "pdf logpdf pmf logpmf cdf logcdf sf logsf isf ppf".split()
A, B = np.random.default_rng(0).normal(size=(2, 3, 3))
C = A + 1j * B

SPECIAL = {
    "factorial": lambda s: s.factorial(np.array([-1.0, 0.0, 1.5, 6.0])),
    "exp1": lambda s: s.exp1(np.array([-1.0, 0.0, 1e-3, 0.5, 1.0, 1.99, 2.0, 3.0, 30.0])),
    "expn": lambda s: s.expn(np.array([0, 1, 2, 3, 5, 9]), np.array([[0.1], [1.0], [1.9], [2.0], [7.0]])),
    "multigammaln": lambda s: s.multigammaln(np.array([3.0, 4.5]), 3),
    "kl_div": lambda s: s.kl_div(np.array([0.0, 1.0, 2.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.5, 1.0, 0.0])),
    "rel_entr": lambda s: s.rel_entr(
        np.array([0.0, 1.0, 2.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.5, 1.0, 0.0])
    ),
    "poch": lambda s: s.poch(np.array([1.0, 2.5, 3.0]), np.array([2.0, 0.0, 1.5])),
}
LINALG = {
    "block_diag": lambda s: s.block_diag(A, B[:2], B[0]),
    "toeplitz": lambda s: s.toeplitz(A[0]),
    "toeplitz of two": lambda s: s.toeplitz(A[0], np.arange(5.0)),
    "toeplitz of complex": lambda s: s.toeplitz(C[0]),
    "lu_solve": lambda s: s.lu_solve(s.lu_factor(A), B),
    "lu_solve of a vector": lambda s: s.lu_solve(s.lu_factor(A), B[0]),
    "lu_solve transposed": lambda s: s.lu_solve(s.lu_factor(C), C.T + 0, trans=1),
    "lu_solve adjoint": lambda s: s.lu_solve(s.lu_factor(C), C.T + 0, 0 + 2),
}


def in_float64(call):
    with jax.enable_x64(True):
        return np.asarray(call())


def check(ours, wanted):
    assert str(ours.dtype).removeprefix("tandem.") == str(wanted.dtype)
    np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-9, atol=1e-14)


def list_densities():
    for name, parameters in {**CONTINUOUS, **DISCRETE}.items():
        for function in FUNCTIONS:
            if hasattr(getattr(jax.scipy.stats, name), function):
                yield name, function, parameters


@pytest.mark.parametrize(("name", "function", "parameters"), list(list_densities()))
def test_densities_are_those_of_jax(name, function, parameters):
    x = Q if function in ("ppf", "isf") else COUNTS if name in DISCRETE else X
    shifts = [(), (1.0,)] if name in DISCRETE else [(), (0.3,), (0.3, 1.4)]
    if name == "bernoulli" and function in ("cdf", "ppf"):
        shifts = [()]
    ours, theirs = (getattr(getattr(m.scipy.stats, name), function) for m in (tj, jax))
    for shift in shifts:
        wanted = in_float64(lambda shift=shift: theirs(x, *parameters, *shift))
        check(ours(td.asarray(x), *parameters, *shift), wanted)
        check(td.jit(lambda x, shift=shift: ours(x, *parameters, *shift))(td.asarray(x)), wanted)


def test_dirichlet_densities():
    alpha = np.array([1.5, 2.0, 3.0])
    x = np.array([[0.2, 0.5, 0.5], [0.3, 0.25, 0.6], [0.5, 0.25, -0.1]])
    for given in (x, x[:, 0], x[:2], x[:2, 0]):
        for name in ("pdf", "logpdf"):
            wanted = in_float64(lambda g=given, name=name: getattr(jax.scipy.stats.dirichlet, name)(g, alpha))
            check(getattr(tj.scipy.stats.dirichlet, name)(given, alpha), wanted)
    with pytest.raises(td.errors.ShapeError):
        tj.scipy.stats.dirichlet.pdf(x[:1], alpha)


def test_densities_have_gradients_and_default_dtypes():
    gradient = td.grad(lambda a: tj.scipy.stats.gamma.logpdf(td.asarray([-1.0, 0.5, 2.0]), a).sum())
    wanted = jax.grad(lambda a: jax.scipy.stats.gamma.logpdf(np.array([0.5, 2.0], np.float32), a).sum())(2.5)
    assert gradient(td.asarray(2.5)).item() == pytest.approx(float(wanted), rel=1e-5)
    assert tj.scipy.stats.poisson.pmf(td.asarray([1, 2]), 3).dtype is td.float32
    with pytest.raises(AttributeError):
        _ = tj.scipy.stats.zipf


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_are_those_of_jax(name):
    wanted = in_float64(lambda: SPECIAL[name](jax.scipy.special))
    check(SPECIAL[name](tj.scipy.special), wanted)


def test_exponential_integrals_have_derivatives():
    x = td.asarray([0.3, 1.5, 2.5], dtype=td.float64)
    slope = td.grad(lambda x: tj.scipy.special.expn(3, x).sum())(x)
    np.testing.assert_allclose(slope.numpy(), -tj.scipy.special.expn(2, x).numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra_is_that_of_jax(name):
    wanted = in_float64(lambda: LINALG[name](jax.scipy.linalg))
    check(LINALG[name](Converting(tj.scipy.linalg)), wanted)


class Converting:
    """A module whose functions take arrays."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        def call(*args, **kwargs):
            given = [td.asarray(value) if isinstance(value, np.ndarray) else value for value in args]
            return getattr(self.module, name)(*given, **kwargs)

        return call


def test_wrong_arguments():
    with pytest.raises(td.errors.UnsupportedError):
        tj.scipy.special.factorial(3.0, exact=True)
    with pytest.raises(td.errors.ValueArgumentError):
        tj.scipy.linalg.lu_solve(tj.scipy.linalg.lu_factor(td.eye(2)), td.ones(2), trans=3)
