"""Arguments and dtypes of NumPy's functions: quantiles, histograms, grids, polynomials, averages, sets and casts."""

import math

import numpy as np
import pytest
import tandem as td
import tandem.numpy as tnp
from tandem.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError, ValueArgumentError

X = np.array([[1.5, -2.0, 3.0], [0.0, 5.0, -6.5]])
HOLES = np.array([[1.5, np.nan, 3.0], [0.0, 5.0, -6.5]])
BYTES = np.arange(250, 256, dtype=np.uint8)
INTEGERS = np.array([3, 1, -2, 3, 2])
WEIGHTS = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.5]])
METHODS = (
    "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation "
    "interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
).split()
CALLS = {
    "percentile of a list": lambda m: m.percentile(m.asarray(X), [10, 90]),
    "percentile of integers": lambda m: m.percentile(m.asarray(X), m.asarray([10, 90]), axis=1),
    "quantile of a list": lambda m: m.quantile(m.asarray(X), [0.1, 0.9], axis=(0, 1), keepdims=True),
    "nanpercentile": lambda m: m.nanpercentile(m.asarray(HOLES), [10, 90], 0),
    "quantile out": lambda m: m.quantile(m.array(X), 0.3, 1, m.zeros(2), True),
    "weights": lambda m: m.quantile(
        m.asarray(X), [0, 0.3, 1.0], 1, weights=m.asarray(WEIGHTS), method="inverted_cdf"
    ),
    "weights of an axis": lambda m: m.percentile(
        m.asarray(X), 30, axis=1, weights=[1.0, 2, 3], method="inverted_cdf", keepdims=True
    ),
    "weights of all": lambda m: m.quantile(
        m.asarray(HOLES), [[0.2], [0.7]], weights=m.asarray(WEIGHTS), method="inverted_cdf"
    ),
    "weights and holes": lambda m: m.nanquantile(
        m.asarray(HOLES), 0.4, axis=0, weights=m.asarray(WEIGHTS) + 1, method="inverted_cdf"
    ),
    "add.reduce": lambda m: m.add.reduce(m.asarray(BYTES), dtype=m.uint8),
    "add.reduce out": lambda m: m.add.reduce(m.asarray(X), 1, m.float32, m.zeros(2, dtype="float32")),
    "multiply.reduce": lambda m: m.multiply.reduce(m.asarray(BYTES), dtype=m.uint8),
    "add.accumulate": lambda m: m.add.accumulate(m.asarray(BYTES), dtype=m.uint8),
    "multiply.accumulate": lambda m: m.multiply.accumulate(m.asarray(BYTES), 0, m.int16),
    "add.reduceat": lambda m: m.add.reduceat(m.asarray(BYTES), [0, 3], dtype=m.uint8),
    "maximum.reduce": lambda m: m.maximum.reduce(m.asarray(X), dtype=m.float32),
    "polydiv": lambda m: m.polydiv([1, 3, 2], [1, 1]),
    "polydiv rest": lambda m: m.polydiv([1.0, 3, 2, 7, 8], [1, 1, 3]),
    "polydiv short": lambda m: m.polydiv([1.0, 3.0], [2.0, 1.0, 3.0]),
    "nanargmin": lambda m: m.nanargmin(m.asarray(HOLES), axis=1),
    "nanargmax": lambda m: m.nanargmax(m.asarray(HOLES), keepdims=True),
    "reciprocal": lambda m: m.reciprocal(m.asarray(INTEGERS)),
    "reciprocal of bytes": lambda m: m.reciprocal(m.asarray(BYTES - 249)),
    "reciprocal of bools": lambda m: m.reciprocal([True]),
    "reciprocal of a number": lambda m: m.reciprocal(2),
    "reciprocal of floats": lambda m: m.reciprocal(m.asarray(X) + 0.25),
    "reciprocal out": lambda m: m.reciprocal(m.asarray(X[:1]), out=m.zeros((1, 3))),
    "reciprocal where": lambda m: m.reciprocal(m.asarray(X), where=m.asarray(X) != 0, out=m.ones((2, 3))),
    "reciprocal of integers where": lambda m: m.reciprocal(
        m.asarray(INTEGERS), where=m.asarray(INTEGERS) > 2, out=m.full(5, 7)
    ),
    "average": lambda m: m.average(m.asarray(X), 1, [1.0, 2, 3], returned=True),
    "average of all": lambda m: m.average(m.asarray(X), returned=True),
    "average of an axis": lambda m: m.average(m.asarray(X), axis=0, returned=True, keepdims=True),
    "average of weights": lambda m: m.average(m.asarray(X), weights=m.asarray(WEIGHTS), returned=True),
    "meshgrid": lambda m: m.meshgrid([1, 2], [3.0, 4, 5], 6, indexing="ij"),
    "meshgrid sparse": lambda m: m.meshgrid([1, 2], [3.0, 4, 5], sparse=True),
    "meshgrid views": lambda m: m.meshgrid(m.arange(2), m.arange(3), copy=False),
    "meshgrid sparse views": lambda m: m.meshgrid(m.arange(2), copy=False, sparse=True),
    "indices": lambda m: m.indices((2, 3)),
    "indices of floats": lambda m: m.indices((2, 3), float),
    "indices sparse": lambda m: m.indices((2, 3), dtype="int32", sparse=True),
    "indices of nothing": lambda m: m.indices(()),
    "nan_to_num": lambda m: m.nan_to_num(m.asarray(HOLES), copy=True, nan=1.0),
    "nan_to_num in place": lambda m: m.nan_to_num(m.array([1.0, m.nan, m.inf]), False, 2.0, posinf=7.0),
    "astype": lambda m: m.asarray(INTEGERS).astype(m.float64, casting="safe"),
    "astype order": lambda m: m.asarray(X).astype(int, order="F", casting="unsafe", copy=False),
    "astype function": lambda m: m.astype(m.asarray(X), m.int32, copy=False),
    "intersect1d": lambda m: m.intersect1d([3, 1, 2, 3], [7, 3, 1], return_indices=True),
    "intersect1d unique": lambda m: m.intersect1d([4, 1, 2], [2.0, 4.0], True, True),
    "intersect1d plain": lambda m: m.intersect1d([3, 1], [3]),
    "cross": lambda m: m.cross(m.asarray(X.T), m.asarray(X[::-1].T), axisa=0, axisb=0, axisc=0),
    "cross mixed": lambda m: m.cross(m.asarray(X.T), m.asarray(X), 0, 1),
    "cross axis": lambda m: m.cross(m.asarray(X.T), m.asarray(X.T) + 1, axis=0),
    "histogram of weights": lambda m: m.histogram(m.asarray(X), 3, weights=m.ones((2, 3), dtype="int32")),
    "histogram of edges": lambda m: m.histogram(m.asarray(X), [-7.0, 0, 1, 5], weights=m.ones((2, 3), int)),
    "histogram density": lambda m: m.histogram(m.asarray(X), 3, None, True, m.asarray(WEIGHTS)),
    "histogram range": lambda m: m.histogram(m.asarray(X), "sqrt", (-1.0, 3.0)),
    "edges": lambda m: m.histogram_bin_edges(m.asarray(X), "fd"),
    **{
        f"quantile {name}": lambda m, name=name: m.quantile(
            m.asarray(X), [0, 0.25, 0.3, 0.5, 0.6, 1], axis=1, method=name
        )
        for name in METHODS
    },
    **{
        f"holes {name}": lambda m, name=name: m.nanquantile(m.asarray(HOLES), [0.3, 1], method=name)
        for name in METHODS
    },
    **{
        f"histogram {rule}": lambda m, rule=rule: m.histogram(m.asarray(X), bins=rule)
        for rule in "auto fd doane scott stone rice sturges sqrt".split()
    },
}


