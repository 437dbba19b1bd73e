"""References for sorting, splitting and products that have no direct NumPy equivalent."""

from __future__ import annotations

from typing import Any

import numpy as np
from tandem import lazy

Array = Any


def argsort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Positions by a stable sort of pairs (rank, position)."""
    _, rank = np.unique(x.astype(np.float32) if x.dtype.itemsize == 2 else x, return_inverse=True)
    rank = rank.reshape(x.shape)
    return np.argsort(-rank if descending else rank, axis=axis, kind="stable")


def argtopk(x: Array, k: int, *, axis: int = -1, descending: bool = True) -> Array:
    """The first of those positions."""
    return np.take(argsort(x, axis=axis, descending=descending), np.arange(k), axis)


def argselect(x: Array, ranks: Array) -> Array:
    """Those positions at ranks along the last axis."""
    return argsort(x)[..., np.clip(ranks, 0, x.shape[-1] - 1)]


def sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in sorted order."""
    wide = (
        x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    )  # NaN of bfloat16
    result = np.sort(wide, axis=axis).astype(x.dtype)
    return np.flip(result, axis) if descending else result


def split(x: Array, sections: Any, axis: int = 0) -> tuple[Array, ...]:
    """NumPy's split."""
    return tuple(np.split(x, sections, axis))


def split_by_size(x: Array, split_size: Any, dim: int = 0) -> tuple[Array, ...]:
    """PyTorch's split: parts of one size, the last perhaps smaller, or of the given sizes."""
    size = x.shape[dim]
    ends = range(split_size, size, split_size) if isinstance(split_size, int) else np.cumsum(split_size)[:-1]
    return tuple(np.split(x, list(ends), dim))


def angle(x: Array) -> Array:
    """NumPy's angle; of NaN it is NaN, of -0.0 it is pi, as atan2 has it."""
    wide = x.astype(np.float32) if x.dtype.kind in "biu" else x
    return np.arctan2(wide.imag, wide.real)


def nan_to_num(x: Array, *, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """NumPy's nan_to_num; half types have their own extremes."""
    if x.dtype.kind not in "biufc":
        limit = float(lazy.module("ml_dtypes").finfo(x.dtype).max)
        posinf, neginf = limit if posinf is None else posinf, -limit if neginf is None else neginf
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def kron(x: Array, y: Array) -> Array:
    """NumPy's kron in the widest type of the kind."""
    return np.kron(x, y)


def einsum(equation: str, operands: tuple[Array, ...]) -> Array:
    """NumPy's einsum in the widest type of the kind."""
    kind = np.result_type(*operands)
    wide = np.complex128 if kind.kind == "c" else kind if kind.kind in "iu" else np.float64
    return np.asarray(np.einsum(equation, *[x.astype(wide) for x in operands])).astype(kind)


def _segments(reduce: Any, x: Array, ids: Array, count: int, identity: Any) -> Array:
    """The reduction of the rows of each segment, in the widest type of the kind for half types."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    ids = ids.astype(np.int64)
    rows = [wide[ids == number] for number in range(count)]
    result = [reduce(part, 0) if len(part) else np.full(x.shape[1:], identity) for part in rows]
    return np.asarray(result).reshape((count, *x.shape[1:])).astype(x.dtype)


def segment_sum(x: Array, ids: Array, count: int, *hints: bool, **more: bool) -> Array:
    """NumPy's sum of the rows of each segment."""
    return _segments(np.sum, x, ids, count, 0)


def segment_prod(x: Array, ids: Array, count: int, *hints: bool, **more: bool) -> Array:
    """NumPy's product of the rows of each segment."""
    return _segments(np.prod, x, ids, count, 1)


def _limit(x: Array, largest: bool) -> Any:
    if x.dtype.kind in "iu":
        return np.iinfo(x.dtype).max if largest else np.iinfo(x.dtype).min
    return largest if x.dtype.kind == "b" else np.inf if largest else -np.inf


def segment_max(x: Array, ids: Array, count: int, *hints: bool, **more: bool) -> Array:
    """NumPy's maximum of the rows of each segment."""
    return _segments(np.max, x, ids, count, _limit(x, False))


def segment_min(x: Array, ids: Array, count: int, *hints: bool, **more: bool) -> Array:
    """NumPy's minimum of the rows of each segment."""
    return _segments(np.min, x, ids, count, _limit(x, True))


def cumulative_sum(x: Array, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """NumPy's cumulative_sum."""
    native = None if dtype is None else dtype.np
    return np.cumulative_sum(x, axis=axis, dtype=native, include_initial=include_initial)


def cumulative_prod(x: Array, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """NumPy's cumulative_prod."""
    native = None if dtype is None else dtype.np
    return np.cumulative_prod(x, axis=axis, dtype=native, include_initial=include_initial)


def searchsorted(x: Array, values: Array, side: Any = "left", sorter: Any = None) -> Array:
    """NumPy's searchsorted."""
    return np.asarray(np.searchsorted(_comparable(x), _comparable(values), side, sorter))


def isin(x: Array, values: Array, *, invert: bool = False) -> Array:
    """Each element compared with every value."""
    return (x[..., None] == np.ravel(values)).any(-1) ^ invert


def _fit(part: Array, size: int | None, fill: Any) -> Array:
    """The first ``size`` elements, padded with ``fill``."""
    size = len(part) if size is None else size
    return np.concatenate([part[:size], np.full(max(size - len(part), 0), fill, part.dtype)])


def unique_all(x: Array, *, size: int | None = None) -> tuple[Array, ...]:
    """NumPy's unique_all, cut or padded."""
    values, indices, inverse, counts = np.unique_all(x)
    first = (values[0], indices[0]) if len(values) else (0, 0)
    return _fit(values, size, first[0]), _fit(indices, size, first[1]), inverse, _fit(counts, size, 0)


def unique_counts(x: Array, *, size: int | None = None) -> tuple[Array, ...]:
    """NumPy's unique_counts, cut or padded."""
    parts = unique_all(x, size=size)
    return parts[0], parts[3]


def unique_inverse(x: Array, *, size: int | None = None) -> tuple[Array, ...]:
    """NumPy's unique_inverse, cut or padded."""
    parts = unique_all(x, size=size)
    return parts[0], parts[2]


def unique_values(x: Array, *, size: int | None = None) -> Array:
    """The values of NumPy's unique_all, cut or padded."""
    return unique_all(x, size=size)[0]


def _comparable(x: Array) -> Array:
    """NumPy's functions do not sort bfloat16."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def log1p(x):
    """NumPy's function, whose complex form loses the digits of small numbers."""
    return np.log(x.astype(np.clongdouble) + 1).astype(x.dtype) if x.dtype.kind == "c" else np.log1p(x)


def expm1(x):
    """NumPy's function, whose complex form has other special values than C's exponential."""
    return (np.exp(x.astype(np.clongdouble)) - 1).astype(x.dtype) if x.dtype.kind == "c" else np.expm1(x)
