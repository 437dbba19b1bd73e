"""Array kernels of rejection samplers (accept-reject sampling), in float64.

Each element has random bits of its own for each attempt, selected by the element's position and the number of the
attempt. So an element depends only on the key and its parameters, not on the attempts of others, and shapes are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .philox import DRAW, blocks

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule

# (parameters, uniform numbers) -> (values, accepted)
Attempt = Callable[["tuple[Array, ...]", "tuple[Array, ...]"], "tuple[Array, Array]"]
SPACING = 40  # bits of the number of a block that tell the element
UNIFORMS = 4  # per attempt


def uniforms(xp: ArrayModule, keys: Array, indices: Array, attempt: int) -> tuple[Array, ...]:
    """Four uniform numbers between 0 and 1, both excluded, for each element.

    Args:
        xp: numpy or cupy.
        keys: uint32 array of shape ``(n, 4)``.
        indices: uint64 array of n positions.
        attempt: the number of the attempt.
    """
    items = []
    for part in (2 * attempt, 2 * attempt + 1):
        words = blocks(xp, keys, indices + xp.uint64(part << SPACING), DRAW).astype(xp.uint64)
        for low in (0, 2):
            whole = words[:, low] | words[:, low + 1] << xp.uint64(32)
            items.append((whole >> xp.uint64(12)).astype(xp.float64) * 2.0**-52 + 2.0**-53)
    return tuple(items)


def draw_until_accepted(
    xp: ArrayModule,
    keys: Array,
    shape: tuple[int, ...],
    parameters: tuple[Array, ...],
    valid: Any,
    attempt: Attempt,
) -> Array:
    """Draw until all elements are accepted.

    Args:
        xp: numpy or cupy.
        keys: uint32 array of shape ``(*lead, 4)``.
        shape: the shape of the sample for each key.
        parameters: float64 arrays of shape ``(*lead, *shape)``.
        valid: a mask of the valid parameters; samples for others are NaN.
        attempt: see :data:`Attempt`.

    Returns:
        A float64 array of shape ``(*lead, *shape)``.
    """
    count = math.prod(shape)
    rows = keys.reshape(-1, 4)
    flat = tuple(one.reshape(-1) for one in parameters)
    out = xp.full(rows.shape[0] * count, xp.nan)
    pending = xp.nonzero(valid.reshape(-1))[0]
    number = 0
    while pending.size:
        indices = (pending % max(count, 1)).astype(xp.uint64)
        drawn = uniforms(xp, rows[pending // max(count, 1)], indices, number)
        values, accepted = attempt(tuple(one[pending] for one in flat), drawn)
        out[pending[accepted]] = values[accepted]
        pending, number = pending[~accepted], number + 1
    return out.reshape((*keys.shape[:-1], *shape))


def log_gamma_function(xp: ArrayModule, x: Array) -> Array:
    """The logarithm of the gamma function of ``x + 1``, x at least 0: Stirling's series behind a recurrence."""
    product = xp.ones_like(x)
    for step in range(1, 9):
        product = product * xp.where(x < 8, x + step, 1.0)
    z = xp.where(x < 8, x + 9, x + 1)
    inverse = 1 / (z * z)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) / z
    return (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + series - xp.log(product)


# -- gamma -------------------------------------------------------------------------------------------------------------
def log_gamma(xp: ArrayModule, keys: Array, shape: tuple[int, ...], a: Array) -> Array:
    """The logarithms of samples of the gamma distribution.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. Below 1 the number for
    ``a + 1`` is multiplied with ``u ** (1 / a)``, which only the logarithm keeps from being 0.
    """
    valid = (a > 0) & xp.isfinite(a)
    first = xp.where(valid, a, 1.0)

    def attempt(parameters: tuple[Array, ...], drawn: tuple[Array, ...]) -> tuple[Array, Array]:
        (alpha,), (one, two, u, _) = parameters, drawn
        d = xp.where(alpha < 1, alpha + 1, alpha) - 1 / 3
        x = xp.sqrt(-2 * xp.log(one)) * xp.cos(2 * math.pi * two)
        root = 1 + x / xp.sqrt(9 * d)
        log_v = 3 * xp.log(xp.where(root > 0, root, 1.0))
        accepted = (root > 0) & (xp.log(u) < 0.5 * x * x + d - d * xp.exp(log_v) + d * log_v)
        return xp.log(d) + log_v, accepted

    result = draw_until_accepted(xp, keys, shape, (first,), valid, attempt)
    result = xp.where(a == 0, -xp.inf, xp.where(a == xp.inf, xp.inf, result))
    return xp.where(valid & (a < 1), result + _boost(xp, keys, shape) / first, result)


def _boost(xp: ArrayModule, keys: Array, shape: tuple[int, ...]) -> Array:
    """The logarithm of a uniform number that no attempt uses: the last of the first attempt."""
    count, rows = math.prod(shape), keys.reshape(-1, 4)
    indices = xp.tile(xp.arange(count, dtype=xp.uint64), rows.shape[0])
    last = uniforms(xp, xp.repeat(rows, count, 0), indices, 0)[-1]
    return xp.log(last).reshape((*keys.shape[:-1], *shape))


# -- poisson -----------------------------------------------------------------------------------------------------------
def poisson(xp: ArrayModule, keys: Array, shape: tuple[int, ...], rate: Array) -> Array:
    """Samples of the Poisson distribution: by inversion below a rate of 10, else by transformed rejection.

    Source: Hoermann, "The transformed rejection method for generating Poisson random variables", 1993 (PTRS).
    """
    valid = (rate > 0) & (rate < 2.0**62)

    def attempt(parameters: tuple[Array, ...], drawn: tuple[Array, ...]) -> tuple[Array, Array]:
        (lam,) = parameters
        large = lam >= 10
        value, accepted = _poisson_large(xp, xp.where(large, lam, 10.0), *drawn[:2])
        small = _poisson_small(xp, xp.where(large, 1.0, lam), drawn[0], large)
        return xp.where(large, value, small), xp.where(large, accepted, True)

    result = draw_until_accepted(xp, keys, shape, (rate,), valid, attempt)
    return xp.where(rate == 0, 0.0, result)


def _poisson_small(xp: ArrayModule, lam: Array, u: Array, skip: Array) -> Array:
    term = xp.exp(-lam)
    total, result, number = term.copy(), xp.zeros_like(lam), 0
    more = (u > total) & ~skip
    while bool(more.any()) and number < 200:
        number += 1
        result = xp.where(more, float(number), result)
        term = term * lam / number
        total = total + term
        more = more & (u > total)
    return result


def _poisson_large(xp: ArrayModule, lam: Array, one: Array, two: Array) -> tuple[Array, Array]:
    b = 0.931 + 2.53 * xp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse, bound = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    u = one - 0.5
    us = 0.5 - xp.abs(u)
    k = xp.floor((2 * a / us + b) * u + lam + 0.43)
    at_once = (us >= 0.07) & (two <= bound)
    never = (k < 0) | ((us < 0.013) & (two > us))
    size = xp.log(two) + xp.log(inverse) - xp.log(a / (us * us) + b)
    k = xp.where(never, 0.0, k)
    return k, at_once | (~never & (size <= k * xp.log(lam) - lam - log_gamma_function(xp, k)))


# -- binomial ----------------------------------------------------------------------------------------------------------
def binomial(xp: ArrayModule, keys: Array, shape: tuple[int, ...], n: Array, p: Array) -> Array:
    """Samples of the binomial distribution: by inversion below a mean of 10, else by transformed rejection.

    Source: Hoermann, "The generation of binomial random variates", 1993 (BTRS).
    """
    whole = xp.floor(n)
    valid = (whole >= 0) & xp.isfinite(whole) & (p >= 0) & (p <= 1)
    count, share = xp.where(valid, whole, 0.0), xp.where(valid, xp.minimum(p, 1 - p), 0.0)

    def attempt(parameters: tuple[Array, ...], drawn: tuple[Array, ...]) -> tuple[Array, Array]:
        number, q = parameters
        large = number * q >= 10
        value, accepted = _binomial_large(
            xp, xp.where(large, number, 40.0), xp.where(large, q, 0.5), *drawn[:2]
        )
        small = _binomial_small(xp, number, xp.where(large, 0.0, q), drawn[0])
        return xp.where(large, value, small), xp.where(large, accepted, True)

    result = draw_until_accepted(xp, keys, shape, (count, share), valid, attempt)
    return xp.where(p > 0.5, whole - result, result)


def _binomial_small(xp: ArrayModule, n: Array, p: Array, u: Array) -> Array:
    term = xp.exp(n * xp.log1p(-p))
    total, result, number = term.copy(), xp.zeros_like(n), 0
    more = (u > total) & (n > 0)
    while bool(more.any()) and number < 200:
        number += 1
        result = xp.where(more, float(number), result)
        term = term * (p / (1 - p)) * xp.maximum(n - number + 1, 0.0) / number
        total = total + term
        more = more & (u > total) & (number < n)
    return result


def _binomial_large(xp: ArrayModule, n: Array, p: Array, one: Array, two: Array) -> tuple[Array, Array]:
    spread = xp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale, bound = (2.83 + 5.1 / b) * spread, 0.92 - 4.2 / b
    u = one - 0.5
    us = 0.5 - xp.abs(u)
    k = xp.floor((2 * a / us + b) * u + n * p + 0.5)
    never = (k < 0) | (k > n)
    at_once = (us >= 0.07) & (two <= bound) & ~never
    k, mode = xp.where(never, 0.0, k), xp.floor((n + 1) * p)
    size = xp.log(two * scale / (a / (us * us) + b))
    lgamma: Callable[[Any], Any] = lambda x: log_gamma_function(xp, x)  # noqa: E731
    height = lgamma(mode) + lgamma(n - mode) - lgamma(k) - lgamma(n - k)
    return k, at_once | (~never & (size <= height + (k - mode) * xp.log(p / (1 - p))))
