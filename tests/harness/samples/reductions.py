"""Sample inputs and error inputs of the operators of reductions."""

import numpy as np
from samples.kinds import reduction_samples
from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import complex128, float32, float64, int32, int64, uint8


def sorting_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout, distinct=True),))
    yield SampleInput((TensorSample((3, 4), distinct=True),), {"axis": 0, "descending": True})
    yield SampleInput((TensorSample((0, 2)),))
    yield SampleInput((TensorSample((9,), values=(1, 0, 1, 0, 1, 1, 0, 0, 1)),), {"descending": True})
    yield SampleInput(
        (TensorSample((5,), values=(2, float("nan"), 1, float("inf"), 0)),)
        if dtype.is_inexact
        else (TensorSample((1,)),)
    )


def sorting_errors():
    yield ErrorInput((TensorSample(()),), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)),), IndexError, "out of bounds", {"axis": 1})


def uneven_samples(dtype):
    """The samples of `var` whose elements differ: the square root has no derivative at 0."""
    for sample in reduction_samples(dtype):
        if sample.kwargs.get("axis") != () and sample.args[0].shape not in ((), (1,)):
            yield sample


def segment_samples(dtype):
    ids = TensorSample((5,), values=(2, 0, 2, -1, 1), dtype=int64)
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((5, 2), layout=layout), ids, 3))
    yield SampleInput((TensorSample((5,)), ids._replace(values=(0, 0, 1, 200, 2), dtype=uint8), 3))
    yield SampleInput((TensorSample((5, 2, 3)), ids, 3), {"indices_are_sorted": False})
    sorted_ids = TensorSample((3,), values=(0, 1, 2), dtype=int32)
    yield SampleInput((TensorSample((3,)), sorted_ids, 3, True), {"unique_indices": True})
    few = TensorSample((4,), values=(0, 3, 0, 9), dtype=int64)
    yield SampleInput((TensorSample((4,), values=(3, 1, 2, 1)), few, 5))  # with empty segments
    yield SampleInput((TensorSample((0, 2)), TensorSample((0,), dtype=int64), 3))
    yield SampleInput((TensorSample((5, 0)), ids, 2))
    yield SampleInput((TensorSample((5,)), ids, 0))


def segment_errors():
    rows, ids = TensorSample((3,)), TensorSample((3,), values=(0, 1, 0), dtype=int64)
    yield ErrorInput((rows, TensorSample((3,)), 2), IndexError, "integers, not float32")
    yield ErrorInput(
        (rows, TensorSample((2,), values=(0, 1), dtype=int64), 2), ValueError, "one number for each row"
    )
    yield ErrorInput(
        (TensorSample(()), TensorSample((), values=(0,), dtype=int64), 2), ValueError, "one number"
    )
    yield ErrorInput((rows, ids, -1), ValueError, "must not be negative")


def nan_samples(dtype):
    """Samples without infinities; some elements, or all along an axis, are NaN."""
    for layout in LAYOUTS:
        x = TensorSample((3, 4, 5), layout=layout, distinct=True)
        for axis in (None, 1, (0, 2)):
            yield SampleInput((x,), {"axis": axis})
        yield SampleInput((x,), {"axis": (0, 1), "keepdims": True})
    yield SampleInput((TensorSample((7,), distinct=True),))
    if dtype.is_inexact:
        nan = float("nan")
        x = TensorSample((3, 3), values=(1.0, nan, nan, 3.0, 2.5, nan, 2.0, nan, nan))
        for axis in (0, 1, None):
            yield SampleInput((x,), {"axis": axis})


def nan_scan_samples(dtype):
    for axis in (None, 0, -1):
        yield SampleInput((TensorSample((3, 4), -1.5, 1.5),), {"axis": axis})
    if dtype.is_inexact:
        x = TensorSample((2, 3), values=(1.0, float("nan"), 2.0, float("nan"), 0.5, 1.5))
        for axis in (None, 0, 1):
            yield SampleInput((x,), {"axis": axis})


# -- quantiles and covariances -----------------------------------------------------------------------------------------
def median_samples(dtype):
    for layout in LAYOUTS:
        x = TensorSample((3, 4), layout=layout, distinct=True)
        for axis in (None, 0, 1, (0, 1)):
            yield SampleInput((x,), {"axis": axis})
    yield SampleInput((TensorSample((2, 3, 4), distinct=True),), {"axis": (0, 2), "keepdims": True})
    yield SampleInput((TensorSample((1,)),))
    if dtype.is_inexact:
        x = TensorSample((2, 3), values=(1.0, float("nan"), 2.0, 3.0, 0.5, 1.5))
        yield SampleInput((x,), {"axis": 1})


