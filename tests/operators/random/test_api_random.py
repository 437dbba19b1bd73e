"""Random numbers as JAX and PyTorch programs use them: names, shapes, dtypes, keys, batches, jit."""

import numpy as np
import pytest
import tandem as td
from tandem import errors

R = td.random
KEY = R.key(0)
# One call of every sampler: from a key, a shape and options.
CALLS = {
    "ball": lambda k, s: R.ball(k, 3, shape=s)[..., 0],
    "bernoulli": lambda k, s: R.bernoulli(k, 0.3, s),
    "beta": lambda k, s: R.beta(k, 2.0, 3.0, s),
    "binomial": lambda k, s: R.binomial(k, 9, 0.4, s),
    "bits": lambda k, s: R.bits(k, s),
    "categorical": lambda k, s: R.categorical(k, td.zeros(4), shape=s),
    "cauchy": lambda k, s: R.cauchy(k, s),
    "chisquare": lambda k, s: R.chisquare(k, 3.0, s),
    "dirichlet": lambda k, s: R.dirichlet(k, td.ones(3), s)[..., 0],
    "double_sided_maxwell": lambda k, s: R.double_sided_maxwell(k, 1.0, 2.0, s),
    "exponential": lambda k, s: R.exponential(k, s),
    "f": lambda k, s: R.f(k, 3.0, 5.0, s),
    "gamma": lambda k, s: R.gamma(k, 0.5, s),
    "generalized_normal": lambda k, s: R.generalized_normal(k, 1.5, s),
    "geometric": lambda k, s: R.geometric(k, 0.2, s),
    "gumbel": lambda k, s: R.gumbel(k, s),
    "integers": lambda k, s: R.integers(k, s, -5, 9),
    "laplace": lambda k, s: R.laplace(k, s),
    "loggamma": lambda k, s: R.loggamma(k, 0.5, s),
    "logistic": lambda k, s: R.logistic(k, s),
    "lognormal": lambda k, s: R.lognormal(k, 0.5, s),
    "maxwell": lambda k, s: R.maxwell(k, s),
    "multinomial": lambda k, s: R.multinomial(k, 7, td.asarray([0.2, 0.8]), (*s, 2))[..., 0],
    "multivariate_normal": lambda k, s: R.multivariate_normal(k, td.zeros(2), td.eye(2), s)[..., 0],
    "normal": lambda k, s: R.normal(k, s),
    "orthogonal": lambda k, s: R.orthogonal(k, 2, s)[..., 0, 0],
    "pareto": lambda k, s: R.pareto(k, 2.0, s),
    "poisson": lambda k, s: R.poisson(k, 4.0, s),
    "rademacher": lambda k, s: R.rademacher(k, s),
    "randint": lambda k, s: R.randint(k, s, 0, 9),
    "rayleigh": lambda k, s: R.rayleigh(k, 2.0, s),
    "t": lambda k, s: R.t(k, 3.0, s),
    "triangular": lambda k, s: R.triangular(k, 0.0, 1.0, 2.0, s),
    "truncated_normal": lambda k, s: R.truncated_normal(k, -1.0, 1.0, s),
    "uniform": lambda k, s: R.uniform(k, s),
    "wald": lambda k, s: R.wald(k, 2.0, s),
    "weibull_min": lambda k, s: R.weibull_min(k, 1.0, 2.0, s),
}


def host(x):
    return np.asarray(R.key_data(x) if isinstance(x, R.Key) else x)