def check(got, want):
    if isinstance(want, tuple | list):
        assert type(got) is tuple and len(got) == len(want)
        for one, two in zip(got, want):
            check(one, two)
        return
    assert type(got) is td.Tensor
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    assert got.dtype == want.dtype and got.shape == want.shape


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    want = CALLS[name](np)
    with td.config.override(hot_calls=2):
        for _ in range(4):
            check(CALLS[name](tnp), want)


def test_precision_of_fractions():
    assert td.percentile(td.asarray(np.arange(12.0)), td.asarray([10, 90])).tolist() == [1.1, 9.9]


def test_jitted_and_differentiated():
    x = tnp.asarray(X)
    for name in ("hazen", "inverted_cdf", "averaged_inverted_cdf", "closest_observation"):
        call = td.jit(lambda x, name=name: tnp.quantile(x, [0.3, 0.6], axis=1, method=name))
        check(call(x), np.quantile(X, [0.3, 0.6], axis=1, method=name))
    weighted = td.jit(lambda x, w: tnp.quantile(x, 0.3, weights=w, method="inverted_cdf"))
    check(weighted(x, tnp.asarray(WEIGHTS)), np.quantile(X, 0.3, weights=WEIGHTS, method="inverted_cdf"))
    assert td.grad(lambda x: tnp.quantile(x, 0.3, method="hazen"))(x).sum().item() == pytest.approx(1.0)
    rest = td.jit(lambda u, v: tnp.polydiv(u, v)[1])(tnp.asarray([1.0, 3, 2, 7]), tnp.asarray([1.0, 1.0]))
    check(rest, np.polydiv([1.0, 3, 2, 7], [1.0, 1.0])[1])
    position = td.jit(tnp.nanargmin)
    assert position(x).item() == 5 and position(x * math.nan).item() == -1
    counts = td.jit(lambda x: tnp.histogram(x, 3, weights=tnp.ones((2, 3), dtype=int))[0])
    check(counts(x), np.histogram(X, 3, weights=np.ones((2, 3), int))[0])


