"""References for extrema and order statistics with indices, element by element along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any


def _along(choose: Callable[[Array], Any], x: Array, axis: int, keepdims: bool) -> tuple[Array, Array]:
    """The elements at the index that ``choose`` returns for each line along an axis, and the indices."""
    moved = np.moveaxis(x, axis, -1)
    lines = moved.reshape(-1, moved.shape[-1])
    index = np.array([choose(line) for line in lines], np.int64).reshape(moved.shape[:-1])
    values = np.take_along_axis(moved, index[..., None], -1)[..., 0]
    return (np.expand_dims(values, axis), np.expand_dims(index, axis)) if keepdims else (values, index)


def _scan(is_better: Callable[[Any, Any], bool], x: Array, axis: int) -> tuple[Array, Array]:
    moved = np.moveaxis(x, axis, -1)
    index = np.zeros(moved.shape, np.int64)
    for at in np.ndindex(moved.shape):
        best = index[(*at[:-1], at[-1] - 1)] if at[-1] else 0
        new, old = moved[at], moved[(*at[:-1], best)]
        index[at] = at[-1] if is_better(new, old) or new != new else best
    values = np.take_along_axis(moved, index, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(index, -1, axis)


def _order(line: Array, descending: bool = False) -> Array:
    """Positions in sorted order; equal elements, and NaNs, keep their order."""
    keys = [(bool(v != v), 0 if v != v else v) for v in line]
    rank = {key: number for number, key in enumerate(sorted({*keys}))}
    numbers = np.array([rank[key] for key in keys], np.int64)
    return np.argsort(-numbers if descending else numbers, kind="stable")


def max_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return _along(np.argmax, x, dim, keepdim)


def min_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    return _along(np.argmin, x, dim, keepdim)


def aminmax(x: Array, *, axis: int | None = None, keepdims: bool = False) -> tuple[Array, Array]:
    return np.min(x, axis, keepdims=keepdims), np.max(x, axis, keepdims=keepdims)


def running_max(x: Array, axis: int | None = None) -> Array:
    return np.maximum.accumulate(x.ravel() if axis is None else x, axis or 0)


def running_min(x: Array, axis: int | None = None) -> Array:
    return np.minimum.accumulate(x.ravel() if axis is None else x, axis or 0)


def cummax(x: Array, axis: int) -> tuple[Array, Array]:
    return _scan(lambda new, old: new >= old, x, axis)


def cummin(x: Array, axis: int) -> tuple[Array, Array]:
    return _scan(lambda new, old: new <= old, x, axis)


def running_argmax(x: Array, axis: int) -> Array:
    return cummax(x, axis)[1]


def running_argmin(x: Array, axis: int) -> Array:
    return cummin(x, axis)[1]


def sort_dim(
    x: Array, dim: int, descending: bool = False, *, stable: bool | None = None
) -> tuple[Array, Array]:
    index = np.apply_along_axis(_order, dim, x, descending) if x.size else np.zeros(x.shape, np.int64)
    return np.take_along_axis(x, index, dim), index


def kthvalue(x: Array, k: int, axis: int = -1, *, keepdims: bool = False) -> tuple[Array, Array]:
    return _along(lambda line: _order(line)[k - 1], x, axis, keepdims)


def topk(
    x: Array, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    values, index = sort_dim(x, axis, largest)
    return tuple(np.take(part, np.arange(k), axis) for part in (values, index))


def mode(x: Array, axis: int = -1, *, keepdims: bool = False) -> tuple[Array, Array]:
    def choose(line: Array) -> int:
        counts = [int(np.sum(line == v)) or 1 for v in line]
        most = [at for at, count in enumerate(counts) if count == max(counts)]
        first = most[_order(line[most])[0]]
        return max([at for at in most if line[at] == line[first]], default=first)

    return _along(choose, x, axis, keepdims)


def median_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    def choose(line: Array) -> int:
        nans = np.flatnonzero(line != line)
        return int(nans[0] if nans.size else _order(line)[(line.size - 1) // 2])

    return _along(choose, x, dim, keepdim)


def nanmedian_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    def choose(line: Array) -> int:
        return int(_order(line)[max(int(np.sum(line == line)) - 1, 0) // 2])

    return _along(choose, x, dim, keepdim)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    return correction if correction is not None else 0.0 if unbiased is False else 1.0


def var_dim(
    x: Array,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    return np.var(x, dim, ddof=_correction(unbiased, correction), keepdims=keepdim)


def std_dim(
    x: Array,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    return np.std(x, dim, ddof=_correction(unbiased, correction), keepdims=keepdim)
