"""Functions of PyTorch, written with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


# -- along an axis -----------------------------------------------------------------------------------------------------
def _grid(index: Array, axis: int) -> tuple[Array, ...]:
    grid = list(np.indices(index.shape, sparse=True))
    grid[axis] = index
    return tuple(grid)


def _part(src: Array, index: Array) -> Array:
    return src[tuple(map(slice, index.shape))] if np.ndim(src) else np.broadcast_to(src, index.shape)


def gather(x: Array, axis: int, index: Array) -> Array:
    return x[_grid(index, axis)]


def scatter(x: Array, axis: int, index: Array, src: Array, *, reduce: str | None = None) -> Array:
    out = x.copy()
    out[_grid(index, axis)] = _part(src, index)
    return out


def scatter_add(x: Array, axis: int, index: Array, src: Array) -> Array:
    out = x.copy()
    np.add.at(out, _grid(index, axis), _part(src, index))
    return out


_COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def scatter_reduce(
    x: Array, axis: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    out, grid, part = x.copy(), _grid(index, axis), _part(src, index)
    if not include_self:
        out[grid] = {"sum": 0, "mean": 0, "prod": 1}.get(reduce, part)
    _COMBINE[reduce].at(out, grid, part)
    if reduce == "mean":
        count = np.full(x.shape, int(include_self))
        np.add.at(count, grid, 1)
        count = np.maximum(count, 1)
        out = (out / count if out.dtype.kind not in "iu" else out // count.astype(out.dtype)).astype(x.dtype)
    return out


def index_select(x: Array, axis: int, index: Array) -> Array:
    return np.take(x, np.atleast_1d(index), axis)


def _slices(x: Array, axis: int, index: Array) -> tuple[Any, ...]:
    return (*(slice(None),) * (axis % x.ndim), np.atleast_1d(index))


def index_add(x: Array, axis: int, index: Array, source: Array, *, alpha: Any = 1) -> Array:
    out = x.copy()
    np.add.at(out, _slices(x, axis, index), source * alpha)
    return out


def index_copy(x: Array, axis: int, index: Array, source: Array) -> Array:
    out = x.copy()
    out[_slices(x, axis, index)] = source
    return out


def index_fill(x: Array, axis: int, index: Array, value: Any) -> Array:
    return index_copy(x, axis, index, value)


def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    x, mask = np.broadcast_arrays(x, mask)
    out = x.copy()
    out[mask] = source.reshape(-1)[: mask.sum()]
    return out


# -- matrix products ---------------------------------------------------------------------------------------------------
def _add(x: Array, product: Array, beta: Any, alpha: Any) -> Array:
    return product * alpha + x * beta if beta else product * alpha


def addmm(x: Array, one: Array, two: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _add(x, one @ two, beta, alpha)


addmv = baddbmm = addmm


def addr(x: Array, one: Array, two: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _add(x, np.outer(one, two), beta, alpha)


def addbmm(x: Array, one: Array, two: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _add(x, np.matmul(one, two).sum(0, dtype=one.dtype), beta, alpha)


# -- elementwise -------------------------------------------------------------------------------------------------------
def lerp(x: Array, end: Array, weight: Any) -> Array:
    return x + np.asarray(weight).astype(x.dtype) * (end - x)


def addcmul(x: Array, one: Array, two: Array, *, value: Any = 1) -> Array:
    return x + one * value * two


def addcdiv(x: Array, one: Array, two: Array, *, value: Any = 1) -> Array:
    return x + one * value / two


def rsub(x: Array, other: Any, *, alpha: Any = 1) -> Array:
    return other - x * alpha


def frac(x: Array) -> Array:
    return x - np.trunc(x)


# -- parts -------------------------------------------------------------------------------------------------------------
def chunk(x: Array, chunks: int, axis: int = 0) -> tuple[Array, ...]:
    step = -(-x.shape[axis] // chunks)
    return tuple(np.split(x, range(step, x.shape[axis], step), axis))


def split_with_sizes(x: Array, sizes: Any, axis: int = 0) -> tuple[Array, ...]:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def narrow(x: Array, axis: int, start: int, length: int) -> Array:
    start += x.shape[axis] * (start < 0)
    return np.take(x, np.arange(start, start + length), axis)


def unflatten(x: Array, axis: int, sizes: Any) -> Array:
    axis %= x.ndim
    sizes = np.empty(x.shape[axis]).reshape(sizes).shape
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def unfold(x: Array, axis: int, size: int, step: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return windows[(*(slice(None),) * (axis % x.ndim), slice(None, None, step))]


def block_diag(tensors: Any) -> Array:
    blocks = [np.atleast_2d(x) for x in tensors]
    out = np.zeros(np.sum([x.shape for x in blocks], 0), np.result_type(*blocks))
    row = column = 0
    for x in blocks:
        out[row : row + x.shape[0], column : column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return out


def logcumsumexp(x: Array, axis: Any = None, *, dtype: Any = None) -> Array:
    wide = (x.reshape(-1) if axis is None else x).astype(np.float64)
    return np.logaddexp.accumulate(wide, 0 if axis is None else axis).astype(dtype or x.dtype)


def div_mode(x: Array, y: Any, *, rounding_mode: Any) -> Array:
    if rounding_mode == "floor":
        return np.floor_divide(x, y)
    quotient = np.true_divide(x.astype(np.float64), y)
    return np.trunc(quotient).astype(np.result_type(x, y)) if rounding_mode else np.true_divide(x, y)
