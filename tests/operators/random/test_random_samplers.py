"""Every sampler: its distribution, equal bits on every path, batches of keys, extreme parameters.

The seeds are fixed, so that a test passes always or never; a sound sampler fails for one seed in a thousand.
"""

import numpy as np
import pytest
import tandem as td
from helpers import stats
from tandem import errors
from tandem.eager.layers.vmap import kernel as batched_kernel

SIZE = 20000
R = td.random


def host(x):
    return np.asarray(x._array)


def likely(p_value):
    assert p_value > 1e-3


def make_two_sided():
    """Maxwell's distribution and its mirror image, half each."""

    class TwoSided(stats().rv_continuous):
        def _cdf(self, x):
            return 0.5 + 0.5 * np.sign(x) * stats().maxwell.cdf(np.abs(x))

        def _stats(self):
            return 0.0, 3.0, 0.0, None

    return TwoSided()


# -- distributions -----------------------------------------------------------------------------------------------------
CONTINUOUS = {
    "uniform": (lambda k, **o: R.uniform(k, SIZE, **o), lambda: stats().uniform()),
    "uniform between": (
        lambda k, **o: R.uniform(k, SIZE, minval=-2.0, maxval=3.0, **o),
        lambda: stats().uniform(-2, 5),
    ),
    "normal": (lambda k, **o: R.normal(k, SIZE, **o), lambda: stats().norm()),
    "exponential": (lambda k, **o: R.exponential(k, SIZE, **o), lambda: stats().expon()),
    "gumbel": (lambda k, **o: R.gumbel(k, SIZE, **o), lambda: stats().gumbel_r()),
    "laplace": (lambda k, **o: R.laplace(k, SIZE, **o), lambda: stats().laplace()),
    "logistic": (lambda k, **o: R.logistic(k, SIZE, **o), lambda: stats().logistic()),
    "cauchy": (lambda k, **o: R.cauchy(k, SIZE, **o), lambda: stats().cauchy()),
    "maxwell": (lambda k, **o: R.maxwell(k, SIZE, **o), lambda: stats().maxwell()),
    "lognormal": (lambda k, **o: R.lognormal(k, 0.7, shape=SIZE, **o), lambda: stats().lognorm(0.7)),
    "pareto": (lambda k, **o: R.pareto(k, 2.5, shape=SIZE, **o), lambda: stats().pareto(2.5)),
    "rayleigh": (lambda k, **o: R.rayleigh(k, 1.5, shape=SIZE, **o), lambda: stats().rayleigh(scale=1.5)),
    "weibull": (
        lambda k, **o: R.weibull_min(k, 2.0, 1.5, shape=SIZE, **o),
        lambda: stats().weibull_min(1.5, scale=2),
    ),
    "triangular": (
        lambda k, **o: R.triangular(k, -1.0, 0.5, 2.0, shape=SIZE, **o),
        lambda: stats().triang(0.5, -1, 3),
    ),
    "truncated": (
        lambda k, **o: R.truncated_normal(k, -1.0, 2.0, shape=SIZE, **o),
        lambda: stats().truncnorm(-1, 2),
    ),
    "truncated above": (
        lambda k, **o: R.truncated_normal(k, 3.0, 3.5, shape=SIZE, **o),
        lambda: stats().truncnorm(3, 3.5),
    ),
    "truncated half": (
        lambda k, **o: R.truncated_normal(k, 0.0, np.inf, shape=SIZE, **o),
        lambda: stats().halfnorm(),
    ),
    **{
        f"gamma {a}": (lambda k, a=a, **o: R.gamma(k, a, shape=SIZE, **o), lambda a=a: stats().gamma(a))
        for a in (0.2, 0.9, 1.0, 2.5, 50.0, 1e4)
    },
    "loggamma": (lambda k, **o: R.loggamma(k, 0.7, shape=SIZE, **o), lambda: stats().loggamma(0.7)),
    "beta": (lambda k, **o: R.beta(k, 0.5, 2.0, shape=SIZE, **o), lambda: stats().beta(0.5, 2)),
    "chisquare": (lambda k, **o: R.chisquare(k, 3.0, shape=SIZE, **o), lambda: stats().chi2(3)),
    "t": (lambda k, **o: R.t(k, 3.0, shape=SIZE, **o), lambda: stats().t(3)),
    "f": (lambda k, **o: R.f(k, 3.0, 5.0, shape=SIZE, **o), lambda: stats().f(3, 5)),
    "wald": (lambda k, **o: R.wald(k, 2.0, shape=SIZE, **o), lambda: stats().invgauss(2.0)),
    "wald far": (lambda k, **o: R.wald(k, 0.01, shape=SIZE, **o), lambda: stats().invgauss(0.01)),
    "double sided maxwell": (
        lambda k, **o: R.double_sided_maxwell(k, 0.0, 2.0, shape=SIZE, **o),
        lambda: make_two_sided()(scale=2.0),
    ),
    "generalized normal": (
        lambda k, **o: R.generalized_normal(k, 1.5, shape=SIZE, **o),
        lambda: stats().gennorm(1.5),
    ),
    "dirichlet": (
        lambda k, **o: R.dirichlet(k, td.asarray([1.0, 2.0, 3.0]), SIZE, **o)[:, 1],
        lambda: stats().beta(2, 4),
    ),
}
COUNTS = {
    **{
        f"poisson {rate}": (
            lambda k, rate=rate: R.poisson(k, rate, shape=SIZE),
            lambda rate=rate: stats().poisson(rate),
        )
        for rate in (0.1, 3.0, 9.5, 10.0, 40.0, 1e4)
    },
    **{
        f"binomial {n} {p}": (
            lambda k, n=n, p=p: R.binomial(k, n, p, shape=SIZE),
            lambda n=n, p=p: stats().binom(n, p),
        )
        for n, p in ((1, 0.5), (10, 0.3), (100, 0.05), (100, 0.5), (1000, 0.97))
    },
    "multinomial": (
        lambda k: R.multinomial(k, 20, td.asarray([1.0, 3.0, 0.0, 6.0]), (SIZE, 4))[:, 1],
        lambda: stats().binom(20, 0.3),
    ),
    "geometric": (lambda k: R.geometric(k, 0.3, shape=SIZE), lambda: stats().geom(0.3)),
    "integers": (lambda k: R.integers(k, SIZE, -3, 4), lambda: stats().randint(-3, 4)),
    "randint": (lambda k: R.randint(k, SIZE, 0, 2), lambda: stats().randint(0, 2)),
    "bernoulli": (lambda k: R.bernoulli(k, 0.3, SIZE), lambda: stats().bernoulli(0.3)),
    "rademacher": (lambda k: (R.rademacher(k, SIZE) + 1) // 2, lambda: stats().bernoulli(0.5)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, dtype):
    draw, distribution = CONTINUOUS[name][0], CONTINUOUS[name][1]()
    for seed in range(3):
        x = draw(R.key(seed), dtype=dtype)
        assert x.dtype.name == dtype
        x = host(x).astype(float)
        assert np.isfinite(x).all()
        likely(stats().kstest(x, distribution.cdf).pvalue)
        mean, variance = distribution.stats("mv")
        if np.isfinite(mean) and np.isfinite(variance):
            assert abs(x.mean() - mean) < 5 * np.sqrt(variance / x.size)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_half_precision_is_float32_rounded(name, dtype):
    draw, _ = CONTINUOUS[name]
    if name.startswith("uniform"):
        pytest.skip("has fewer bits of its own")
    x, wide = draw(R.key(5), dtype=dtype), draw(R.key(5), dtype="float32")
    assert x.dtype.name == dtype
    ulp = 2.0 ** -(10 if dtype == "float16" else 7)  # exp is NumPy's or machine code's, and rounds otherwise
    np.testing.assert_allclose(host(x).astype(float), host(wide.astype(dtype)).astype(float), rtol=ulp)


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    """Pearson's test, with rare values counted together."""
    draw, distribution = COUNTS[name][0], COUNTS[name][1]()
    for seed in range(3):
        x = host(draw(R.key(seed))).astype(int)
        low, high = int(distribution.ppf(0.001)), int(distribution.ppf(0.999)) + 1
        step = max(1, (high - low) // 60)
        edges = np.arange(low, high + step, step)
        want = np.diff(distribution.cdf(np.concatenate([[-np.inf], edges, [np.inf]]))) * x.size
        found = np.bincount(np.searchsorted(edges, x), minlength=want.size)
        often = want > 5
        got, expected = found[often], want[often]
        if (~often).any() and want[~often].sum() > 5:
            got, expected = np.append(got, found[~often].sum()), np.append(expected, want[~often].sum())
        likely(stats().chisquare(got, expected * got.sum() / expected.sum()).pvalue)
        assert abs(x.mean() - distribution.mean()) < 5 * distribution.std() / np.sqrt(x.size)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_categorical(axis):
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]))
    given = td.asarray(np.moveaxis(logits, 1, axis).astype(np.float32))
    found = host(R.categorical(R.key(0), given, axis=axis, shape=(SIZE, 2)))
    for row in range(2):
        counts = np.bincount(found[:, row], minlength=3)
        likely(stats().chisquare(counts, np.exp(logits[row]) * SIZE).pvalue)


