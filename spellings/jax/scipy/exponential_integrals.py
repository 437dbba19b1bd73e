"""The exponential integrals ``exp1`` and ``expn``: a series for small numbers, a continued fraction for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import lazy
from ...operators.elementwise.arithmetic import fmod
from ...operators.elementwise.exponential import exp, log
from ...operators.elementwise.selection import where
from .stats.distributions import INFINITY, NAN, to_floats

if TYPE_CHECKING:
    from ...registry.types import Tensor, TensorLike

_special: Any = lazy.Module(".special")
SERIES_TERMS, FRACTION_TERMS = 30, 50
"""What float64 needs for numbers up to 2, and from 2."""


def exp1(x: TensorLike) -> Tensor:
    """The integral of ``exp(-x * t) / t`` over t from 1 to infinity, see :func:`expn`."""
    return expn(1, x)


def expn(n: TensorLike, x: TensorLike) -> Tensor:
    """The integral of ``exp(-x * t) / t**n`` over t from 1 to infinity.

    Args:
        n: integers of at least 0.
        x: real numbers; NaN where they are negative.

    Source: ``scipy.special.expn``.

    >>> import tandem.jax as jax
    >>> jax.scipy.special.expn(3, jax.numpy.zeros(1)).tolist()
    [0.5]
    """
    order, x = to_floats(n, x)
    is_small = (x > 0) & (x < 2)
    small, large = where(is_small, x, 1.0), where(x >= 2, x, 2.0)
    index = where(order < 1, 1.0, order)
    result = where(is_small, _sum_series(index, small), _evaluate_fraction(index, large))
    zeroth = exp(-x) / x
    at_zero = where(order > 1, 1.0 / where(order > 1, order - 1.0, 1.0), INFINITY)
    result = where(order == 0, zeroth, result)
    return where(x == 0, at_zero, where((x < 0) | (order < 0), NAN, result))


def _sum_series(n: Tensor, x: Tensor) -> Tensor:
    """The power series around 0, whose term of degree ``n - 1`` has a logarithm."""
    result, power = x * 0.0, x * 0.0 + 1.0
    for degree in range(SERIES_TERMS):
        gap = degree + 1.0 - n
        result = result - where(gap == 0, 0.0, power / where(gap == 0, 1.0, gap))
        power = power * (-x / (degree + 1.0))
    parity = where(fmod(n, 2.0) == 0, -1.0, 1.0)
    factor = parity * exp((n - 1.0) * log(x) - _special.gammaln(n))
    total: Tensor = result + factor * (_special.digamma(n) - log(x))
    return total


def _evaluate_fraction(n: Tensor, x: Tensor) -> Tensor:
    """The continued fraction, from its last term."""
    rest = x * 0.0
    for k in range(FRACTION_TERMS, 0, -1):
        rest = k * (n + (k - 1.0)) / (x + n + 2.0 * k - rest)
    return exp(-x) / (x + n - rest)