def test_every_sampler_is_here():
    others = {"Key", "key", "split", "fold_in", "clone", "key_data", "wrap_key_data", "choice", "permutation"}
    assert {*R.__all__} - others == {*CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_shapes_batches_of_keys_and_jit(name):
    call = CALLS[name]
    for shape in ((), (1,), (2, 3), (0, 2)):
        x = call(KEY, shape)
        assert x.shape == shape
        close(td.jit(call, static_argnums=1)(KEY, shape), x)
    keys = R.split(KEY, 3)
    rows = np.stack([host(call(key, (2,))) for key in keys])
    close(call(keys, (2,)), rows)
    close(td.vmap(lambda key: call(key, (2,)))(keys), rows)
    close(td.jit(td.vmap(lambda key: call(key, (2,))))(keys), rows)


def close(x, y):
    np.testing.assert_allclose(host(x), host(y), rtol=2e-5, atol=1e-6)


def test_split_takes_a_shape():
    keys = R.split(KEY, (2, 3))
    assert keys.shape == (2, 3)
    np.testing.assert_array_equal(host(keys).reshape(6, 4), host(R.split(KEY, 6)))
    assert R.split(R.split(KEY, 5), (2,)).shape == (5, 2)
    assert td.jit(lambda k: R.split(k, num=(2, 2)))(KEY).shape == (2, 2)
    assert R.split(KEY, (0,)).shape == (0,)
    with pytest.raises(errors.ShapeError, match="negative"):
        R.split(KEY, (2, -1))


def test_a_clone_draws_the_same():
    np.testing.assert_array_equal(host(R.normal(R.clone(KEY), (3,))), host(R.normal(KEY, (3,))))
    with pytest.raises(errors.DTypeError):
        R.clone(td.zeros(4))


@pytest.mark.parametrize(
    "data",
    [0, 7, -1, 2**40 + 5, 2**62 + 3, np.int32(-7), np.uint8(200), np.uint64(2**64 - 1), np.arange(-2, 3)],
    ids=str,
)
def test_fold_in_is_compiled(data):
    fold = td.jit(R.fold_in)
    given = data if isinstance(data, int) else td.asarray(data)
    np.testing.assert_array_equal(host(fold(KEY, given)), host(R.fold_in(KEY, given)))
    keys = R.split(KEY, 5)
    np.testing.assert_array_equal(host(fold(keys, given)), host(R.fold_in(keys, given)))
    fixed = td.jit(lambda key: R.fold_in(key, given))
    np.testing.assert_array_equal(host(fixed(KEY)), host(R.fold_in(KEY, given)))
    if td.config.flags.native:
        assert "callback" not in str(fold.lower(KEY, given).kernels())


def test_fold_in_of_axes_that_broadcast():
    keys, data = R.split(KEY, 4), td.reshape(td.arange(3), (3, 1))
    found = td.jit(R.fold_in)(keys, data)
    assert found.shape == (3, 4)
    np.testing.assert_array_equal(host(found), host(R.fold_in(keys, data)))


def test_one_key_for_each_step_of_a_loop():
    def walk(key):
        return td.fori_loop(0, 20, lambda i, x: x + R.normal(R.fold_in(key, i), (2,)), td.zeros(2))

    close(td.jit(walk)(KEY), walk(KEY))
    close(td.jit(td.vmap(walk))(R.split(KEY, 3)), td.vmap(walk)(R.split(KEY, 3)))


def test_multinomial_counts():
    p = td.asarray([0.5, 0.0, 0.2, 0.3])
    x = host(R.multinomial(KEY, 40, p, (5000, 4)))
    assert (x.sum(-1) == 40).all() and (x >= 0).all() and (x[:, 1] == 0).all()
    want = 40 * np.array([0.5, 0.0, 0.2, 0.3])
    assert np.abs(x.mean(0) - want).max() < 0.25
    shares = np.cov(x[:, 0], x[:, 3])[0, 1]
    assert abs(shares + 40 * 0.5 * 0.3) < 0.6  # outcomes take from each other
    close(R.multinomial(KEY, 40, p * 7.0, (5000, 4)), x)  # up to a factor
    assert R.multinomial(KEY, td.asarray([1, 2, 3]), td.ones((3, 2))).shape == (3, 2)
    assert R.multinomial(KEY, 5, td.ones(1)).tolist() == [5.0]


def test_derivatives_of_what_has_parameters():
    slope = td.grad(lambda loc: R.double_sided_maxwell(KEY, loc, 2.0, (4,)).sum())
    assert slope(td.asarray(0.5)).item() == 4.0
    x, tangent = td.jvp(lambda mean: R.wald(KEY, mean, (5,)), (td.asarray(2.0),), (td.asarray(1.0),))
    above, below = (R.wald(KEY, 2.0 + step, (5,), dtype="float64") for step in (1e-6, -1e-6))
    assert np.isfinite(host(tangent)).all() and x.shape == (5,)
    exact = td.jvp(
        lambda mean: R.wald(KEY, mean, (5,)),
        (td.asarray(2.0, dtype="float64"),),
        (td.asarray(1.0, dtype="float64"),),
    )[1]
    np.testing.assert_allclose(host(exact), host(above - below) / 2e-6, rtol=1e-6)


def test_integers_are_uniform_for_any_range():
    """Modulo a word of 32 bits would be off by a half; of 64 bits it is by a part in a billion."""
    x = host(R.randint(KEY, (300_000,), 0, 3 * 2**30))
    shares = np.bincount(x // 2**30, minlength=3) / x.size
    assert np.abs(shares - 1 / 3).max() < 0.004


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: R.wald(KEY, 1j), errors.DTypeError),
        (lambda: R.wald(0, 1.0), errors.DTypeError),
        (lambda: R.randint(KEY, (3,), 4, 4), errors.ValueArgumentError),
        (lambda: R.randint(KEY, (3,), 0.0, 4), errors.DTypeError),
        (lambda: R.multinomial(KEY, 3, 0.5), errors.ShapeError),
        (lambda: R.double_sided_maxwell(KEY, td.zeros(3), 1.0, (2,)), errors.ShapeError),
    ],
    ids=["complex", "no key", "empty", "floats", "no outcomes", "shape"],
)
def test_wrong_parameters(call, error):
    with pytest.raises(error):
        call()