def test_categorical_without_replacement():
    logits = td.asarray(np.log([0.1, 0.2, 0.3, 0.4]).astype(np.float32))
    keys = R.split(R.key(2), 4000)
    found = host(td.vmap(lambda key: R.categorical(key, logits, shape=(2,), replace=False))(keys))
    assert (found[:, 0] != found[:, 1]).all()
    likely(
        stats().chisquare(np.bincount(found[:, 0], minlength=4), np.array([0.1, 0.2, 0.3, 0.4]) * 4000).pvalue
    )
    p = np.array([0.1, 0.2, 0.3, 0.4])
    second = sum(p[i] * np.where(np.arange(4) == i, 0, p) / (1 - p[i]) for i in range(4))
    likely(stats().chisquare(np.bincount(found[:, 1], minlength=4), second * 4000).pvalue)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("p", [None, [0.5, 0.0, 0.2, 0.3]])
def test_choice(p, replace):
    given = None if p is None else td.asarray(p)
    keys = R.split(R.key(3), 4000)
    found = host(td.vmap(lambda key: R.choice(key, 4, (2,), replace, given))(keys))
    want = np.full(4, 0.25) if p is None else np.array(p)
    for column in (0, 1) if replace or p is None else (0,):
        counts = np.bincount(found[:, column], minlength=4)
        assert not counts[want == 0].any()
        likely(stats().chisquare(counts[want > 0], want[want > 0] * 4000).pvalue)
    if not replace:
        assert (found[:, 0] != found[:, 1]).all()


