"""``tandem.numpy.random``: generators with the methods of NumPy's, and the global one."""

import numpy
import pytest
import tandem as td
import tandem.numpy as np
from scipy import stats

COUNT = 4000
# method: (arguments, mean, standard deviation)
DISTRIBUTIONS = {
    "random": ((), 0.5, 0.2887),
    "uniform": ((-1, 3), 1, 1.1547),
    "normal": ((2, 3), 2, 3),
    "integers": ((0, 10), 4.5, 2.8723),
    "exponential": ((2,), 2, 2),
    "poisson": ((3,), 3, 1.7321),
    "binomial": ((10, 0.3), 3, 1.4491),
    "gamma": ((2, 3), 6, 4.2426),
    "beta": ((2, 3), 0.4, 0.2),
    "laplace": ((1, 2), 1, 2.8284),
    "logistic": ((1, 2), 1, 3.6276),
    "gumbel": ((0, 1), 0.5772, 1.2825),
    "lognormal": ((0, 0.5), 1.1331, 0.6039),
    "chisquare": ((3,), 3, 2.4495),
    "standard_t": ((8,), 0, 1.1547),
    "pareto": ((5,), 0.25, 0.3227),
    "rayleigh": ((2,), 2.5066, 1.3103),
    "weibull": ((2,), 0.8862, 0.4633),
    "triangular": ((0, 1, 2), 1, 0.4082),
    "geometric": ((0.3,), 3.3333, 2.7889),
    "choice": ((4,), 1.5, 1.118),
    "wald": ((2, 3), 2, 1.633),
    "power": ((2,), 0.6667, 0.2357),
    "f": ((4, 12), 1.2, 1.1225),
    "noncentral_chisquare": ((3, 2), 5, 3.7417),
    "noncentral_f": ((4, 14, 2), 1.75, 1.4986),
    "negative_binomial": ((4, 0.4), 6, 3.873),
    "logseries": ((0.6,), 1.637, 1.1887),
    "hypergeometric": ((10, 5, 6), 4, 0.9258),
    "zipf": ((5,), 1.0438, 0.2752),
    "vonmises": ((1, 20), 1, 0.2265),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_have_moments_shapes_and_dtypes_of_numpy(name):
    args, mean, deviation = DISTRIBUTIONS[name]
    draw, wanted = (getattr(m.random.default_rng(1), name) for m in (np, numpy))
    sample = draw(*args, size=COUNT)
    assert type(sample) is td.Tensor and sample.dtype == wanted(*args, size=2).dtype
    assert abs(sample.numpy().mean() - mean) < 5 * deviation / COUNT**0.5
    assert abs(sample.numpy().std() / deviation - 1) < 0.2
    assert draw(*args, size=(2, 3)).shape == (2, 3) and draw(*args).shape == ()


@pytest.mark.parametrize(
    ("name", "args", "quantile"),
    [
        ("standard_cauchy", (), lambda q: stats.cauchy.ppf(q)),
        ("vonmises", (0.0, 0.5), lambda q: stats.vonmises.ppf(q, 0.5)),
        ("vonmises", (0.0, 0.0), lambda q: numpy.pi * (2 * q - 1)),
        ("wald", (2.0, 0.5), lambda q: stats.invgauss.ppf(q, 4.0, scale=0.5)),
        ("power", (0.5,), lambda q: q**2),
        ("noncentral_chisquare", (1.5, 3.0), lambda q: stats.ncx2.ppf(q, 1.5, 3.0)),
    ],
)
def test_quantiles_of_composed_distributions(name, args, quantile):
    sample = numpy.sort(getattr(np.random.default_rng(2), name)(*args, size=COUNT).numpy())
    for q in (0.1, 0.35, 0.5, 0.65, 0.9):
        share = (sample < quantile(q)).mean()
        assert abs(share - q) < 5 * (q * (1 - q) / COUNT) ** 0.5


@pytest.mark.parametrize(
    ("name", "args", "mass"),
    [
        ("zipf", (1.7,), lambda k: stats.zipf.pmf(k, 1.7)),
        ("logseries", (0.9,), lambda k: stats.logser.pmf(k, 0.9)),
        ("hypergeometric", (7, 4, 5), lambda k: stats.hypergeom.pmf(k, 11, 7, 5)),
        ("hypergeometric", (1000, 2000, 30), lambda k: stats.hypergeom.pmf(k, 3000, 1000, 30)),
        ("negative_binomial", (2.5, 0.5), lambda k: stats.nbinom.pmf(k, 2.5, 0.5)),
    ],
)
def test_frequencies_of_composed_distributions(name, args, mass):
    sample = getattr(np.random.default_rng(3), name)(*args, size=COUNT).numpy()
    for k in range(12):
        p = mass(k)
        assert abs((sample == k).mean() - p) < 5 * (p * (1 - p) / COUNT) ** 0.5 + 1e-12


def test_counts_of_outcomes():
    rng, wanted = np.random.default_rng(1), numpy.random.default_rng(1)
    for args in ((10, [0.2, 0.8]), ([3, 4], [0.2, 0.8], (5, 2)), (10, [[0.1, 0.9], [0.5, 0.5]])):
        counts, like = rng.multinomial(*args), wanted.multinomial(*args)
        assert counts.shape == like.shape and counts.dtype == like.dtype
        assert (counts.sum(-1) == np.asarray(args[0])).all()
    assert rng.multinomial(10, [0.0, 1.0, 0.0], size=3).tolist() == [[0, 10, 0]] * 3
    counts = rng.multivariate_hypergeometric([4, 0, 9], 6, size=(COUNT,))
    assert counts.shape == (COUNT, 3) and counts.dtype is td.int64 and (counts.sum(1) == 6).all()
    assert (counts <= np.array([4, 0, 9])).all() and abs(counts.numpy()[:, 0].mean() - 24 / 13) < 0.08
    assert rng.multivariate_hypergeometric([4, 2], 6).tolist() == [4, 2]
    assert rng.hypergeometric([3, 0], 5, [[2], [8]]).shape == (2, 2)
    with pytest.raises(ValueError, match="cannot be drawn"):
        rng.multivariate_hypergeometric([1, 2], 4)


def test_samples_are_written_into_out():
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    for name in ("random", "standard_normal", "standard_exponential"):
        for x in (np.zeros((2, 3)), np.zeros(4, dtype=np.float32)):
            assert getattr(rng, name)(out=x) is x
            assert x.tolist() == getattr(other, name)(x.shape, dtype=x.dtype).tolist()
    x = np.zeros(3)
    assert rng.standard_gamma(2.0, size=3, out=x) is x and (x > 0).all()
    with pytest.raises(ValueError, match="size"):
        rng.random(2, out=x)


def test_spawned_generators_and_bytes():
    one, two = np.random.default_rng(0).spawn(2)
    again = np.random.default_rng(0).spawn(2)[1]
    assert type(one) is type(two) is type(np.random.default_rng(0))
    assert two.random(3).tolist() == again.random(3).tolist() != one.random(3).tolist()
    text = np.random.default_rng(0).bytes(20)
    assert type(text) is bytes and len(text) == 20 and len({*text}) > 5
    assert len(np.random.bytes(3)) == 3 and np.random.vonmises(0, 1, size=2).shape == (2,)


def test_jitted_functions_draw_composed_samples():
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    draw = td.jit(lambda: (rng.wald(1, 2, 3), rng.zipf(3.0, 4), rng.vonmises(0, 2, 2)))
    for _ in range(2):
        got, want = draw(), (other.wald(1, 2, 3), other.zipf(3.0, 4), other.vonmises(0, 2, 2))
        for x, y in zip(got, want):
            numpy.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12)


