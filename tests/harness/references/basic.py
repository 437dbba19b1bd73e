"""References in plain NumPy for operators without a NumPy or SciPy equivalent.

Only the tests call these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tandem.registry.dtypes import as_dtype

Array = Any


# -- indexing ----------------------------------------------------------------------------------------------------------
def basic_index(x: Array, plan: tuple[Any, ...]) -> Array:
    """What a plan selects, taken one axis after the other."""
    axis = 0
    for entry in plan:
        if entry is None:
            x = x.reshape((*x.shape[:axis], 1, *x.shape[axis:]))
        elif isinstance(entry, int):
            x = x.take(entry, axis)
            continue
        else:
            start, length, step = entry
            x = x.take([start + i * step for i in range(length)] or np.zeros(0, int), axis)
        axis += 1
    return x


def basic_put(x: Array, value: Array, plan: tuple[Any, ...], accumulate: bool = False) -> Array:
    """A copy with the flat positions that a plan selects written."""
    places = basic_index(np.arange(x.size).reshape(x.shape), plan)
    return _put_flat(x, places, value, accumulate)


def index(x: Array, indices: tuple[Array, ...], axis: int = 0) -> Array:
    """NumPy's own indexing by arrays."""
    return x[(slice(None),) * axis + tuple(indices)]


def index_put(
    x: Array, indices: tuple[Array, ...], value: Array, axis: int = 0, accumulate: bool = False
) -> Array:
    """A copy with the flat positions that index arrays select written in order, so that the last one wins."""
    places = index(np.arange(x.size).reshape(x.shape), indices, axis)
    return _put_flat(x, places, value, accumulate)


def index_reduce(x: Array, indices: tuple[Array, ...], value: Array, axis: int = 0, *, reduce: str) -> Array:
    """A copy combined with one value after the other."""
    places = index(np.arange(x.size).reshape(x.shape), indices, axis)
    out, combine = np.array(x).reshape(-1), getattr(np, reduce)
    values = np.broadcast_to(np.asarray(value), np.shape(places)).reshape(-1)
    for place, item in zip(np.ravel(places), values):
        out[place] = combine(out[place], item).astype(x.dtype)
    return out.reshape(x.shape)


def _put_flat(x: Array, places: Array, value: Array, accumulate: bool) -> Array:
    out = np.array(x).reshape(-1)
    values = np.broadcast_to(np.asarray(value), np.shape(places)).reshape(-1)
    for place, item in zip(np.ravel(places), values):
        out[place] = (out[place] + item).astype(x.dtype) if accumulate else item
    return out.reshape(x.shape)


def nonzero(x: Array, *, size: int | None = None, fill_value: int = 0) -> tuple[Array, ...]:
    """NumPy's nonzero, cut or filled up to ``size``."""
    result = np.nonzero(x)
    if size is None:
        return result
    return tuple(
        np.array([*places[:size], *[fill_value] * (size - len(places))], np.int64) for places in result
    )


# -- creation ----------------------------------------------------------------------------------------------------------
def arange(
    start: float, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
) -> Array:
    """NumPy's arange of float64 or int64, cast."""
    start, stop = (0, start) if stop is None else (start, stop)
    plain = all(isinstance(bound, int) for bound in (start, stop, step))
    return np.arange(start, stop, step).astype(dtype.np if dtype else np.int64 if plain else np.float32)


def linspace(
    start: Any, stop: Any, num: int, *, endpoint: bool = True, dtype: Any = None, device: Any = None
) -> Array:
    """NumPy's linspace, cast."""
    result = np.linspace(start, stop, num, endpoint=endpoint)
    default = np.complex64 if result.dtype.kind == "c" else np.float32
    return result.astype(dtype.np if dtype else default)