def test_choice_of_slices():
    x = np.arange(24).reshape(2, 4, 3)
    found = host(R.choice(R.key(0), td.asarray(x), (5, 2), axis=1))
    places = host(R.choice(R.key(0), 4, (5, 2)))
    np.testing.assert_array_equal(found, x[:, places])


def test_independent_permutation():
    x = np.arange(3000).reshape(1000, 3)
    found = host(R.permutation(R.key(0), td.asarray(x), axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(found, 1), x)
    _, counts = np.unique(found - x[:, :1], axis=0, return_counts=True)
    assert len(counts) == 6
    likely(stats().chisquare(counts).pvalue)
    assert R.permutation(R.key(0), td.zeros((0, 3)), axis=1, independent=True).shape == (0, 3)


def test_multivariate_normal():
    cov = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])
    mean = np.array([1.0, -2.0, 0.5])
    x = host(R.multivariate_normal(R.key(0), td.asarray(mean), td.asarray(cov), (SIZE,)))
    white = np.linalg.solve(np.linalg.cholesky(cov), (x - mean).T)
    for row in white:
        likely(stats().kstest(row, "norm").pvalue)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)
    bad = td.asarray(np.stack([np.eye(2), -np.eye(2)]).astype(np.float32))
    found = host(R.multivariate_normal(R.key(0), td.zeros(2), bad))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_orthogonal():
    q = host(R.orthogonal(R.key(0), 3, (2000,), "float64"))
    np.testing.assert_allclose(q @ np.swapaxes(q, 1, 2), np.broadcast_to(np.eye(3), q.shape), atol=1e-12)
    likely(stats().kstest(q[:, 0, 0], "uniform", (-1, 2)).pvalue)  # a coordinate on the sphere
    wide, tall = R.orthogonal(R.key(0), 2, m=4), R.orthogonal(R.key(0), 4, m=2)
    np.testing.assert_allclose(host(wide @ td.matrix_transpose(wide)), np.eye(2), atol=1e-5)
    np.testing.assert_allclose(host(td.matrix_transpose(tall) @ tall), np.eye(2), atol=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_ball(p):
    x = host(R.ball(R.key(0), 3, p, (SIZE,)))
    size = (np.abs(x) ** p).sum(1) ** (1 / p)
    assert size.max() <= 1 + 1e-6
    likely(stats().kstest(size**3, "uniform").pvalue)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if "uniform" not in n])
def test_split_keys_are_independent(name):
    draw, distribution = CONTINUOUS[name][0], CONTINUOUS[name][1]()
    one, two = (distribution.cdf(host(draw(key)).astype(float)) for key in R.split(R.key(8)))
    likely(stats().pearsonr(one, two).pvalue)
    likely(stats().chi2_contingency(np.histogram2d(one, two, 8, [(0, 1)] * 2)[0]).pvalue)
    likely(stats().pearsonr(one[:-1], one[1:]).pvalue)


