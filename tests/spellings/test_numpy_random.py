"""``tandem.numpy.random``: generators with the methods of NumPy's, and the global one."""

import numpy
import pytest
import tandem as td
import tandem.numpy as np

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