def test_memory_of_results():
    x, y = tnp.arange(3.0), tnp.arange(2.0)
    view, copied = tnp.meshgrid(x, y, copy=False)[0], tnp.meshgrid(x, y, sparse=True)[0]
    x[1], x[2] = 7.0, math.nan
    assert view[1, 1].item() == 7.0 and copied[0, 1].item() == 1.0
    assert tnp.nan_to_num(x, copy=False) is x and x.tolist() == [0.0, 7.0, 0.0]
    assert tnp.nan_to_num(x) is not x


def test_functions_and_methods_of_tandem():
    x = td.asarray(X)
    check(td.average(x, axis=0, returned=True), np.average(X, axis=0, returned=True))
    check(td.cross(x.T, x.T, axisa=0, axisb=0), np.cross(X.T, X.T, axisa=0, axisb=0))
    check(x.nan_to_num(copy=True), X)
    check(np.quantile(x, 0.3, method="weibull"), np.quantile(X, 0.3, method="weibull"))


def test_pad_with_a_function():
    def write(vector, width, axis, options):
        vector[: width[0]] = options.get("value", 10 * (axis + 1))
        if width[1]:
            vector[-width[1] :] = vector[width[0]] + 1

    for width in (1, (1, 2), ((1, 0), (0, 2)), {-1: (2, 1)}, {0: 1}):
        check(tnp.pad(tnp.asarray(X), width, write), np.pad(X, width, write))
    check(tnp.pad([1, 2], 1, write, value=7), np.pad([1, 2], 1, write, value=7))
    check(tnp.pad(tnp.asarray(X), 1, mode=write), np.pad(X, 1, mode=write))
    check(tnp.pad([1, 2], 1, constant_values=3), np.pad([1, 2], 1, constant_values=3))
    with pytest.raises(ValueArgumentError, match="pad: widths"):
        tnp.pad([1, 2], (1, 2, 3), write)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: tnp.nanargmin(x * math.nan, axis=1), ValueError, "only NaNs"),
        (lambda x: tnp.nanargmax([math.nan]), ValueError, "only NaNs"),
        (lambda x: tnp.quantile(x, 0.5, method="best"), ValueArgumentError, "method"),
        (lambda x: tnp.quantile(x, 0.5, weights=x), ValueArgumentError, "inverted_cdf"),
        (lambda x: tnp.quantile(x, 0.5, weights=[1.0], method="inverted_cdf"), ShapeError, "weights"),
        (lambda x: x.astype(int, casting="safe"), DTypeError, "casting='safe'"),
        (lambda x: tnp.meshgrid(x, sparse=True), ShapeError, "one axis"),
        (lambda x: tnp.meshgrid([1], sparse=True, indexing="yx"), ValueArgumentError, "indexing"),
        (lambda x: tnp.histogram(x, 2, weights=[1, 2]), ShapeError, "weights"),
        (lambda x: tnp.histogram(x, "best"), ValueError, "best"),
        (lambda x: tnp.histogram(x, "auto", weights=x), TypeError, "weighted data"),
        (lambda x: td.jit(lambda x: tnp.histogram(x, "auto"))(x), ConcretizationError, "auto"),
        (lambda x: td.histogram(x, "auto"), ArgumentError, "bins"),
        (lambda x: tnp.intersect1d([1], [1], return_indices=True, size=2), ArgumentError, "size"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(tnp.asarray(X))
