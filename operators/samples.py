"""Sample inputs and error inputs that operators of a kind share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..registry.dtypes import ALL, DType, bool_, complex64, float32, int32
from .declare import Bad, Draw, Sample

Rows = Iterable[tuple[Any, ...]]
LAYOUTS = ("contiguous", "transposed", "reversed", "strided")
NEEDS_ELEMENTS = ("max", "min", "argmax", "argmin")
"""Folds without a neutral element."""


def extremes(dtype: DType) -> tuple[Any, ...]:
    """The values of a dtype that operators trip over."""
    if dtype.kind == "b":
        return (False, True)
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        return (int(info.min), int(info.max), 0, 1, 2, 64) + ((-1, -2) if dtype.kind == "i" else ())
    return (0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan)


def fitting(dtype: DType, rows: Rows) -> Rows:
    """The rows whose values the dtype holds."""
    if dtype.is_inexact:
        return rows
    info = np.iinfo(dtype.np) if dtype.is_integer else np.iinfo(np.int8)
    return [row for row in rows if all(type(value) is int and info.min <= value <= info.max for value in row)]


def unary_samples(dtype: DType, domain: tuple[float, float], special: tuple[Any, ...]) -> Iterable[Sample]:
    """0-d, empty, small, and every memory layout; then the extremes and the special values."""
    low, high = domain
    for shape in ((), (0,), (5,), (2, 0, 3), (33,)):
        yield Sample((Draw(shape, low, high),))
    for layout in LAYOUTS:
        yield Sample((Draw((3, 4), low, high, layout=layout),))
    values = extremes(dtype) + tuple(row[0] for row in fitting(dtype, special))
    yield Sample((Draw((len(values),), values=values),))


def binary_samples(dtype: DType, domain: tuple[float, float], special: tuple[Any, ...]) -> Iterable[Sample]:
    """Equal shapes, broadcasting both ways, 0-d, empty, layouts, a Python scalar on either side; pairs of extremes."""
    low, high = domain

    def draw(shape: tuple[int, ...], layout: str = "contiguous") -> Draw:
        return Draw(shape, low, high, layout=layout)

    for shape in ((), (0,), (5,), (33,)):
        yield Sample((draw(shape), draw(shape)))
    for one, two in (((3, 1), (4,)), ((2, 3), ()), ((1,), (2, 0))):
        yield Sample((draw(one), draw(two)))
    for layout in LAYOUTS:
        yield Sample((draw((3, 4), layout), draw((3, 4))))
        yield Sample((draw((4,)), draw((3, 4), layout)))
    weak: Any = True if dtype.kind == "b" else 2
    yield Sample((draw((4,)), weak))
    yield Sample((weak, draw((4,))))
    columns = tuple(zip(*itertools.product(extremes(dtype), repeat=2), *fitting(dtype, special)))
    yield Sample(tuple(Draw((len(column),), values=column) for column in columns))


def elementwise_errors(arity: int, dtypes: Sequence[DType]) -> Iterable[Bad]:
    """A string, nothing at all, a dtype that is not taken, shapes that do not broadcast."""
    x = Draw((2,), dtype=next(dtype for dtype in reversed(ALL) if dtype in dtypes))
    yield Bad(("x",) * arity, TypeError, "must be a Tensor")
    yield Bad((), TypeError, "needs argument")
    for dtype in (bool_, int32, float32, complex64):
        if dtype not in dtypes:
            yield Bad((Draw((2,), dtype=dtype),) * arity, TypeError, "does not take")
    if arity == 2:
        yield Bad((Draw((3,), dtype=x.dtype), x), ValueError, "do not broadcast")


# -- reductions and scans ----------------------------------------------------------------------------------------------
def reduction_samples(dtype: DType) -> Iterable[Sample]:
    """Every axis form, keepdims, layouts, 0-d, and sizes around the vector widths."""
    for layout in LAYOUTS:
        x = Draw((3, 4, 5), layout=layout, distinct=True)
        for axis in (None, 0, 1, -1, (0, 2), (1, 2), ()):
            yield Sample((x,), {"axis": axis})
        yield Sample((x,), {"axis": (0, 1), "keepdims": True})
    for shape in ((), (1,), (7,), (16,), (131,), (3, 1)):
        yield Sample((Draw(shape, distinct=True),))
    values = extremes(dtype)
    yield Sample((Draw((1, len(values)), values=values),), {"axis": 0})
    yield Sample((Draw((3, 0)),), {"axis": 0})


def folding_samples(dtype: DType) -> Iterable[Sample]:
    """Those of every reduction, and reductions of no element at all, which have a neutral element."""
    yield from reduction_samples(dtype)
    yield Sample((Draw((0,)),))
    yield Sample((Draw((2, 0)),), {"axis": 1, "keepdims": True})


def index_reduction_samples(dtype: DType) -> Iterable[Sample]:
    """Along one axis or over all, with ties and NaN."""
    for layout in LAYOUTS:
        for axis in (None, 0, -1):
            yield Sample((Draw((3, 4), layout=layout),), {"axis": axis})
    yield Sample((Draw((3, 4)),), {"axis": 1, "keepdims": True})
    yield Sample((Draw(()),))
    yield Sample((Draw((131,)),))
    values = extremes(dtype)
    yield Sample((Draw((len(values),), values=values),))


def reduction_errors() -> Iterable[Bad]:
    """An axis that is out of bounds, or no integer."""
    yield Bad((Draw((2, 3)),), IndexError, "out of bounds", {"axis": 2})
    yield Bad((Draw((2, 3)),), TypeError, "axis", {"axis": 0.5})


def fold_errors(name: str, several: bool) -> Iterable[Bad]:
    """Those of every reduction; an axis named twice; no element to choose from."""
    yield from reduction_errors()
    if several:
        yield Bad((Draw((2, 3)),), ValueError, "twice", {"axis": (0, 0)})
    if name in NEEDS_ELEMENTS:
        yield Bad((Draw((0,)),), ValueError, "no element")


def scan_samples(dtype: DType) -> Iterable[Sample]:
    """Every axis and layout, the flattened tensor, nothing, one element, and a long run."""
    for layout in LAYOUTS:
        for axis in (None, 0, 1, -1):
            yield Sample((Draw((3, 4, 2), -1.5, 1.5, layout=layout),), {"axis": axis})
    for shape in ((0,), (1,), (67,)):
        yield Sample((Draw(shape, -1.5, 1.5),), {"axis": 0})
    yield Sample((Draw(()),))
