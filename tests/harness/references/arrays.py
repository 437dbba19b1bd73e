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


def sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements at those positions."""
    result = np.sort(x, axis=axis)
    return np.flip(result, axis) if descending else result


def split(x: Array, sections: Any, axis: int = 0) -> tuple[Array, ...]:
    """NumPy's split."""
    return tuple(np.split(x, sections, axis))


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
