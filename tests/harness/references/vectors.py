"""References for distributions of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import rejection, samplers
from .random_bits import Array, random_normal
from .rejection import _two
from .samplers import _type, _Wide


def orthonormal(x: Array) -> Array:
    """The orthogonalisation of Gram and Schmidt."""
    columns: list[Array] = []
    for at in range(x.shape[-1]):
        rest = x[..., at].astype(float)
        for one in columns:
            rest = rest - (rest * one).sum(-1, keepdims=True) * one
        columns.append(rest / np.sqrt((rest * rest).sum(-1, keepdims=True)))
    return np.stack(columns, -1).astype(x.dtype) if columns else x


def multivariate_normal(key: Array, mean: Array, cov: Array, shape: Any = None, dtype: Any = None) -> Array:
    """Means, and rows of the factor times normal numbers."""
    kind = _type(dtype, (mean, cov))
    lead = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else tuple(shape)
    z = random_normal(key, (*lead, mean.shape[-1]), _Wide(kind == np.float64)).astype(float)
    factor = np.linalg.cholesky(cov.astype(float))
    return (mean.astype(float) + np.einsum("...ij,...j->...i", factor, z)).astype(kind)


def orthogonal(key: Array, n: int, shape: Any = (), dtype: Any = None, m: Any = None) -> Array:
    """A normal matrix with its columns made orthonormal."""
    kind = _type(dtype, ())
    m = n if m is None else m
    z = random_normal(key, (*shape, max(n, m), min(n, m)), _Wide(kind == np.float64))
    result = orthonormal(z.astype(float))
    return (result if n >= m else np.swapaxes(result, -1, -2)).astype(kind)


def ball(key: Array, d: int, p: float = 2.0, shape: Any = (), dtype: Any = None) -> Array:
    """A vector over the norm of it and one number more."""
    kind = _type(dtype, ())
    wide = _Wide(kind == np.float64)
    one, two = _two(key)
    x = rejection.generalized_normal(one, p, shape=(*shape, d), dtype=wide).astype(float)
    more = samplers.exponential(two, shape, dtype=wide).astype(float)
    return (x / ((np.abs(x) ** p).sum(-1) + more)[..., None] ** (1 / p)).astype(kind)
