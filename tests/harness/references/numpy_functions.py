"""NumPy's functions whose results are lists, or whose arguments have other names: as tuples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

Array = Any


def array_split(x: Array, sections: Any, axis: int = 0) -> tuple[Array, ...]:
    return tuple(np.array_split(x, sections, axis))


def vsplit(x: Array, sections: Any) -> tuple[Array, ...]:
    return tuple(np.vsplit(x, sections))


def hsplit(x: Array, sections: Any) -> tuple[Array, ...]:
    return tuple(np.hsplit(x, sections))


def dsplit(x: Array, sections: Any) -> tuple[Array, ...]:
    return tuple(np.dsplit(x, sections))


def resize(x: Array, shape: tuple[int, ...]) -> Array:
    return np.resize(x, shape) if x.size else np.zeros(shape, x.dtype)


def _as_float(x: Any) -> Array:
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype.kind in "biu" else x


def isclose(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    return np.isclose(_as_float(x), _as_float(y), rtol, atol, equal_nan)


def allclose(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    return np.asarray(np.allclose(_as_float(x), _as_float(y), rtol, atol, equal_nan))


def float_power(x: Array, y: Any) -> Array:
    x = _as_float(x)
    return np.power(x, np.asarray(y).astype(x.dtype))


# -- reductions, without their warnings about slices of NaN ------------------------------------------------------------
def _quiet(function: Any, x: Array, axis: Any, keepdims: bool) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(function(x, axis=axis, keepdims=keepdims))


def nanmax(x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _quiet(np.nanmax, x, axis, keepdims)


def nanmin(x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _quiet(np.nanmin, x, axis, keepdims)


def nanmean(x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _quiet(np.nanmean, x, axis, keepdims)


def nanvar(x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _quiet(np.nanvar, x, axis, keepdims)


def nanstd(x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
    return _quiet(np.nanstd, x, axis, keepdims)


# -- creation, in NumPy's default dtype: the tests round -------------------------------------------------------------
def hanning(n: int, **_: Any) -> Array:
    return np.hanning(n)


def hamming(n: int, **_: Any) -> Array:
    return np.hamming(n)


def bartlett(n: int, **_: Any) -> Array:
    return np.bartlett(n)


def blackman(n: int, **_: Any) -> Array:
    return np.blackman(n)


def kaiser(n: int, beta: float, **_: Any) -> Array:
    return np.kaiser(n, beta)


def tri(n: int, m: int | None = None, k: int = 0, **_: Any) -> Array:
    return np.tri(n, m, k)


def logspace(start: float, stop: float, num: int, *, dtype: Any, **options: Any) -> Array:
    return np.logspace(start, stop, num, **options)


def geomspace(start: float, stop: float, num: int, *, dtype: Any, **options: Any) -> Array:
    return np.geomspace(start, stop, num, **options)


def vander(x: Array, n: int | None = None, increasing: bool = False) -> Array:
    return np.vander(x, n, increasing).astype(x.dtype)


def indices(dimensions: Any, *, dtype: Any) -> Array:
    return np.indices(dimensions).astype(dtype.np)


def trapezoid(y: Array, x: Array | None = None, dx: float = 1.0, axis: int = -1) -> Array:
    """NumPy's, of floats: its differences of unsigned integers wrap around."""
    return np.trapezoid(_as_float(y), None if x is None else _as_float(x), dx, axis)


# -- positions and elements that a condition selects -------------------------------------------------------------------
def _fill(rows: Array, size: int | None, fill_value: Any) -> Array:
    """The first ``size`` rows, or more rows of padding."""
    if size is None:
        return rows
    padded = np.full((size, *rows.shape[1:]), fill_value, rows.dtype)
    padded[: len(rows)] = rows[:size]
    return padded


def argwhere(x: Array, *, size: int | None = None, fill_value: int = 0) -> Array:
    return _fill(np.argwhere(x), size, fill_value)


def flatnonzero(x: Array, *, size: int | None = None, fill_value: int = 0) -> Array:
    return _fill(np.flatnonzero(x), size, fill_value)


def extract(condition: Array, x: Array, *, size: int | None = None, fill_value: Any = 0) -> Array:
    return _fill(np.extract(condition, x), size, fill_value)


