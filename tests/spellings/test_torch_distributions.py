"""``tandem.torch.distributions`` against PyTorch, and against itself: samples, gradients, jit, errors."""

import importlib.util
import math

import numpy as np
import pytest
import tandem as td
import tandem.torch as torch
from tandem.errors import ArgumentError, ValueArgumentError

d = torch.distributions
RNG = np.random.default_rng(0)
POSITIVE, OTHER = RNG.uniform(0.5, 3.0, (2, 3)), RNG.uniform(0.5, 3.0, (2, 3))
REAL = RNG.standard_normal((2, 3))
SHARES = RNG.dirichlet(np.ones(3), 2)
ROOT = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.7, 0.5]])
# name -> parameters of two distributions
CASES = {
    "Normal": [{"loc": REAL, "scale": POSITIVE}, {"loc": 0.5, "scale": 2.0}],
    "LogNormal": [{"loc": REAL, "scale": POSITIVE / 3}, {"loc": 0.5, "scale": 0.5}],
    "HalfNormal": [{"scale": POSITIVE}],
    "Laplace": [{"loc": REAL, "scale": POSITIVE}, {"loc": 0.5, "scale": 2.0}],
    "Cauchy": [{"loc": REAL, "scale": POSITIVE}, {"loc": 0.5, "scale": 2.0}],
    "Gumbel": [{"loc": REAL, "scale": POSITIVE}],
    "Uniform": [{"low": REAL, "high": REAL + POSITIVE}, {"low": -9.0, "high": 9.0}],
    "Exponential": [{"rate": POSITIVE}, {"rate": 1.5}],
    "Gamma": [{"concentration": POSITIVE, "rate": OTHER}, {"concentration": 1.5, "rate": 2.0}],
    "Chi2": [{"df": POSITIVE}, {"df": 2.0}],
    "Beta": [
        {"concentration1": POSITIVE, "concentration0": OTHER},
        {"concentration1": 1.5, "concentration0": 2.0},
    ],
    "Dirichlet": [{"concentration": POSITIVE}, {"concentration": OTHER}],
    "StudentT": [{"df": POSITIVE + 2, "loc": REAL, "scale": OTHER}],
    "Bernoulli": [{"probs": SHARES}, {"logits": REAL}],
    "Geometric": [{"probs": SHARES}, {"logits": REAL}],
    "Binomial": [{"total_count": 5, "probs": SHARES}, {"total_count": 5, "logits": REAL}],
    "NegativeBinomial": [{"total_count": POSITIVE, "probs": SHARES}, {"total_count": 5.0, "logits": REAL}],
    "HalfCauchy": [{"scale": POSITIVE}],
    "Pareto": [{"scale": POSITIVE, "alpha": OTHER + 4}],
    "Weibull": [{"scale": POSITIVE, "concentration": OTHER + 0.6}],
    "InverseGamma": [{"concentration": POSITIVE + 4, "rate": OTHER}],
    "VonMises": [{"loc": REAL, "concentration": POSITIVE}],
    "Poisson": [{"rate": POSITIVE}, {"rate": OTHER}],
    "Categorical": [{"probs": 2 * SHARES}, {"logits": REAL}],
    "OneHotCategorical": [{"probs": SHARES}, {"logits": REAL}],
    "Multinomial": [{"total_count": 4, "probs": SHARES}],
    "MultivariateNormal": [
        {"loc": REAL, "scale_tril": ROOT},
        {"loc": OTHER, "covariance_matrix": ROOT @ ROOT.T + np.eye(3)},
    ],
}


def make(library, name, parameters):
    tensors = {
        key: library.tensor(value) if isinstance(value, np.ndarray) else value
        for key, value in parameters.items()
    }
    return getattr(library.distributions, name)(**tensors)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("name", CASES)