def full(shape: tuple[int, ...], fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """NumPy's full."""
    defaults = {bool: np.bool_, int: np.int64, float: np.float32, complex: np.complex64}
    return np.full(shape, fill_value, dtype.np if dtype else defaults.get(type(fill_value)))


def zeros(shape: tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    """NumPy's zeros."""
    return np.zeros(shape, dtype.np if dtype else np.float32)


def ones(shape: tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Array:
    """NumPy's ones."""
    return np.ones(shape, dtype.np if dtype else np.float32)


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Array:
    """NumPy's eye."""
    return np.eye(n_rows, n_cols, k, dtype.np if dtype else np.float32)


def full_like(x: Array, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """NumPy's full_like."""
    return np.full_like(x, fill_value, dtype.np if dtype else None)


def zeros_like(x: Array, *, dtype: Any = None, device: Any = None) -> Array:
    """NumPy's zeros_like."""
    return np.zeros_like(x, dtype.np if dtype else None)


def ones_like(x: Array, *, dtype: Any = None, device: Any = None) -> Array:
    """NumPy's ones_like."""
    return np.ones_like(x, dtype.np if dtype else None)


# -- casting -----------------------------------------------------------------------------------------------------------
def cast(x: Array, dtype: Any, copy: bool = True) -> Array:
    """NumPy's astype."""
    return np.asarray(x).astype(dtype.np)


def identity(x: Array) -> Array:
    """The array itself: a copy is equal to it."""
    return x


# -- views -------------------------------------------------------------------------------------------------------------
def transpose(x: Array, dim0: int = -2, dim1: int = -1) -> Array:
    """NumPy's swapaxes."""
    return np.swapaxes(x, dim0, dim1)


def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """The sizes multiplied, one after the other."""
    sizes = list(x.shape)
    for _ in range(end_dim % x.ndim - start_dim % x.ndim):
        sizes[start_dim : start_dim + 2] = [sizes[start_dim] * sizes[start_dim + 1]]
    return x.reshape(sizes)


def expand(x: Array, shape: tuple[int, ...]) -> Array:
    """NumPy's broadcast_to with the sizes at -1 filled in from the right."""
    sizes = list(shape)
    for at in range(1, x.ndim + 1):
        sizes[-at] = x.shape[-at] if sizes[-at] == -1 else sizes[-at]
    return np.broadcast_to(x, sizes)


# -- contraction -------------------------------------------------------------------------------------------------------
def matmul(x: Array, y: Array) -> Array:
    """Products summed over the shared axis, in the widest type of the kind."""
    dtype = _promoted(x, y)
    wide = np.complex128 if dtype.kind == "c" else dtype if dtype.kind in "iu" else np.float64
    one, two = np.atleast_2d(x).astype(wide), (y[:, None] if y.ndim == 1 else y).astype(wide)
    result = (one[..., :, :, None] * two[..., None, :, :]).sum(-2, dtype=wide)
    result = result[..., 0] if y.ndim == 1 else result
    result = (result[..., 0] if y.ndim == 1 else result[..., 0, :]) if x.ndim == 1 else result
    return result.astype(dtype)


def _promoted(*arrays: Array) -> Any:
    return arrays[0].dtype if len({a.dtype for a in arrays}) == 1 else np.result_type(*arrays)


def tensordot(x: Array, y: Array, axes: Any = 2) -> Array:
    """NumPy's tensordot in the widest type of the kind."""
    wide = np.complex128 if x.dtype.kind == "c" else x.dtype if x.dtype.kind in "iu" else np.float64
    return np.asarray(np.tensordot(x.astype(wide), y.astype(wide), axes)).astype(x.dtype)


def vecdot(x: Array, y: Array, axis: int = -1) -> Array:
    """Products summed in the widest type of the kind."""
    wide = np.complex128 if x.dtype.kind == "c" else np.int64 if x.dtype.kind in "iu" else np.float64
    return np.asarray((x.astype(wide).conj() * y.astype(wide)).sum(axis)).astype(x.dtype)


# -- joining -----------------------------------------------------------------------------------------------------------
def unstack(x: Array, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    return tuple(x.take(at, axis) for at in range(x.shape[axis]))


def bitcast(x: Array, dtype: Any) -> Array:
    """NumPy's view, of a contiguous copy."""
    return np.frombuffer(x.tobytes(), as_dtype(dtype).np).reshape(
        (*x.shape[:-1], -1) if x.ndim and x.size else x.shape
    )


def view_part(x: Array, imaginary: bool) -> Array:
    """Each part by itself."""
    parts = [number.imag if imaginary else number.real for number in x.reshape(-1).tolist()]
    return np.array(parts, f"f{x.itemsize // 2}").reshape(x.shape)


def as_strided(x: Array, size: Any, stride: Any, storage_offset: int | None = None) -> Array:
    """The elements at offsets that are added up one by one."""
    result = np.empty(size, x.dtype)
    for index in np.ndindex(*size):
        at = (storage_offset or 0) + sum(i * step for i, step in zip(index, stride))
        result[index] = x.reshape(-1)[at]
    return result


def pad(x: Array, width: Any, mode: str = "constant", *, value: Any = None, **options: Any) -> Array:
    """NumPy's pad."""
    if value is not None:
        options["constant_values"] = value
    return np.pad(x, width, mode, **options) if x.ndim else x  # type: ignore[call-overload,no-any-return]
