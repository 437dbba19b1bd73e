"""Sample inputs and error inputs of extrema and order statistics with indices."""

from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import int64

TIES = TensorSample((3, 5), values=(1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1))


def _lines(dtype):
    """(tensor, axis): each memory layout, ties, and NaN."""
    for layout in LAYOUTS:
        yield TensorSample((3, 4), layout=layout, distinct=True), 1
    yield TensorSample((3, 4, 2), distinct=True), 0
    yield TensorSample((2, 4, 3), distinct=True), -2
    yield TIES, 1
    yield TensorSample((1,)), 0
    if dtype.is_inexact:
        nan = float("nan")
        yield TensorSample((3, 3), values=(2.0, nan, 1.0, nan, 0.5, nan, 1.0, -1.0, 3.0)), 1


def dim_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, axis))
        yield SampleInput((x, axis, True))
    yield SampleInput((TensorSample((0, 2)), 1), {"keepdim": True})


def scan_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, axis))
    yield SampleInput((TensorSample((0, 2)), 0))
    yield SampleInput((TensorSample((67,), distinct=True), 0))


def sort_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, axis))
        yield SampleInput((x, axis, True), {"stable": True})
    yield SampleInput((TensorSample((0, 2)), 0))


def kth_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, 1, axis))
    yield SampleInput((TensorSample((3, 4), distinct=True), 3), {"keepdims": True})
    yield SampleInput((TIES, 2))


def kth_errors():
    yield ErrorInput((TensorSample((3,)), 0), ValueError, "between 1 and 3")
    yield ErrorInput((TensorSample((3,)), 4), ValueError, "between 1 and 3")
    yield ErrorInput((TensorSample((3,)), 1, 1), IndexError, "out of bounds")


def topk_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, 1, axis))
        yield SampleInput((x, 1, axis), {"largest": False})
    yield SampleInput((TensorSample((3, 4), distinct=True), 3), {"sorted": False})
    yield SampleInput((TIES, 4))
    yield SampleInput((TensorSample((3, 4)), 0))


def argtopk_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, 1), {"axis": axis})
        yield SampleInput((x, 1), {"axis": axis, "descending": False})
    yield SampleInput((TIES, 4))
    yield SampleInput((TensorSample((3, 4)), 0))


def argtopk_errors():
    yield ErrorInput((TensorSample((3,)), -1), ValueError, "between 0 and 3")
    yield ErrorInput((TensorSample((3,)), 4), ValueError, "between 0 and 3")
    yield ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds", {"axis": 1})


def _ranks(*values):
    return TensorSample((len(values),), values=values, dtype=int64)


def argselect_samples(dtype):
    for x, axis in _lines(dtype):
        if axis in (-1, len(x.shape) - 1):
            yield SampleInput((x, _ranks(0, 2, -9)))
    yield SampleInput((TIES, _ranks(5, 4, 3, 2, 1, 0)))
    yield SampleInput((TensorSample((3, 4)), TensorSample((0,), dtype=int64)))
    yield SampleInput((TensorSample((2, 70)), _ranks(35, 69)))


def argselect_errors():
    yield ErrorInput((TensorSample((3,)), TensorSample((1,))), TypeError, "int64")
    yield ErrorInput((TensorSample(()), _ranks(0)), ValueError, "rows")
    yield ErrorInput((TensorSample((2, 0)), _ranks(0)), ValueError, "no elements")
    yield ErrorInput((TensorSample((3,)), TensorSample((1, 1), values=(0,), dtype=int64)), ValueError, "rows")


def topk_errors():
    yield ErrorInput((TensorSample((3,)), -1), ValueError, "between 0 and 3")
    yield ErrorInput((TensorSample((3,)), 4), ValueError, "between 0 and 3")
    yield ErrorInput((TensorSample((3,)), 1, 1), IndexError, "out of bounds")


def mode_samples(dtype):
    for x, axis in _lines(dtype):
        yield SampleInput((x, axis))
    yield SampleInput((TIES, 0), {"keepdims": True})
    yield SampleInput((TensorSample((7,), values=(3, 1, 1, 3, 2, 0, 0)),))


def mode_errors():
    yield ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((2, 0)),), ValueError, "no elements")


def median_samples(dtype):
    yield from list(dim_samples(dtype))[:-1]
    if dtype.is_inexact:
        nan = float("nan")
        yield SampleInput((TensorSample((2, 4), values=(nan, 1, nan, 2, nan, nan, nan, nan)), 1))


def median_errors():
    yield ErrorInput((TensorSample((3,)), 1), IndexError, "out of bounds")
    yield ErrorInput((TensorSample((2, 0)), 1), ValueError, "no elements")


def spread_samples(dtype):
    """Elements that differ: the square root has no derivative at 0."""
    for layout in LAYOUTS:
        x = TensorSample((3, 4, 5), layout=layout, distinct=True)
        for axes in (None, 0, (0, 2)):
            yield SampleInput((x, axes))
    yield SampleInput((x, 1, False))
    yield SampleInput((x, 1, True, True))
    yield SampleInput((x,), {"correction": 0.5, "keepdim": True})


def spread_errors():
    x = TensorSample((2, 3))
    yield ErrorInput((x, 2), IndexError, "out of bounds")
    yield ErrorInput((x, 0, True), TypeError, "not both", {"correction": 1})
