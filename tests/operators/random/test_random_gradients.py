"""Derivatives of samples with respect to the parameters of their distributions."""

import numpy as np
import pytest
import tandem as td
from helpers import stats
from scipy import special
from tandem import errors

SIZE = 20000
R = td.random


def host(x):
    return np.asarray(x._array)


@pytest.mark.parametrize("a", [0.05, 0.7, 1.0, 4.0, 19.0, 30.0, 1e3])
def test_gamma_has_the_implicit_derivative(a):
    """Against differences of SciPy's quantiles at the numbers that were drawn."""
    given = td.full((200,), a, dtype="float64")
    x = host(R.gamma(R.key(0), given))
    derivative = host(td.grad(lambda given: R.gamma(R.key(0), given).sum())(given))
    share, step = special.gammainc(a, x), 1e-4 * a
    want = (special.gammaincinv(a + step, share) - special.gammaincinv(a - step, share)) / (2 * step)
    ok = share > (1e-2 if a < 0.5 else 1e-10)  # below, differences have no digits left
    np.testing.assert_allclose(derivative[ok], want[ok], rtol=2e-5)
    jitted = host(td.jit(td.grad(lambda given: R.gamma(R.key(0), given).sum()))(given))
    np.testing.assert_allclose(jitted, derivative, rtol=1e-12)


def test_derivatives_of_expectations():
    """The mean of the derivatives is the derivative of the mean."""
    key, n = R.key(1), 40000

    def mean(draw, value, of=lambda x: x):
        return float(td.grad(lambda v: of(draw(key, v)).mean())(td.asarray(value, dtype="float64")))

    assert abs(mean(lambda k, a: R.gamma(k, a, (n,)), 2.5) - 1) < 0.02
    assert abs(mean(lambda k, a: R.beta(k, a, 2.0, (n,)), 3.0) - 2 / 25) < 0.003
    assert abs(mean(lambda k, df: R.chisquare(k, df, (n,)), 3.0) - 1) < 0.02
    assert abs(mean(lambda k, s: s * R.normal(k, (n,)), 3.0, td.square) - 6) < 0.15
    low = mean(lambda k, low: R.truncated_normal(k, low, 2.0, (n,)), -1.0)
    step = 1e-5
    want = (stats().truncnorm(-1 + step, 2).mean() - stats().truncnorm(-1 - step, 2).mean()) / (2 * step)
    assert abs(low - want) < 0.01


def test_derivative_of_normal_vectors():
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    derivative = td.grad(
        lambda cov: td.square(R.multivariate_normal(R.key(0), td.zeros(2), cov, (SIZE,))).mean()
    )
    np.testing.assert_allclose(host(derivative(td.asarray(cov))), 0.5 * np.eye(2), atol=0.03)


def test_counts_have_no_derivative():
    with pytest.raises(errors.NotDifferentiableError, match="counts"):
        td.grad(lambda p: R.binomial(R.key(0), 5, p, (3,)).sum())(td.asarray(0.5))