def compress(
    condition: Array, x: Array, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    rows = np.compress(condition, x, axis)
    return np.moveaxis(_fill(np.moveaxis(rows, axis or 0, 0), size, fill_value), 0, axis or 0)


def select(conditions: Any, choices: Any, default: Any = 0) -> Array:
    return np.select(list(conditions), list(choices), default)


def choose(index: Array, choices: Any, mode: str = "raise") -> Array:
    return np.choose(np.asarray(index).astype(np.int64), choices, mode=mode)


# -- sorting and writing -----------------------------------------------------------------------------------------------
def lexsort(keys: Any, axis: int = -1) -> Array:
    return np.lexsort(tuple(keys), axis)


def partition(x: Array, kth: Any, axis: int | None = -1) -> Array:
    """A sorted tensor is partitioned everywhere."""
    result = np.sort(x, axis)
    np.testing.assert_array_equal(
        result.take(kth, axis or 0), np.partition(x, kth, axis).take(kth, axis or 0)
    )
    return result


def argpartition(x: Array, kth: Any, axis: int | None = -1) -> Array:
    return np.argsort(x, axis, kind="stable")


def put_along_axis(x: Array, indices: Array, values: Any, axis: int | None = -1) -> Array:
    result = x.copy()
    np.put_along_axis(result, indices, values, axis)
    return result


def fill_diagonal(x: Array, value: Any, wrap: bool = False) -> Array:
    result = np.array(x)
    np.fill_diagonal(result, value, wrap)
    return result


def ravel_multi_index(indices: Any, dims: Any, mode: str = "raise", order: str = "C") -> Array:
    wide = tuple(np.asarray(x).astype(np.int64) for x in indices)
    return np.ravel_multi_index(wide, dims, mode=mode, order=order)


def unravel_index(indices: Array, shape: Any, order: str = "C") -> tuple[Array, ...]:
    return np.unravel_index(np.asarray(indices).astype(np.int64), shape, order)


# -- histograms --------------------------------------------------------------------------------------------------------
def bincount(x: Array, weights: Array | None = None, minlength: int = 0, *, length: int) -> Array:
    wide = np.asarray(x).astype(np.int64)
    return np.bincount(wide, weights, max(length, minlength))[: max(length, minlength)]


def histogram(
    x: Array, bins: Any = None, limits: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array]:
    return np.histogram(x, 10 if bins is None else bins, limits, density, weights)


def histogram2d(x: Array, y: Array, bins: Any, *args: Any) -> tuple[Array, ...]:
    return np.histogram2d(x, y, bins, *args)


def histogram_bin_edges(x: Array, bins: Any = None, limits: Any = None) -> Array:
    return np.histogram_bin_edges(x, 10 if bins is None else bins, limits)


# -- signals -----------------------------------------------------------------------------------------------------------
def interp(x: Array, xp: Array, fp: Array, left: Any = None, right: Any = None, period: Any = None) -> Array:
    return np.interp(x, xp, fp, left, right, period)


def unwrap(x: Array, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Array:
    return np.unwrap(x.astype(float), discont, axis, period=period)


def around(x: Array, decimals: int = 0) -> Array:
    """NumPy's, of integers as floats: NumPy's own scaling of small integers wraps around."""
    return np.around(x if x.dtype.kind in "fc" else x.astype(float), decimals)


def complex_of_parts(re: Array, im: Array) -> Array:
    """PyTorch's ``complex``: ``re + 1j * im`` would have other parts where ``im`` is infinite."""
    re, im = np.broadcast_arrays(re, im)
    return np.stack((re, im), -1).view(np.result_type(re, np.complex64))[..., 0]


# -- sets and bits -----------------------------------------------------------------------------------------------------
def union1d(x: Array, y: Array, *, size: int, fill_value: Any = 0) -> Array:
    return _fill(np.union1d(x, y), size, fill_value)


def intersect1d(x: Array, y: Array, *, size: int, fill_value: Any = 0) -> Array:
    return _fill(np.intersect1d(x, y), size, fill_value)


def setdiff1d(x: Array, y: Array, *, size: int, fill_value: Any = 0) -> Array:
    return _fill(np.setdiff1d(x, y), size, fill_value)


def setxor1d(x: Array, y: Array, *, size: int, fill_value: Any = 0) -> Array:
    return _fill(np.setxor1d(x, y), size, fill_value)


def packbits(x: Array, axis: int | None = None, bitorder: Any = "big") -> Array:
    return np.packbits(x != 0, axis, bitorder)


def polydiv(x: Array, y: Array) -> tuple[Array, Array]:
    quotient, rest = np.polydiv(_as_float(x), _as_float(y))
    return quotient, np.concatenate([np.zeros(x.size - rest.size, rest.dtype), rest])
