"""References for distributions: functions of Philox's random bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray
from tandem import lazy

from .random_bits import Array, Words, _draw_bits, _each, random_normal, random_split

scipy_special = lazy.Module("scipy.special")

Draw = Callable[[Array], Array]


class _Wide:
    """What a reference of normal numbers needs to know of a dtype."""

    def __init__(self, wide: bool):
        self.name = "float64" if wide else "float32"
        self.np: Any = np.dtype(self.name)


def _between(key: Words, shape: Any, wide: bool) -> Array:
    """Odd multiples of half a step."""
    kept, bits = (52, 64) if wide else (23, 32)
    return np.asarray((_draw_bits(key, shape, bits) >> (bits - kept)) + 0.5) / 2.0**kept


def _type(dtype: Any, parameters: tuple[Any, ...]) -> Any:
    if dtype is not None:
        return dtype.np
    given = [p.dtype for p in parameters if isinstance(p, (ndarray, np.generic))]
    return np.result_type(*given) if given else np.dtype(np.float32)


def _doubles(parameters: tuple[Any, ...]) -> list[Array]:
    return [np.asarray(p, np.float64) for p in parameters]


def of_uniform(formula: Callable[..., Array]) -> Callable[..., Array]:
    """The reference of a distribution that is a formula of uniform numbers and parameters."""

    def reference(key: Array, *parameters: Any, shape: Any = None, dtype: Any = None) -> Array:
        if formula.__code__.co_argcount == 1 and parameters:
            (shape,), parameters = parameters, ()
        kind = _type(dtype, parameters)
        wide = kind == np.float64
        if shape is None:
            shape = np.broadcast_shapes(*(np.shape(p) for p in parameters))
        given = _doubles(parameters)
        return _each(key, lambda one: np.asarray(formula(_between(one, shape, wide), *given))).astype(kind)

    return reference


def of_normal(formula: Callable[..., Array], rows: int = 1) -> Callable[..., Array]:
    """The same of normal numbers, several for each result where ``rows`` says so."""

    def reference(key: Array, *parameters: Any, shape: Any = None, dtype: Any = None) -> Array:
        if rows > 1 and parameters:
            (shape,), parameters = parameters, ()
        kind = _type(dtype, parameters)
        if shape is None:
            shape = np.broadcast_shapes(*(np.shape(p) for p in parameters))
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        drawn = random_normal(key, (rows, *shape), _Wide(kind == np.float64)).astype(np.float64)
        lead = key.ndim - 1
        parts = [np.take(drawn, row, lead) for row in range(rows)]
        return np.asarray(formula(*parts, *_doubles(parameters))).astype(kind)

    return reference


def _tri(u: Array, left: Array, mode: Array, right: Array) -> Array:
    # by hand: SciPy's triang.ppf takes these, and rounds twice
    cut = (mode - left) / (right - left)
    rising = left + np.sqrt(u * (right - left) * (mode - left))
    return np.where(u < cut, rising, right - np.sqrt((1 - u) * (right - left) * (right - mode)))


def _truncated(u: Array, low: Array, high: Array) -> Array:
    start, stop = scipy_special.ndtr(low), scipy_special.ndtr(high)
    return np.clip(scipy_special.ndtri(start + u * (stop - start)), low, high)


exponential = of_uniform(lambda u: -np.log(u))
gumbel = of_uniform(lambda u: -np.log(-np.log(u)))
laplace = of_uniform(lambda u: np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u))))
logistic = of_uniform(lambda u: scipy_special.logit(u))
cauchy = of_uniform(
    lambda u: np.where(u > 0.5, 1, -1) / np.tan(np.pi * np.minimum(u, 1 - u)),
)
lognormal = of_normal(lambda z, sigma: np.exp(sigma * z))
maxwell = of_normal(lambda x, y, z: np.sqrt(x * x + y * y + z * z), rows=3)
pareto = of_uniform(lambda u, b: u ** (-1 / b))
rayleigh = of_uniform(lambda u, scale: scale * np.sqrt(-2 * np.log(u)))
weibull_min = of_uniform(lambda u, scale, power: scale * (-np.log(u)) ** (1 / power))
triangular = of_uniform(_tri)
truncated_normal = of_uniform(_truncated)


# -- of two keys -------------------------------------------------------------------------------------------------------
def _halves(key: Array, n: int = 2) -> list[Array]:
    words = random_split(key, n)
    return [words[..., one, :] for one in range(n)]


def wald(key: Array, mean: Any, shape: Any = None, dtype: Any = None) -> Array:
    """The smaller root of the equation, or the other one."""
    kind = _type(dtype, (mean,))
    wide, shape = _Wide(kind == np.float64), np.shape(mean) if shape is None else shape
    one, two = _halves(key)
    z, mean = random_normal(one, shape, wide).astype(np.float64), np.asarray(mean, np.float64)
    y = mean * z * z
    root = mean + mean * (y - np.sqrt(4 * y + y * y)) / 2
    u = _each(two, lambda words: _between(words, shape, kind == np.float64))
    return np.where(u <= mean / (mean + root), root, mean * mean / root).astype(kind)


def double_sided_maxwell(key: Array, loc: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Maxwell's numbers, with the highest bit of a word for a sign."""
    kind = _type(dtype, (loc, scale))
    shape = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if shape is None else shape
    one, two = _halves(key)
    sign = 1 - 2 * (_each(two, lambda words: _draw_bits(words, shape, 32)) >> 31).astype(float)
    result = maxwell(one, shape=shape, dtype=_Wide(kind == np.float64)).astype(np.float64)
    return np.asarray(np.asarray(loc, float) + np.asarray(scale, float) * sign * result).astype(kind)
