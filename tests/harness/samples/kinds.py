"""Sample inputs and error inputs that operators of a kind share."""

import itertools
import math

import numpy as np
from tandem.operators.declare.declaration import LAYOUTS, ErrorInput, SampleInput, TensorSample
from tandem.registry.dtypes import ALL, bool_, complex64, float32, int32


def extreme_values(dtype):
    """The edge values of a dtype: its limits, zeros, infinities and NaN."""
    if dtype.kind == "b":
        return (False, True)
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        return (int(info.min), int(info.max), 0, 1, 2, 64) + ((-1, -2) if dtype.kind == "i" else ())
    return (0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan)


def keep_representable(dtype, rows):
    """The rows whose values the dtype can represent."""
    if dtype.is_inexact:
        return rows
    info = np.iinfo(dtype.np) if dtype.is_integer else np.iinfo(np.int8)
    return [row for row in rows if all(type(value) is int and info.min <= value <= info.max for value in row)]


def unary_samples(dtype, domain, special):
    """0-d, empty and small tensors, every memory layout, the edge values and the special values."""
    low, high = domain
    for shape in ((), (0,), (5,), (2, 0, 3), (33,)):
        yield SampleInput((TensorSample(shape, low, high),))
    for layout in LAYOUTS:
        yield SampleInput((TensorSample((3, 4), low, high, layout=layout),))
    values = extreme_values(dtype) + tuple(row[0] for row in keep_representable(dtype, special))
    yield SampleInput((TensorSample((len(values),), values=values),))


def binary_samples(dtype, domain, special):
    """Equal shapes, broadcasting both ways, 0-d, empty, layouts, a Python scalar on either side."""
    low, high = domain

    def draw(shape, layout="contiguous"):
        return TensorSample(shape, low, high, layout=layout)

    for shape in ((), (0,), (5,), (33,)):
        yield SampleInput((draw(shape), draw(shape)))
    for one, two in (((3, 1), (4,)), ((2, 3), ()), ((1,), (2, 0))):
        yield SampleInput((draw(one), draw(two)))
    for layout in LAYOUTS:
        yield SampleInput((draw((3, 4), layout), draw((3, 4))))
        yield SampleInput((draw((4,)), draw((3, 4), layout)))
    weak = True if dtype.kind == "b" else 2
    yield SampleInput((draw((4,)), weak))
    yield SampleInput((weak, draw((4,))))
    columns = tuple(
        zip(*itertools.product(extreme_values(dtype), repeat=2), *keep_representable(dtype, special))
    )
    yield SampleInput(tuple(TensorSample((len(column),), values=column) for column in columns))


def elementwise_errors(arity, dtypes):
    """A string, no arguments, unsupported dtypes, shapes that do not broadcast."""
    x = TensorSample((2,), dtype=next(dtype for dtype in reversed(ALL) if dtype in dtypes))
    yield ErrorInput(("x",) * arity, TypeError, "must be a Tensor")
    yield ErrorInput((), TypeError, "needs argument")
    for dtype in (bool_, int32, float32, complex64):
        if dtype not in dtypes:
            yield ErrorInput((TensorSample((2,), dtype=dtype),) * arity, TypeError, "does not take")
    if arity == 2:
        yield ErrorInput((TensorSample((3,), dtype=x.dtype), x), ValueError, "do not broadcast")


def reduction_samples(dtype):
    """Each form of ``axis``, keepdims, layouts, 0-d, and sizes around the vector widths."""
    for layout in LAYOUTS:
        x = TensorSample((3, 4, 5), layout=layout, distinct=True)
        for axis in (None, 0, 1, -1, (0, 2), (1, 2), ()):
            yield SampleInput((x,), {"axis": axis})
        yield SampleInput((x,), {"axis": (0, 1), "keepdims": True})
    for shape in ((), (1,), (7,), (16,), (131,), (3, 1)):
        yield SampleInput((TensorSample(shape, distinct=True),))
    values = extreme_values(dtype)
    yield SampleInput((TensorSample((1, len(values)), values=values),), {"axis": 0})
    yield SampleInput((TensorSample((3, 0)),), {"axis": 0})


def fold_samples(dtype):
    """The samples of every reduction, and empty reductions, whose result is the identity element."""
    yield from reduction_samples(dtype)
    yield SampleInput((TensorSample((0,)),))
    yield SampleInput((TensorSample((2, 0)),), {"axis": 1, "keepdims": True})


def index_reduction_samples(dtype):
    """Along one axis or over all, with ties and NaN."""
    for layout in LAYOUTS:
        for axis in (None, 0, -1):
            yield SampleInput((TensorSample((3, 4), layout=layout),), {"axis": axis})
    yield SampleInput((TensorSample((3, 4)),), {"axis": 1, "keepdims": True})
    yield SampleInput((TensorSample(()),))
    yield SampleInput((TensorSample((131,)),))
    values = extreme_values(dtype)
    yield SampleInput((TensorSample((len(values),), values=values),))


def reduction_errors():
    """An axis that is out of bounds, or not an integer."""
    yield ErrorInput((TensorSample((2, 3)),), IndexError, "out of bounds", {"axis": 2})
    yield ErrorInput((TensorSample((2, 3)),), TypeError, "axis", {"axis": 0.5})


def fold_errors(needs_elements, several):
    """The errors of every reduction; an axis that occurs twice; no elements to reduce."""
    yield from reduction_errors()
    if several:
        yield ErrorInput((TensorSample((2, 3)),), ValueError, "twice", {"axis": (0, 0)})
    if needs_elements:
        yield ErrorInput((TensorSample((0,)),), ValueError, "no elements")


def scan_samples(dtype):
    """Every axis and layout, the flattened tensor, no element, one element, and a long axis."""
    for layout in LAYOUTS:
        for axis in (None, 0, 1, -1):
            yield SampleInput((TensorSample((3, 4, 2), -1.5, 1.5, layout=layout),), {"axis": axis})
    for shape in ((0,), (1,), (67,)):
        yield SampleInput((TensorSample(shape, -1.5, 1.5),), {"axis": 0})
    yield SampleInput((TensorSample(()),))
