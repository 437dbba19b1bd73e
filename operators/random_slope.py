"""How a number of the gamma distribution moves with the shape parameter, the random bits being what they are.

Source: implicit reparameterisation (Figurnov, Mohamed, Mnih 2018): with the distribution function F and the density f
of the number x, ``dx/da = -(dF/da) / f``. Here of ``log x``, in float64.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import lazy

TERMS = 200


@functools.cache
def _rule() -> list[tuple[float, float]]:
    """Nodes between 0 and 1, and weights, of the rule of Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return [
        (0.5 * (node + 1), 0.5 * weight)
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True)
    ]


def slope(xp: Any, a: Any, log_x: Any) -> Any:
    """``d(log x)/da`` of numbers of the gamma distribution.

    Args:
        xp: numpy or cupy.
        a: float64 array of positive shapes.
        log_x: float64 array, the numbers' logarithms.
    """
    x = xp.exp(log_x)
    near = (a < 20) & (x < 1.5 * a + 5)
    upper = ~near & (x > a)
    valid = (a > 0) & xp.isfinite(a) & xp.isfinite(x) & ~xp.isnan(log_x)
    digamma = lazy.special_functions(xp).digamma
    out = xp.full(a.shape, xp.nan)
    for which, rule in ((near, _series), (upper, _above), (~near & ~upper, _below)):
        chosen = which & valid
        if bool(chosen.any()):
            out[chosen] = rule(xp, a[chosen], log_x[chosen], digamma)
    return out


def _series(xp: Any, a: Any, log_x: Any, digamma: Any) -> Any:
    """The power series of the incomplete gamma function, differentiated term by term."""
    x = xp.exp(log_x)
    term, total = xp.ones_like(a), xp.ones_like(a)
    harmonic, slope_ = xp.zeros_like(a), xp.zeros_like(a)
    for number in range(1, TERMS):
        term = term * x / (a + number)
        harmonic = harmonic + 1 / (a + number)
        total, slope_ = total + term, slope_ - term * harmonic
    return -(total * (log_x - digamma(a + 1)) + slope_) / a


def _above(xp: Any, a: Any, log_x: Any, digamma: Any) -> Any:
    """The integral over what is above x, relative to x."""
    x, psi = xp.exp(log_x), digamma(a)

    def exponent(w: Any) -> Any:
        return (a - 1) * xp.log1p(w) - x * w

    end = _end(xp, exponent, 40 / xp.maximum(x - a + 1, 1e-3))
    return _integral(xp, lambda w: (log_x + xp.log1p(w) - psi) * xp.exp(exponent(w)), end)


def _below(xp: Any, a: Any, log_x: Any, digamma: Any) -> Any:
    """The integral over what is below x, relative to x."""
    x, psi = xp.exp(log_x), digamma(a)

    def exponent(w: Any) -> Any:
        return (a - 1) * xp.log1p(-w) + x * w

    end = _end(xp, exponent, xp.full_like(a, 1 - 1e-12))
    return _integral(xp, lambda w: (psi - log_x - xp.log1p(-w)) * xp.exp(exponent(w)), end)


def _end(xp: Any, exponent: Any, far: Any) -> Any:
    """Where an exponent that falls from 0 has reached -40, at most ``far``, by bisection."""
    low, high = xp.zeros_like(far), far
    for _ in range(30):
        middle = 0.5 * (low + high)
        beyond = exponent(middle) < -40
        low, high = xp.where(beyond, low, middle), xp.where(beyond, middle, high)
    return high


def _integral(xp: Any, function: Any, end: Any) -> Any:
    """From 0 to ``end``."""
    total = xp.zeros_like(end)
    for node, weight in _rule():
        total = total + weight * function(node * end)
    return end * total