def quantile_samples(dtype, scale):
    """Quantiles between and at elements, each method, and NaN; ``scale`` is 100 for percentiles."""
    q = TensorSample((2,), values=(0.3 * scale, 0.8 * scale), dtype=float64)
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        x = TensorSample((3, 4), distinct=True)
        yield SampleInput((x, q, 1), {"method": method})
        yield SampleInput((x, 0.65 * scale), {"method": method})
    for sample in median_samples(dtype):
        axis, keepdims = sample.kwargs.get("axis"), sample.kwargs.get("keepdims", False)
        yield SampleInput((*sample.args, 0.4 * scale, axis), {"keepdims": keepdims})
    matrix = TensorSample((2, 2), values=tuple(scale * one for one in (0.0, 0.2, 0.45, 1.0)), dtype=float64)
    if dtype.is_inexact:
        yield SampleInput((TensorSample((4, 3), values=tuple(range(12)), distinct=True), matrix, 0))


def quantile_errors(limit):
    yield ErrorInput((TensorSample((3,)), -0.5), ValueError, f"between 0 and {limit}")
    yield ErrorInput((TensorSample((3,)), 0.5), ValueError, "method", {"method": "best"})
    yield ErrorInput((TensorSample((0,)), 0.5), ValueError, "no elements")
    yield ErrorInput((TensorSample((3,)), 0.5, 1), IndexError, "out of bounds")


def covariance_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 5), layout=layout),))
    yield SampleInput((TensorSample((5,)),))
    yield SampleInput((TensorSample((5,)), TensorSample((5,))))
    yield SampleInput((TensorSample((5, 2)), TensorSample((5, 2))), {"rowvar": False})


def weighted_covariance_samples(dtype):
    yield from covariance_samples(dtype)
    x = TensorSample((2, 5))
    yield SampleInput((x,), {"bias": True})
    yield SampleInput((x,), {"ddof": 2})
    yield SampleInput((x,), {"fweights": TensorSample((5,), values=(1, 2, 1, 3, 1), dtype=int64)})
    weights = TensorSample((5,), values=(0.5, 1.0, 0.25, 2.0, 1.0), dtype=float32)
    yield SampleInput((x,), {"aweights": weights})


def average_samples(dtype):
    x = TensorSample((3, 4))
    weights = TensorSample((4,), values=(1, 2, 1, 3), dtype=dtype)
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), 1, weights))
    for axis in (None, 0, (0, 1)):
        yield SampleInput((x, axis))
    yield SampleInput((x, None, TensorSample((3, 4), 1, 3)))
    yield SampleInput((x, 1, TensorSample((3, 4), 1, 3)), {"keepdims": True})


def cumulative_samples(dtype):
    """Axes, memory layouts, an initial value, and a dtype for the result."""
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), 0.5, 2, layout=layout),), {"axis": 1})
    yield SampleInput((TensorSample((5,), 0.5, 2),), {"include_initial": True})
    yield SampleInput((TensorSample((2, 3), 0.5, 2),), {"axis": -2, "include_initial": True})
    yield SampleInput((TensorSample((0, 3)),), {"axis": 0, "include_initial": True})
    wide = complex128 if dtype.kind == "c" else float64
    yield SampleInput((TensorSample((4,), 0.5, 2),), {"dtype": wide})


def cumulative_errors():
    yield ErrorInput((TensorSample((2, 3)),), TypeError, "needs an axis")
    yield ErrorInput((TensorSample(()),), TypeError, "needs an axis")
    yield ErrorInput((TensorSample((3,)),), IndexError, "out of bounds", {"axis": 1})


def search_samples(dtype):
    """Both sides, values outside the range, ties, several axes of values, and a sorter."""
    ascending = np.asarray((0, 0, 0, 1, 1, 1) if dtype.kind == "b" else (0, 1, 1, 1, 5, 7)).astype(dtype.np)
    for side in ("left", "right"):
        yield SampleInput((ascending, TensorSample((3, 4), 0, 9)), {"side": side})
        yield SampleInput((ascending, TensorSample((), values=(1,)), side))
    yield SampleInput((TensorSample((0,)), TensorSample((2,))))
    shuffled, order = np.asarray((1, 0, 1)).astype(dtype.np), np.asarray((1, 2, 0))
    yield SampleInput((shuffled, TensorSample((2, 0)), "left", order))
    yield SampleInput((shuffled, TensorSample((2,), values=(0, 1)), "right", order))
    if dtype.is_inexact:
        nan = float("nan")
        with_nan = np.asarray((-1, 2, nan, nan)).astype(dtype.np)
        for side in ("left", "right"):
            yield SampleInput((with_nan, TensorSample((4,), values=(nan, 0, float("inf"), 2)), side))


