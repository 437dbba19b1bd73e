"""The derivative of gamma samples by the shape parameter, for fixed random bits: implicit reparameterization.

Source: Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018: with the distribution function F and the
density f of a sample x, ``dx/da = -(dF/da) / f``. Computed for ``log x``, in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ... import lazy

if TYPE_CHECKING:
    from ...registry.types import Array, ArrayModule

scipy_special = lazy.Module("scipy.special")

TERMS = 200


@functools.cache
def _gauss_legendre() -> list[tuple[float, float]]:
    """The nodes in [0, 1] and the weights of Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return [
        (0.5 * (node + 1), 0.5 * weight)
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True)
    ]


def slope(xp: ArrayModule, a: Array, log_x: Array) -> Array:
    """``d(log x)/da`` of samples of the gamma distribution.

    Args:
        xp: numpy or cupy.
        a: float64 array of positive shapes.
        log_x: float64 array, the numbers' logarithms.
    """
    x = xp.exp(log_x)
    near = (a < 20) & (x < 1.5 * a + 5)
    upper = ~near & (x > a)
    valid = (a > 0) & xp.isfinite(a) & xp.isfinite(x) & ~xp.isnan(log_x)
    digamma = (getattr(xp, "special", None) or scipy_special).digamma  # a device's library may bring its own
    out = xp.full(a.shape, xp.nan)
    for which, rule in ((near, _series), (upper, _upper_integral), (~near & ~upper, _lower_integral)):
        chosen = which & valid
        if bool(chosen.any()):
            out[chosen] = rule(xp, a[chosen], log_x[chosen], digamma)
    return out


def _series(xp: ArrayModule, a: Array, log_x: Array, digamma: Callable[[Array], Array]) -> Array:
    """The power series of the incomplete gamma function, differentiated term by term."""
    x = xp.exp(log_x)
    term, total = xp.ones_like(a), xp.ones_like(a)
    harmonic, slope_ = xp.zeros_like(a), xp.zeros_like(a)
    for number in range(1, TERMS):
        term = term * x / (a + number)
        harmonic = harmonic + 1 / (a + number)
        total, slope_ = total + term, slope_ - term * harmonic
    result: Array = -(total * (log_x - digamma(a + 1)) + slope_) / a
    return result


def _upper_integral(xp: ArrayModule, a: Array, log_x: Array, digamma: Callable[[Array], Array]) -> Array:
    """The derivative from the integral over the upper tail, relative to x."""
    x, psi = xp.exp(log_x), digamma(a)

    def exponent(w: Array) -> Array:
        result: Array = (a - 1) * xp.log1p(w) - x * w
        return result

    end = _find_end(xp, exponent, 40 / xp.maximum(x - a + 1, 1e-3))
    return _integrate(xp, lambda w: (log_x + xp.log1p(w) - psi) * xp.exp(exponent(w)), end)


def _lower_integral(xp: ArrayModule, a: Array, log_x: Array, digamma: Callable[[Array], Array]) -> Array:
    """The derivative from the integral over the lower tail, relative to x."""
    x, psi = xp.exp(log_x), digamma(a)

    def exponent(w: Array) -> Array:
        result: Array = (a - 1) * xp.log1p(-w) + x * w
        return result

    end = _find_end(xp, exponent, xp.full_like(a, 1 - 1e-12))
    return _integrate(xp, lambda w: (psi - log_x - xp.log1p(-w)) * xp.exp(exponent(w)), end)


def _find_end(xp: ArrayModule, exponent: Callable[[Array], Array], far: Array) -> Array:
    """The point, at most ``far``, at which an exponent that decreases from 0 reaches -40, by bisection."""
    low, high = xp.zeros_like(far), far
    for _ in range(30):
        middle = 0.5 * (low + high)
        beyond = exponent(middle) < -40
        low, high = xp.where(beyond, low, middle), xp.where(beyond, middle, high)
    return high


def _integrate(xp: ArrayModule, function: Callable[[Array], Array], end: Array) -> Array:
    """The integral of a function from 0 to ``end``, by Gauss-Legendre quadrature."""
    total = xp.zeros_like(end)
    for node, weight in _gauss_legendre():
        total = total + weight * function(node * end)
    return end * total