# -- the same in every way ---------------------------------------------------------------------------------------------
def same_everywhere():
    a, b = td.asarray([0.3, 2.0, 30.0]), td.asarray([1.5, 0.7, 4.0])
    alike = {
        name: lambda k, name=name: getattr(R, name)(k, (3,))
        for name in "bits uniform normal exponential gumbel laplace logistic cauchy rademacher".split()
    }
    float64 = {
        f"{name} float64": lambda k, name=name: getattr(R, name)(k, (3,), "float64")
        for name in "uniform normal exponential gumbel laplace logistic cauchy".split()
    }
    drawn = {
        "integers": lambda k: R.integers(k, (3,), 0, 1000),
        "bernoulli": lambda k: R.bernoulli(k, 0.4, (3,)),
        "permutation": lambda k: R.permutation(k, 7),
        "shuffled": lambda k: R.permutation(k, td.arange(12).reshape((3, 4)), 1, independent=True),
        "choice": lambda k: R.choice(k, 9, (3,), False),
        "weighted choice": lambda k: R.choice(k, 3, (4,), p=td.asarray([0.2, 0.3, 0.5])),
        "categorical": lambda k: R.categorical(k, td.asarray([[0.1, 2.0, 0.3], [1.0, 0.0, 0.5]])),
        "loggamma": lambda k: R.loggamma(k, a),
        "poisson": lambda k: R.poisson(k, a),
        "binomial": lambda k: R.binomial(k, 50, td.asarray([0.1, 0.5, 0.9])),
    }
    near = {
        name: lambda k, name=name: getattr(R, name)(k, a)
        for name in "lognormal pareto rayleigh gamma chisquare t generalized_normal dirichlet".split()
    } | {
        "maxwell": lambda k: R.maxwell(k, (3,)),
        "weibull": lambda k: R.weibull_min(k, a, b),
        "triangular": lambda k: R.triangular(k, -a, 0.0, b),
        "truncated": lambda k: R.truncated_normal(k, -a, b),
        "beta": lambda k: R.beta(k, a, b),
        "f": lambda k: R.f(k, a, b),
        "geometric": lambda k: R.geometric(k, td.asarray([0.2, 0.5, 0.9])),
        "normal vectors": lambda k: R.multivariate_normal(
            k, td.zeros(2), td.asarray([[2.0, 0.5], [0.5, 1.0]])
        ),
        "orthogonal": lambda k: R.orthogonal(k, 3),
        "ball": lambda k: R.ball(k, 3),
    }
    return alike | float64 | drawn, near


EXACT, NEAR = same_everywhere()


def close(found, wanted, name):
    if name in EXACT:
        np.testing.assert_array_equal(found, wanted)
    else:  # exp, powers and products are the libraries'
        np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("name", EXACT | NEAR)
def test_the_same_eager_jitted_and_portable(name):
    draw, key = (EXACT | NEAR)[name], R.key(17)
    want = host(draw(key))
    close(host(td.jit(draw)(key)), want, name)
    with td.config.override(native=False):
        close(host(draw(key)), want, name)
        close(host(td.jit(draw)(key)), want, name)


@pytest.mark.parametrize("name", EXACT | NEAR)
def test_batch_of_keys_equals_loop_over_keys(name, monkeypatch):
    def no_loop(*args):
        raise AssertionError("a loop over the examples")

    draw, keys = (EXACT | NEAR)[name], R.split(R.key(4), 5)
    want = np.stack([host(draw(key)) for key in keys])
    monkeypatch.setattr(batched_kernel, "run_per_example", no_loop)
    close(host(td.vmap(draw)(keys)), want, name)
    close(host(td.jit(td.vmap(draw))(keys)), want, name)
    shared = host(td.vmap(lambda key, x: (draw(key), x), (None, 0))(keys[0], td.zeros(2))[0])
    close(shared, np.stack([want[0]] * 2), name)


def test_a_batch_of_parameters():
    key, a = R.key(0), td.asarray([[0.5, 2.0], [3.0, 40.0]])
    for draw in (R.gamma, R.poisson, R.t, R.dirichlet):
        found = host(td.vmap(lambda one, draw=draw: draw(key, one))(a))
        np.testing.assert_allclose(found, np.stack([host(draw(key, one)) for one in a]), rtol=1e-6)
        both = host(td.vmap(draw)(R.split(key, 2), a))
        want = np.stack([host(draw(k, one)) for k, one in zip(R.split(key, 2), a)])
        np.testing.assert_allclose(both, want, rtol=1e-6)