def search_errors():
    yield ErrorInput((TensorSample((2, 3)), TensorSample((2,))), ValueError, "one axis")
    yield ErrorInput((TensorSample((3,)), TensorSample((2,))), ValueError, "side", {"side": "middle"})
    yield ErrorInput(
        (TensorSample((3,)), TensorSample((2,))),
        ValueError,
        "sorter",
        {"sorter": TensorSample((2,), dtype=int64)},
    )
    yield ErrorInput(
        (TensorSample((3,)), TensorSample((2,))), TypeError, "sorter", {"sorter": TensorSample((3,))}
    )


def isin_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((2, 2))))
    values = (0, 1, 1, 0, 1) if dtype.kind == "b" else (2, 0, 1, 3, 1)
    yield SampleInput(
        (TensorSample((5,), values=values), TensorSample((2,), values=(1, 0))), {"invert": True}
    )
    yield SampleInput((TensorSample((3,)), TensorSample((0,))))
    yield SampleInput((TensorSample((0,)), TensorSample((2,))))
    yield SampleInput((TensorSample((3,), values=(0, 1, 1)), 1))
    if dtype.is_inexact:
        nan = float("nan")
        yield SampleInput((TensorSample((2,), values=(nan, 1)), TensorSample((3,), values=(nan, nan, 1))))


def unique_samples(dtype):
    """Ties, memory layouts, no elements, NaN; more and fewer values than there are."""
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout),), {"size": 5})
    yield SampleInput((TensorSample((2, 2), distinct=True),), {"size": 6})
    yield SampleInput((TensorSample((7,), values=(1, 0, 1, 1, 0, 0, 1)),))
    yield SampleInput((TensorSample((0, 2)),), {"size": 0})
    yield SampleInput((TensorSample((), values=(1,)),))
    if dtype.is_inexact:
        nan = float("nan")
        yield SampleInput((TensorSample((6,), values=(nan, 1, nan, -1, 1, float("inf"))),))


def unique_errors():
    yield ErrorInput((TensorSample((3,)),), ValueError, "negative", {"size": -1})
    yield ErrorInput((TensorSample((0,)),), ValueError, "no elements", {"size": 1})


# -- partitions --------------------------------------------------------------------------------------------------------
def lexsort_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput(((TensorSample((3, 4), layout=layout), TensorSample((3, 4), -1.0, 1.0)),))
    yield SampleInput(((TensorSample((3, 4)), TensorSample((3, 4))), 0))
    yield SampleInput(((TensorSample((5,)),),))
    yield SampleInput(((TensorSample((6,)), TensorSample((6,), 0.0, 1.0, dtype=int64)),))


def lexsort_errors():
    yield ErrorInput(((),), ValueError, "at least one")
    yield ErrorInput(((TensorSample((3,)), TensorSample((2,))),), ValueError, "differ")
    yield ErrorInput(((TensorSample((3,)),), 1), IndexError, "out of bounds")


def partition_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout, distinct=True), 1))
    yield SampleInput((TensorSample((3, 4), distinct=True), (0, -1), 0))
    yield SampleInput((TensorSample((3, 2), distinct=True), 4, None))


def partition_errors():
    yield ErrorInput((TensorSample((3,)), 3), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((3,)), 0, 1), IndexError, "out of bounds")


def sort_complex_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout, distinct=True),))
    yield SampleInput((TensorSample((5,)),))


def sort_complex_errors():
    yield ErrorInput((TensorSample(()),), IndexError, "out of bounds")


# -- histograms --------------------------------------------------------------------------------------------------------
def bincount_samples(dtype):
    values = TensorSample((6,), values=(1, 3, 1, 0, 5, 3))
    yield SampleInput((values,), {"length": 4})
    yield SampleInput((values,), {"length": 8})
    yield SampleInput((values, TensorSample((6,), dtype=float32)), {"length": 6})
    yield SampleInput((values, TensorSample((6,)), 7), {"length": 2})
    yield SampleInput((TensorSample((0,)),), {"minlength": 3, "length": 0})


def bincount_errors():
    values = TensorSample((3,), values=(1, 0, 1), dtype=int64)
    yield ErrorInput((TensorSample((3,), dtype=float32),), TypeError, "integers")
    yield ErrorInput((TensorSample((2, 2), dtype=int64),), ValueError, "one axis")
    yield ErrorInput((values, TensorSample((2,))), ValueError, "weights")
    yield ErrorInput((values, None, -1), ValueError, "not negative")


def digitize_samples(dtype):
    edges = TensorSample((4,), values=(0, 1, 1, 2))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), edges))
    yield SampleInput((TensorSample((5,)), TensorSample((3,), values=(2, 1, 0)), True))
    yield SampleInput((TensorSample((5,)), TensorSample((3,), values=(2, 1, 0))))
    yield SampleInput((TensorSample(()), edges, True))