def test_functions_agree(name):
    import torch as other

    for parameters in CASES[name]:
        ours, theirs = make(torch, name, parameters), make(other, name, parameters)
        assert ours.batch_shape == tuple(theirs.batch_shape) and ours.event_shape == tuple(theirs.event_shape)
        value = theirs.sample((4,))
        compare = {"log_prob": (value,), "entropy": (), "cdf": (value,), "enumerate_support": ()}
        for method, args in compare.items():
            try:
                want = getattr(theirs, method)(*args)
            except NotImplementedError:
                continue
            got = getattr(ours, method)(*(td.asarray(arg.numpy()) for arg in args))
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-6, atol=2e-6, err_msg=method)
        for moment in ("mean", "variance", "stddev", "mode"):
            try:
                want = getattr(theirs, moment)
            except NotImplementedError:
                continue
            if moment == "mode" and name in ("Beta", "Dirichlet", "Geometric"):
                continue
            np.testing.assert_allclose(
                getattr(ours, moment).numpy(), want.numpy(), rtol=2e-6, atol=2e-6, err_msg=moment
            )
        shares = np.array([[0.2], [0.7]])
        try:
            want = theirs.icdf(other.tensor(shares))
        except NotImplementedError:
            continue
        np.testing.assert_allclose(ours.icdf(td.asarray(shares)).numpy(), want.numpy(), rtol=1e-5)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.parametrize(
    "name", [name for name, cases in CASES.items() if len(cases) == 2 and name != "NegativeBinomial"]
)
def test_divergences_agree(name):
    import torch as other

    one, two = CASES[name]
    for p, q in ((one, two), (two, one)):
        want = other.distributions.kl_divergence(make(other, name, p), make(other, name, q))
        got = d.kl_divergence(make(torch, name, p), make(torch, name, q))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("Cauchy", "HalfCauchy", "VonMises")])
def test_samples_have_the_moments(name):
    torch.manual_seed(0)
    distribution = make(torch, name, CASES[name][0])
    samples = distribution.sample((4000,))
    assert samples.shape == (4000, *distribution.batch_shape, *distribution.event_shape)
    assert not samples.requires_grad
    if name == "Categorical":
        samples = torch.nn.functional.one_hot(samples, 3).double()
        distribution = make(torch, "OneHotCategorical", CASES[name][0])
    error = 6 * distribution.stddev.numpy() / math.sqrt(4000)
    np.testing.assert_array_less(np.abs(samples.numpy().mean(0) - distribution.mean.numpy()), error + 1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if getattr(d, name).has_rsample])
def test_gradients_flow_through_samples(name):
    parameters = {
        key: torch.tensor(value).requires_grad_() if isinstance(value, np.ndarray) else value
        for key, value in CASES[name][0].items()
    }
    sample = getattr(d, name)(**parameters).rsample((2,))
    (sample**2).sum().backward()
    for value in parameters.values():
        if isinstance(value, td.Tensor):
            assert np.isfinite(value.grad.numpy()).all() and np.abs(value.grad.numpy()).sum() > 0


@pytest.mark.parametrize("concentration", [1e-6, 0.3, 4.0, 1e4])
def test_angles_have_the_circular_moments(concentration):
    torch.manual_seed(0)
    angles = d.VonMises(3.0, torch.tensor(concentration)).sample((4000,))
    assert angles.shape == (4000,) and float(abs(angles).max()) <= math.pi + 1e-6
    cosines, sines = np.cos(angles.numpy() - 3.0), np.sin(angles.numpy() - 3.0)
    want = 1 - d.VonMises(3.0, torch.tensor(concentration)).variance.item()
    assert abs(cosines.mean() - want) <= 6 * cosines.std() / math.sqrt(4000) + 1e-6
    assert abs(sines.mean()) <= 6 * sines.std() / math.sqrt(4000)


def test_half_cauchy_samples_have_the_median():
    torch.manual_seed(0)
    assert abs(d.HalfCauchy(2.0).sample((4000,)).numpy() < 2).mean() == pytest.approx(0.5, abs=0.05)


def test_moments_of_heavy_tails_are_infinite():
    assert d.Pareto(1.0, 1.0).mean.item() == d.Pareto(1.0, 1.5).variance.item() == math.inf
    assert d.InverseGamma(0.5, 1.0).mean.item() == d.HalfCauchy(1.0).mean.item() == math.inf
    assert d.Weibull(1.0, 0.5).mode.item() == 0.0
    assert d.NegativeBinomial(0.0, 0.5).log_prob(0.0).item() == 0.0


def test_gradient_of_a_normal_sample():
    loc, scale = torch.zeros(3).requires_grad_(), torch.ones(3).requires_grad_()
    sample = d.Normal(loc, scale).rsample()
    sample.sum().backward()
    np.testing.assert_allclose(scale.grad.numpy(), sample.detach().numpy(), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="no derivative"):
        d.Bernoulli(0.5).rsample()


