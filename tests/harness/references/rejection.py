"""References for rejection samplers: one element at a time, with Python floats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tandem import lazy

from .random_bits import Array, Words, _block, _draw_bits, random_normal, random_split
from .samplers import _type, _Wide

One = Callable[..., float]


def _uniforms(key: Words, place: int) -> Iterator[list[float]]:
    """For each attempt the four numbers of two blocks."""
    for attempt in itertools.count():
        words = [w for half in (0, 1) for w in _block(key, place + (2 * attempt + half) * 2**40, 3)]
        pairs = zip(words[0::2], words[1::2])
        yield [((low + 2**32 * high) // 2**12 + 0.5) / 2**52 for low, high in pairs]


def _all(one: One, keys: Array, shape: Any, *parameters: Any) -> Array:
    """``one(key, place, *parameters)`` for each element."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    lead, count = keys.shape[:-1], math.prod(shape)
    given = [np.broadcast_to(p, (*lead, *shape)).astype(float).reshape(-1) for p in parameters]
    rows = [tuple(map(int, row)) for row in keys.reshape(-1, 4)]
    items = [
        one(key, place, *(float(p[row * count + place]) for p in given))
        for row, key in enumerate(rows)
        for place in range(count)
    ]
    return np.array(items, float).reshape((*lead, *shape))


def _log_gamma(key: Words, place: int, a: float) -> float:
    boost = math.log(next(_uniforms(key, place))[3]) / a if a < 1 else 0.0
    d = (a + 1 if a < 1 else a) - 1 / 3
    for one, two, u, _ in _uniforms(key, place):
        x = math.sqrt(-2 * math.log(one)) * math.cos(2 * math.pi * two)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(u) < x * x / 2 + d - d * v + d * math.log(v):
            return math.log(d * v) + boost
    raise AssertionError


def _poisson(key: Words, place: int, lam: float) -> float:
    if lam < 10:
        return float(lazy.module("scipy.stats").poisson.ppf(next(_uniforms(key, place))[0], lam))
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    for one, v, _, _ in _uniforms(key, place):
        u = one - 0.5
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + lam + 0.43)
        if us >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / us**2 + b)) <= k * math.log(
            lam
        ) - lam - math.lgamma(k + 1):
            return k
    raise AssertionError


def _binomial(key: Words, place: int, n: float, p: float) -> float:
    if p > 0.5:
        return n - _binomial(key, place, n, 1 - p)
    if n * p < 10:
        return float(lazy.module("scipy.stats").binom.ppf(next(_uniforms(key, place))[0], n, p)) if p else 0.0
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    mode, mass = math.floor((n + 1) * p), lazy.module("scipy.stats").binom.logpmf
    for one, v, _, _ in _uniforms(key, place):
        u = one - 0.5
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + n * p + 0.5)
        if not 0 <= k <= n:
            continue
        if us >= 0.07 and v <= 0.92 - 4.2 / b:
            return k
        if math.log(v * (2.83 + 5.1 / b) * spread / (a / us**2 + b)) <= mass(k, n, p) - mass(mode, n, p):
            return k
    raise AssertionError


def draw_loggamma(key: Array, a: Any, shape: Any) -> Array:
    """Marsaglia and Tsang's method."""
    return _all(_log_gamma, key, shape, a).astype(a.dtype)


def draw_poisson(key: Array, lam: Any, shape: Any) -> Array:
    """Inversion, and Hoermann's PTRS."""
    return _all(_poisson, key, shape, lam).astype(np.int64)


def draw_binomial(key: Array, n: Any, p: Any, shape: Any) -> Array:
    """Inversion, and Hoermann's BTRS."""
    return _all(_binomial, key, shape, n, p).astype(np.result_type(n, p))


def gamma_slope(a: Array, log_x: Array) -> Array:
    """Central differences of SciPy's quantiles, extrapolated."""
    special = lazy.module("scipy.special")
    a64, share = a.astype(float), special.gammainc(a.astype(float), np.exp(log_x.astype(float)))

    def difference(step: float) -> Array:
        low, high = (special.gammaincinv(a64 + side * step, share) for side in (-1, 1))
        return (np.log(high) - np.log(low)) / (2 * step)

    return ((4 * difference(5e-4) - difference(1e-3)) / 3).astype(np.result_type(a, log_x))


# -- distributions made of these ---------------------------------------------------------------------------------------
def _made(formula: Callable[..., Array]) -> Callable[..., Array]:
    """``formula(key, shape, wide, *parameters)`` with shape and dtype found as the operators do."""

    def reference(key: Array, *parameters: Any, shape: Any = None, dtype: Any = None) -> Array:
        kind = _type(dtype, parameters)
        if shape is None:
            shape = np.broadcast_shapes(*(np.shape(p) for p in parameters))
        wide = _Wide(kind == np.float64)
        given = [np.asarray(p, float).astype(wide.np).astype(float) for p in parameters]
        return np.asarray(formula(key, tuple(shape), wide, *given)).astype(kind)

    return reference


def _two(key: Array) -> list[Array]:
    words = random_split(key, 2)
    return [words[..., 0, :], words[..., 1, :]]


def _logs(key: Array, shape: Any, a: Any) -> Array:
    return _all(_log_gamma, key, shape, a)


def _beta(key: Array, shape: Any, wide: Any, a: Array, b: Array) -> Array:
    one, two = _two(key)
    return 1 / (1 + np.exp(_logs(two, shape, b) - _logs(one, shape, a)))


def _t(key: Array, shape: Any, wide: Any, df: Array) -> Array:
    one, two = _two(key)
    chi = 2 * np.exp(_logs(two, shape, df / 2))
    return random_normal(one, shape, wide) * np.sqrt(df / chi)


def _f(key: Array, shape: Any, wide: Any, above: Array, below: Array) -> Array:
    one, two = _two(key)
    return (np.exp(_logs(one, shape, above / 2)) / above) / (np.exp(_logs(two, shape, below / 2)) / below)


def sign_of(key: Array, shape: Any) -> Array:
    """The highest bit of a word as a sign."""
    rows = [_draw_bits(tuple(map(int, row)), shape, 32) for row in key.reshape(-1, 4)]
    return 1 - 2.0 * (np.array(rows).reshape((*key.shape[:-1], *shape)) // 2**31)


def _generalized(key: Array, shape: Any, wide: Any, p: Array) -> Array:
    one, two = _two(key)
    inverse = (1 / p.astype(wide.np)).astype(float)
    return sign_of(two, shape) * np.exp(_logs(one, shape, inverse) / p)


loggamma = _made(lambda key, shape, wide, a: _logs(key, shape, a))
gamma = _made(lambda key, shape, wide, a: np.exp(_logs(key, shape, a)))
chisquare = _made(lambda key, shape, wide, df: 2 * np.exp(_logs(key, shape, df / 2)))
beta, t, f, generalized_normal = _made(_beta), _made(_t), _made(_f), _made(_generalized)


def dirichlet(key: Array, alpha: Array, shape: Any = None, dtype: Any = None) -> Array:
    """Gamma numbers over their sum."""
    lead = alpha.shape[:-1] if shape is None else tuple(shape)
    drawn = np.exp(_logs(key, (*lead, alpha.shape[-1]), alpha.astype(float)))
    return (drawn / drawn.sum(-1, keepdims=True)).astype(dtype.np if dtype else alpha.dtype)