# -- roots of covariances, complex numbers -----------------------------------------------------------------------------
COVARIANCE = td.asarray([[2.0, 0.5, 1.0], [0.5, 1.0, 0.2], [1.0, 0.2, 1.5]])


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_ways_to_the_root_of_a_covariance(method):
    mean = td.asarray([1.0, 2.0, 3.0])
    x = host(R.multivariate_normal(KEY, mean, COVARIANCE, (50000,), method=method))
    np.testing.assert_allclose(np.cov(x.T), host(COVARIANCE), atol=0.05)
    np.testing.assert_allclose(x.mean(0), host(mean), atol=0.03)
    jitted = td.jit(lambda cov: R.multivariate_normal(KEY, mean, cov, (50000,), method=method))
    np.testing.assert_allclose(host(jitted(COVARIANCE)), x, rtol=1e-3, atol=1e-3)
    flat = host(R.multivariate_normal(KEY, td.zeros(2), td.ones((2, 2)), (4,), method=method))
    if method == "cholesky":
        assert np.isnan(flat).all()
    else:
        np.testing.assert_allclose(flat[:, 0], flat[:, 1], atol=1e-3)
    slope = td.grad(lambda cov: R.multivariate_normal(KEY, mean, cov, method=method).sum())(COVARIANCE)
    assert np.isfinite(host(slope)).all()


def test_no_covariance_has_negative_eigenvalues():
    for method in ("cholesky", "eigh"):
        assert np.isnan(host(R.multivariate_normal(KEY, td.zeros(2), -td.eye(2), method=method))).all()
    with pytest.raises(ValueError, match="method is one of 'cholesky', 'eigh', 'svd', not 'qr'"):
        R.multivariate_normal(KEY, td.zeros(2), td.eye(2), method="qr")


@pytest.mark.parametrize("dtype", [td.complex64, td.complex128])
def test_complex_normal_numbers(dtype):
    x = host(R.normal(KEY, (50000,), dtype))
    assert x.dtype == dtype.np
    for part in (x.real, x.imag):
        assert abs(part.var() - 0.5) < 0.01 and abs(part.mean()) < 0.02
    assert abs(np.corrcoef(x.real, x.imag)[0, 1]) < 0.02
    np.testing.assert_allclose(
        host(td.jit(lambda key: R.normal(key, (5,), dtype))(KEY)), host(R.normal(KEY, (5,), dtype))
    )