def digitize_errors():
    yield ErrorInput((TensorSample((3,)), TensorSample((2, 2))), ValueError, "one axis")


def bin_edge_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout, distinct=True), 5))
    yield SampleInput((TensorSample((3,)), 10, (-1.0, 2.0)))
    yield SampleInput((TensorSample((0,)), 3))
    yield SampleInput((TensorSample((3,), values=(2, 2, 2)), 3))
    yield SampleInput((TensorSample((3,)), TensorSample((3,), values=(0, 1, 3))))


def histogram_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), 7, (-3.5, 3.5)))
    yield SampleInput((TensorSample((9,)), 3, (-2.0, 2.5), True))
    yield SampleInput((TensorSample((9,)), TensorSample((4,), values=(0, 1, 2, 3))))
    yield SampleInput((TensorSample((9,)), 3, (-2.0, 2.5), None, TensorSample((9,))))
    yield SampleInput((TensorSample((9,), values=(0, 8, 1, 3, 5, 5, 2, 8, 7)), 8))


def histogram_errors():
    yield ErrorInput((TensorSample((3,)), 0), ValueError, "positive")
    yield ErrorInput((TensorSample((3,)), 2, (2.0, 1.0)), ValueError, "range")
    yield ErrorInput((TensorSample((3,)), TensorSample((2, 2))), ValueError, "one axis")


def histogram2d_samples(dtype):
    x, y, ranges = TensorSample((9,)), TensorSample((9,), -1.0, 3.0), ((-3.5, 3.5), (-1.5, 3.5))
    yield SampleInput((x, y, 5, ranges))
    yield SampleInput((x, y, (7, 5), ranges, True))
    yield SampleInput((x, y, (7, 5), ranges, None, TensorSample((9,), dtype=float32)))


def histogram2d_errors():
    x = TensorSample((3,))
    yield ErrorInput((x, TensorSample((2,))), ValueError, "one axis")
    yield ErrorInput((x, x, (1, 2, 3)), TypeError, "pair")
    yield ErrorInput((x, x, 0), ValueError, "positive")


# -- signals -----------------------------------------------------------------------------------------------------------
def interp_samples(dtype):
    xp, fp = TensorSample((4,), values=(0, 1, 2, 3), dtype=float64), TensorSample((4,), dtype=float64)
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), xp, fp))
    yield SampleInput((TensorSample((6,)), xp, fp, 7.0, -7.0))
    yield SampleInput((TensorSample((6,), -9.0, 9.0), xp, fp), {"period": 5.0})
    yield SampleInput((TensorSample((3,)), TensorSample((1,)), TensorSample((1,))))


def interp_errors():
    x = TensorSample((3,))
    yield ErrorInput((x, TensorSample((2, 2)), TensorSample((2, 2))), ValueError, "one axis")
    yield ErrorInput((x, x, TensorSample((2,))), ValueError, "a value for each")
    yield ErrorInput((x, x, x), ValueError, "period", {"period": 0})


def convolve_samples(dtype):
    for mode in ("full", "same", "valid"):
        yield SampleInput((TensorSample((5,)), TensorSample((3,)), mode))
        yield SampleInput((TensorSample((2,)), TensorSample((5,), layout="reversed"), mode))
    yield SampleInput((TensorSample((4,)), TensorSample((1,))))


def convolve_errors():
    x = TensorSample((3,))
    yield ErrorInput((x, TensorSample((0,))), ValueError, "one axis")
    yield ErrorInput((x, TensorSample((2, 2))), ValueError, "one axis")
    yield ErrorInput((x, x, "half"), ValueError, "mode")


def unwrap_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), -8.0, 8.0, layout=layout),))
    yield SampleInput((TensorSample((5, 3), -8.0, 8.0), 4.5, 0), {"period": 5.0})
    yield SampleInput((TensorSample((0,)),))


def unwrap_errors():
    yield ErrorInput((TensorSample((3,)), None, 1), IndexError, "out of bounds")


# -- set operations ----------------------------------------------------------------------------------------------------
def set_samples(dtype):
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), layout=layout), TensorSample((5,))), {"size": 6})
    yield SampleInput(
        (TensorSample((5,), values=(1, 3, 1, 0, 2)), TensorSample((3,), values=(3, 0, 5))),
        {"size": 3, "fill_value": 1},
    )
    yield SampleInput((TensorSample((0,)), TensorSample((2,))), {"size": 1})


def set_errors():
    yield ErrorInput((TensorSample((3,)), TensorSample((3,))), ValueError, "negative", {"size": -1})
