"""Functions of gamma functions and logarithms: factorial, poch, multigammaln, kl_div, rel_entr."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ... import lazy
from ...errors import UnsupportedError
from ...operators.elementwise.exponential import exp, log
from ...operators.elementwise.selection import where
from .stats.distributions import INFINITY, to_floats

if TYPE_CHECKING:
    from ...registry.types import Tensor, TensorLike

_special: Any = lazy.Module(".special")


def factorial(n: TensorLike, exact: bool = False) -> Tensor:
    """``gamma(n + 1)``; 0 for negative numbers.

    Raises:
        UnsupportedError: ``exact`` is True.

    >>> import tandem.jax as jax
    >>> jax.scipy.special.factorial(jax.numpy.array([-1.0, 0.0])).tolist()
    [0.0, 1.0]
    """
    if exact:
        raise UnsupportedError("factorial: exact=True is not supported, as in JAX; use math.factorial")
    (x,) = to_floats(n)
    return where(x < 0, 0.0, exp(_special.gammaln(where(x < 0, 0.0, x) + 1.0)))


def poch(z: TensorLike, m: TensorLike) -> Tensor:
    """The rising factorial ``gamma(z + m) / gamma(z)``."""
    z, m = to_floats(z, m)
    return where(m == 0, 1.0, exp(_special.gammaln(z + m) - _special.gammaln(z)))


def multigammaln(a: TensorLike, d: int) -> Tensor:
    """The logarithm of the gamma function of ``d`` dimensions."""
    (x,) = to_floats(a)
    result: Tensor = x * 0.0 + d * (d - 1) / 4 * math.log(math.pi)
    for number in range(d):
        result = result + _special.gammaln(x - number / 2)
    return result


def rel_entr(p: TensorLike, q: TensorLike) -> Tensor:
    """``p * log(p / q)``; 0 where ``p`` is 0 and ``q`` is not negative, and infinite where one is negative."""
    p, q = to_floats(p, q)
    are_positive = (p > 0) & (q > 0)
    one, other = where(are_positive, p, 1.0), where(are_positive, q, 1.0)
    return where(are_positive, one * log(one / other), where((p == 0) & (q >= 0), 0.0, INFINITY))


def kl_div(p: TensorLike, q: TensorLike) -> Tensor:
    """``p * log(p / q) - p + q``, the terms of the divergence of Kullback and Leibler."""
    p, q = to_floats(p, q)
    return rel_entr(p, q) - p + q