def test_parameters_broadcast_and_bounds_are_those_of_numpy():
    rng = np.random.default_rng(0)
    assert rng.normal([0, 100], 1).shape == rng.normal([0, 100], [1, 2], size=2).shape == (2,)
    assert {*rng.integers(1, 3, 100, endpoint=True).tolist()} == {1, 2, 3}
    assert {*rng.integers(2, size=100).tolist()} == {0, 1}
    assert {*rng.choice([5, 7], 100, p=[0.0, 1.0]).tolist()} == {7}
    assert sorted(rng.choice(4, 4, replace=False).tolist()) == [0, 1, 2, 3]
    assert rng.multivariate_normal([0, 1], [[1, 0], [0, 1]], 3).shape == (3, 2)


def test_permutations_and_shuffles():
    rng, x, items = np.random.default_rng(0), np.arange(6), [1, 2, 3, 4]
    assert sorted(rng.permutation(6).tolist()) == sorted(rng.permutation(x).tolist()) == x.tolist()
    rng.shuffle(x)
    rng.shuffle(items)
    assert sorted(x.tolist()) == list(range(6)) and sorted(items) == [1, 2, 3, 4]
    assert numpy.sort(rng.permuted(np.arange(6).reshape(2, 3), axis=1), 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError):
        rng.shuffle((1, 2))


def test_global_generator_is_reset_by_a_seed():
    np.random.seed(3)
    first = [
        np.random.rand(2, 3),
        np.random.randn(2),
        np.random.randint(5, size=4),
        np.random.normal(1, 2, 3),
    ]
    np.random.seed(3)
    second = [
        np.random.rand(2, 3),
        np.random.randn(2),
        np.random.randint(5, size=4),
        np.random.normal(1, 2, 3),
    ]
    for one, other in zip(first, second):
        assert one.tolist() == other.tolist()
    state = np.random.RandomState(3)
    assert state.rand(2, 3).tolist() == first[0].tolist() and state.random_sample(2).shape == (2,)


def test_seeds_and_generators():
    rng = np.random.default_rng(5)
    assert np.random.default_rng(rng) is rng and isinstance(rng, td.Generator)
    assert rng.random(3).tolist() == np.random.default_rng(numpy.int64(5)).random(3).tolist()
    assert np.random.default_rng([1, 2]).random() == np.random.default_rng([1, 2]).random()
    assert np.random.default_rng().random() != np.random.default_rng().random()
    assert np.random.split(np.random.key(0)).shape == (2,)


def test_jitted_functions_draw_new_numbers():
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    draw = td.jit(lambda x: x + rng.normal(size=3))
    x = np.zeros(3)
    for _ in range(3):
        assert draw(x).tolist() == other.normal(size=3).tolist()