def test_gradients_flow_after_a_sample():
    probs = torch.tensor([0.25, 0.75]).requires_grad_()
    policy = d.Categorical(probs)
    policy.sample()
    policy.log_prob(torch.tensor(1)).backward()
    np.testing.assert_allclose(probs.grad.numpy(), [-1.0, 1 / 3], rtol=1e-5)


def test_expand_and_independent():
    normal = d.Normal(torch.zeros(3), 1.0)
    wide = normal.expand((2, 3))
    assert wide.batch_shape == (2, 3) and wide.sample((5,)).shape == (5, 2, 3)
    event = d.Independent(wide, 1)
    assert event.event_shape == (3,) and event.entropy().shape == (2,) and event.has_rsample
    assert event.expand((4, 2)).batch_shape == (4, 2)
    np.testing.assert_allclose(d.kl_divergence(event, event.expand((2,))).numpy(), np.zeros(2), atol=1e-7)
    categories = d.Categorical(logits=torch.zeros(4))
    assert categories.probs.shape == (4,) and categories.expand((2,)).probs.shape == (2, 4)
    vectors = d.MultivariateNormal(torch.zeros(2), precision_matrix=torch.eye(2) / 4)
    np.testing.assert_allclose(vectors.expand((3,)).covariance_matrix.numpy()[2], 4 * np.eye(2), rtol=1e-6)
    with pytest.raises(ValueArgumentError, match="2 axes"):
        d.Independent(normal, 2)


def test_log_prob_is_jitted_and_batched():
    def loss(loc, value):
        return d.Normal(loc, 2.0).log_prob(value).sum()

    value, loc = torch.tensor([0.5, 1.0, -1.0]), torch.zeros(3)
    want = loss(loc, value).item()
    assert td.jit(loss)(loc, value).item() == pytest.approx(want)
    assert td.vmap(loss)(loc, value).shape == (3,)
    np.testing.assert_allclose(td.grad(loss)(loc, value).numpy(), value.numpy() / 4, rtol=1e-6)
    torch.manual_seed(0)
    draw = td.jit(lambda rate: d.Exponential(rate).sample((2,)))
    assert draw(loc + 1).tolist() != draw(loc + 1).tolist()


def test_own_divergence_is_registered():
    class Shifted(d.Normal):
        pass

    assert d.kl_divergence(Shifted(0.0, 1.0), d.Normal(0.0, 1.0)).item() == 0.0

    @d.register_kl(Shifted, Shifted)
    def divergence(p, q):
        return p.loc - q.loc

    assert d.kl_divergence(Shifted(3.0, 1.0), Shifted(1.0, 1.0)).item() == 2.0
    with pytest.raises(NotImplementedError, match="Normal and Poisson"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))


def test_wrong_arguments_are_refused():
    for call, error, message in (
        (lambda: d.Normal(0.0, -1.0), ValueArgumentError, "parameter scale .* not positive"),
        (lambda: d.Uniform(1.0, 0.0), ValueArgumentError, "parameter high"),
        (lambda: d.Normal(0.0), ArgumentError, "missing the parameter 'scale'"),
        (lambda: d.Normal(0.0, 1.0, 2.0), ArgumentError, "takes 2 parameters"),
        (lambda: d.Normal(0.0, 1.0, rate=2.0), ArgumentError, "'rate'"),
        (lambda: d.Bernoulli(0.5, 0.0), ArgumentError, "probs or logits"),
        (lambda: d.Categorical(), ArgumentError, "probs or logits"),
        (lambda: d.Bernoulli(0.5).log_prob(0.5), ValueArgumentError, "not boolean"),
        (
            lambda: d.Categorical(torch.ones(3)).log_prob(torch.tensor(3)),
            ValueArgumentError,
            "integer_interval",
        ),
        (lambda: d.Multinomial(2.5, torch.ones(2)), ArgumentError, "an int"),
        (lambda: d.MultivariateNormal(torch.zeros(2)), ArgumentError, "one of"),
        (
            lambda: d.MultivariateNormal(torch.zeros(2), -torch.eye(2)),
            ValueArgumentError,
            "positive_definite",
        ),
    ):
        with pytest.raises(error, match=message):
            call()
    assert math.isnan(d.Normal(0.0, -1.0, validate_args=False).log_prob(0.0).item())
    assert repr(d.Normal(0.0, torch.ones(2))) == "Normal(loc: shape (2,), scale: shape (2,))"
