"""References for signs, classes, choices and counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .random_bits import Array, _draw_bits, _each, random_integers, random_order, random_split
from .rejection import draw_binomial as draw_binomial
from .rejection import draw_poisson as draw_poisson
from .rejection import sign_of
from .samplers import _between, _type


def rademacher(key: Array, shape: Any = (), dtype: Any = None) -> Array:
    """The sign of a word."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return sign_of(key, shape).astype(dtype.np if dtype else np.int64)


def top(x: Array, k: int) -> Array:
    """By sorting."""
    return np.argsort(-x.astype(float), -1, kind="stable")[..., :k].astype(np.int64)


def pick(bounds: Array, x: Array) -> Array:
    """By counting the bounds that are not larger."""
    numbers = x.reshape((*bounds.shape[:-1], -1))
    return (bounds[..., None, :] <= numbers[..., None]).sum(-1).clip(0, bounds.shape[-1] - 1).reshape(x.shape)


def _gumbel(key: Array, shape: Any, wide: bool) -> Array:
    return _each(key, lambda one: -np.log(-np.log(_between(one, shape, wide))))


def categorical(key: Array, logits: Array, axis: int = -1, shape: Any = None, replace: bool = True) -> Array:
    """The class with the largest sum of logit and Gumbel's number."""
    axis = axis % logits.ndim - logits.ndim
    batch = tuple(np.delete(logits.shape, axis).tolist())
    prefix = () if shape is None else tuple(shape[: len(shape) - len(batch)])
    wide, wanted = logits.dtype == np.float64, logits.astype(float)
    if replace:
        return (_gumbel(key, (*prefix, *logits.shape), wide) + wanted).argmax(axis)
    scores = np.moveaxis(_gumbel(key, logits.shape, wide) + wanted, axis, -1)
    result = np.moveaxis(top(scores, math.prod(prefix)), -1, key.ndim - 1)
    return result.reshape((*key.shape[:-1], *prefix, *batch))


def choice(key: Array, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Array:
    """NumPy's ``searchsorted`` and ``take``."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    n = a if isinstance(a, int) else a.shape[axis]
    size = math.prod(shape)
    if p is None:
        places = random_integers(key, shape, 0, n) if replace else random_order(key, n)[:size].reshape(shape)
    elif replace:
        bounds = np.cumsum(p, dtype=p.dtype)
        u = _between(tuple(map(int, key)), shape, p.dtype == np.float64) * float(bounds[-1])
        places = np.searchsorted(bounds, u, side="right")
    else:
        with np.errstate(divide="ignore"):
            scores = _gumbel(key, (n,), p.dtype == np.float64) + np.log(p.astype(float))
        places = top(scores, size).reshape(shape)
    return places if isinstance(a, int) else a.take(places, axis)


def poisson(key: Array, lam: Any, shape: Any = None, dtype: Any = None) -> Array:
    """As the draws are."""
    result = draw_poisson(key, np.asarray(lam, float), np.shape(lam) if shape is None else shape)
    return result.astype(dtype.np if dtype else np.int64)


def binomial(key: Array, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """As the draws are."""
    kind = _type(dtype, tuple(one for one in (n, p) if getattr(one, "dtype", np.dtype(int)).kind != "i"))
    shape = np.broadcast_shapes(np.shape(n), np.shape(p)) if shape is None else shape
    return draw_binomial(key, np.asarray(n, float), np.asarray(p, float), shape).astype(kind)


def multinomial(key: Array, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """One binomial number after the other, each of the trials that are left."""
    kind, p = _type(dtype, (p,)), np.asarray(p, float)
    own = p.shape if shape is None else shape
    lead = np.broadcast_shapes(np.shape(n), own[:-1]) if shape is None else own[:-1]
    left = np.broadcast_to(np.asarray(n, float), (*key.shape[:-1], *lead))
    keys, value = random_split(key, p.shape[-1]), []
    for place in range(p.shape[-1] - 1):
        share = np.broadcast_to(p[..., place] / p[..., place:].sum(-1), lead)
        value.append(draw_binomial(keys[..., place, :], left, share, lead))
        left = left - value[-1]
    return np.stack([*value, left], -1).astype(kind)


def geometric(key: Array, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """The number of trials, from its distribution function."""
    shape = np.shape(p) if shape is None else shape
    wide = getattr(p, "dtype", None) == np.float64
    with np.errstate(divide="ignore"):
        result = _each(
            key, lambda one: np.ceil(np.log(_between(one, shape, wide)) / np.log1p(-np.asarray(p, float)))
        )
    return np.maximum(result, 1).astype(dtype.np if dtype else np.int64)


def words(key: Array, shape: Any) -> Array:
    """The words of each key."""
    return _each(key, lambda one: _draw_bits(one, shape, 32))