def test_parameters_that_a_trace_knows_as_numbers():
    key = R.key(0)
    draws = {
        "gamma": lambda k, a: R.gamma(k, a, (4,)),
        "beta": lambda k, a: R.beta(k, a, 2.0, (4,)),
        "poisson": lambda k, a: R.poisson(k, a, (4,)),
        "binomial": lambda k, a: R.binomial(k, 50, a / 10, (4,)),
        "geometric": lambda k, a: R.geometric(k, a / 10, (4,)),
        "bernoulli": lambda k, a: R.bernoulli(k, a / 10, (4,)),
        "pareto": lambda k, a: R.pareto(k, a, (4,)),
        "truncated": lambda k, a: R.truncated_normal(k, -a, a, (4,)),
    }
    for name, draw in draws.items():
        jitted = td.jit(draw)
        for a in (2.5, 4.0):
            np.testing.assert_allclose(host(jitted(key, a)), host(draw(key, a)), rtol=3e-6, err_msg=name)
        assert jitted.cache_info().specializations == 1


def test_small_draws_are_prefixes_of_large_ones():
    """A number follows from its place; the shape says how many there are."""
    key = R.key(0)
    for draw in (
        R.uniform,
        R.exponential,
        lambda k, n: R.gamma(k, 2.0, (n,)),
        lambda k, n: R.poisson(k, 20.0, (n,)),
    ):
        np.testing.assert_array_equal(host(draw(key, 100000))[:50], host(draw(key, 50)))


# -- extremes ----------------------------------------------------------------------------------------------------------
def test_extremes():
    key = R.key(0)
    assert host(R.bernoulli(key, shape=(1000,))).mean() == pytest.approx(0.5, abs=0.06)
    assert host(R.gamma(key, td.asarray([0.0, -1.0, np.nan, np.inf]))).tolist()[0] == 0
    assert np.isnan(host(R.gamma(key, td.asarray([-1.0, np.nan])))).all()
    assert np.isfinite(host(R.loggamma(key, td.full((100,), 1e-6)))).all()
    assert host(R.poisson(key, td.asarray([0.0, -1.0, np.nan]))).tolist() == [0, -1, -1]
    found = host(
        R.binomial(key, td.asarray([5.0, 5.0, 0.0, 3.0, -1.0]), td.asarray([0.0, 1.0, 0.5, np.nan, 0.5]))
    )
    np.testing.assert_array_equal(found, [0, 5, 0, np.nan, np.nan])
    assert (host(R.geometric(key, 1.0, (9,))) == 1).all()
    np.testing.assert_allclose(host(R.beta(key, 1e-3, 1e-3, (50,), "float64")).round(2) % 1, 0)
    total = host(R.dirichlet(key, td.full((3,), 1e-3), (50,))).sum(-1)
    np.testing.assert_allclose(total, 1, rtol=1e-6)
    x = host(R.truncated_normal(key, 8.0, 9.0, (1000,)))
    assert (x >= 8).all()
    assert (x <= 9).all()
    assert x.mean() == pytest.approx(stats().truncnorm(8, 9).mean(), abs=0.02)
    assert host(R.truncated_normal(key, 1.0, 1.0, (3,))).tolist() == [1, 1, 1]
    assert host(R.uniform(key, 3, minval=2.0, maxval=2.0)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2)])
def test_nothing_is_drawn_of_empty_shapes(shape):
    key, keys = R.key(0), R.split(R.key(0), 2)
    for draw in (R.uniform, R.normal, R.bits, R.cauchy, R.rademacher):
        assert draw(key, shape).shape == shape
        assert draw(keys, shape).shape == (2, *shape)
    for draw in (R.gamma, R.poisson, R.t):
        assert draw(key, 2.0, shape).shape == shape
        assert draw(keys, 2.0, shape).shape == (2, *shape)
    none = R.split(key, 0)
    assert R.normal(none, (3,)).shape == (0, 3)
    assert R.gamma(none, 2.0, (3,)).shape == (0, 3)


def test_integers_of_every_dtype():
    for dtype in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split():
        info = np.iinfo(dtype)
        x = R.integers(R.key(0), 5000, int(info.min), int(info.max) + 1, dtype)
        assert x.dtype.name == dtype
        scaled = (host(x).astype(float) - info.min) / (float(info.max) + 1 - info.min)
        likely(
            stats()
            .kstest(scaled + R.uniform(R.key(1), 5000)._array / 2.0 ** (8 * info.dtype.itemsize), "uniform")
            .pvalue
        )
    with pytest.raises(errors.ValueArgumentError, match="at least 5"):
        R.integers(R.key(0), 3, 5, 2)
